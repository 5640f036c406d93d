"""About how long a search with a regular expression takes at worst, on a text of some length.

Counted are the ways that Python's engine goes: every place of the text is a start, every repeat is scanned to its end
and then given back letter by letter, and where what follows could take such a letter, all of what follows is tried from
there. Repeats that could read the same letters in exponentially many ways are refused before (see `ambiguity`): under
the others, no place of the text is reached twice by the same part of the pattern.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

from bylaw.policy.ambiguity import LOOPS_FROM, Letters, Node

START, STEP, SCAN, SCAN_SET, COMPARE, BRANCH, ROUND = 100, 30, 2, 15, 5, 30, 80
"""Nanoseconds, rather too many: to begin at a place, to try what follows, to go on by a letter of a repeat (or by one
of a set), to compare a letter, to try a branch, to begin a round of a repeated group."""
MOST_RUNS = 32
"""How many texts are told apart at the beginning of a part."""
LONGEST_RUN = 40

_LETTERS = ("LITERAL", "NOT_LITERAL", "IN", "ANY")
Run = tuple[int, ...]
"""Sets of letters, one after the other."""


class Front(NamedTuple):
    """How far a search came: how often what follows is tried, and what that took."""

    entries: float
    """In all, from wherever the search began."""
    spread: float
    """How many of those stand, each at its own place, for one that came before."""
    depth: int
    """How many repeats without end, the search from every place being one, these places were chosen by, in order."""
    cost: float
    is_scanned: bool = False
    """Whether the rest of the text was paid for: repeats that hand nothing on share it."""


class Effort:
    """The effort of a pattern on texts of one length."""

    def __init__(self, letters: Letters, tree: Sequence[Node], length: int) -> None:
        self._letters = letters
        self._length = length
        self._groups = dict(_groups(tree))
        self._tree = tree

    def nanoseconds(self, *, is_anchored: bool) -> float:
        """At worst, about."""
        begun = START * self._length
        first = Front(1, 1, 0, begun) if is_anchored else Front(self._length, self._length, 1, begun)
        return self._walk(self._tree, first, 0).cost

    def _times(self, most: int, depth: int) -> tuple[float, int]:
        """How many rounds there may be on average: of n letters, n*n/2 pairs are in order, and n*n*n/6 triples."""
        rest = self._length / (depth + 1)
        return (most, depth) if most < rest else (rest, depth + 1)

    def _walk(self, tree: Sequence[Node], front: Front, following: int) -> Front:
        """Through a sequence; `following` are the letters that may come after it."""
        behind = [following]
        for op, argument in reversed(tree):
            starts, is_empty = self._starts(op, argument)
            behind.append(starts | behind[-1] if is_empty else starts)
        behind.reverse()
        at = 0
        while at < len(tree):
            runs, end = self._runs(tree, at)
            if end > at:
                front, at = _through(runs, front, behind[end] or self._letters.all), end
            else:
                front, at = self._node(*tree[at], front, behind[at + 1]), at + 1
        return front

    def _node(self, op: str, argument: Any, front: Front, following: int) -> Front:
        match op:
            case "SUBPATTERN":
                return self._walk(argument[3], front, following)
            case "BRANCH":
                return self._either(argument[1], front, following)
            case "GROUPREF_EXISTS":
                return self._either(argument[1:], front, following)
            case "ASSERT" | "ASSERT_NOT":
                return front._replace(cost=front.cost + front.entries * self._once(argument[1], front.depth))
            case "ATOMIC_GROUP":
                return front._replace(cost=front.cost + front.entries * self._once(argument, front.depth), spread=1)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                return self._repeat(op, argument, front, following)
            case "GROUPREF":
                cost = STEP + COMPARE * self._times(self._width(self._groups.get(argument, ())), front.depth)[0]
                return front._replace(cost=front.cost + front.entries * cost, spread=1)
            case _:
                return front._replace(cost=front.cost + front.entries * COMPARE)

    def _once(self, tree: Sequence[Node], depth: int) -> float:
        """What a part that is matched by itself takes from one place."""
        return STEP + self._walk(tree, Front(1, 1, depth, 0), 0).cost

    def _either(self, branches: Sequence[Sequence[Node]], front: Front, following: int) -> Front:
        came = front._replace(cost=0, is_scanned=False)
        ends = [self._walk(branch, came, following) for branch in branches]
        cost = front.cost + sum(end.cost for end in ends) + BRANCH * len(ends) * front.entries
        # Those that begin with different letters are not gone through both.
        firsts = [self._first(branch) for branch in branches]
        heads = [self._letters.all if is_empty else starts for starts, is_empty in firsts]
        entries = max(
            sum(end.entries for end, head in zip(ends, heads, strict=True) if head & (1 << letter))
            for letter in range(self._letters.all.bit_length())
        )
        return Front(entries, 1, max(end.depth for end in ends), cost)

    def _repeat(self, op: str, argument: Any, front: Front, following: int) -> Front:
        least, most, body = argument
        entries, depth, cost = front.entries, front.depth, front.cost
        starts, _ = self._starts(op, argument)
        rounds, deeper = self._times(most, depth)
        is_handed_on = bool(starts & following)
        if _is_letter(body):
            ways = max(1, rounds - least + 1)
            is_to_the_end = deeper > depth
            cost += entries * STEP
            if not (is_to_the_end and front.is_scanned):
                cost += entries * rounds * _letter_cost(body)
            if op == "POSSESSIVE_REPEAT" or not is_handed_on or ways == 1:
                return Front(entries, 1, depth, cost, front.is_scanned or is_to_the_end)
            return Front(entries * ways, ways, deeper, cost)
        if op == "POSSESSIVE_REPEAT":
            return Front(entries, 1, depth, cost + entries * rounds * (ROUND + self._once(body, deeper)))
        if most < LOOPS_FROM:
            return self._unrolled(argument, front, following, is_handed_on=is_handed_on)
        cost += entries * (STEP + rounds * (ROUND + self._size(body, deeper)))
        inner = self._walk(body, Front(1, 1, deeper, 0), following | starts)
        ways = min(inner.entries * (rounds if is_handed_on else 1), rounds * _places(body))
        return Front(entries * max(1, ways), 1, max(deeper, inner.depth) if ways > 1 else depth, cost)

    def _unrolled(self, argument: Any, front: Front, following: int, *, is_handed_on: bool) -> Front:
        least, most, body = argument
        starts, _ = self._first(body)
        ends = [front.entries] if least == 0 else []
        for number in range(1, most + 1):
            front = front._replace(cost=front.cost + front.entries * ROUND, spread=1 if number > 1 else front.spread)
            front = self._walk(body, front, following | (starts if most > 1 else 0))
            if number >= least:
                ends.append(front.entries)
        return Front(sum(ends) if is_handed_on else max(ends, default=front.entries), 1, front.depth, front.cost)

    def _size(self, tree: Sequence[Node], depth: int) -> float:
        """What all parts of a repeated group take at one place of the text."""
        return sum(self._size_of(op, argument, depth) for op, argument in tree)

    def _size_of(self, op: str, argument: Any, depth: int) -> float:
        match op:
            case "SUBPATTERN":
                return STEP + self._size(argument[3], depth)
            case "BRANCH":
                return sum(BRANCH + self._size(each, depth) for each in argument[1])
            case "GROUPREF_EXISTS":
                return BRANCH + sum(self._size(each, depth) for each in argument[1:])
            case "MAX_REPEAT" | "MIN_REPEAT":
                _, most, body = argument
                if _is_letter(body):
                    return _letter_cost(body)
                return (ROUND + self._size(body, depth)) * (most if most < LOOPS_FROM else 1)
            case _:
                return COMPARE + self._node(op, argument, Front(1, 1, depth, 0), 0).cost

    def _width(self, tree: Sequence[Node]) -> int:
        """How many letters a part takes at most, counted no further than the text goes."""
        return min(self._length, sum(self._width_of(op, argument) for op, argument in tree))

    def _width_of(self, op: str, argument: Any) -> int:
        match op:
            case "SUBPATTERN":
                return self._width(argument[3])
            case "BRANCH" | "GROUPREF_EXISTS":
                return max(self._width(each) for each in (argument[1] if op == "BRANCH" else argument[1:]))
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                return min(self._length, argument[1] * self._width(argument[2]))
            case "AT" | "ASSERT" | "ASSERT_NOT":
                return 0
            case "ATOMIC_GROUP":
                return self._width(argument)
            case "GROUPREF":
                return self._length
            case _:
                return 1

    def _starts(self, op: str, argument: Any) -> tuple[int, bool]:
        """The letters that may come where a node begins, and whether it may be empty."""
        match op:
            case "SUBPATTERN":
                return self._first(argument[3])
            case "ATOMIC_GROUP":
                return self._first(argument)
            case "BRANCH":
                return _union([self._first(each) for each in argument[1]])
            case "GROUPREF_EXISTS":
                return _union([self._first(each) for each in argument[1:]])
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                starts, is_empty = self._first(argument[2])
                return starts, is_empty or argument[0] == 0
            case "AT":
                return 0, True
            case "ASSERT" if argument[0] > 0 and not self._first(argument[1])[1]:
                return self._first(argument[1])
            case "GROUPREF" | "ASSERT" | "ASSERT_NOT":
                return self._letters.all, True
            case _:
                return self._letters.of(op, argument), False

    def _first(self, tree: Sequence[Node]) -> tuple[int, bool]:
        found = 0
        for op, argument in tree:
            starts, is_empty = self._starts(op, argument)
            found |= starts
            if not is_empty:
                return found, False
        return found, True

    def _runs(self, tree: Sequence[Node], at: int) -> tuple[list[Run], int]:
        """The texts, up to some number, that the nodes from here on stand for, and where those nodes end."""
        runs: list[Run] = [()]
        for end in range(at, len(tree)):
            more = self._runs_of(*tree[end])
            if more is None or len(runs) * len(more) > MOST_RUNS:
                return runs, end
            runs = [(*run, *other)[:LONGEST_RUN] for run in runs for other in more]
        return runs, len(tree)

    def _runs_of(self, op: str, argument: Any) -> list[Run] | None:
        match op:
            case "AT":
                return [()]
            case "SUBPATTERN":
                return self._all_runs(argument[3])
            case "BRANCH":
                found: list[Run] = []
                for each in argument[1]:
                    runs = self._all_runs(each)
                    if runs is None or len(found) + len(runs) > MOST_RUNS:
                        return None
                    found.extend(runs)
                return found
            case "MAX_REPEAT" | "MIN_REPEAT" if argument[1] == 1:
                runs = self._all_runs(argument[2])
                return runs if runs is None or argument[0] else [(), *runs]
            case "MAX_REPEAT" | "MIN_REPEAT" if argument[0] == argument[1] < LONGEST_RUN and _is_letter(argument[2]):
                return [(self._letters.of(*argument[2][0]),) * argument[0]]
            case _:
                return [(self._letters.of(op, argument),)] if op in _LETTERS else None

    def _all_runs(self, tree: Sequence[Node]) -> list[Run] | None:
        runs, end = self._runs(tree, 0)
        return runs if end == len(tree) else None


def _through(runs: list[Run], front: Front, following: int) -> Front:
    """Past one of some texts: where many places are tried, those where it stands keep a distance."""
    is_spread = front.spread > 1
    compared = sum(BRANCH + COMPARE * (1 + (_overlap(run) if is_spread else len(run))) for run in runs) - BRANCH
    ends = [(*run, following) for run in runs]
    ways = max(sum(_fits(run, other, 0) for other in ends) for run in ends)
    left = 1.0
    if is_spread:
        left = min(1.0, 1 / _distance(runs) + 1 / front.spread)
    cost = front.cost + front.entries * compared
    return Front(front.entries * left * ways, front.spread * left, front.depth, cost, front.is_scanned and ways == 1)


def _fits(run: Run, other: Run, shift: int) -> bool:
    """Whether a text may have the one run at a place and the other so many letters later."""
    return all(ours & theirs for ours, theirs in zip(run[shift:], other, strict=False))


def _distance(runs: list[Run]) -> int:
    """The least distance between two places where one of the runs stands."""
    least = max(1, max(map(len, runs)))
    for run in runs:
        for other in runs:
            least = min(least, next(d for d in range(1, len(run) + 2) if d >= len(run) or _fits(run, other, d)))
    return max(1, least)


def _overlap(run: Run) -> float:
    """How many letters are compared on average, at worst, where a run is tried at every place of a text."""
    return max((end / _distance([run[:end]]) for end in range(1, len(run) + 1)), default=0)


def _is_letter(tree: Sequence[Node]) -> bool:
    return len(tree) == 1 and tree[0][0] in _LETTERS


def _letter_cost(tree: Sequence[Node]) -> int:
    """What each letter of a repeat takes: it is gone over, and then given back."""
    return STEP + (SCAN_SET if tree[0][0] == "IN" else SCAN)


def _places(tree: Sequence[Node]) -> int:
    """How many letters stand in a part."""
    count = 0
    for op, argument in tree:
        match op:
            case "SUBPATTERN":
                count += _places(argument[3])
            case "BRANCH":
                count += sum(map(_places, argument[1]))
            case "GROUPREF_EXISTS":
                count += sum(map(_places, argument[1:]))
            case "MAX_REPEAT" | "MIN_REPEAT":
                count += _places(argument[2]) * (argument[1] if argument[1] < LOOPS_FROM else 1)
            case _:
                count += 1
    return count


def _groups(tree: Any) -> Iterator[tuple[int, Sequence[Node]]]:
    """The groups of a pattern by their numbers."""
    if not isinstance(tree, list | tuple):
        return
    items = cast("Sequence[Any]", tree)
    if len(items) == 2 and items[0] == "SUBPATTERN" and items[1][0] is not None:
        yield items[1][0], items[1][3]
    for item in items:
        yield from _groups(item)


def _union(each: Sequence[tuple[int, bool]]) -> tuple[int, bool]:
    found = 0
    for starts, _ in each:
        found |= starts
    return found, any(is_empty for _, is_empty in each)
