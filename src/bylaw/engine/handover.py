"""Another principal goes on with a conversation, where the pack allows it (`handover`).

They find what was looked up and done, and nothing that was said: no word, card, answer or approval of before is theirs,
nor what the conversation itself established of whom it was with. Rules hold for the whole, and again for what comes
since, so that what has to come first comes first for them too.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bylaw.engine.conduct import Ask, Conduct, Tell
from bylaw.engine.rule_finding import ActFindings, RuleFinding
from bylaw.facts.ledger import Ledger
from bylaw.facts.schema import Schema
from bylaw.rule.circuit import Assessment, Evidence
from bylaw.rule.monitor import Act
from bylaw.trace.event import Call, Event, Message, Result

_WORST_FIRST = ("deny", "ask", "allow")


class Former(Struct, frozen=True):
    """A part of a conversation that was with somebody else."""

    end: int
    """The first step after it."""
    ledger: Ledger
    """It goes on, for what later results tell of calls of this part."""
    context: Mapping[str, Any]


def silenced(events: Iterable[Event], schema: Schema) -> list[Event]:
    """What happened, step by step, as whoever goes on finds it."""
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
    """The rules after a handover: each holds for the conversation as a whole, and for what came since."""

    def __init__(self, whole: Conduct, since: Conduct) -> None:
        self._whole = whole
        self._since = since

    @classmethod
    def after(cls, conduct: "Conduct | HandedConduct", ask: Ask, tell: Tell | None) -> "HandedConduct":
        """The rules of a conversation that is handed over now."""
        whole = conduct._whole if isinstance(conduct, HandedConduct) else conduct
        return cls(whole.asking(ask, tell), whole.afresh(ask, tell))

    @property
    def acts(self) -> list[tuple[Act, dict[str, bool | None]]] | None:
        """Where somebody wants them: every act so far, with all its predicates."""
        return self._whole.acts

    @acts.setter
    def acts(self, acts: list[tuple[Act, dict[str, bool | None]]] | None) -> None:
        self._whole.acts = acts

    def fork(self) -> "HandedConduct":
        """Another conduct with the same past."""
        return HandedConduct(self._whole.fork(), self._since.fork())

    def observe(self, step: int, event: Event, said: list[ActFindings]) -> None:
        """Take in the next event; `said` gets what the rules say of the acts it settles, its own last."""
        whole, since = list[ActFindings](), list[ActFindings]()
        self._whole.observe(step, event, whole)
        self._since.observe(step, event, since)
        said += _together(whole, since)

    def act_of(self, step: int, call: Call) -> Act | None:
        """The act that a call about to be made would be."""
        return self._since.act_of(step, call)

    def weigh(self, step: int, call: Call, answers: Evidence) -> Assessment | None:
        """What the rules together say of a call that is about to be made: the worse of both."""
        both = [self._whole.weigh(step, call, answers), self._since.weigh(step, call, answers)]
        weighed = [each for each in both if each is not None]
        return min(weighed, key=lambda each: (_WORST_FIRST.index(each.decision), each.interval[0]), default=None)

    def finish(self) -> list[ActFindings]:
        """The conversation has ended."""
        return _together(self._whole.finish(), self._since.finish())


def _together(whole: Sequence[ActFindings], since: Sequence[ActFindings]) -> list[ActFindings]:
    """What is said of acts by the rules in both ways, each once."""
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
