"""Cards of hosts that keep the history themselves. Each of their requests is a conversation of its own; the card that
one of them received is found again by the next, together with the user's answer.

A card is found by the call, its text, the pack and the principal if the history continues the one in which it was shown
and the user has said nothing since. Without a principal nothing is found, because two users may say the same. A yes
ends if the user has since declined a card for any spelling of the call, or such a call was made.
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
"""Maximum number of cards for one call to examine."""


class Recalled(Struct, frozen=True):
    """A card that waits or was confirmed, if one was found."""

    next: str
    """The id for the entry that shows the next card."""
    card: Card | None = None
    name: str = ""
    """The id of the entry that showed it."""
    home: str = ""
    """The conversation that showed it."""
    yes: Message | None = None

    def name_of(self, decision: Decision) -> str:
        """The id of a decision's entry, if it shows a card that another request may look for."""
        return self.next if decision.card is not None and decision.card.id == decision.id else ""

    def used(self, tenant: str, call: Call, decision: str) -> Draft:
        """The entry that tells its conversation that a call used it; only one such entry is written."""
        made = Call(call.tool, call.arguments, decision, turn=call.turn, time=call.time)
        return Draft(tenant, self.home, "event", event_body(made), f"{self.name}:used")


def is_signed_in(context: Mapping[str, Any]) -> bool:
    """Whether the host vouches for a principal; otherwise the same words may be another user's."""
    return bool(str(context.get(PRINCIPAL) or "").strip())


class _Home(Struct, frozen=True):
    """A card for some spelling of a call, with its conversation."""

    name: str
    id: str
    events: Sequence[Event]
    numbers: Sequence[int]
    """The number of each event's entry in the log."""
    put: int
    card: Card

    def stands(self, now: float) -> bool:
        """Whether the card may still be answered with yes, or used."""
        standing = standing_of(self.events, self.card.id)
        is_over = self.card.expires is not None and now >= self.card.expires
        return not is_over and standing is not None and standing.used_by is None and standing.answer is not False

    def is_continued(self, before: Sequence[Event]) -> bool:
        """Whether a history continues the one in which the card was shown, and the user has said nothing since. A
        history without the user's words may be anybody's, and may omit later messages.
        """
        known = self.events[: self.put]
        return _has_spoken(known) and continues(known, before) and not _has_spoken(before[self.put :])

    def yes(self) -> tuple[int, Message] | None:
        """The user's yes to it, with the number of its entry."""
        for number, event in self._since():
            if isinstance(event, Message) and event.confirmation is not None and event.confirmation.yes:
                return number, event
        return None

    def declined(self, now: float) -> int:
        """The entry with the user's no to it, while that stands; 0 for none."""
        if self.card.expires is not None and now >= self.card.expires:
            return 0
        return max((number for number, event in self._since() if _is_no(event)), default=0)

    def ends_yes(self) -> int:
        """The last entry that ends every yes to the call which was given before it: a no, or a call; 0 for none."""
        ends = (
            number
            for number, event in self._since()
            if (isinstance(event, Call) and not event.refused) or _is_no(event)
        )
        return max(ends, default=0)

    def _since(self) -> Iterator[tuple[int, Event]]:
        return zip(self.numbers[self.put :], self.events[self.put :], strict=True)


def recalled(
    log: Log,
    tenant: str,
    card: Card,
    terms: str,
    context: Mapping[str, Any],
    pin: str,
    before: Sequence[Event],
    now: float,
    may_be_made: Callable[[int], bool],
) -> Recalled:
    """The earlier card to use instead of a new one. `before` are the events before its call, `terms` are equal for all
    spellings of the call, and `may_be_made` says whether one of them may have been made since a step.
    """
    homes, name = _homes(log, tenant, terms, context, pin)
    ended = max((each.ends_yes() for each in homes), default=0)
    for each in homes:
        is_same = (each.card.digest, each.card.text) == (card.digest, card.text)
        if not is_same or not each.stands(now):
            continue
        if not each.is_continued(before):
            continue
        yes = each.yes()
        if yes is not None and (yes[0] < ended or may_be_made(each.put - 1)):
            continue
        return Recalled(name, each.card, each.name, each.id, yes[1] if yes is not None else None)
    return Recalled(name)


def was_declined(
    log: Log, tenant: str, terms: str, context: Mapping[str, Any], pin: str, before: Sequence[Event], now: float
) -> bool:
    """Whether the user has declined a card for a call in any spelling, by a button, and has not been shown another and
    answered since."""
    homes, _ = _homes(log, tenant, terms, context, pin)
    declined = max((each.declined(now) for each in homes), default=0)
    last = max((at for at, each in enumerate(before) if _has_spoken([each])), default=-1)
    for each in homes if declined else ():
        yes = each.yes()
        if yes is not None and yes[0] > declined:
            return False
        is_later = each.numbers[each.put] > declined and each.put <= last
        if is_later and continues(each.events[: each.put], before):
            return False
    return bool(declined)


def _homes(log: Log, tenant: str, terms: str, context: Mapping[str, Any], pin: str) -> tuple[Sequence[_Home], str]:
    """The cards that were put for the spellings of a call, and what to call the entry that puts the next."""
    if not is_signed_in(context):
        return (), ""
    key = fingerprint([terms, context[PRINCIPAL], pin])[:32]
    homes: list[_Home] = []
    for number in range(1, AGAIN):
        name = f"card:{key}/{number}"
        entry = log.named(tenant, name)
        if entry is None:
            return homes, name
        id = entry.conversation or ""
        if (home := _home(name, id, log.conversation(tenant, id))) is not None:
            homes.append(home)
    return homes, ""


def _home(name: str, id: str, entries: Sequence[Entry]) -> _Home | None:
    """The first card shown in a conversation."""
    history = read_history(entries)
    events = history.events if history is not None else []
    numbers = [each.number for each in entries if each.kind == "event"]
    for at, each in enumerate(events):
        if isinstance(each, Call) and each.card is not None:
            return _Home(name, id, events, numbers, at, each.card)
    return None


def confirmation_of(found: Recalled) -> Confirmation | None:
    """The user's answer to it; None if there is none yet."""
    return found.yes.confirmation if found.yes is not None else None


def is_of_one_chat(first: Sequence[Event], then: Sequence[Event]) -> bool:
    """Whether a history continues another that contains the user's words, or neither contains any: otherwise every chat
    would continue it.
    """
    return continues(first, then) and (_has_spoken(first) or not _has_spoken(then))


def continues(first: Sequence[Event], then: Sequence[Event]) -> bool:
    """Whether a history begins with all of another."""
    return list(map(_told, first)) == list(map(_told, then[: len(first)]))


def _is_no(event: Event) -> bool:
    return isinstance(event, Message) and event.confirmation is not None and not event.confirmation.yes


def _has_spoken(events: Sequence[Event]) -> bool:
    """Whether the user has said anything."""
    return any(isinstance(each, Message) and each.by == "user" for each in events)


def _told(event: Event) -> tuple[Any, ...]:
    """An event's content, regardless of its number and time."""
    match event:
        case Message():
            return "message", event.by, event.text, event.captured
        case Call():
            return "call", event.by, event.tool, event.arguments, event.fault
        case Result():
            return "result", event.call, event.text, event.captured
