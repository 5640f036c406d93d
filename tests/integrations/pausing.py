"""What must come of a pause in every framework that has one."""

from functools import partial
from typing import Any

from bylaw.shield import LiveSession, Shield
from bylaw.trace.event import Call, Message

CONFIRMED = {"confirm": True, "by": "button"}
APPROVED = {"approve": True, "by": "ann"}
"""Answers, to be completed by the id of what they answer."""


def check_card(session: LiveSession) -> None:
    """One card, one answer of the user's, and the same call made again, which spends it."""
    events = session.trajectory().events
    calls = [each for each in events if isinstance(each, Call) and each.tool == "extend_rental"]
    assert [each.refused for each in calls] == [True, False]
    assert len({each.id.partition("#")[0] for each in calls}) == 1
    assert calls[0].card is not None
    said = [each.confirmation for each in events if isinstance(each, Message) and each.confirmation is not None]
    assert [(each.card, each.yes, each.by) for each in said] == [(calls[0].card.id, True, "button")]
    again = session.decide(calls[0].tool, calls[0].arguments)
    assert not again.allowed, "one yes is one write"


def check_approval(shield: Shield) -> None:
    """One approval, used, with the name of who gave it; and no answer of the user's to any card."""
    assert shield.log is not None
    (approval,) = shield.log.approvals("default")
    assert approval.status == "used"
    assert approval.answer is not None
    assert approval.answer.by == "ann"
    events = shield.session("c1").trajectory().events
    assert not any(isinstance(each, Message) and each.confirmation is not None for each in events)
    last = [each for each in events if isinstance(each, Call)][-1]
    assert last.approved is not None
    assert last.approved.by == "ann"


class Asking:
    """Whom the lines of a guide ask, and that they say yes."""

    def __init__(self) -> None:
        self.whom: list[str] = []

    def names(self) -> dict[str, Any]:
        """As the guide calls them."""
        return {"show_card": partial(self._ask, "user"), "ask_manager": partial(self._ask, "person")}

    def _ask(self, whom: str, text: str) -> bool:
        assert "2026-11-20" in text
        self.whom.append(whom)
        return True
