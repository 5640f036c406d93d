"""Which messages of a history were heard before, where a host may have trimmed, summarised or reordered it.

A message is known by the framework's id, else by its place among the others; never by its words alone, since people
repeat themselves. What cannot be placed is told as a gap: from there on, what was said before no longer counts.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

By = Literal["user", "agent"]

TAIL = 3.0
"""What it costs to believe that the end of what was heard is missing, while an earlier part is still there."""
INSERTED = 1.0
SKIPPED = 0.01
FRONT = 0.5
KEYED = 10.0
MOST = 100_000
"""Pairs of messages that are compared at most; of longer histories the last part is."""
_NEVER = float("inf")


class Mark(Struct, frozen=True):
    """What a message is known by."""

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
        """Whether it says the same in the same role, spacing aside."""
        return self.by == other.by and self.calls == other.calls and self.said == other.said


class Alignment(Struct, frozen=True):
    """What a history shows that was not heard before."""

    places: tuple[int | None, ...]
    """For each message, the known one that it is; None for one that was not heard."""
    told: frozenset[int]
    """The messages that are to be told: not heard before, and not merely in the place of others that were."""
    gap: int | None = None
    """Before this message something may have been said that is not known."""


def align(known: Sequence[Mark], given: Sequence[Mark]) -> Alignment:
    """Place the messages of a history among those known."""
    if not known:
        return Alignment((None,) * len(given), frozenset(range(len(given))))
    known, given = _with_trusted_keys(known, given)
    places = _overlap(known, given) or _placed(known, given)
    by_key = {mark.key: at for at, mark in enumerate(known) if mark.key}
    # An id says which message it is, wherever that has been moved to.
    return _read(known, given, [by_key.get(mark.key, place) for mark, place in zip(given, places, strict=True)])


def _with_trusted_keys(known: Sequence[Mark], given: Sequence[Mark]) -> tuple[list[Mark], list[Mark]]:
    """The same, without ids that tell nothing: given twice, or given anew each time, so that none is shared."""
    sides = [list(known), list(given)]
    for by in ("user", "agent"):
        counts = [Counter(mark.key for mark in side if mark.by == by and mark.key) for side in sides]
        shared = {key for key in counts[0].keys() & counts[1].keys() if counts[0][key] == counts[1][key] == 1}
        before = {mark.key: mark for mark in known if mark.key in shared}
        # An agent does not take back what it has said: another text under the same id is another message.
        false = {
            each.key for each in given if each.key in shared and by == "agent" and not before[each.key].says_same(each)
        }
        for side, count in zip(sides, counts, strict=True):
            for at, mark in enumerate(side):
                if mark.by == by and mark.key and (not shared - false or count[mark.key] > 1 or mark.key in false):
                    side[at] = replace(mark, key="")
    return sides[0], sides[1]


def _is_same(known: Mark, given: Mark) -> bool:
    if known.key and given.key:
        return known.key == given.key
    return known.says_same(given)


def _overlap(known: Sequence[Mark], given: Sequence[Mark]) -> list[int | None] | None:
    """The places where the history begins with the end of what is known: the usual case, trimmed or not."""
    for start in range(max(0, len(known) - len(given)), len(known)):
        length = len(known) - start
        if all(_is_same(known[start + at], given[at]) for at in range(length)):
            return [start + at if at < length else None for at in range(len(given))]
    return None


def _placed(known: Sequence[Mark], given: Sequence[Mark]) -> list[int | None]:
    """The best way to lay the history over what is known, in order.

    The beginning of what is known may be missing for nothing, and parts of the middle nearly so; that its end is
    missing speaks against a match, for hosts drop what is old.
    """
    most = max(1, MOST // max(1, len(given)))
    skipped = max(0, len(known) - most)
    known = known[skipped:]
    n, m = len(known), len(given)
    # Costs from a place on: `ahead` where a later pair must match, `front` where none has matched yet.
    ahead = [[_NEVER] * (m + 1) for _ in range(n + 2)]
    front = [[_NEVER] * (m + 1) for _ in range(n + 2)]
    for i in range(n - 1, -1, -1):
        for j in range(m - 1, -1, -1):
            pair = _NEVER
            if _is_same(known[i], given[j]):
                ended = min(TAIL, 2.0 * (n - 1 - i))
                pair = min(ended, ahead[i + 1][j + 1]) - _worth(known[i], given[j])
            ahead[i][j] = min(pair, ahead[i + 1][j] + SKIPPED, ahead[i][j + 1] + INSERTED)
            front[i][j] = min(pair, front[i + 1][j], front[i][j + 1] + FRONT)
    places: list[int | None] = [None] * m
    if not n or not m or front[0][0] > 0:
        return places
    table, i, j = front, 0, 0
    skip, insert = 0.0, FRONT
    while i < n and j < m:
        best = table[i][j]
        if best == table[i + 1][j] + skip:
            i += 1
        elif best == table[i][j + 1] + insert:
            j += 1
        else:
            places[j] = skipped + i
            is_end = min(TAIL, 2.0 * (n - 1 - i)) < ahead[i + 1][j + 1]
            i, j, table, skip, insert = i + 1, j + 1, ahead, SKIPPED, INSERTED
            if is_end:
                break
    return places


def _worth(known: Mark, given: Mark) -> float:
    if known.key and known.key == given.key:
        return KEYED
    return 1.0 if known.by == "user" else 2.0


def _read(known: Sequence[Mark], given: Sequence[Mark], places: Sequence[int | None]) -> Alignment:
    """What the places mean: what is new, and whether anything is missing."""
    matched = [at for at, place in enumerate(places) if place is not None]
    is_sure = len(matched) > 1 or any(given[at].key or given[at].calls for at in matched)
    is_reply = bool(matched) and given[matched[-1]].by == "agent"
    if is_reply and not is_sure and not any(mark.by == "user" for mark in given[matched[-1] + 1 :]):
        # An agent that says what it said before, to a user who says something else.
        matched, places = [], [None] * len(given)
    if not matched:
        return Alignment(tuple(places), frozenset(range(len(given))), _gap_before_strangers(given))
    first, last = matched[0], matched[-1]
    taken = {place for place in places if place is not None}
    told = set(range(last + 1, len(given)))
    gaps: list[int] = []
    if (at := _changed(known, given, places, last)) is not None:
        # Whatever the agent has said since, what the user said last has been changed.
        gaps.append(at)
        told.add(at)
    for at in range(last):
        mark = given[at]
        if at in told:
            continue
        is_front = is_sure and at < first and 0 not in taken
        if places[at] is not None or _stands_in(known, given, places, at, is_front=is_front):
            continue
        if mark.by == "user":
            # Nobody can say when it was said, or by whom.
            gaps.append(last + 1)
        elif mark.calls:
            told.add(at)
    fresh = [at for at in range(last + 1, len(given)) if given[at].by == "user"]
    end = max(taken)
    unseen = {mark.said for at, mark in enumerate(known) if mark.by == "user" and at not in taken}
    if fresh and any(mark.by == "user" for mark in known[end + 1 :]):
        gaps.append(last + 1)
    elif len(fresh) > 1 and any(not given[at].key and given[at].said in unseen for at in fresh):
        # One of them may be an old one that was moved.
        gaps.append(last + 1)
    place = places[last]
    assert place is not None
    if given[last].by == "user" and place == end and not known[end].says_same(given[last]):
        # What the user said last has been changed since it was heard.
        gaps.append(last)
        told.add(last)
    return Alignment(tuple(places), frozenset(told), min(gaps, default=None))


def _changed(known: Sequence[Mark], given: Sequence[Mark], places: Sequence[int | None], last: int) -> int | None:
    """Where what the user said last stands with other words, and they have said nothing since."""
    if any(mark.by == "user" for mark in given[last + 1 :]):
        return None
    heard = max((at for at, mark in enumerate(known) if mark.by == "user"), default=-1)
    if heard < 0:
        return None
    if heard in places:
        at = places.index(heard)
        return None if known[heard].says_same(given[at]) else at
    before = max((at for at, place in enumerate(places) if place is not None and place < heard), default=-1)
    after = min((at for at, place in enumerate(places) if place is not None and place > heard), default=len(given))
    instead = [at for at in range(before + 1, after) if given[at].by == "user"]
    return instead[0] if before >= 0 and len(instead) == 1 else None


def _gap_before_strangers(given: Sequence[Mark]) -> int | None:
    """Nothing of the history is known: what is new in it, if it is only what the user says now, leaves no gap."""
    users = [at for at, mark in enumerate(given) if mark.by == "user"]
    if not users:
        return 0 if given else None
    turns = [at for at in range(users[-1]) if given[at].by == "agent"]
    # Only the last exchange is sure to be the last.
    return turns[-1] if turns else users[-1] if len(users) > 1 else None


def _stands_in(
    known: Sequence[Mark], given: Sequence[Mark], places: Sequence[int | None], at: int, *, is_front: bool
) -> bool:
    """Whether a message that was not heard stands in for some that were: a summary, a copy, another wording."""
    mark = given[at]
    if is_front and not mark.calls:
        return True
    before = next((place for place in reversed(places[:at]) if place is not None), -1)
    after = next((place for place in places[at:] if place is not None), len(known))
    missing = [each for each in known[before + 1 : after] if each.by == mark.by and not each.calls]
    if not mark.calls and any(_is_reworded(each, mark) for each in missing):
        return True
    beside = [given[each] for each in (at - 1, at + 1) if 0 <= each < len(given)]
    return mark.by == "user" and any(each.says_same(mark) for each in beside)


def _is_reworded(known: Mark, given: Mark) -> bool:
    """Whether a host may have rewritten one into the other: agents' words were all heard, users' keep most words."""
    if known.by == "agent":
        return True
    if known.key and given.key:
        return False
    words = known.text.casefold().split()
    return 2 * sum(word in given.text.casefold() for word in words) > len(words)
