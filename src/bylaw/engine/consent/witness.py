"""Consent as a rule asks for it: a predicate about the act at hand, from the conversation so far."""

from typing import Any

from bylaw.engine.consent.consent import Basis, Consent
from bylaw.engine.consent.consents import Consents
from bylaw.facts.call_record import CallRecord
from bylaw.facts.ledger import Ledger
from bylaw.rule.act import Act
from bylaw.trace.event import Event, Message

_CHANGES = ("write", "unknown")
"""Effects of tools that a user may have to agree to."""
_MUCH = 64
"""Events after which they are taken in, so that no single question has a long conversation to read."""


class ConsentWitness:
    """Follows one conversation, and says of its writes whether the user agreed to them."""

    def __init__(self, ledger: Ledger, basis: Basis) -> None:
        self._events: list[Event] = []
        self._basis: Basis = basis
        self._consents = Consents(self._events, ledger)
        self._followed = 0
        self._found: tuple[CallRecord, int, Consent] | None = None
        """What was found last, for which call, after how many events: first it is asked whether, and then why."""

    def observe(self, step: int, event: Event) -> None:
        """Take in the next event; nothing is read until a write asks, or until much has gathered."""
        assert step == len(self._events)
        self._events.append(event)
        if step - self._followed >= _MUCH and isinstance(event, Message) and event.by == "user":
            # No later call begins before what the user says now.
            self._consents.follow(step)
            self._followed = step

    def prepare(self) -> None:
        """Read what has been said, which a write that comes next will ask about."""
        self._consents.prepare(len(self._events))

    def ask(self, act: Act, record: CallRecord) -> bool | None:
        """Whether the user agreed to the call about to be observed; of acts that change nothing, no."""
        return act.effect in _CHANGES and self._find(record).value

    def tell(self, act: Act, record: CallRecord) -> dict[str, Any] | None:
        """Why this is thought so, as data."""
        return self._find(record).record() if act.effect in _CHANGES else None

    def _find(self, record: CallRecord) -> Consent:
        last = self._found
        if last is None or last[0] is not record or last[1] != len(self._events):
            last = self._found = (record, len(self._events), self._consents.find(record, self._basis))
        return last[2]
