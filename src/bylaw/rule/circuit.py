"""The weighted rules that bear on one action, and what they say of it (ShieldAgent, 3.2.4)."""

from collections.abc import Mapping
from math import isfinite
from typing import Literal

import msgspec

from bylaw.errors import CircuitError
from bylaw.rule.formula import atoms
from bylaw.rule.rule import Rule

Belief = bool | float | None
"""What is known of a predicate: its value, the probability that it is true, or nothing."""

Evidence = Mapping[str, Belief]

CircuitAnswer = Literal["allow", "deny", "ask"]

Speech = Literal["silent", "against", "for", "broken", "undecided"]
"""`against`: broken only with the action. `for`: broken only without it. `broken`: both ways. `silent`: neither."""

WIDTH_CAP = 12


class Circuit(msgspec.Struct, frozen=True, kw_only=True):
    """The rules that bear on one action, with the margin it must reach."""

    action: str
    rules: tuple[Rule, ...]
    eps: float = 0.0
    width_cap: int = WIDTH_CAP
    """Exact inference over unknown predicates stops at this width; beyond it there is the interval only."""

    def __post_init__(self) -> None:
        faults = [
            f"physical rule `{rule.name}` mentions the action `{self.action}`"
            for rule in self.rules
            if rule.physical and self.action in atoms(rule.formula)
        ]
        faults += [f"rule `{rule.name}` has no finite weight" for rule in self.rules if not isfinite(rule.weight)]
        if not faults and not isfinite(sum(abs(rule.weight) for rule in self.rules)):
            faults.append("the weights add up to more than a number can hold; make the rules hard")
        if faults:
            raise CircuitError("; ".join(faults), place=self.action)

    @property
    def predicates(self) -> tuple[str, ...]:
        """Every predicate of the rules but the action itself."""
        names = set[str]().union(*(atoms(rule.formula) for rule in self.rules))
        return tuple(sorted(names - {self.action}))


class RuleState(msgspec.Struct, frozen=True, kw_only=True):
    """What one rule says of the action."""

    name: str
    speech: Speech
    weight: float
    hard: bool = False
    policy: str = ""
    with_action: bool | None = None
    """Whether it is kept if the action is taken; None: that hangs on an unknown predicate."""
    without_action: bool | None = None
    unknown: tuple[str, ...] = ()


class Assessment(msgspec.Struct, frozen=True, kw_only=True):
    """What a circuit says of its action under the evidence given."""

    action: str
    safe: bool
    decision: CircuitAnswer
    margin: float | None
    """P(action) - P(no action); None above the width cap, and where the evidence contradicts the physical rules."""
    interval: tuple[float, float]
    """Every margin that completions of the unknown predicates can give lies in it."""
    eps: float
    rules: tuple[RuleState, ...]
    veto: tuple[str, ...] = ()
    """Hard rules broken only with the action."""
    conflict: tuple[str, ...] = ()
    """Hard rules broken with the action and without it, and physical rules the evidence contradicts."""
    influence: dict[str, float] = {}
    """How far each unknown predicate could move the answer; empty where the answer is settled."""

    @property
    def p_action(self) -> float | None:
        """The probability of the action in the Markov logic network."""
        return None if self.margin is None else (1.0 + self.margin) / 2.0

    @property
    def ask_next(self) -> str | None:
        """The predicate that would most change the answer."""
        if not self.influence:
            return None
        return max(sorted(self.influence), key=self.influence.__getitem__)


def answer_of(interval: tuple[float, float], eps: float) -> CircuitAnswer:
    """Allow when the low end passes, deny when the high end fails, else ask."""
    low, high = interval
    return "allow" if low >= eps else "deny" if high < eps else "ask"
