"""How likely an agent that goes on as it did breaks a rule: a Markov chain of its acts, times the rule's automaton.

The chain is learned from recorded episodes by counting which act followed which; the product with the automaton is a
Markov chain again, in which the states where the rule is broken for good are absorbing.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from msgspec import Struct

from bylaw.errors import FormulaError
from bylaw.rule.automaton import BROKEN
from bylaw.rule.monitor import program
from bylaw.rule.rule import Rule

Bits = int
"""The values of the rule's predicates at an act, as bits."""
ChainPlace = tuple[Bits | None, int]
"""An act, or none before the first, and the state of the automaton after it."""

NO_CHANCE = 1e-12
"""A smaller probability counts as zero."""
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
    ready = program(rule.formula)
    face = ready.pair.plain
    letters = {act: ready.letters(_values(chain, act))[0] for act in (*chain.first, *chain.next)}
    now: dict[ChainPlace, float] = {(None, face.start): 1.0}
    within: list[float] = []
    broken = unmet = 0.0
    # An episode goes on with a chance that falls to nothing: each that was recorded came to an end.
    while len(within) < steps or (sum(now.values()) > NO_CHANCE and len(within) < LONGEST):
        later: dict[ChainPlace, float] = defaultdict(float)
        for (act, state), chance in now.items():
            follows = chain.first if act is None else chain.next.get(act, {})
            unmet += 0.0 if face.accepts(state) else chance * max(0.0, 1.0 - sum(follows.values()))
            for other, share in follows.items():
                reached, verdict = face.step(state, letters[other])
                if verdict == BROKEN:
                    broken += chance * share
                else:
                    later[other, reached] += chance * share
        now = later
        within.append(broken)
    return Risk(tuple(within[:steps]), broken, unmet)


def _values(chain: Chain, act: Bits) -> dict[str, bool]:
    return {name: bool(act >> place & 1) for place, name in enumerate(chain.names)}
