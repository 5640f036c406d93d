"""Consent as a rule asks for it: a predicate about the act at hand, from the conversation so far."""

from typing import Any, Protocol

from bylaw.consent.argument import Terms
from bylaw.consent.card_text import CardWords
from bylaw.consent.consents import Consents
from bylaw.consent.deed import Deeds
from bylaw.consent.finding import Basis, Consent, OpenConsent
from bylaw.facts.call_record import CallRecord
from bylaw.facts.ledger import Ledger
from bylaw.trace.event import Event

_CHANGES = ("write", "unknown")
"""Effects of tools that a user may have to agree to."""


class Act(Protocol):
    """What is known of an act here."""

    @property
    def effect(self) -> str:
        """The called tool's effect; empty for a message."""
        ...


class ConsentWitness:
    """Follows one conversation, and says of its writes whether the user agreed to them.

    Nothing is read until a write asks; then each message and each result is read once.
    """

    def __init__(
        self,
        ledger: Ledger,
        basis: Basis = "told",
        terms: Terms | None = None,
        words: CardWords | None = None,
        deeds: Deeds | None = None,
    ) -> None:
        self._events: list[Event] = []
        self.words = words or CardWords()
        self._basis: Basis = basis
        self._consents = Consents(self._events, ledger, terms, self.words, deeds)
        self._found: tuple[CallRecord, int, Consent] | None = None
        """What was found last, for which call, after how many events: first it is asked whether, and then why."""

    def observe(self, step: int, event: Event) -> None:
        """Take in the next event; nothing is read yet."""
        assert step == len(self._events)
        self._events.append(event)

    def prepare(self) -> None:
        """Read what has been said, which a write that comes next will ask about."""
        self._consents.prepare(len(self._events))

    def ask(self, act: Act, record: CallRecord) -> bool | None:
        """Whether the user agreed to the call about to be observed; of acts that change nothing, no."""
        return act.effect in _CHANGES and self._find(record).value

    def tell(self, act: Act, record: CallRecord) -> dict[str, Any] | None:
        """Why this is thought so, as data."""
        return self._find(record).record() if act.effect in _CHANGES else None

    def question(self, act: Act, record: CallRecord) -> OpenConsent | None:
        """What is open of it, as a question for a model or a person; None where nothing is."""
        call = record.call
        return self._find(record).question(call.tool, call.arguments) if act.effect in _CHANGES else None

    def card_text(self, record: CallRecord) -> str:
        """The call in plain words, to be put to the user."""
        return self._consents.card_text(record)

    def _find(self, record: CallRecord) -> Consent:
        last = self._found
        if last is None or last[0] is not record or last[1] != len(self._events):
            last = self._found = (record, len(self._events), self._consents.find(record, self._basis))
        return last[2]
