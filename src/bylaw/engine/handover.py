"""Handovers: if the pack allows it (`handover`), a conversation continues with another principal.

Look-ups and actions remain valid. Messages, cards, answers, approvals and facts about the previous principal do not.
Each rule applies twice: to the whole conversation, and to the part after the handover. Required first steps must
therefore be repeated for the new principal.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bylaw.engine.conduct import ActFindings, Ask, Conduct, RuleFinding, Tell
from bylaw.facts.ledger import Ledger
from bylaw.facts.schema import Schema
from bylaw.rule.circuit import Assessment, Evidence
from bylaw.rule.monitor import Act
from bylaw.trace.event import Call, Event, Message, Result

_WORST_FIRST = ("deny", "ask", "allow")


class Former(Struct, frozen=True):
    """The part of a conversation with an earlier principal."""

    end: int
    """The step after the last event in this part."""
    ledger: Ledger
    context: Mapping[str, Any]


def silenced(events: Iterable[Event], schema: Schema) -> list[Event]:
    """Return the events as the new principal sees them, without the earlier principals' messages and answers."""
    personal = {
        tool
        for tool, kinds in schema.shows.items()
        if any(schema.entities[kind].origin == "conversation" for kind in kinds)
    }
    return [_silenced(event, personal) for event in events]


def _silenced(event: Event, personal: set[str]) -> Event:
    match event:
        case Message():
            return replace(event, text="", captured=True, confirmation=None)
        case Call():
            return replace(event, card=None, approved=None, context=None)
        case Result():
            return replace(event, captured=False) if event.tool in personal else event


class HandedConduct:
    """The rules after a handover. Each rule applies to the whole conversation and, separately, to the part after the
    handover.
    """

    def __init__(self, whole: Conduct, since: Conduct) -> None:
        self._whole = whole
        self._since = since

    @classmethod
    def after(cls, conduct: "Conduct | HandedConduct", ask: Ask, tell: Tell | None) -> "HandedConduct":
        """Return rules that also apply separately to the part that begins at the current position."""
        whole = conduct._whole if isinstance(conduct, HandedConduct) else conduct
        return cls(whole.asking(ask, tell), whole.afresh(ask, tell))

    @property
    def acts(self) -> list[tuple[Act, dict[str, bool | None]]] | None:
        """Like `Conduct.acts`, for the whole conversation."""
        return self._whole.acts

    @acts.setter
    def acts(self, acts: list[tuple[Act, dict[str, bool | None]]] | None) -> None:
        self._whole.acts = acts

    def fork(self) -> "HandedConduct":
        """Return an independent copy that has processed the same events."""
        return HandedConduct(self._whole.fork(), self._since.fork())

    def observe(self, step: int, event: Event, said: list[ActFindings], *, is_beside: bool = False) -> None:
        """Process an event. Append to `said` the findings for each act that is now complete, its own act last."""
        whole, since = list[ActFindings](), list[ActFindings]()
        self._whole.observe(step, event, whole, is_beside=is_beside)
        self._since.observe(step, event, since, is_beside=is_beside)
        said += _together(whole, since)

    def act_of(self, step: int, call: Call) -> Act | None:
        """Return the act of a planned call."""
        return self._since.act_of(step, call)

    def weigh(self, step: int, call: Call, answers: Evidence) -> Assessment | None:
        """Return the worse of two assessments of a planned call: over the whole conversation, and over the part after
        the handover.
        """
        both = [self._whole.weigh(step, call, answers), self._since.weigh(step, call, answers)]
        weighed = [each for each in both if each is not None]
        return min(weighed, key=lambda each: (_WORST_FIRST.index(each.decision), each.interval[0]), default=None)

    def finish(self) -> list[ActFindings]:
        return _together(self._whole.finish(), self._since.finish())


def _together(whole: Sequence[ActFindings], since: Sequence[ActFindings]) -> list[ActFindings]:
    found = {each.step: each for each in whole}
    for each in since:
        known = found.get(each.step, ActFindings(each.step, each.turn))
        broken = _added(known.broken, each.broken, ())
        open = _added(known.open, each.open, broken)
        settled = {_about(finding) for finding in broken}
        still = tuple(finding for finding in open if _about(finding) not in settled)
        found[each.step] = replace(known, broken=broken, open=still)
    return [found[step] for step in sorted(found)]


def _added(
    first: tuple[RuleFinding, ...], then: tuple[RuleFinding, ...], but: tuple[RuleFinding, ...]
) -> tuple[RuleFinding, ...]:
    known = {_about(finding) for finding in (*first, *but)}
    return (*first, *(finding for finding in then if _about(finding) not in known))


def _about(finding: RuleFinding) -> tuple[str, str]:
    return finding.rule.name, finding.binding
