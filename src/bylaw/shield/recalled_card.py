"""Finds the cards of earlier requests for hosts that keep the history.

Each request from such a host is a separate conversation, so the next request must find the earlier card and the user's
answer. The call, its text, the pack and the principal must match. The history must continue from the card, without a
user message in between. Without a principal, no card is found, because two users may write the same messages. A
confirmation ends when the user declines a card for any spelling of the call, or when any spelling of the call is made.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from bylaw.consent import standing_of
from bylaw.engine.door import PRINCIPAL
from bylaw.record.approval import fingerprint
from bylaw.record.entry import Draft, Entry
from bylaw.record.log import Log
from bylaw.shield.decision import Decision
from bylaw.shield.history import event_body, read_history
from bylaw.trace.event import Call, Card, Confirmation, Event, Message, Result

AGAIN = 200
"""The maximum number of earlier cards to examine for one call."""


class Recalled(Struct, frozen=True):
    next: str
    """The id to use for the entry of the next card."""
    card: Card | None = None
    name: str = ""
    """The id of the entry of the card that was found."""
    home: str = ""
    yes: Message | None = None

    @property
    def confirmation(self) -> Confirmation | None:
        return self.yes.confirmation if self.yes is not None else None

    def name_of(self, decision: Decision) -> str:
        """Return the id for a decision's entry if another request may search for its card. Otherwise return an empty
        string.
        """
        return self.next if decision.card is not None and decision.card.id == decision.id else ""

    def used(self, tenant: str, call: Call, decision: str) -> Draft:
        """Return the entry that marks the card as used, in the card's own conversation. The log accepts only one such
        entry.
        """
        made = Call(call.tool, call.arguments, decision, turn=call.turn, time=call.time)
        return Draft(tenant, self.home, "event", event_body(made), f"{self.name}:used")


def is_signed_in(context: Mapping[str, Any]) -> bool:
    """Whether the host names a principal. Otherwise, the same words may come from another user."""
    return bool(str(context.get(PRINCIPAL) or "").strip())


class _Home(Struct, frozen=True):
    """A card for some spelling of the call, and the conversation in which it was shown."""

    name: str
    id: str
    events: Sequence[Event]
    numbers: Sequence[int]
    """For each event, the number of its log entry."""
    put: int
    card: Card

    def stands(self, now: float) -> bool:
        """Whether the card is still valid: the user may still confirm it, or a call may still use the confirmation."""
        standing = standing_of(self.events, self.card.id)
        is_over = self.card.expires is not None and now >= self.card.expires
        return not is_over and standing is not None and standing.used_by is None and standing.answer is not False

    def is_continued(self, before: Sequence[Event]) -> bool:
        """Whether a history continues from the card without a new user message.

        A history without any user messages does not count, because it may belong to any user and may omit later
        messages.
        """
        known = self.events[: self.put]
        return _has_spoken(known) and continues(known, before) and not _has_spoken(before[self.put :])

    def yes(self) -> tuple[int, Message] | None:
        for number, event in self._since():
            if isinstance(event, Message) and event.confirmation is not None and event.confirmation.yes:
                return number, event
        return None

    def declined(self, now: float) -> int:
        """Return the entry number of the user's denial if it is still valid, otherwise 0."""
        if self.card.expires is not None and now >= self.card.expires:
            return 0
        return max((number for number, event in self._since() if _is_no(event)), default=0)

    def ends_yes(self) -> int:
        """Return the number of the last entry that ends earlier confirmations of the call, or 0. Such an entry is a
        denial or a call that was not refused.
        """
        ends = (
            number
            for number, event in self._since()
            if (isinstance(event, Call) and not event.refused) or _is_no(event)
        )
        return max(ends, default=0)

    def _since(self) -> Iterator[tuple[int, Event]]:
        return zip(self.numbers[self.put :], self.events[self.put :], strict=True)


class EarlierCards:
    """The cards that were shown to a principal in earlier requests, for any spelling of one call."""

    def __init__(self, log: Log, tenant: str, terms: str, context: Mapping[str, Any], pin: str) -> None:
        """`terms` is equal for all spellings of the call. `pin` identifies the pack."""
        self._homes: list[_Home] = []
        self._next = ""
        if not is_signed_in(context):
            return
        key = fingerprint([terms, context[PRINCIPAL], pin])[:32]
        for number in range(1, AGAIN):
            name = f"card:{key}/{number}"
            entry = log.named(tenant, name)
            if entry is None:
                self._next = name
                return
            id = entry.conversation or ""
            if (home := _home(name, id, log.conversation(tenant, id))) is not None:
                self._homes.append(home)

    def recalled(self, card: Card, before: Sequence[Event], now: float, may_be_made: Callable[[int], bool]) -> Recalled:
        """Return the earlier card to use in place of a new one.

        `before` contains the events before the call. `may_be_made` reports whether any spelling of the call may have
        run since a given step.
        """
        ended = max((each.ends_yes() for each in self._homes), default=0)
        for each in self._homes:
            is_same = (each.card.digest, each.card.text) == (card.digest, card.text)
            if not is_same or not each.stands(now) or not each.is_continued(before):
                continue
            yes = each.yes()
            if yes is not None and (yes[0] < ended or may_be_made(each.put - 1)):
                continue
            return Recalled(self._next, each.card, each.name, each.id, yes[1] if yes is not None else None)
        return Recalled(self._next)

    def was_declined(self, before: Sequence[Event], now: float) -> bool:
        """Whether the user declined a card with a button and has not answered a later card."""
        declined = max((each.declined(now) for each in self._homes), default=0)
        if not declined:
            return False
        last = max((at for at, each in enumerate(before) if _has_spoken([each])), default=-1)
        for each in self._homes:
            yes = each.yes()
            if yes is not None and yes[0] > declined:
                return False
            is_later = each.numbers[each.put] > declined and each.put <= last
            if is_later and continues(each.events[: each.put], before):
                return False
        return True


def _home(name: str, id: str, entries: Sequence[Entry]) -> _Home | None:
    history = read_history(entries)
    events = history.events if history is not None else []
    numbers = [each.number for each in entries if each.kind == "event"]
    for at, each in enumerate(events):
        if isinstance(each, Call) and each.card is not None:
            return _Home(name, id, events, numbers, at, each.card)
    return None


def is_of_one_chat(first: Sequence[Event], then: Sequence[Event]) -> bool:
    """Whether one history continues the other. Both or neither must contain user messages, because otherwise every chat
    would continue an empty one.
    """
    return continues(first, then) and (_has_spoken(first) or not _has_spoken(then))


def continues(first: Sequence[Event], then: Sequence[Event]) -> bool:
    return list(map(_told, first)) == list(map(_told, then[: len(first)]))


def _is_no(event: Event) -> bool:
    return isinstance(event, Message) and event.confirmation is not None and not event.confirmation.yes


def _has_spoken(events: Sequence[Event]) -> bool:
    return any(isinstance(each, Message) and each.by == "user" for each in events)


def _told(event: Event) -> tuple[Any, ...]:
    match event:
        case Message():
            return "message", event.by, event.text, event.captured
        case Call():
            return "call", event.by, event.tool, event.arguments, event.fault
        case Result():
            return "result", event.call, event.text, event.captured
