"""Finds look-ups that usually come before a write, writes without these look-ups, and the origins of arguments."""

import re
from bisect import insort
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any, Generic, Literal, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bylaw.facts.evidence import wilson
from bylaw.facts.provenance import Traced, TracedSource
from bylaw.facts.result_places import leaf_values
from bylaw.scan.effect import Guess
from bylaw.text.folding import occurs
from bylaw.text.identifier import is_identifier

T = TypeVar("T")


class Firsts(Generic[T]):
    """Keeps the `most` items that come first in a given order."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: list[tuple[Any, T]] = []

    def add(self, order: Any, item: T) -> None:
        if len(self._kept) < self._most or order < self._kept[-1][0]:
            insort(self._kept, (order, item), key=itemgetter(0))
            del self._kept[self._most :]

    def items(self) -> tuple[T, ...]:
        return tuple(item for _, item in self._kept)


Bond = Literal["keyed", "shows", "mentions"]
ValueCover = frozenset[tuple[str, Bond]]
"""The tools whose results contain a value, each with the strongest way in which its results contain it."""

_OCCURRENCES = 20
_IS_KEY = re.compile(r"[\"'\\]{0,3}\s{0,2}:(?!//)")
# For example, in the time of day `10:13`, 13 is not the value of a field.
_IS_FIELD = re.compile(r"(?:[^\d\s]\s?:|\d:\s)\s{0,2}[\"'\\]{0,3}$")
_RANK: dict[Bond, int] = {"mentions": 0, "shows": 1, "keyed": 2}


class Preparedness(Struct, frozen=True):
    """Which look-ups came before a write. Writes with equal preparation are counted together."""

    covers: frozenset[tuple[str, ValueCover]]
    """How look-ups are linked to the values of each argument, keyed by the argument's path."""
    chained: frozenset[str]


class EarlierCall(Struct, frozen=True, dict=True):
    tool: str
    arguments: dict[str, object]
    text: str

    @cached_property
    def keys(self) -> frozenset[str]:
        """The paths of the arguments that may be identifiers."""
        return frozenset(value for _, value in names(self.arguments))


def names(arguments: dict[str, object]) -> Iterable[tuple[str, str]]:
    """Yield the arguments that may be identifiers, with their paths. Dates, amounts and flags are left out."""
    for path, value in leaf_values(arguments):
        if (name := _name(path, value)) is not None:
            yield path, name


def _name(path: str, value: object) -> str | None:
    if isinstance(value, str):
        is_word = len(value) >= 2 and not value[0].isdigit() and value.lower() not in _WORDS
        return value if is_word or is_identifier(value) or (value.isdigit() and is_id(path)) else None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) and is_id(path) else None


_WORDS = {"yes", "no", "true", "false", "none", "null", "all", "any", "asc", "desc"}


def is_id(path: str) -> bool:
    """Whether the name of an argument says that it is an id, a number or a code."""
    last = path.rpartition(".")[2].rstrip("[]").lower().rstrip("_s")
    return last == "id" or last.endswith(("_id", "number", "_no", "code"))


def link(arguments: dict[str, object], lookups: Sequence[EarlierCall]) -> Preparedness:
    """Return how the earlier look-ups are linked to a call with these arguments."""
    covers: set[tuple[str, ValueCover]] = set()
    near: dict[int, EarlierCall] = {}
    for path, value in dict.fromkeys(names(arguments)):
        strongest: dict[str, Bond] = {}
        for position, lookup in enumerate(lookups):
            bond = _bond(path, value, lookup)
            if bond is None:
                continue
            if bond != "mentions":
                near[position] = lookup
            if _RANK[bond] > _RANK.get(strongest.get(lookup.tool, "mentions"), 0) or lookup.tool not in strongest:
                strongest[lookup.tool] = bond
        covers.add((path, frozenset(strongest.items())))
    return Preparedness(frozenset(covers), _chained(near, lookups))


def _bond(path: str, value: str, lookup: EarlierCall) -> Bond | None:
    if value in lookup.keys:
        return "keyed"
    if not is_identifier(value) and not (value.isdigit() and is_id(path)):
        return None
    return stance(value, lookup.text)


def stance(value: str, text: str) -> Bond | None:
    """Return how a result contains `value`: as a field or key of a record, in a list, in running text, or not at all.

    The result is not decoded. Only the characters around the value are checked, which is accurate enough for guesses
    but is never used for verdicts.
    """
    here = occurs(value, text)
    if here < 0:
        return None
    for _ in range(_OCCURRENCES):
        end = here + len(value)
        if _IS_KEY.match(text, end) or _IS_FIELD.search(text, max(0, here - 8), here):
            return "shows"
        here = occurs(value, text, end)
        if here < 0:
            break
    return "mentions"


