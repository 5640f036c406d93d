"""Messages that a host tells again: its whole history before each call, the end of it, one that was summed up, or a
request sent twice since no answer came.

What happened once happened once: a yes that is told again is no second yes, a look-up no fresh one. Histories come back
changed: results are cut off or cleared, ids renamed, words redacted, refused calls stand in them or not. So the words
say how far a history goes, and what was called and shown between them was told with them.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from bylaw.text.cost import spend
from bylaw.trace.event import Call, Event, Message, Result
from bylaw.trace.messages import follow_messages
from bylaw.trace.transcript import Transcript

Word = tuple[str, str]
"""Who said what, white space apart, or which message it is."""


class KnownMessages(NamedTuple):
    """What of some messages is known."""

    messages: int
    """So many, from the first, are known as a whole."""
    has_words: bool = False
    """Whether the next one's words are known too, and only what it calls is new."""
    is_sure: bool = True
    """Whether nothing was told beside what is known and what is new: otherwise what hangs on words is open."""
    is_history: bool = False
    """Whether words that are known were told again."""
    may_be_old: bool = False
    """Whether what is told anew may have been told before: a known call since the last words does not stand where it
    did."""


class ToldBefore:
    """Finds what of new messages a conversation knows."""

    def __init__(self, known: Sequence[Event]) -> None:
        self._known = known
        self._words: list[Word] = []
        """What was said, as the host tells it."""
        self._said = set[Word]()
        """All of it."""
        self._retells = False
        """Whether the host tells its history, and not only what is new."""
        self._is_handed_over = False
        """Whether another principal continues, of whom no words are known."""
        self._looked = self._after = 0
        """How many events were looked at, and where it goes on after the last words."""

    def known(self, messages: Sequence[Any]) -> KnownMessages:
        """What of these messages is known."""
        self._look()
        if not self._known:
            return KnownMessages(0)
        told, ends = _read(messages)
        said = [(step, word) for step, event in enumerate(told) if (word := _word(event)) is not None]
        words = [word for _, word in said]
        count, is_sure, is_end = known_words(self._words, words)
        if (self._retells or self._is_handed_over) and not (count and is_sure):
            # A history that was changed: what stands in it up to the last word that is known may all be old.
            old = max((place for place, word in enumerate(words, 1) if word in self._said), default=0)
            count, is_sure, is_end = max(count, old), is_sure and not old, False
        if count == len(words) and count and not is_end:
            # Old words sent late, or new ones that read like them: a "no" among them must not get lost.
            self._words = words
            return KnownMessages(len(messages), is_sure=False, is_history=True)
        if not is_sure:
            # Told like this once more, it is the same history.
            self._words = words[:count]
        start = said[count - 1][0] + 1 if count else 0
        reached, has_moved = self._passed(told, start, is_history=count > 0)
        # Who tells it all again, or goes on after what is known, tells a history: others tell only what is new.
        self._retells = self._retells or 0 < reached < len(told) or 2 <= count == len(self._words)
        last = max(self._last_answered(told, reached), self._last_waiting(told, reached))
        if last >= 0:
            # Words before an old result, or before the call that waits, are a summary, or are not told as they were.
            self._retells = True
            return KnownMessages(bisect_right(ends, last + 1), is_sure=False, is_history=True, may_be_old=True)
        passed = bisect_right(ends, reached)
        has_words = count > 0 and passed == bisect_right(ends, start - 1)
        return KnownMessages(
            passed, has_words, is_sure, is_history=count > 0, may_be_old=has_moved if count else self._retells
        )

    def _last_answered(self, told: Sequence[Event], start: int) -> int:
        """The last result, from a place on, that is known by its call's id and by its content; -1 if there is none."""
        asked = {
            place: call
            for place in range(start, len(told))
            if isinstance(event := told[place], Result)
            and isinstance(call := told[event.call] if event.call is not None else None, Call)
            and call.id
            and not call.id.isdigit()
        }
        if not asked:
            return -1
        known = {
            (call.tool, call.id, str(event.content))
            for event in self._known
            if isinstance(event, Result)
            and isinstance(call := self._known[event.call] if event.call is not None else None, Call)
        }
        found = (place for place, call in asked.items() if (call.tool, call.id, _shown(told[place])) in known)
        return max(found, default=-1)

    def _last_waiting(self, told: Sequence[Event], start: int) -> int:
        """The last call, after words from a place on, that is known by its id and waits for its result; -1 for none."""
        words = (place for place in range(start, len(told)) if _is_word(told[place]))
        if (first := next(words, -1)) < 0:
            return -1
        answered = {event.call for event in self._known if isinstance(event, Result)}
        waiting = {
            (event.id, event.tool)
            for step, event in enumerate(self._known)
            if isinstance(event, Call) and event.id and not event.refused and step not in answered
        }
        places = (
            place
            for place in range(first, len(told))
            if isinstance(event := told[place], Call) and (event.id, event.tool) in waiting
        )
        last = max(places, default=-1)
        # What was said in the call's own turn may be reported after the call.
        return last if any(not isinstance(each, Result) and each.by == "user" for each in told[first:last]) else -1

    def _passed(self, told: Sequence[Event], start: int, *, is_history: bool) -> tuple[int, bool]:
        """Up to where, from a place on, nothing is told but calls and results that are known since the last words, and
        whether one of those was not told by then."""
        since = range(self._after, len(self._known))
        made = {step: call for step in since if isinstance(call := self._known[step], Call)}
        answered = {event.call for step in since if isinstance(event := self._known[step], Result)}
        same: dict[int | None, int] = {}
        named = {event.id for event in told[start:] if isinstance(event, Call) and event.id}
        for place in range(start, len(told)):
            event = told[place]
            if isinstance(event, Call):
                # By its id; without one that is known, by where it stands.
                others = (step for step, call in made.items() if call.id == event.id or call.id not in named)
                found = next((step for step in others if _is_same(event, made[step], is_history)), None)
                if found is None:
                    return place, _has_made(made)
                same[place] = found
                del made[found]
            elif not isinstance(event, Result) or same.get(event.call) not in answered:
                return place, _has_made(made)
        return len(told), False

    def _look(self) -> None:
        # A call may have been taken back since.
        for step in range(min(self._looked, len(self._known)), len(self._known)):
            event = self._known[step]
            self._is_handed_over |= isinstance(event, Message) and event.handover is not None
            if (word := _word(event)) is not None:
                self._is_handed_over = False
                self._words.append(word)
                self._said.add(word)
                self._after = step + 1
        self._looked = len(self._known)


