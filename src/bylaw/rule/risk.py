"""How likely an agent that goes on as it did breaks a rule: a Markov chain of its acts, times the rule's automaton.

The chain is learned from recorded episodes by counting which act followed which; the product with the automaton is a
Markov chain again, in which the states where the rule is broken for good are absorbing.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from msgspec import Struct

from bylaw.errors import FormulaError
from bylaw.rule.automaton import BROKEN, Automaton
from bylaw.rule.program import Program, program
from bylaw.rule.rule import Rule

Bits = int
"""The values of the rule's predicates at an act, as bits."""
Place = tuple[Bits, int]
"""An act and the state of the automaton after it."""


class Chain(Struct, frozen=True):
    """Which act follows which, and how often an episode ends instead (the rest to one)."""

    names: tuple[str, ...]
    first: dict[Bits, float]
    next: dict[Bits, dict[Bits, float]]


class Risk(Struct, frozen=True):
    """What becomes of a rule."""

    within: tuple[float, ...]
    """The probability that it is broken for good at one of the first k acts, for k = 1, 2, ..."""
    ever: float
    """The probability that it is broken for good at all."""
    unmet: float
    """The probability that the episode ends while the rule still waits for something."""


def learn_chain(rule: Rule, episodes: Sequence[Sequence[Mapping[str, bool]]]) -> Chain:
    """The chain of what a rule sees of these episodes; empty ones count as nothing."""
    names = program(rule.formula).names
    first: Counter[Bits] = Counter()
    follows: dict[Bits, Counter[Bits | None]] = defaultdict(Counter)
    for episode in episodes:
        acts = [sum(1 << place for place, name in enumerate(names) if act[name]) for act in episode]
        if acts:
            first[acts[0]] += 1
            for act, after in zip(acts, [*acts[1:], None], strict=True):
                follows[act][after] += 1
    if not first:
        raise FormulaError(f"no acts to learn from for rule `{rule.name}`", hint="give at least one episode")
    return Chain(
        names,
        {act: count / first.total() for act, count in first.items()},
        {
            act: {after: count / counts.total() for after, count in counts.items() if after is not None}
            for act, counts in follows.items()
        },
    )


def risk(rule: Rule, chain: Chain, *, steps: int = 20) -> Risk:
    """The rule's fate under the chain, read as one whole trace: what happens after it is broken does not matter."""
    product = Product(rule, chain)
    now = product.first
    broken = sum(product.first_broken.values())
    within = [broken]
    for _ in range(steps - 1):
        later: dict[Place, float] = defaultdict(float)
        for place, chance in now.items():
            broken += chance * product.breaks[place]
            for after, step in product.moves[place].items():
                later[after] += chance * step
        now = later
        within.append(broken)
    places = list(product.moves)
    breaks = solve(places, product.moves, [product.breaks[place] for place in places])
    unmet = solve(places, product.moves, [product.unmet[place] for place in places])
    start = [(number, product.first.get(place, 0.0)) for number, place in enumerate(places)]
    return Risk(
        tuple(within[:steps]),
        within[0] + sum(chance * breaks[number] for number, chance in start),
        sum(chance * unmet[number] for number, chance in start),
    )


class Product:
    """The chain times the automaton, with the places reached where the rule is not broken yet."""

    def __init__(self, rule: Rule, chain: Chain) -> None:
        ready = program(rule.formula)
        self._ready: Program = ready
        self._face: Automaton = ready.pair.plain
        self._names = chain.names
        self.moves: dict[Place, dict[Place, float]] = {}
        self.breaks: dict[Place, float] = {}
        """The probability that the next act breaks the rule."""
        self.unmet: dict[Place, float] = {}
        """The probability that the episode ends here, if it does so with the rule unmet."""
        self.first, self.first_broken = self._split(self._face.start, chain.first)
        waiting = list(self.first)
        for place in waiting:
            if place in self.moves:
                continue
            act, state = place
            follows = chain.next.get(act, {})
            kept, broken = self._split(state, follows)
            self.moves[place] = kept
            self.breaks[place] = sum(broken.values())
            ends = max(0.0, 1.0 - sum(follows.values()))
            self.unmet[place] = 0.0 if self._face.accepts(state) else ends
            waiting += kept

    def _split(self, state: int, acts: Mapping[Bits, float]) -> tuple[dict[Place, float], dict[Place, float]]:
        kept: dict[Place, float] = {}
        broken: dict[Place, float] = {}
        for act, chance in acts.items():
            values = {name: bool(act >> place & 1) for place, name in enumerate(self._names)}
            after, verdict = self._face.step(state, self._ready.letters(values)[0])
            (broken if verdict == BROKEN else kept)[act, after] = chance
        return kept, broken


def solve(places: Sequence[Place], moves: Mapping[Place, Mapping[Place, float]], gains: Sequence[float]) -> list[float]:
    """The least x with x = moves x + gains: what is gained on the way, in expectation, from each place.

    Gaussian elimination over the places from which something can be gained; from the others it is nothing, and leaving
    them out keeps the system regular where the chain can go round for ever.
    """
    numbers = {place: number for number, place in enumerate(places)}
    gaining = {number for number, gain in enumerate(gains) if gain > 0.0}
    before: dict[int, list[int]] = defaultdict(list)
    for place, after in moves.items():
        for other in after:
            before[numbers[other]].append(numbers[place])
    waiting = list(gaining)
    for number in waiting:
        for other in before[number]:
            if other not in gaining:
                gaining.add(other)
                waiting.append(other)
    order = sorted(gaining)
    columns = {number: column for column, number in enumerate(order)}
    rows: list[list[float]] = []
    for number in order:
        row = [0.0] * (len(order) + 1)
        row[columns[number]] = 1.0
        for other, chance in moves[places[number]].items():
            if (column := columns.get(numbers[other])) is not None:
                row[column] -= chance
        row[-1] = gains[number]
        rows.append(row)
    answer = [0.0] * len(places)
    for number, value in zip(order, _eliminate(rows), strict=True):
        answer[number] = value
    return answer


def _eliminate(rows: list[list[float]]) -> list[float]:
    size = len(rows)
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(rows[row][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        lead = rows[column]
        for row in range(column + 1, size):
            factor = rows[row][column] / lead[column]
            if factor:
                rows[row] = [
                    value - factor * other if place >= column else value
                    for place, (value, other) in enumerate(zip(rows[row], lead, strict=True))
                ]
    found = [0.0] * size
    for column in range(size - 1, -1, -1):
        rest = sum(rows[column][later] * found[later] for later in range(column + 1, size))
        found[column] = (rows[column][-1] - rest) / rows[column][column]
    return found