def _chained(near: dict[int, EarlierCall], lookups: Sequence[EarlierCall]) -> frozenset[str]:
    found: set[str] = set()
    for position, lookup in enumerate(lookups):
        if position in near or lookup.tool in found:
            continue
        if any(occurs(key, other.text) >= 0 for key in lookup.keys for other in near.values()):
            found.add(lookup.tool)
    return frozenset(found)


HabitReason = Literal["keyed", "shows", "belongs", "distinctive"]

_NUMBER = re.compile(r"(\d{1,30})")
_USUAL = 0.5
"""The minimum share of writes that come after a usual look-up of an id in their arguments."""
_BELONGS = 0.9
"""The minimum lower bound of the share of writes after a usual look-up of records that only refer to an id."""
_ADDS = 0.1
"""The minimum increase in the share of covered writes for which an alternative look-up is added."""
_OFTEN_ENOUGH = 0.1
_LIFT = 2.0
_FEWEST_APART = 5
"""The minimum number of look-ups to call a look-up distinctive for a write."""
FEWEST = 3
"""The minimum number of writes to call a look-up usual."""


class CallPlace(Struct, frozen=True):
    trajectory: str
    step: int
    agent: str = ""

    @property
    def order(self) -> tuple[object, ...]:
        """Return a sort key for natural order, in which `chat-9` comes before `chat-10`."""
        parts = _NUMBER.split(self.trajectory)
        return [
            (text, int(number or -1)) for text, number in zip(parts[::2], [*parts[1::2], ""], strict=True)
        ], self.step


class Habit(Struct, frozen=True):
    """Look-ups for a value in the arguments of a write. One of these look-ups usually comes before the write."""

    tools: tuple[str, ...]
    arguments: tuple[str, ...]
    """The arguments that the look-ups share with the write. Empty if they are connected only through other look-ups."""
    reason: HabitReason
    hits: int
    cases: int
    low: float
    high: float
    """The upper bound of Wilson's interval for `hits` out of `cases`."""
    sure: float
    """The confidence that the write needs the look-up: `low` times the confidence in the guessed effects."""
    lacking: tuple[CallPlace, ...] = ()
    """The first calls without the look-up. In total, there are `cases - hits` calls without it."""
    shown: int = 0
    """The number of calls without the look-up but after another look-up that returned a record with the value."""
    shown_by: tuple[str, ...] = ()


class Preparation:
    """How the calls of a write tool were prepared, with example calls for each preparation."""

    def __init__(self, examples: int) -> None:
        self.patterns: Counter[Preparedness] = Counter()
        self.together: set[str] = set()
        """Tools that are called in conversations with this write."""
        self._examples: dict[Preparedness, Firsts[CallPlace]] = {}
        self._most = examples

    def add(self, pattern: Preparedness, place: CallPlace) -> None:
        self.patterns[pattern] += 1
        self._examples.setdefault(pattern, Firsts(self._most)).add(place.order, place)

    def examples(self, *groups: Iterable[Preparedness]) -> tuple[CallPlace, ...]:
        """Return the first calls with one of these preparations, grouped by preparation."""
        found: list[CallPlace] = []
        for patterns in groups:
            places = [place for pattern in patterns for place in self._examples[pattern].items()]
            found += sorted(places, key=lambda place: place.order)
        return tuple(found[: self._most])


def habits(tool: str, prepared: Mapping[str, Preparation], guesses: Mapping[str, Guess]) -> tuple[Habit, ...]:
    """Return the look-ups that usually come before `tool`, the most certain first."""
    own = prepared[tool]
    reads = {name for name, guess in guesses.items() if guess.effect == "read"}
    found: list[Habit] = []
    paths = sorted({path for pattern in own.patterns for path, _ in pattern.covers})
    for path in paths:
        keyed = _group(own, path, reads, ("keyed",))
        if keyed:
            found.append(_habit(own, path, keyed, ("keyed",), "keyed", reads - set(keyed)))
            found += _further(own, path, reads - set(keyed))
        elif shown := _group(own, path, reads, ("keyed", "shows")):
            found.append(_habit(own, path, shown, ("keyed", "shows"), "shows"))
    found = _merge(found)
    named = {name for habit in found for name in habit.tools}
    found += _distinctive(tool, prepared, reads - named)
    write = guesses[tool].sure
    factors = [write * max(guesses[name].sure for name in habit.tools) for habit in found]
    rated = [
        msgspec.structs.replace(habit, sure=round(habit.low * factor, 2))
        for habit, factor in zip(found, factors, strict=True)
    ]
    return tuple(sorted(rated, key=lambda habit: (habit.reason == "distinctive", -habit.sure, habit.tools)))


