"""Aligns a framework's history with the messages already reported.

On each call, a framework passes its whole history, the end of it, a summary and the end, or only new messages. A
message is recognised by its id or position. Its text alone is not enough, because people repeat themselves. If a
history ends early or differs from the reported messages, it has a gap. The user's earlier answers are then no longer
valid.
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
"""The text for a message without text."""
TAIL = 3
"""If the beginning of a history has changed, at least this many messages at its end must match."""


class Mark(Struct, frozen=True):
    """The data that identifies a message."""

    by: By
    text: str
    calls: tuple[str, ...] = ()
    key: str = ""
    """The framework's id for the message, or an empty string."""

    @property
    def said(self) -> str:
        """The message's text, with each run of white space replaced by one space."""
        return " ".join(self.text.split())

    def says_same(self, other: "Mark") -> bool:
        """Whether two messages have the same role, calls and text. White space in the text is ignored."""
        return self.by == other.by and self.calls == other.calls and self.said == other.said


class Asked(Struct, frozen=True):
    id: str
    tool: str
    arguments: dict[str, Any] | str

    @property
    def function(self) -> dict[str, str]:
        """The call in chat-message format."""
        given = self.arguments
        text = given if isinstance(given, str) else msgspec.json.encode(given).decode()
        return {"name": self.tool, "arguments": text}


class Heard(Struct, frozen=True):
    text: str
    key: str = ""
    """The framework's id for the message, or an empty string."""
    whole: bool = True
    """False if the message also contained audio, a picture or a file."""

    @property
    def words(self) -> str:
        """The text of the message, or a marker if there is no text."""
        return self.text if self.text.strip() else NOT_TEXT

    @property
    def mark(self) -> Mark:
        return Mark("user", self.words, key=self.key)


class Turn(Struct, frozen=True):
    text: str
    calls: tuple[Asked, ...] = ()
    key: str = ""
    whole: bool = True
    """False if the message also contained audio, a picture or a file."""

    @property
    def words(self) -> str:
        """The text of the turn, or a marker if the turn contains only audio or pictures."""
        return self.text if self.text.strip() or self.calls else NOT_TEXT

    @property
    def mark(self) -> Mark:
        return Mark("agent", self.words, tuple(call.id for call in self.calls), self.key)


class Answered(Struct, frozen=True):
    """A tool's result, or the text that replaced it."""

    id: str
    content: Any
    error: bool | None = None
    captured: bool = True
    """Whether the call's outcome is known."""


class Summary(Struct, frozen=True):
    """A summary of earlier messages, written by a model or the framework."""


Part = Heard | Turn | Answered | Summary
Piece = str | Asked | Answered | None
"""Text, a call or a result in a message. None is unreadable content, such as audio or a picture."""


def parts_of(by: By, pieces: Iterable[Piece], key: str = "", *, between: str = "\n") -> list[Part]:
    """Convert the pieces of one message to parts. Texts are joined with `between`.

    In a user's message, the text comes after the results. In an agent's message, it comes before the results, because
    some providers run tools themselves.
    """
    given = list(pieces)
    words = [piece for piece in given if isinstance(piece, str)]
    calls = tuple(piece for piece in given if isinstance(piece, Asked))
    results = [piece for piece in given if isinstance(piece, Answered)]
    text, whole = between.join(words), all(piece is not None for piece in given)
    if by == "agent":
        return [Turn(text, calls, key, whole), *results] if text or calls or not whole else [*results]
    if results and len(results) == len(given):
        return [*results]
    return [*results, Heard(text, key, whole and not calls)]


def is_same(decision: Decision, tool: str, arguments: Mapping[str, Any] | str) -> bool:
    """Whether a decision concerns exactly this call."""
    given = as_object(arguments)
    if given is None:
        return decision.tool == tool and not decision.allowed
    return decision.tool == tool and decision.arguments == given


def as_object(arguments: Mapping[str, Any] | str) -> dict[str, Any] | None:
    """Return the arguments as data, or None if they are unreadable."""
    if not isinstance(arguments, str):
        return dict(arguments)
    try:
        return msgspec.json.decode(arguments or "{}", type=dict[str, Any])
    except msgspec.DecodeError:
        return None


def plain(content: Any) -> Any:
    """Return a result as JSON-compatible data. If it contains framework objects, return the text that the model
    sees.
    """
    try:
        msgspec.json.encode(content)
    except (TypeError, ValueError, RecursionError):
        return str(content)
    return content


def as_text(content: Any) -> str:
    """Return a result as the text that the model reads."""
    return content if isinstance(content, str) else msgspec.json.encode(content, enc_hook=str).decode()


class Alignment(Struct, frozen=True):
    """The messages of a history that are new."""

    places: tuple[int | None, ...]
    """For each message, the index of the matching known message, or None for a new message."""
    told: frozenset[int]
    """The new messages to report. Messages that only replace known ones are left out."""
    gap: int | None = None
    """Messages may be missing before this position."""


def align(known: Sequence[Mark], given: Sequence[Mark]) -> Alignment:
    """Match the messages in a history to the known messages."""
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
        # Ids still identify messages after earlier messages were removed.
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
            # The user has started over or gone back to the beginning.
            gap = 0
        elif any(place is not None for place in places) and min(said, default=len(given)) > _first(places):
            gap = None
    elif not is_sure:
        gap = last + 1
        following = next((given[at] for at in said if at > last), None)
        if following is not None and following.by == "user" and given[last].by == "agent" and not given[last].calls:
            # The user answers the agent's last known message, so report the answer again.
            gap = last
        elif following is None and (changed := _changed(known, given)) is not None:
            gap = changed
        if gap <= last:
            told.add(gap)
    elif _has_moved(known, given, places, told):
        gap = last + 1
    return Alignment(tuple(places), frozenset(told), gap)


