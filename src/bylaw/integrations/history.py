"""Aligns the histories that frameworks pass with the messages already reported.

Frameworks pass a history each time: all of it, its end, a summary and its end, or only new messages. A message is
recognised by the framework's id, or by its position among the others, never by its words alone, because people repeat
themselves. If a history differs from what was reported, or ends too early, there is a gap: earlier answers do not
count.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import pairwise
from typing import Any, Literal

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from bylaw.engine.told_again import Word, known_words
from bylaw.shield import Decision

By = Literal["user", "agent"]
NOT_TEXT = "(not text)"
"""Stands for a message that has no words."""
TAIL = 3
"""From so many words on, the end of what was heard is known again with something else before it."""


class Mark(Struct, frozen=True):
    """The identity of a message."""

    by: By
    text: str
    calls: tuple[str, ...] = ()
    """The ids of the calls that it asks for."""
    key: str = ""
    """The framework's id for the message, where it has one."""

    @property
    def said(self) -> str:
        """Its words, spacing aside."""
        return " ".join(self.text.split())

    def says_same(self, other: "Mark") -> bool:
        """Whether it has the same words and role, ignoring spacing."""
        return self.by == other.by and self.calls == other.calls and self.said == other.said


class Asked(Struct, frozen=True):
    """A call that the agent asks for."""

    id: str
    tool: str
    arguments: dict[str, Any] | str

    @property
    def function(self) -> dict[str, str]:
        """As chat messages tell it."""
        given = self.arguments
        text = given if isinstance(given, str) else msgspec.json.encode(given).decode()
        return {"name": self.tool, "arguments": text}


class Heard(Struct, frozen=True):
    """A user message."""

    text: str
    key: str = ""
    """The framework's id for the message."""
    whole: bool = True
    """False where there was more to it than text: a voice note, a picture, a file."""

    @property
    def words(self) -> str:
        """The words by which it is reported and recognised; without text, a marker that there was a message."""
        return self.text if self.text.strip() else NOT_TEXT

    @property
    def mark(self) -> Mark:
        """Its identity."""
        return Mark("user", self.words, key=self.key)


class Turn(Struct, frozen=True):
    """The agent's message and simultaneous calls."""

    text: str
    calls: tuple[Asked, ...] = ()
    key: str = ""

    @property
    def words(self) -> str:
        """The words by which it is recognised; without text and calls, a marker for a sound or picture."""
        return self.text if self.text.strip() or self.calls else NOT_TEXT

    @property
    def mark(self) -> Mark:
        """Its identity."""
        return Mark("agent", self.words, tuple(call.id for call in self.calls), self.key)


class Answered(Struct, frozen=True):
    """A tool's result, or the text the agent received instead."""

    id: str
    content: Any
    error: bool | None = None
    captured: bool = True
    """False if it is unknown what happened to the call."""


class Summary(Struct, frozen=True):
    """A summary written by a model or framework in place of earlier messages; nobody said it."""


Part = Heard | Turn | Answered | Summary


def is_same(decision: Decision, tool: str, arguments: Mapping[str, Any] | str) -> bool:
    """Whether a decision is about this very call."""
    given = as_object(arguments)
    if given is None:
        return decision.tool == tool and not decision.allowed
    return decision.tool == tool and decision.arguments == given


def as_object(arguments: Mapping[str, Any] | str) -> dict[str, Any] | None:
    """Arguments as data; None where they cannot be read."""
    if not isinstance(arguments, str):
        return dict(arguments)
    try:
        return msgspec.json.decode(arguments or "{}", type=dict[str, Any])
    except msgspec.DecodeError:
        return None


def plain(content: Any) -> Any:
    """A result as data; framework objects are converted as the framework prints them for the model."""
    try:
        msgspec.json.encode(content)
    except (TypeError, ValueError, RecursionError):
        return str(content)
    return content


def as_text(content: Any) -> str:
    """A result as the model reads it."""
    return content if isinstance(content, str) else msgspec.json.encode(content, enc_hook=str).decode()


class Alignment(Struct, frozen=True):
    """The unreported part of a history."""

    places: tuple[int | None, ...]
    """For each message, the known one that it is; None for one that was not heard."""
    told: frozenset[int]
    """The messages to report: new ones that do not merely replace others."""
    gap: int | None = None
    """Unknown messages may have been said before this one."""