def _covers(pattern: Preparedness, path: str, tools: Iterable[str], bonds: tuple[Bond, ...]) -> bool | None:
    """Whether calls of `tools` covered every value at `path`. None if the call has no such argument."""
    wanted = {(tool, bond) for tool in tools for bond in bonds}
    values = [cover for at, cover in pattern.covers if at == path]
    return all(cover & wanted for cover in values) if values else None


def _count(own: Preparation, path: str, tools: Iterable[str], bonds: tuple[Bond, ...]) -> tuple[int, int]:
    tools = tuple(tools)
    hits = cases = 0
    for pattern, count in own.patterns.items():
        covered = _covers(pattern, path, tools, bonds)
        if covered is not None:
            cases += count
            hits += count * covered
    return hits, cases


def _group(own: Preparation, path: str, reads: set[str], bonds: tuple[Bond, ...]) -> tuple[str, ...]:
    """Return a small set of look-ups that covers the argument in most calls. The set is built greedily."""
    present = {name for pattern in own.patterns for at, cover in pattern.covers if at == path for name, _ in cover}
    left = sorted(present & reads)
    chosen: list[str] = []
    covered = 0
    while left:
        best = max(left, key=lambda name: (_count(own, path, [*chosen, name], bonds)[0], name))
        hits, cases = _count(own, path, [*chosen, best], bonds)
        if cases < FEWEST or hits - covered < _ADDS * cases:
            break
        chosen.append(best)
        left.remove(best)
        covered = hits
    hits, cases = _count(own, path, chosen, bonds)
    return tuple(chosen) if chosen and hits >= _USUAL * cases else ()


def _further(own: Preparation, path: str, reads: set[str]) -> list[Habit]:
    """Return other usual look-ups of the id, such as a look-up of an account's limits.

    Also return look-ups of records that only refer to the id, if nearly every call comes after them.
    """
    by_id = [_habit(own, path, (name,), ("keyed",), "keyed") for name in sorted(reads)]
    by_record = [_habit(own, path, (name,), ("shows",), "belongs") for name in sorted(reads)]
    usual = [each for each in by_id if each.cases >= FEWEST and each.hits >= _USUAL * each.cases]
    return usual + [each for each in by_record if each.low >= _BELONGS]


def _habit(
    own: Preparation,
    path: str,
    tools: tuple[str, ...],
    bonds: tuple[Bond, ...],
    reason: HabitReason,
    others: Collection[str] = (),
) -> Habit:
    """Return the habit of calling `tools` for one argument. `others` are look-ups that may name this entity too."""
    hits, cases = _count(own, path, tools, bonds)
    low, high = wilson(hits, cases)
    lacking = [pattern for pattern in own.patterns if _covers(pattern, path, tools, bonds) is False]
    shown = {pattern for pattern in lacking if _covers(pattern, path, {*tools, *others}, ("keyed", "shows"))}
    by = {
        name for each in shown for at, cover in each.covers if at == path for name, bond in cover if bond != "mentions"
    }
    # Put calls whose value no result had shown first.
    places = own.examples(set(lacking) - shown, shown)
    number = sum(own.patterns[pattern] for pattern in shown)
    named = tuple(sorted(by & set(others)))
    return Habit(tools, (path,), reason, hits, cases, low, high, low, places, number if named else 0, named)


def _merge(found: list[Habit]) -> list[Habit]:
    merged: dict[tuple[frozenset[str], HabitReason], Habit] = {}
    for habit in sorted(found, key=lambda habit: (-habit.low, habit.arguments)):
        key = (frozenset(habit.tools), habit.reason)
        kept = merged.get(key)
        if kept is not None:
            habit = msgspec.structs.replace(kept, arguments=(*kept.arguments, *habit.arguments))
        merged[key] = habit
    return list(merged.values())


