"""Decisions about the caller's consent, compared with the script of the conversation."""

from collections import Counter
from collections.abc import Iterator

from msgspec import Struct

from bylaw.facts.ledger import Ledger
from bylaw.pack import load_pack
from bylaw.rule.monitor import Act
from bylaw.trace.event import Call, Event, Result
from bylaw_lab.clinic.simulator.desk import WRITES
from bylaw_lab.clinic.simulator.generate import Simulated, simulated

PACK = load_pack("clinic")


class Write(Struct, frozen=True):
    """A change, whether the caller agreed to it, and the decision."""

    made: Simulated
    step: int
    call: Call
    agreed: bool
    value: bool | None
    reason: str

    @property
    def why_open(self) -> str:
        """Return why events alone do not show an agreement; empty if they do."""
        if self.call.fault:
            return "the call could not be read"
        if self.call.arguments.get("scopes") == []:
            return "no sentence says a list of nothing"
        return "a call like it may have been done" if self.may_be_done_already else ""

    @property
    def may_be_done_already(self) -> bool:
        """Whether the same call was sent since the caller last spoke, and not refused."""
        events = self.made.trajectory.events
        spoke = max(step for step, event in enumerate(events[: self.step]) if _is_users(event))
        refused = {event.call for event in events if isinstance(event, Result) and _is_refusal(event)}
        sent = [step for step in range(spoke, self.step) if _is_like(events[step], self.call)]
        return any(step not in refused for step in sent)


def _is_users(event: Event) -> bool:
    return not isinstance(event, Call | Result) and event.by == "user"


def _is_refusal(event: Result) -> bool:
    return event.text.startswith(('{"error"', "Error: "))


def _is_like(event: Event, call: Call) -> bool:
    return isinstance(event, Call) and event.tool == call.tool and _told(event) == _told(call)


def _told(call: Call) -> dict[str, object]:
    return {name: value for name, value in call.arguments.items() if name != "reason"}


def writes(seed: int, count: int) -> Iterator[Write]:
    """Return every change in this number of simulated conversations."""
    for made in simulated(seed, count):
        ledger = Ledger(PACK.schema)
        witness = PACK.book.predicates["agreed"].witness
        assert witness is not None
        consents = witness(ledger)
        for step, event in enumerate(made.trajectory.events):
            record = None
            if isinstance(event, Call) and event.tool in WRITES:
                record = ledger.record(event, step)
                act = Act(step, event.tool, event.arguments, "", (), (), 1, 1, False, "write")
                told = consents.tell(act, record)
                assert told is not None
                yield Write(made, step, event, step in made.agreed, consents.ask(act, record), told["reason"])
            ledger.observe_all(step, [event], record)
            consents.observe(step, event)


def test_consent_is_found_as_the_conversation_was_played() -> None:
    found: Counter[tuple[bool, bool | None]] = Counter()
    for write in writes(31, 400):
        where = f"{write.made.trajectory.id} at step {write.step}: {write.reason}"
        found[write.agreed, write.value] += 1
        if write.agreed:
            assert write.value is not False, where
            assert (write.value is None) == bool(write.why_open), where
        else:
            assert write.value is not True, where
    assert found[True, True] > 10 * found[True, None] > 0
    assert found[False, False] > found[False, None] > 0