def _once(marks: Sequence[Mark]) -> list[Mark]:
    """Remove consecutive duplicates. A message with calls is removed only if it has an id, because some models reuse
    call ids.
    """
    copies = {at for at, (one, other) in enumerate(pairwise(marks), 1) if one == other and (one.key or not one.calls)}
    return [Mark(mark.by, "") if at in copies else mark for at, mark in enumerate(marks)]


def _is_cut(known: Sequence[Word], words: Sequence[Word]) -> bool:
    """Whether a history was shortened: its beginning was cut or replaced by a summary.

    A shortened history starts with the first known messages, or with a user message that contains a summary. It ends
    with the last known messages.
    """
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
    """Match messages to known messages, backwards from the last known text. After that text, match only calls."""
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
    """Whether one of several new user messages may be a known message at a new position."""
    fresh = [given[at] for at in told if given[at].by == "user"]
    gone = {mark.said for at, mark in enumerate(known) if mark.by == "user" and at not in places}
    return len(fresh) > 1 and any(not mark.key and mark.said in gone for mark in fresh)


def _changed(known: Sequence[Mark], given: Sequence[Mark]) -> int | None:
    at = max((at for at, mark in enumerate(given) if mark.by == "user"), default=-1)
    is_heard = any(mark.by == "user" and mark.said == given[at].said for mark in known)
    return None if at < 0 or is_heard else at


def _with_trusted_keys(known: Sequence[Mark], given: Sequence[Mark]) -> tuple[list[Mark], list[Mark]]:
    sides = [list(known), list(given)]
    for by in ("user", "agent"):
        counts = [Counter(mark.key for mark in side if mark.by == by and mark.key) for side in sides]
        shared = {key for key in counts[0].keys() & counts[1].keys() if counts[0][key] == counts[1][key] == 1}
        before = {mark.key: mark for mark in known if mark.key in shared}
        # Agent messages never change, so different text with the same id is a different message.
        false = {
            each.key for each in given if each.key in shared and by == "agent" and not before[each.key].says_same(each)
        }
        # If a known message appears without its id, it is identified by its text.
        loose = {mark.said for mark in given if mark.by == by and not mark.key}
        for side, count in zip(sides, counts, strict=True):
            for at, mark in enumerate(side):
                is_loose = side is sides[0] and mark.key not in shared and mark.said in loose
                is_none = not shared - false or count[mark.key] > 1 or mark.key in false or is_loose
                if mark.by == by and mark.key and is_none:
                    side[at] = replace(mark, key="")
    return sides[0], sides[1]


def _gap_before_strangers(given: Sequence[Mark]) -> int | None:
    """Return the position of the gap in a history without known messages. There is no gap if it has a single user
    message, with no agent message before it.
    """
    users = [at for at, mark in enumerate(given) if mark.by == "user"]
    if not users:
        return 0 if given else None
    turns = [at for at in range(users[-1]) if given[at].by == "agent"]
    # In such a history, only the position of the last exchange is certain.
    return turns[-1] if turns else users[-1] if len(users) > 1 else None


class Known(Struct):
    """A message that the session contains."""

    mark: Mark
    names: dict[str, str] = field(default_factory=dict[str, str])
    """Maps the framework's call ids to the session's ids. Some models reuse call ids in every turn."""


class KnownMessages:
    def __init__(self) -> None:
        self._all: list[Known] = []
        self._last: tuple[list[Mark], list[Known | None], int] = ([], [], 0)
        """The last history, the known message for each of its messages, and the number of known messages after it."""

    def __bool__(self) -> bool:
        return bool(self._all)

    def add(self, mark: Mark, names: Mapping[str, str] | None = None) -> Known:
        known = Known(mark, dict(names or {}))
        self._all.append(known)
        return known

    def rename(self, id: str, before: str, name: str) -> None:
        """Change the name under which the session knows a call."""
        for known in reversed(self._all):
            if known.names.get(id) == before:
                known.names[id] = name
                return

    def place(self, marks: list[Mark]) -> tuple[list[Known | None], frozenset[int], int | None]:
        """Return the known message for each mark, the indices of marks to report, and the position of a gap, if any."""
        before, found, count = self._last
        if before and count == len(self._all) and marks[: len(before)] == before:
            fresh = range(len(before), len(marks))
            return [*found, *(None for _ in fresh)], frozenset(fresh), None
        aligned = align([each.mark for each in self._all], marks)
        places = [None if at in aligned.told else place for at, place in enumerate(aligned.places)]
        return [None if place is None else self._all[place] for place in places], aligned.told, aligned.gap

    def keep(self, marks: list[Mark], found: Sequence[Known | None], told: Set[int], *, is_sure: bool) -> None:
        """Remember the reported messages. After a gap, remember the whole history, so that it is recognised next
        time.
        """
        shown = [each for at, each in enumerate(found) if each is not None and (at in told or not is_sure)]
        there = {id(each) for each in shown}
        self._all = [each for each in self._all if id(each) not in there] + shown
        self._last = (marks, list(found), len(self._all))
