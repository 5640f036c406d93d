"""Consent as a rule asks for it: a predicate about the act at hand, from the conversation so far."""

from bylaw.engine.act import Act
from bylaw.engine.consent.consents import Basis, Consents
from bylaw.facts.ledger import CallRecord, Ledger
from bylaw.trace.event import Event

_CHANGES = ("write", "unknown")
"""Effects of tools that a user may have to agree to."""


class ConsentWitness:
    """Follows one conversation, and says of its writes whether the user agreed to them."""

    def __init__(self, ledger: Ledger, basis: Basis) -> None:
        self._events: list[Event] = []
        self._basis: Basis = basis
        self._consents = Consents(self._events, ledger)

    def observe(self, step: int, event: Event) -> None:
        """Take in the next event; nothing is read until a write asks."""
        assert step == len(self._events)
        self._events.append(event)

    def ask(self, act: Act, record: CallRecord) -> bool | None:
        """Whether the user agreed to the call about to be observed; of acts that change nothing, no."""
        return act.effect in _CHANGES and self._consents.find(record, self._basis).value
