"""What stands in the margin of a document: beside each sentence, the policies that cite it and how they stand."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from bylaw.policy.statement import Policy
from bylaw.review.coverage import Covered


class Margin(Struct, frozen=True):
    """What stands beside a sentence."""

    covered: Covered
    notes: tuple[tuple[Policy, str], ...]
    """Each policy that cites it, and how it was reviewed."""


def margin_of(covered: Covered, states: Mapping[str, str]) -> Margin:
    """What stands beside one sentence."""
    return Margin(covered, tuple((policy, states.get(policy.id, "")) for policy in covered.policies))


def grouped(margins: Iterable[Margin]) -> list[tuple[str, str, list[Margin]]]:
    """Sentences under the file and the heading that they stand under."""
    groups: list[tuple[str, str, list[Margin]]] = []
    for margin in margins:
        place = (margin.covered.document, margin.covered.sentence.heading)
        if not groups or groups[-1][:2] != place:
            groups.append((*place, []))
        groups[-1][2].append(margin)
    return groups