def align(known: Sequence[Mark], given: Sequence[Mark]) -> Alignment:
    """Place the messages of a history among those known."""
    if not known:
        return Alignment((None,) * len(given), frozenset(range(len(given))))
    known, given = _with_trusted_keys(_once(known), _once(given))
    ids = {mark.key: mark for mark in known if mark.key}
    shows_calls = any(mark.calls for mark in given)
    heard = {at: _word(mark, ids, shows_calls) for at, mark in enumerate(known) if mark.said}
    said = {at: _word(mark, ids, shows_calls) for at, mark in enumerate(given) if mark.said}
    words = list(said.values())
    before = list(heard.values())
    count, is_sure, _ = known_words(before, words)
    is_sure = is_sure or _is_cut(before, words[:count])
    shown = [at for at in said if given[at].key in ids]
    by_id = list(said).index(shown[-1]) + 1 if shown else 0
    if by_id and by_id >= count:
        # Ids identify messages regardless of position and of what was removed before them.
        is_known = len(shown) == by_id and before[-1] in words[:by_id]
        count, is_sure = by_id, is_known or (is_sure and by_id == count)
    is_sure = is_sure and all(ids[given[at].key].says_same(given[at]) for at in shown)
    last = list(said)[count - 1] if count else -1
    places = _placed(known, given, last, heard, said)
    told = {at for at, mark in enumerate(given) if places[at] is None and (mark.calls or (at in said and at > last))}
    gap = None
    if not count:
        gap = _gap_before_strangers(given)
        if words == before[:1]:
            # The user begins anew, or has gone back to where they began.
            gap = 0
        elif any(place is not None for place in places) and min(said, default=len(given)) > _first(places):
            gap = None
    elif not is_sure:
        gap = last + 1
        following = next((given[at] for at in said if at > last), None)
        if following is not None and following.by == "user" and given[last].by == "agent" and not given[last].calls:
            # The message they answer is reported again.
            gap = last
        elif following is None and (changed := _changed(known, given)) is not None:
            gap = changed
        if gap <= last:
            told.add(gap)
    elif _has_moved(known, given, places, told):
        gap = last + 1
    return Alignment(tuple(places), frozenset(told), gap)


def _once(marks: Sequence[Mark]) -> list[Mark]:
    """Remove immediate repetitions. For calls only ids show a repetition, because some models reuse them."""
    copies = {at for at, (one, other) in enumerate(pairwise(marks), 1) if one == other and (one.key or not one.calls)}
    return [Mark(mark.by, "") if at in copies else mark for at, mark in enumerate(marks)]


def _is_cut(known: Sequence[Word], words: Sequence[Word]) -> bool:
    """Whether these are the last words that are known, after the first ones, or a summary in the user's name."""
    same = 0
    while same < min(len(known), len(words)) and known[-same - 1] == words[-same - 1]:
        same += 1
    front = words[: len(words) - same]
    is_summary = len(front) == 1 and front[0][0] == "user" and front[0] not in known
    return same >= TAIL and (is_summary or list(front) == list(known[: len(front)]))


def _word(mark: Mark, ids: Mapping[str, Mark], shows_calls: bool) -> Word:
    if mark.key in ids:
        return mark.by, f"id {mark.key}"
    return mark.by, "\n".join((mark.said, *mark.calls)) if shows_calls else mark.said


def _placed(
    known: Sequence[Mark], given: Sequence[Mark], last: int, heard: Mapping[int, Word], said: Mapping[int, Word]
) -> list[int | None]:
    """Which of the known messages each is: up to the last words that are known, from the back; after them only calls
    that came after them."""
    places: list[int | None] = [None] * len(given)
    free = dict.fromkeys(reversed(range(len(known))))

    def place(at: int, among: Iterable[int]) -> int | None:
        for each in among:
            is_same = heard.get(each) == said[at] if at in said and at <= last else False
            if each in free and (is_same or (given[at].calls and given[at].calls == known[each].calls)):
                places[at] = each
                del free[each]
                return each
        return None

    before = len(known)
    for at in range(last, -1, -1):
        found = place(at, range(before - 1, -1, -1))
        before = found if found is not None else before
        if found is None and (given[at].calls or given[at].key):
            place(at, list(free))
    after = places[last] if last >= 0 else max(heard, default=-1)
    for at in range(last + 1, len(given)):
        if given[at].calls and after is not None:
            found = place(at, range(after + 1, len(known)))
            after = found if found is not None else after
    return places


def _first(places: Sequence[int | None]) -> int:
    return next(at for at, place in enumerate(places) if place is not None)


