"""Where a host does not tell what the user says: who answers what only the user could.

To ask the user again would go on for ever, since the answer never comes here. Where the pack says so (`stands_in`), a
person may answer in the user's place: that is an override, in the log by name, and never the user's yes.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from bylaw.policy.posture import ApprovalTerms
from bylaw.shield.decision import Ground


def stood_in(grounds: Sequence[Ground], terms: ApprovalTerms, *, hears: bool = False) -> list[Ground]:
    """The grounds, their questions for the user put to a person where the pack lets one stand in; where what the user
    says next is heard, others stay questions for them."""
    return [_stood_in(each, terms, hears) for each in grounds]


def _stood_in(ground: Ground, terms: ApprovalTerms, hears: bool) -> Ground:
    if ground.answer != "ask" or all(each.whom != "user" for each in ground.questions):
        return ground
    if ground.policy not in terms.stands_in:
        return ground if hears else replace(ground, is_unheard=True)
    asked = tuple(replace(each, whom="person") for each in ground.questions)
    return replace(ground, questions=asked, stands_in=True)