def _has_made(calls: Mapping[int, Call]) -> bool:
    """Whether one of these calls was made: those that were refused may be left out."""
    return any(call.by == "agent" and not call.refused for call in calls.values())


def known_words(known: Sequence[Word], words: Sequence[Word]) -> tuple[int, bool, bool]:
    """How many words, from the first, are known, whether they are told as they were, and whether they go on to the end
    of what is known."""
    if not words or not known:
        return 0, True, False
    if (length := _overlap(known, words)) >= min(len(known), 2):
        return length, True, True
    if (end := _end(known, words)) >= 0:
        if end == 0 and len(words) > 1 and words[0] == known[0] and _in_order(known, words)[0] == len(words):
            # It goes on after the last words, or begins as the conversation did, with words left out.
            return len(words), False, False
        return end + 1, end == 0, True
    if words[0] == known[0] and len(words) > 1:
        # It begins as the conversation did, but some words are changed or missing.
        count, place = _in_order(known, words)
        return count, False, place == len(known)
    pairs = set(pairwise(known))
    old = [place + 2 for place, pair in enumerate(pairwise(words)) if pair in pairs]
    return (old[-1], False, False) if old else (0, True, False)


def _in_order(known: Sequence[Word], words: Sequence[Word]) -> tuple[int, int]:
    """How many words, up to the last known one, and how far in what is known that is; both in order."""
    places: dict[Word, list[int]] = {}
    for at, word in enumerate(known, 1):
        places.setdefault(word, []).append(at)
    count = place = 0
    for number, word in enumerate(words, 1):
        later = places.get(word, [])
        if (at := bisect_right(later, place)) < len(later):
            count, place = number, later[at]
    return count, place


def _overlap(known: Sequence[Word], words: Sequence[Word]) -> int:
    """How many words, at most, from the first are also the last ones that are known; in linear time."""
    borders, length = [0], 0
    for word in words[1:]:
        while length and word != words[length]:
            length = borders[length - 1]
        length += word == words[length]
        borders.append(length)
    length = 0
    for word in known[-len(words) :]:
        while length and word != words[length]:
            length = borders[length - 1]
        length += word == words[length]
    return length


def _end(known: Sequence[Word], words: Sequence[Word]) -> int:
    """Where the last words that are known stand; -1 for nowhere. A "yes" may be said again: so they come first, or
    after the words before them, or right after somebody's summary."""
    last, before = known[-1], list(known[-2:-1])
    for place in reversed(range(len(words))):
        if words[place] == last:
            is_led = place == 0 or [words[place - 1]] == before
            is_summed_up = place == 1 and words[0][0] == last[0] == "user" and words[0] not in known
            if is_led or is_summed_up:
                return place
    return -1


def words_of(told: Sequence[Any]) -> list[Word]:
    """What was said in some events, or in messages."""
    events = [event for each in told for event in ([each] if isinstance(each, Event) else _read([each])[0])]
    return [word for event in events if (word := _word(event)) is not None]


def _read(messages: Sequence[Any]) -> tuple[list[Event], list[int]]:
    """The events of some messages, and where each message ends."""
    script, ends = Transcript(), list[int]()
    for message in messages:
        follow_messages([message], script)
        ends.append(len(script.events))
    return script.events, ends


def _word(event: Event) -> Word | None:
    """What somebody said; None for all else: an answer to a card and a handover are no words that a host tells."""
    if not isinstance(event, Message) or not _is_word(event):
        return None
    spend(1 + len(event.text) // 50)
    return event.by, " ".join(event.text.split())


def _is_word(event: Event) -> bool:
    return isinstance(event, Message) and event.captured and bool(event.text)


def _shown(event: Event) -> str:
    return str(event.content) if isinstance(event, Result) else ""


def _is_same(one: Call, other: Call, is_history: bool) -> bool:
    """Whether two calls are one: by their ids, or by where they stand in a history, which may name them otherwise. One
    that was decided on without an id is told with one."""
    is_named = is_history or (one.id and other.id in ("", one.id))
    return bool(is_named) and (one.tool, one.arguments) == (other.tool, other.arguments)