def _distinctive(tool: str, prepared: Mapping[str, Preparation], reads: set[str]) -> list[Habit]:
    """Return look-ups that are rare before this write, but even rarer before other writes."""
    touching = {key: _touching(own) for key, own in prepared.items()}
    found: list[Habit] = []
    for name in sorted(reads & touching[tool].keys()):
        others = [key for key, own in prepared.items() if key != tool and name in own.together]
        hits, cases = touching[tool][name], prepared[tool].patterns.total()
        there, rest = sum(touching[key][name] for key in others), sum(prepared[key].patterns.total() for key in others)
        low, high = wilson(hits, cases)
        if hits < _FEWEST_APART or hits < _OFTEN_ENOUGH * cases or rest == 0:
            continue
        if low <= wilson(there, rest)[1] or hits * rest < _LIFT * there * cases:
            continue
        found.append(Habit((name,), (), "distinctive", hits, cases, low, high, low))
    return found


def _touching(own: Preparation) -> Counter[str]:
    hits: Counter[str] = Counter()
    for pattern, count in own.patterns.items():
        for name in pattern.chained.union(name for _, cover in pattern.covers for name, _ in cover):
            hits[name] += count
    return hits


_DISTINCT = 1_000
_USUAL_SHARE = 0.8
_VALUE = 80


class UnsourcedValue(Struct, frozen=True):
    """A value whose origin is questionable."""

    place: CallPlace
    value: str
    source: str = ""
    """If the value comes from free text, the tool and the step of the result, such as `read_file @2`."""


class Argument(Struct, frozen=True):
    """An argument of a write tool, and the origins of its values."""

    tool: str
    name: str
    """The path of the argument, such as `flights[].flight_number`."""
    cases: int
    user: int
    host: int
    record: int
    text: int
    nowhere: int
    vocabulary: bool
    """Whether the argument has so few values, such as cabin classes, that their origin does not matter."""
    sure: float
    """The confidence that a value without an origin is unusual: the lower bound of the share of values with an origin.
    """
    ids: bool = False
    """Whether the values are identifiers, such as codes, addresses or links."""
    strange: tuple[UnsourcedValue, ...] = ()
    """The first values without an origin, if nearly all values have an origin."""
    left_out: tuple[UnsourcedValue, ...] = ()
    """The first values without an origin, if many values have no origin."""
    from_text: tuple[UnsourcedValue, ...] = ()
    """The first values that occur only in the free text of a result."""

    @property
    def usual(self) -> bool:
        """Whether a value without an origin is unusual, because nearly all values have one."""
        known = self.cases - self.nowhere
        # Agents rarely invent ids, so a few values are enough evidence. For ids, use the upper bound.
        share = wilson(known, self.cases)[1] if self.ids else known / max(1, self.cases)
        return not self.vocabulary and self.sure > 0 and share >= _USUAL_SHARE


class Origins:
    """Counts the origins of an argument's values."""

    def __init__(self, examples: int) -> None:
        self.kinds: Counter[TracedSource] = Counter()
        self._distinct: set[str] = set()
        self._nowhere = Firsts[UnsourcedValue](examples)
        self._text = Firsts[UnsourcedValue](examples)

    def add(self, value: str | float, origin: Traced, place: CallPlace) -> None:
        self.kinds[origin.source] += 1
        shown = str(value)[:_VALUE]
        if len(self._distinct) < _DISTINCT:
            self._distinct.add(shown)
        if origin.source == "agent":
            self._nowhere.add((place.order, shown), UnsourcedValue(place, shown))
        elif origin.source == "content":
            self._text.add((place.order, shown), UnsourcedValue(place, shown, f"{origin.tool} @{origin.step}"))

    def summary(self, tool: str, name: str) -> Argument:
        kinds, cases = self.kinds, self.kinds.total()
        words = [value for value in self._distinct if not is_identifier(value) and not value[:1].isdigit()]
        few = cases >= 10 and len(self._distinct) * 10 <= cases and len(self._distinct) < _DISTINCT
        vocabulary = few and len(words) * 2 > len(self._distinct)
        low = wilson(cases - kinds["agent"], cases)[0]
        found = Argument(
            tool,
            name,
            cases,
            kinds["user"],
            kinds["host"],
            kinds["record"],
            kinds["content"],
            kinds["agent"],
            vocabulary,
            round(low, 2),
            ids=is_id(name) or sum(map(is_identifier, self._distinct)) * 2 > len(self._distinct),
            from_text=self._text.items(),
        )
        first = self._nowhere.items()
        return replace(found, strange=first) if found.usual else replace(found, left_out=first)
