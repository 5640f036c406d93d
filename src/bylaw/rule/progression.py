"""Formula progression: what a formula demands of the rest of a trace after a step, and its values over a whole trace.

Future parts are in negation normal form, so a demand combines conditions of two kinds without negation: "there is a
next step, and `g` holds there" (strong) and "if there is a next step, `g` holds there" (weak). Such a combination has
exactly one minimal disjunctive form, which serves as the state. The state also has one bit for each past operator.
`values_of` computes the values of formulas that are too large for a monitor.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from bylaw.errors import FormulaError
from bylaw.rule.formula import (
    And,
    Atom,
    Constant,
    Formula,
    Next,
    Not,
    Or,
    Release,
    Since,
    Until,
    WeakNext,
    Xor,
    Yesterday,
    basic,
    is_past_only,
)

Demand = frozenset[int]
"""The demand on the rest of the trace, as alternative sets of conditions. All conditions of at least one set must hold.
Each set is stored as bits.
"""
State = tuple[int, Demand]

MET: Final[Demand] = frozenset([0])
NEVER_MET: Final[Demand] = frozenset()
DEMAND_CAP = 600
"""The maximum number of alternatives in a demand."""


class TooLargeError(FormulaError):
    """Raised if the demand of a formula has too many alternatives."""

    def __init__(self) -> None:
        super().__init__("the formula is too large to follow", hint="split it into several rules")


class Progression:
    """The lazy automaton of one skeleton, in which atoms are named by leaf number."""

    def __init__(self, skeleton: Formula) -> None:
        self._past = _Past()
        self._nodes: list[tuple[str, int, int]] = []
        self._reads: list[int] = []
        """For each node, the past-only parts that can affect it."""
        self._numbers: dict[tuple[str, int, int], int] = {}
        self._normal: dict[tuple[Formula, bool], int] = {}
        self._moves: dict[tuple[int, int], Demand] = {}
        self._masks: dict[Demand, int] = {}
        self._advances: dict[tuple[Demand, int], Demand] = {}
        self._seen: dict[tuple[int, int], tuple[int, int]] = {}
        root = self._normalise(skeleton, True)
        self._strong = sum(2 << 2 * node for node in range(len(self._nodes)))
        self._fresh: Demand = frozenset([1 << 2 * root])
        self.start: State = (0, self._fresh)
        """The state before the first step. If there is a first step, the formula must hold there."""

    def rearmed(self, state: State) -> State:
        """Return a state that has the history of the given state and demands the whole formula again."""
        return state[0], self._fresh

    def step(self, state: State, letter: int) -> State:
        past, demand = state
        seen = self._seen.get((past, letter))
        if seen is None:
            seen = self._seen[past, letter] = self._past.read(past, letter)
        now, past = seen
        if demand == MET or not demand:
            return past, demand
        mask = self._masks.get(demand)
        if mask is None:
            mask = self._masks[demand] = self._mask(demand)
        now &= mask
        after = self._advances.get((demand, now))
        if after is None:
            after = self._advances[demand, now] = self._advance(demand, now)
        return past, after

    def accepts(self, state: State) -> bool:
        """Whether the trace may end here."""
        return any(not alternative & self._strong for alternative in state[1])

    def _mask(self, demand: Demand) -> int:
        mask = 0
        nodes = 0
        for alternative in demand:
            nodes |= alternative
        while nodes:
            low = nodes & -nodes
            mask |= self._reads[low.bit_length() - 1 >> 1]
            nodes ^= low
        return mask

    def _advance(self, demand: Demand, now: int) -> Demand:
        found = NEVER_MET
        for alternative in demand:
            met = MET
            while alternative and met:
                low = alternative & -alternative
                met = _both(met, self._move((low.bit_length() - 1) >> 1, now))
                alternative ^= low
            if met == MET:
                return MET
            # Minimise once at the end. Minimising after each alternative is slow for large demands.
            found = found | met if found else met
            if len(found) > 2 * DEMAND_CAP:
                found = _minimal(found)
        return found if len(demand) == 1 else _minimal(found)

    def _move(self, node: int, now: int) -> Demand:
        """Return the demand of `node` on the rest of the trace. `now` contains the current values of the past-only
        parts.
        """
        now &= self._reads[node]
        known = self._moves.get((node, now))
        if known is not None:
            return known
        kind, left, right = self._nodes[node]
        weak = frozenset([1 << 2 * node])
        strong = frozenset([2 << 2 * node])
        match kind:
            case "now":
                moved = MET if now >> left & 1 else NEVER_MET
            case "and":
                moved = _both(self._move(left, now), self._move(right, now))
            case "or":
                moved = _either(self._move(left, now), self._move(right, now))
            case "next":
                moved = frozenset([2 << 2 * left])
            case "weak_next":
                moved = frozenset([1 << 2 * left])
            case "until":
                moved = _either(self._move(right, now), _both(self._move(left, now), strong))
            case "release":
                moved = _both(self._move(right, now), _either(self._move(left, now), weak))
            case _:
                raise AssertionError(kind)
        self._moves[node, now] = moved
        return moved

    def _node(self, kind: str, left: int, right: int = 0) -> int:
        key = (kind, left, right)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._nodes)
            self._nodes.append(key)
            match kind:
                case "now":
                    self._reads.append(1 << left)
                case "next" | "weak_next":
                    self._reads.append(0)
                case _:
                    self._reads.append(self._reads[left] | self._reads[right])
        return number

    def _normalise(self, formula: Formula, wanted: bool) -> int:
        """Return the node for `formula`, or for its negation if `wanted` is false."""
        key = (formula, wanted)
        number = self._normal.get(key)
        if number is None:
            number = self._normal[key] = self._build(formula, wanted)
        return number

    def _build(self, formula: Formula, wanted: bool) -> int:
        if is_past_only(formula):
            return self._node("now", self._past.watch(formula if wanted else Not(formula)))
        build = self._normalise
        both, one = ("and", "or") if wanted else ("or", "and")
        match basic(formula):
            case Not(operand):
                return build(operand, not wanted)
            case And(left, right):
                return self._node(both, build(left, wanted), build(right, wanted))
            case Or(left, right):
                return self._node(one, build(left, wanted), build(right, wanted))
            case Xor(left, right):
                return build(Or(And(left, Not(right)), And(Not(left), right)), wanted)
            case Next(operand):
                return self._node("next" if wanted else "weak_next", build(operand, wanted))
            case WeakNext(operand):
                return self._node("weak_next" if wanted else "next", build(operand, wanted))
            case Until(left, right):
                return self._node("until" if wanted else "release", build(left, wanted), build(right, wanted))
            case Release(left, right):
                return self._node("release" if wanted else "until", build(left, wanted), build(right, wanted))
            case _:
                raise FormulaError(
                    f"`{formula}` nests a future operator inside a past operator",
                    hint="the operands of a past operator must not contain future operators",
                )


class _Past:
    """The past-only parts of a formula. Their values are determined by one bit per part and the current letter."""

    def __init__(self) -> None:
        self.bits = 0
        self._program: list[tuple[str, int, int, int]] = []
        """For each formula: its kind, the indexes of its operands or the number of its leaf, and its bit.

        Operands come before their operators.
        """
        self._places: dict[Formula, int] = {}
        self._watched: dict[int, int] = {}

    def watch(self, formula: Formula) -> int:
        """Return the index of the value of a formula in the results of `read`."""
        place = self._place(formula)
        return self._watched.setdefault(place, len(self._watched))

    def read(self, bits: int, letter: int) -> tuple[int, int]:
        """Return the values of the watched formulas at a step as bits, and the bits to pass to the next step."""
        values: list[int] = []
        after = 0
        for kind, left, right, bit in self._program:
            match kind:
                case "leaf":
                    value = letter >> left & 1
                case "constant":
                    value = left
                case "not":
                    value = 1 - values[left]
                case "and":
                    value = values[left] & values[right]
                case "or":
                    value = values[left] | values[right]
                case "xor":
                    value = values[left] ^ values[right]
                case "yesterday":
                    value = bits >> bit & 1
                    after |= values[left] << bit
                case _:  # since
                    value = values[right] | values[left] & bits >> bit & 1
                    after |= value << bit
            values.append(value)
        return sum(values[place] << at for place, at in self._watched.items()), after

    def _place(self, formula: Formula) -> int:
        place = self._places.get(formula)
        if place is None:
            row = self._row(formula)
            place = self._places[formula] = len(self._program)
            self._program.append(row)
        return place

    def _row(self, formula: Formula) -> tuple[str, int, int, int]:
        match basic(formula):
            case Constant(value):
                return "constant", int(value), 0, 0
            case Atom(name):
                return "leaf", int(name), 0, 0
            case Not(operand):
                return "not", self._place(operand), 0, 0
            case And(left, right):
                return "and", self._place(left), self._place(right), 0
            case Or(left, right):
                return "or", self._place(left), self._place(right), 0
            case Xor(left, right):
                return "xor", self._place(left), self._place(right), 0
            case Yesterday(operand):
                return "yesterday", self._place(operand), 0, self._bit()
            case Since(left, right):
                return "since", self._place(left), self._place(right), self._bit()
            case _:
                raise AssertionError(formula)

    def _bit(self) -> int:
        self.bits += 1
        return self.bits - 1


def _both(left: Demand, right: Demand) -> Demand:
    if left == MET:
        return right
    if right == MET:
        return left
    return _minimal({one | other for one in left for other in right})


def _either(left: Demand, right: Demand) -> Demand:
    if not left:
        return right
    if not right:
        return left
    return _minimal(left | right)


def _minimal(alternatives: Iterable[int]) -> Demand:
    """Drop each alternative whose demands include all demands of another alternative."""
    found = list(alternatives)
    if len(found) < 2:
        return frozenset(found)
    if len(found) > DEMAND_CAP * 8:
        raise TooLargeError
    kept: list[int] = []
    for alternative in sorted(found, key=int.bit_count):
        for fewer in kept:
            if fewer & alternative == fewer:
                break
        else:
            kept.append(alternative)
    if len(kept) > DEMAND_CAP:
        raise TooLargeError
    return frozenset(kept)


TruthValue = bool | None


def values_of(formula: Formula, steps: Sequence[Mapping[str, TruthValue]]) -> list[TruthValue]:
    """Return the value of the formula at every step."""
    match basic(formula):
        case Constant(value):
            return [value] * len(steps)
        case Atom(name):
            return [step.get(name) for step in steps]
        case Not(operand):
            return list(map(_not, values_of(operand, steps)))
        case And(left, right):
            return list(map(_and, values_of(left, steps), values_of(right, steps)))
        case Or(left, right):
            return list(map(_or, values_of(left, steps), values_of(right, steps)))
        case Xor(left, right):
            pairs = zip(values_of(left, steps), values_of(right, steps), strict=True)
            return [None if one is None or other is None else one != other for one, other in pairs]
        case Next(operand):
            return [*values_of(operand, steps)[1:], False]
        case WeakNext(operand):
            return [*values_of(operand, steps)[1:], True]
        case Yesterday(operand):
            return [False, *values_of(operand, steps)[:-1]]
        case Until(kept, goal):
            return _until(values_of(kept, steps)[::-1], values_of(goal, steps)[::-1])[::-1]
        case Since(kept, start):
            return _until(values_of(kept, steps), values_of(start, steps))
        case Release(freed, kept):
            # The dual of UNTIL: NOT (NOT freed UNTIL NOT kept).
            waits, goals = map(_not, values_of(freed, steps)[::-1]), map(_not, values_of(kept, steps)[::-1])
            return list(map(_not, _until(list(waits), list(goals))))[::-1]


def _until(kept: Sequence[TruthValue], goal: Sequence[TruthValue]) -> list[TruthValue]:
    found: list[TruthValue] = []
    so_far: TruthValue = False
    for waits, met in zip(kept, goal, strict=True):
        so_far = _or(met, _and(waits, so_far))
        found.append(so_far)
    return found


def _not(value: TruthValue) -> TruthValue:
    return None if value is None else not value


def _and(one: TruthValue, other: TruthValue) -> TruthValue:
    if one is False or other is False:
        return False
    return None if one is None or other is None else True


def _or(one: TruthValue, other: TruthValue) -> TruthValue:
    if one is True or other is True:
        return True
    return None if one is None or other is None else False
