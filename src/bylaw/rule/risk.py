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
ChainPlace = tuple[Bits, int]
"""An act and the state of the automaton after it."""

NO_CHANCE = 1e-12
"""A chance below this is none."""
LONGEST = 100_000
"""Episodes are followed for so many acts at most."""


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
    broken, unmet = sum(product.first_broken.values()), 0.0
    within = [broken]
    # An episode goes on with a chance that falls to nothing: each that was recorded came to an end.
    while len(within) < steps or (sum(now.values()) > NO_CHANCE and len(within) < LONGEST):
        later: dict[ChainPlace, float] = defaultdict(float)
        for place, chance in now.items():
            broken += chance * product.breaks[place]
            unmet += chance * product.unmet[place]
            for after, step in product.moves[place].items():
                later[after] += chance * step
        now = later
        within.append(broken)
    return Risk(tuple(within[:steps]), broken, unmet)


class Product:
    """The chain times the automaton, with the places reached where the rule is not broken yet."""

    def __init__(self, rule: Rule, chain: Chain) -> None:
        ready = program(rule.formula)
        self._ready: Program = ready
        self._face: Automaton = ready.pair.plain
        self._names = chain.names
        self.moves: dict[ChainPlace, dict[ChainPlace, float]] = {}
        self.breaks: dict[ChainPlace, float] = {}
        """The probability that the next act breaks the rule."""
        self.unmet: dict[ChainPlace, float] = {}
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

    def _split(self, state: int, acts: Mapping[Bits, float]) -> tuple[dict[ChainPlace, float], dict[ChainPlace, float]]:
        kept: dict[ChainPlace, float] = {}
        broken: dict[ChainPlace, float] = {}
        for act, chance in acts.items():
            values = {name: bool(act >> place & 1) for place, name in enumerate(self._names)}
            after, verdict = self._face.step(state, self._ready.letters(values)[0])
            (broken if verdict == BROKEN else kept)[act, after] = chance
        return kept, broken
