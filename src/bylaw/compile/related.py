"""Finds related policies, which show the author of a check where a policy's scope ends.

Two policies are related if they bind the same tool and cite the same sentence. They are also related if they are under
the same heading and one of them states an exception ("unless", "does not apply", "instead").
"""

import re
from collections.abc import Mapping, Sequence

from bylaw.compile.sort import Sorted
from bylaw.compile.span import Draft, covered
from bylaw.policy.document import Document

_MOST = 4
"""The maximum number of related policies to show."""
_EXCEPTS = re.compile(
    r"\b(except|unless|exempt|waive|exceptions?|instead of|in place of|regardless|overrides?|takes precedence"
    r"|(?:does|do|shall|will) not apply)",
    re.IGNORECASE,
)


def related(drafts: Sequence[Draft], kinds: Mapping[str, Sorted], document: Document) -> dict[str, tuple[Draft, ...]]:
    """For each policy, return the related policies, closest first. Only policies that bind tools are considered."""
    bound = [each for each in drafts if each.id in kinds and kinds[each.id].tools]
    starts = {each.id: covered([each.quotes], document) for each in bound}
    headings = {name: {document.headings_at(start)[-1:] for start in found} - {()} for name, found in starts.items()}
    excepts = {each.id: _EXCEPTS.search(" ".join((each.definition, *each.quotes))) is not None for each in bound}
    found: dict[str, tuple[Draft, ...]] = {}
    for one in bound:
        shared: list[Draft] = []
        excepted: list[Draft] = []
        for other in bound:
            if other.id == one.id or not set(kinds[one.id].tools) & set(kinds[other.id].tools):
                continue
            if starts[one.id] & starts[other.id]:
                shared.append(other)
            elif headings[one.id] & headings[other.id] and (excepts[one.id] or excepts[other.id]):
                excepted.append(other)
        if shared or excepted:
            found[one.id] = (*shared, *excepted)[:_MOST]
    return found


def related_text(policies: Sequence[Draft]) -> str:
    """List related policies, one per line, for use below the policy's own text. Empty if there are none."""
    if not policies:
        return ""
    lines = (f"\n    {each.id}: {each.definition}" for each in policies)
    return f"\n  Beside it stand, each with a check of its own:{''.join(lines)}"