def _has_moved(known: Sequence[Mark], given: Sequence[Mark], places: Sequence[int | None], told: Set[int]) -> bool:
    """Whether one of several messages of the user's that seem new may be an old one in another place."""
    fresh = [given[at] for at in told if given[at].by == "user"]
    gone = {mark.said for at, mark in enumerate(known) if mark.by == "user" and at not in places}
    return len(fresh) > 1 and any(not mark.key and mark.said in gone for mark in fresh)


def _changed(known: Sequence[Mark], given: Sequence[Mark]) -> int | None:
    """The position of the user's last message if its words are new."""
    at = max((at for at, mark in enumerate(given) if mark.by == "user"), default=-1)
    is_heard = any(mark.by == "user" and mark.said == given[at].said for mark in known)
    return None if at < 0 or is_heard else at


def _with_trusted_keys(known: Sequence[Mark], given: Sequence[Mark]) -> tuple[list[Mark], list[Mark]]:
    """Remove unreliable ids: repeated ones, or ids assigned anew each time, so that none is shared."""
    sides = [list(known), list(given)]
    for by in ("user", "agent"):
        counts = [Counter(mark.key for mark in side if mark.by == by and mark.key) for side in sides]
        shared = {key for key in counts[0].keys() & counts[1].keys() if counts[0][key] == counts[1][key] == 1}
        before = {mark.key: mark for mark in known if mark.key in shared}
        # An agent's message does not change: another text under the same id is another message.
        false = {
            each.key for each in given if each.key in shared and by == "agent" and not before[each.key].says_same(each)
        }
        # A message returned without its id is recognised by its words.
        loose = {mark.said for mark in given if mark.by == by and not mark.key}
        for side, count in zip(sides, counts, strict=True):
            for at, mark in enumerate(side):
                is_loose = side is sides[0] and mark.key not in shared and mark.said in loose
                is_none = not shared - false or count[mark.key] > 1 or mark.key in false or is_loose
                if mark.by == by and mark.key and is_none:
                    side[at] = replace(mark, key="")
    return sides[0], sides[1]


def _gap_before_strangers(given: Sequence[Mark]) -> int | None:
    """Nothing in the history is known; if only the user's current message is new, there is no gap."""
    users = [at for at, mark in enumerate(given) if mark.by == "user"]
    if not users:
        return 0 if given else None
    turns = [at for at in range(users[-1]) if given[at].by == "agent"]
    # Only the last exchange is sure to be the last.
    return turns[-1] if turns else users[-1] if len(users) > 1 else None


class Known(Struct):
    """A message reported to the session."""

    mark: Mark
    names: dict[str, str] = field(default_factory=dict[str, str])
    """The session's ids for its calls, by the framework's, because some models reuse ids in every turn."""


class KnownMessages:
    """The messages reported so far, in order."""

    def __init__(self) -> None:
        self._all: list[Known] = []
        self._last: tuple[list[Mark], list[Known | None], int] = ([], [], 0)
        """The history that was handed over last, what each of its messages is, and how many were known after it."""

    def __bool__(self) -> bool:
        return bool(self._all)

    def add(self, mark: Mark, names: Mapping[str, str] | None = None) -> Known:
        """One more, at the end."""
        known = Known(mark, dict(names or {}))
        self._all.append(known)
        return known

    def rename(self, id: str, before: str, name: str) -> None:
        """The call of this id has another name now."""
        for known in reversed(self._all):
            if known.names.get(id) == before:
                known.names[id] = name
                return

    def place(self, marks: list[Mark]) -> tuple[list[Known | None], frozenset[int], int | None]:
        """The known message for each mark, which ones to report, and where something may be missing."""
        before, found, count = self._last
        if before and count == len(self._all) and marks[: len(before)] == before:
            fresh = range(len(before), len(marks))
            return [*found, *(None for _ in fresh)], frozenset(fresh), None
        aligned = align([each.mark for each in self._all], marks)
        places = [None if at in aligned.told else place for at, place in enumerate(aligned.places)]
        return [None if place is None else self._all[place] for place in places], aligned.told, aligned.gap

    def keep(self, marks: list[Mark], found: Sequence[Known | None], told: Set[int], *, is_sure: bool) -> None:
        """Remember reported messages; after a gap, the whole history in order, so that it is recognised next time."""
        shown = [each for at, each in enumerate(found) if each is not None and (at in told or not is_sure)]
        there = {id(each) for each in shown}
        self._all = [each for each in self._all if id(each) not in there] + shown
        self._last = (marks, list(found), len(self._all))
