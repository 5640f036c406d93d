"""The cards in a live conversation: their wording, their state, and the answers that they accept."""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from operator import attrgetter, itemgetter

from msgspec.structs import replace

from bylaw.consent import ConsentWitness, card_facts, has_other_message, press_fault, standing_of
from bylaw.consent import digest as digest_of
from bylaw.engine.session import Session
from bylaw.errors import UsageError
from bylaw.facts.call_record import CallRecord
from bylaw.facts.value import alike
from bylaw.trace.event import Call, Card, Confirmation, Message, Result
from bylaw.trace.transcript import Transcript

REPEATED = "This may already have been done."
_ANOTHER = "have the agent repeat its call to get a new card"


class PutCards:
    """The cards shown to the user. They are found in the events when first needed."""

    def __init__(self, script: Transcript, session: Session) -> None:
        self._script = script
        self._session = session
        self.begin_anew(0)

    def begin_anew(self, step: int) -> None:
        """Ignore all cards before this step, because another principal took over."""
        self._begin = self._read_until = step
        """The step from which events count, and the step up to which they have been read."""
        self._shown: dict[str, list[tuple[int, Call, Card]]] = {}
        """The cards shown, by the digest of the call. Each card has its step and the refused call."""
        self._presses: list[tuple[int, Confirmation]] = []
        """The answers to cards that the host reported, with their steps."""

    def _read(self, before: int) -> None:
        events = self._script.events
        for step in range(self._read_until, before):
            event = self._session.put_event(step, events[step])
            if type(event) is Call:
                if event.card is not None:
                    self._shown.setdefault(event.card.digest, []).append((step, event, event.card))
            elif type(event) is Message and event.confirmation is not None:
                self._presses.append((step, event.confirmation))
        self._read_until = max(self._read_until, before)

    def text(self, made: CallRecord, *, is_repeated: bool = False) -> str:
        """Return the text of a call's card. Empty if no rule requires consent. With `is_repeated`, the card warns that
        the call was made before.
        """
        text = max((each.card_text(made) for each in self._consents), key=len, default="")
        heading, line, rest = text.partition("\n")
        return f"{heading}\n{REPEATED}{line}{rest}" if text and is_repeated else text

    @property
    def _consents(self) -> list[ConsentWitness]:
        return self._session.values.consents

    def digest(self, made: CallRecord) -> str:
        """Return the digest of the card that would now be shown for this call."""
        spared = next((each.spared for each in self._consents), frozenset[str]())
        return digest_of(made.call.tool, made.call.arguments, card_facts(made, self._session.ledger), spared)

    @property
    def lifetime(self) -> float:
        """The shortest lifetime of any card in the pack, in seconds."""
        return min((each.words.lifetime for each in self._consents), default=0.0)

    def shown_terms(self, call: Call) -> str:
        """Return a string that is equal for all spellings of a call that one answer covers."""
        return repr((call.tool, [alike(each.agreed_terms(call)) for each in self._consents]))

    def may_be_made(self, made: CallRecord, since: int) -> bool:
        """Whether some call after step `since` may be another spelling of this call."""
        return any(each.may_be_made(made, since) for each in self._consents)

    def failures(self, digest: str, before: int) -> int:
        """Return how often the user's reply to a card of this call was unclear, so that the call was refused again."""
        self._read(before)
        cards = self._shown.get(digest)
        shown = [step for step, _, _ in cards or () if step < before]
        if not cards or not shown:
            return 0
        made = [step for step, call in self._made_since(*cards[0][:2], before) if _is_same(call, cards[0][1])]
        shown = shown[bisect_right(shown, made[-1]) :] if made else shown
        # Count at most one unclear reply each time the card is shown, however many messages the user wrote.
        return sum(
            self._messages_until(last) < self._messages_until(after - 1) for last, after in pairwise([*shown, before])
        )

    def waiting(self, digest: str, before: int) -> Card | None:
        """Return the card that waits for an answer. A card stops waiting if the user writes another message or a call
        is made.
        """
        self._read(before)
        shown = self._shown.get(digest)
        if not shown:
            return None
        last, call, card = shown[-1]
        first = next(step for step, _, each in shown if each.id == card.id)
        is_used = any(_is_same(made, call) for _, made in self._made_since(first, call, before))
        if is_used or any(press.card == card.id for _, press in self._presses):
            return None
        events = self._script.events
        is_over = any(has_other_message(events, last, before, each.words) for each in self._consents)
        return None if is_over else card

    def is_declined_otherwise(self, made: CallRecord, digest: str, now: float) -> bool:
        """Whether the user declined a valid card for another spelling of the call and has not written since."""
        self._read(made.step)
        if not self._presses:
            return False
        events, said, terms = self._script.events, self._session.ledger.said, self.shown_terms
        later = reversed(said[bisect_right(said, self._presses[0][0], key=itemgetter(0)) :])
        heard = next((step for step, _ in later if _is_captured(events[step])), -1)
        wanted = terms(made.call)
        alike = [cards for cards in self._shown.values() if terms(cards[0][1]) == wanted]
        shown = {card.id: card for cards in alike for _, _, card in cards}
        for step, press in reversed(self._presses):
            card = shown.get(press.card) if step > heard else None
            if card is not None:
                is_over = card.expires is not None and now >= card.expires
                return card.digest != digest and not press.yes and not is_over
        return False

    def is_new(self, answer: Confirmation, time: float | None, now: float | None) -> bool:
        """Whether an answer given at `time` is new, rather than reported before.

        Raises an error if the card cannot accept the answer. `now` is the shield's clock.
        """
        events = self._script.events
        put = (self._session.put_event(step, event) for step, event in enumerate(events) if step >= self._begin)
        standing = standing_of(put, answer.card)
        name = f"card `{answer.card}`"
        if standing is None:
            hint = "use the `id` of the `card` in a decision of this conversation"
            raise UsageError(f"this conversation has no {name}", hint=hint)
        if standing.used_by is not None and (answer.yes or not self._is_given_back(self._begin + standing.used_by)):
            raise UsageError(f"{name} was used by the call at step {self._begin + standing.used_by}", hint=_ANOTHER)
        if answer.yes and self._ran_otherwise(standing.card):
            raise UsageError(f"{name} was used by an equivalent call", hint=_ANOTHER)
        if standing.answer is answer.yes:
            return False
        if standing.answer is False:
            raise UsageError(f"the answer to {name} was no", hint="have the agent repeat its call")
        expires, at = standing.card.expires, now if time is None else time
        if expires is not None and at is not None and at >= expires:
            raise UsageError(f"{name} has expired", hint=_ANOTHER)
        if answer.yes:
            self._refuse_late(answer, time, now, name)
        return True

    def _ran_otherwise(self, card: Card) -> bool:
        self._read(len(self._script.events))
        (first, shown, _), terms = self._shown[card.digest][0], self.shown_terms
        others = (call for _, call in self._made_since(first, shown) if not _is_same(call, shown))
        return any(terms(call) == terms(shown) for call in others)

    def _refuse_late(self, answer: Confirmation, time: float | None, now: float | None, name: str) -> None:
        again = "have the agent repeat its call and show the user the new card"
        if time is not None and self._is_spoken_after(time):
            raise UsageError(f"{name} was answered before the user's last message", hint="show the user another card")
        fault = self._press_fault(answer, time)
        if not fault and time is None:
            # Without a timestamp, it is unknown whether the message or the approval came first.
            fault = self._press_fault(replace(answer, after=None), time)
        if not fault and time is not None and now is not None and time > now and answer.after is not None:
            fault = "`at` is in the future"
        if fault:
            hint = f"report when the user answered (`at`) and how many messages they had seen (`after`), or {again}"
            raise UsageError(f"{name} does not count: {fault}", hint=again if "said no" in fault else hint)

    def _press_fault(self, answer: Confirmation, time: float | None) -> str:
        events = self._script.events
        faults = (press_fault(events, len(events), answer, time, each.words) for each in self._consents)
        return next(filter(None, faults), "")

    def _is_given_back(self, step: int) -> bool:
        results = (each for each in self._script.events[step:] if isinstance(each, Result) and each.call == step)
        return any(each.error is True for each in results)

    def _is_spoken_after(self, time: float) -> bool:
        """Whether the user wrote another message between giving this answer and the host's late report of it."""
        said = (each for each in reversed(self._script.events) if isinstance(each, Message) and each.by == "user")
        return any(each.confirmation is None and each.time is not None and each.time > time for each in said)

    def _made_since(self, shown: int, refused: Call, before: int | None = None) -> Iterator[tuple[int, Call]]:
        writes = self._session.ledger.writes
        for write in writes[bisect_right(writes, shown, key=attrgetter("step")) :]:
            if before is not None and write.step >= before:
                return
            if write.call.tool == refused.tool and not write.call.refused:
                yield write.step, write.call

    def _messages_until(self, step: int) -> int:
        return bisect_right(self._session.ledger.said, step, key=itemgetter(0))


def _is_same(one: Call, other: Call) -> bool:
    return digest_of(one.tool, one.arguments) == digest_of(other.tool, other.arguments)


def _is_captured(event: object) -> bool:
    return isinstance(event, Message) and event.captured
