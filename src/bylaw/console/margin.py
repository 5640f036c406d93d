"""What stands in the margin of a document: beside each sentence, the policies that cite it and how they stand."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from bylaw.policy.statement import Policy
from bylaw.review.coverage import Covered


class Margin(Struct, frozen=True):
    covered: Covered
    notes: tuple[tuple[Policy, str], ...]
    """Each policy that cites it, and how it was reviewed."""


Group = tuple[str, str, list[Margin]]


def margins_of(covered: Iterable[Covered], states: Mapping[str, str]) -> tuple[list[Group], set[str]]:
    """Sentences under the file and the heading that they stand under, and the policies that any of them bears."""
    groups: list[Group] = []
    cited: set[str] = set()
    for each in covered:
        place = (each.document, each.sentence.heading)
        if not groups or groups[-1][:2] != place:
            groups.append((*place, []))
        groups[-1][2].append(Margin(each, tuple((policy, states.get(policy.id, "")) for policy in each.policies)))
        cited.update(policy.id for policy in each.policies)
    return groups, cited
