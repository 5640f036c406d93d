"""The cards of a live conversation: what one says, which of them waits or was declined, which answers it can take."""

from bisect import bisect_right
from itertools import pairwise

from msgspec.structs import replace

from bylaw.consent import digest as digest_of
from bylaw.consent import standing_of
from bylaw.engine.session import Session
from bylaw.errors import UsageError
from bylaw.facts.call_record import CallRecord
from bylaw.trace.event import Call, Card, Confirmation, Event, Message, Result
from bylaw.trace.transcript import Transcript

REPEATED = "This may have been done already."


class PutCards:
    """The cards of one conversation, found in its events as they are asked for."""

    def __init__(self, script: Transcript, session: Session) -> None:
        self._script = script
        self._session = session
        self._begin = self._seen = 0
        """The first event that counts, and how many were looked through."""
        self._cards: dict[str, tuple[Card, int]] = {}
        """By digest, the card that was put last, and the step at which it was put first."""
        self._made: dict[str, list[int]] = {}
        """By tool, the steps of calls that were not refused."""
        self._answered: set[str] = set()
        """The cards that the host reported an answer to."""
        self._shown: dict[str, list[int]] = {}
        """By digest, the steps at which cards were returned."""
        self._presses: list[int] = []
        """The steps of reported answers."""
        self._said: list[int] = []
        """The steps of the user's messages, known or not."""
        self._heard = -1
        """The step of the last of them that is known."""

    def begin_anew(self, step: int) -> None:
        """Somebody else goes on from a step: nothing that was put before is theirs to answer."""
        self._begin = self._seen = step
        self._cards.clear()
        self._made.clear()
        self._answered.clear()
        self._shown.clear()
        self._presses.clear()
        self._said.clear()
        self._heard = -1

    def text(self, made: CallRecord, *, is_repeated: bool = False) -> str:
        """A call in plain words for the user; empty if no rule is about their consent. It says so if the same call may
        have been carried out before (`is_repeated`)."""
        text = self._session.values.card_text(made)
        heading, line, rest = text.partition("\n")
        return f"{heading}\n{REPEATED}{line}{rest}" if text and is_repeated else text

    def failures(self, digest: str, before: int) -> int:
        """How often the user wrote something after the card of a call was returned, and the call was refused again."""
        self._read(before)
        shown = [step for step in self._shown.get(digest, ()) if step < before]
        made = self._last_made(digest, self._script.events[shown[0]]) if shown else -1
        shown = shown[bisect_right(shown, made) :]
        # Between two showings it counts once, however much the user wrote.
        return sum(
            bisect_right(self._said, last) < bisect_right(self._said, after - 1)
            for last, after in pairwise([*shown, before])
        )

    @property
    def lifetime(self) -> float:
        """Seconds for which a card is good."""
        return self._session.values.card_lifetime

    def waiting(self, digest: str, before: int) -> Card | None:
        """The card shown last before a step for calls of this digest, if it was neither answered nor used.

        After any other message of the user's it is another card: a late press on the first is no press on that one.
        """
        self._read(before)
        events = self._script.events
        card, first = self._cards.get(digest, (None, 0))
        if card is None or card.id in self._answered or self._is_used(card, first, before):
            return None
        shown = self._shown[digest][-1]
        return card if self._session.values.is_card_left_open(events, shown, before) else None

    def _read(self, before: int) -> None:
        """Take in the events before a step."""
        events = self._script.events
        for step in range(self._seen, before):
            event = events[step]
            if type(event) is Call:
                if (card := event.card) is not None:
                    known = self._cards.get(card.digest)
                    self._cards[card.digest] = (card, step if known is None or known[0].id != card.id else known[1])
                    self._shown.setdefault(card.digest, []).append(step)
                elif not event.refused:
                    self._made.setdefault(event.tool, []).append(step)
            elif type(event) is Message and event.confirmation is not None:
                self._answered.add(event.confirmation.card)
                self._presses.append(step)
            elif type(event) is Message and event.by == "user" and event.handover is None:
                self._said.append(step)
                self._heard = step if event.captured else self._heard
        self._seen = max(self._seen, before)

    def _last_made(self, digest: str, shown: Event) -> int:
        """The step at which a call was made last that a card was shown for."""
        made = self._made.get(shown.tool, ()) if isinstance(shown, Call) else ()
        for step in reversed(made):
            call = self._script.events[step]
            if isinstance(call, Call) and digest_of(call.tool, call.arguments) == digest:
                return step
        return -1

    def _is_used(self, card: Card, first: int, before: int) -> bool:
        """Whether a call that a card was put for has been made since it was put first; no other tool's call is one."""
        put = self._script.events[first]
        assert isinstance(put, Call)
        made = self._made.get(put.tool, ())
        since = (self._script.events[step] for step in made[bisect_right(made, first) :] if step < before)
        return any(isinstance(each, Call) and digest_of(each.tool, each.arguments) == card.digest for each in since)

    def is_declined_otherwise(self, made: CallRecord, digest: str, now: float) -> bool:
        """Whether the user has declined a card for another spelling of a call and said nothing since, for as long as
        that card would have held: the call is not put to them again. Of the call as it is spelled here, consent tells.
        """
        self._read(made.step)
        presses = [step for step in self._presses if step > self._heard]
        cards = self._cards_of(made.call) if presses else {}
        for step in reversed(presses):
            press = self._script.events[step]
            assert isinstance(press, Message)
            assert press.confirmation is not None
            card = cards.get(press.confirmation.card)
            if card is not None:
                is_over = card.expires is not None and now >= card.expires
                return card.digest != digest and not press.confirmation.yes and not is_over
        return False

    def _cards_of(self, call: Call) -> dict[str, Card]:
        """The cards that were shown for a call, in whatever spelling."""
        terms, found = self._session.values.shown_terms, dict[str, Card]()
        wanted = terms(call)
        for steps in self._shown.values():
            shown = self._script.events[steps[0]]
            if isinstance(shown, Call) and terms(shown) == wanted:
                cards = (self._script.events[step] for step in steps)
                found |= {each.card.id: each.card for each in cards if isinstance(each, Call) and each.card is not None}
        return found

    def is_new(self, answer: Confirmation, time: float | None, now: float | None) -> bool:
        """Whether an answer says something that was not said before; one that its card cannot take is refused.

        `time` is when the user answered, None if the host does not say; `now` is the shield's clock.
        """
        events = self._script.events
        standing = standing_of(events[self._begin :], answer.card)
        name = f"card `{answer.card}`"
        if standing is None:
            hint = "give the `id` of the `card` of a decision of this conversation"
            raise UsageError(f"there is no {name} here", hint=hint)
        if standing.used_by is not None and (answer.yes or not self._is_given_back(self._begin + standing.used_by)):
            hint = "let the agent make its call again: it gets another card"
            raise UsageError(f"{name} was used by the call at step {self._begin + standing.used_by}", hint=hint)
        if answer.yes and self._ran_otherwise(standing.card):
            hint = "let the agent make its call again: it gets another card"
            raise UsageError(f"{name} was used by another spelling of its call", hint=hint)
        if standing.answer is answer.yes:
            return False
        if standing.answer is False:
            raise UsageError(f"{name} was answered with no", hint="let the agent make its call again")
        expires, at = standing.card.expires, now if time is None else time
        if expires is not None and at is not None and at >= expires:
            raise UsageError(f"{name} has expired", hint="let the agent make its call again: it gets another card")
        if answer.yes:
            self._refuse_late(answer, time, now, name)
        return True

    def _ran_otherwise(self, card: Card) -> bool:
        """Whether another spelling of the call that a card shows was made since."""
        self._read(len(self._script.events))
        first = self._shown[card.digest][0]
        shown = self._script.events[first]
        assert isinstance(shown, Call)
        made = [self._script.events[step] for step in self._made.get(shown.tool, ()) if step > first]
        terms = self._session.values.shown_terms
        others = [
            each for each in made if isinstance(each, Call) and digest_of(each.tool, each.arguments) != card.digest
        ]
        return any(terms(each) == terms(shown) for each in others)

    def _refuse_late(self, answer: Confirmation, time: float | None, now: float | None, name: str) -> None:
        """Refuse a yes that may be older than the user's last message."""
        events, again = self._script.events, "let the agent make its call again and show the user the new card"
        if time is not None and self._is_spoken_after(time):
            raise UsageError(f"{name} was answered before the user's last words", hint="show the user another card")
        fault = self._session.values.press_fault(events, answer, time)
        if not fault and time is None:
            # Whether it came before or after that message, only a time can tell as well.
            unseen = replace(answer, after=None)
            fault = self._session.values.press_fault(events, unseen, time)
        if not fault and time is not None and now is not None and time > now and answer.after is not None:
            fault = "`at` is in the future"
        if fault:
            hint = f"report when the user answered (`at`) and how many messages they had seen (`after`), or {again}"
            hint = again if "said no" in fault else hint
            raise UsageError(f"{name} does not count: {fault}", hint=hint)

    def _is_given_back(self, step: int) -> bool:
        """Whether the call that used a card failed, so that its yes would be good for another."""
        results = (each for each in self._script.events[step:] if isinstance(each, Result) and each.call == step)
        return any(each.error is True for each in results)

    def _is_spoken_after(self, time: float) -> bool:
        """Whether the user said something after an answer that is reported late."""
        said = (each for each in reversed(self._script.events) if isinstance(each, Message) and each.by == "user")
        return any(each.confirmation is None and each.time is not None and each.time > time for each in said)
