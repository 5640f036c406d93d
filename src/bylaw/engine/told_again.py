"""Recognises messages that a host reports again.

Before each call, a host may resend the whole history, only its end, or a summary. If a response was lost, it may resend
the same request. Each event is counted once, because a repeated approval is not a second approval and a repeated
look-up is not a fresh one.

Histories may come back changed: results may be truncated or cleared, ids may be new, words may be redacted, and refused
calls may be missing. The words of the messages therefore determine how much of a history is known. Calls and results
between known messages are repetitions.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from bylaw.text.cost import spend
from bylaw.trace.event import Call, Event, Message, Result
from bylaw.trace.readers.openai import follow_messages
from bylaw.trace.transcript import Transcript

Word = tuple[str, str]
"""The speaker and the words of a message without white space or, if it has no words, the identity of the message."""


class KnownMessages(NamedTuple):
    """The known part of a list of messages."""

    messages: int
    """The number of messages at the start of the list that are completely known."""
    has_words: bool = False
    """Whether the words of the next message are also known, so that only its calls are new."""
    is_sure: bool = True
    """Whether every message is certainly known or certainly new. If False, it is undecided whether a given text is new.
    """
    is_history: bool = False
    """Whether the host repeated words that it had already reported."""
    may_be_old: bool = False
    """Whether new content may be old, because a call after the last known words is not in its place."""


class ToldBefore:
    """Determines which part of a new list of messages a conversation already contains."""

    def __init__(self, known: Sequence[Event]) -> None:
        self._known = known
        self._words: list[Word] = []
        self._said = set[Word]()
        self._retells = False
        """Whether the host resends its history and does not send only new messages."""
        self._is_handed_over = False
        """Whether another principal has taken over, but none of their words are known yet."""
        self._looked = self._after = 0
        """The number of events examined so far, and the position after the last words."""

    def known(self, messages: Sequence[Any]) -> KnownMessages:
        self._look()
        if not self._known:
            return KnownMessages(0)
        told, ends = _read(messages)
        said = [(step, word) for step, event in enumerate(told) if (word := _word(event)) is not None]
        words = [word for _, word in said]
        count, is_sure, is_end = known_words(self._words, words)
        if (self._retells or self._is_handed_over) and not (count and is_sure):
            # In an edited history, everything up to the last known words may be old.
            old = max((place for place, word in enumerate(words, 1) if word in self._said), default=0)
            count, is_sure, is_end = max(count, old), is_sure and not old, False
        if count == len(words) and count and not is_end:
            # These may be old words that arrive late, or identical new words. They are kept, because they may contain a
            # denial.
            self._words = words
            return KnownMessages(len(messages), is_sure=False, is_history=True)
        if not is_sure:
            # Remember this version, so that it is recognised if the host sends it again.
            self._words = words[:count]
        start = said[count - 1][0] + 1 if count else 0
        reached, has_moved = self._passed(told, start, is_history=count > 0)
        # A host that repeats everything, or that continues after known words, reports a history. Any other host reports
        # only new messages.
        self._retells = self._retells or 0 < reached < len(told) or 2 <= count == len(self._words)
        last = max(self._last_answered(told, reached), self._last_waiting(told, reached))
        if last >= 0:
            # The text before an old result or before the waiting call was summarised or altered.
            self._retells = True
            return KnownMessages(bisect_right(ends, last + 1), is_sure=False, is_history=True, may_be_old=True)
        passed = bisect_right(ends, reached)
        has_words = count > 0 and passed == bisect_right(ends, start - 1)
        return KnownMessages(
            passed, has_words, is_sure, is_history=count > 0, may_be_old=has_moved if count else self._retells
        )

    def _last_answered(self, told: Sequence[Event], start: int) -> int:
        """Return the position of the last result, at or after `start`, whose call id and content are known. -1 if there
        is none.
        """
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
        """Return the position of the last call, at or after `start`, that is known to wait and follows words. -1 if
        there is none.
        """
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
        # Messages from the same turn may be reported after the call.
        return last if any(not isinstance(each, Result) and each.by == "user" for each in told[first:last]) else -1

    def _passed(self, told: Sequence[Event], start: int, *, is_history: bool) -> tuple[int, bool]:
        """Return the position of the first unknown call or result since the last words. Also return whether a known
        call that ran is missing before that position.
        """
        since = range(self._after, len(self._known))
        made = {step: call for step in since if isinstance(call := self._known[step], Call)}
        answered = {event.call for step in since if isinstance(event := self._known[step], Result)}
        same: dict[int | None, int] = {}
        named = {event.id for event in told[start:] if isinstance(event, Call) and event.id}
        for place in range(start, len(told)):
            event = told[place]
            if isinstance(event, Call):
                # Match by id. If the id is unknown, match by position.
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
        # A call may have been withdrawn since the last check.
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
    """Whether at least one of these calls ran. Refused calls are ignored, because a history may leave them out."""
    return any(call.by == "agent" and not call.refused for call in calls.values())


def known_words(known: Sequence[Word], words: Sequence[Word]) -> tuple[int, bool, bool]:
    """Return how many leading words are known, whether they are unchanged, and whether they include the last known
    words.
    """
    if not words or not known:
        return 0, True, False
    if (length := _overlap(known, words)) >= min(len(known), 2):
        return length, True, True
    if (end := _end(known, words)) >= 0:
        if end == 0 and len(words) > 1 and words[0] == known[0] and _in_order(known, words)[0] == len(words):
            # The list continues after the last words, or it starts like the conversation but leaves out some words.
            return len(words), False, False
        return end + 1, end == 0, True
    if words[0] == known[0] and len(words) > 1:
        # The list starts like the conversation, but some words are different or missing.
        count, place = _in_order(known, words)
        return count, False, place == len(known)
    pairs = set(pairwise(known))
    old = [place + 2 for place, pair in enumerate(pairwise(words)) if pair in pairs]
    return (old[-1], False, False) if old else (0, True, False)


def _in_order(known: Sequence[Word], words: Sequence[Word]) -> tuple[int, int]:
    """Return the number of words up to the last known one that is in the same order, and that word's index among the
    known.
    """
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
    """Return the length of the longest prefix of `words` that is a suffix of `known`, in linear time."""
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
    """Return the position of the last known words, or -1.

    These words must come first, or directly follow a summary or the words before them, because short answers such as
    "yes" may occur more than once.
    """
    last, before = known[-1], list(known[-2:-1])
    for place in reversed(range(len(words))):
        if words[place] == last:
            is_led = place == 0 or [words[place - 1]] == before
            is_summed_up = place == 1 and words[0][0] == last[0] == "user" and words[0] not in known
            if is_led or is_summed_up:
                return place
    return -1


def words_of(told: Sequence[Any]) -> list[Word]:
    events = [event for each in told for event in ([each] if isinstance(each, Event) else _read([each])[0])]
    return [word for event in events if (word := _word(event)) is not None]


def _read(messages: Sequence[Any]) -> tuple[list[Event], list[int]]:
    script, ends = Transcript(), list[int]()
    for message in messages:
        follow_messages([message], script)
        ends.append(len(script.events))
    return script.events, ends


def _word(event: Event) -> Word | None:
    """Return the words of an event. None for handovers and answers to cards, which hosts do not report as words."""
    if not isinstance(event, Message) or not _is_word(event):
        return None
    spend(1 + len(event.text) // 50)
    return event.by, " ".join(event.text.split())


def _is_word(event: Event) -> bool:
    return isinstance(event, Message) and event.captured and bool(event.text)


def _shown(event: Event) -> str:
    return str(event.content) if isinstance(event, Result) else ""


def _is_same(one: Call, other: Call, is_history: bool) -> bool:
    """Whether two calls are the same, by id or, in a history, by content. A decided call may still lack its id."""
    is_named = is_history or (one.id and other.id in ("", one.id))
    return bool(is_named) and (one.tool, one.arguments) == (other.tool, other.arguments)
