"""Weighted rules about one action, and their combined result (ShieldAgent, 3.2.4)."""

from collections.abc import Mapping
from math import isfinite
from typing import Literal

import msgspec

from bylaw.errors import CircuitError
from bylaw.rule.formula import atoms
from bylaw.rule.rule import Rule

Belief = bool | float | None
"""A predicate's value, its probability of being true, or None if it is unknown."""

Evidence = Mapping[str, Belief]

CircuitAnswer = Literal["allow", "deny", "ask"]

Speech = Literal["silent", "against", "for", "broken", "undecided"]
"""When the rule is broken: if the action is taken (`against`), if it is not (`for`), in both cases (`broken`), or in
neither (`silent`).
"""

WIDTH_CAP = 12


class Circuit(msgspec.Struct, frozen=True, kw_only=True):
    """The rules about one action, and the minimum margin for allowing the action."""

    action: str
    rules: tuple[Rule, ...]
    eps: float = 0.0
    width_cap: int = WIDTH_CAP
    """The maximum elimination width for exact inference. If the width is larger, only the interval is computed."""

    def __post_init__(self) -> None:
        faults = [
            f"physical rule `{rule.name}` mentions the action `{self.action}`"
            for rule in self.rules
            if rule.physical and self.action in atoms(rule.formula)
        ]
        faults += [f"rule `{rule.name}` has no finite weight" for rule in self.rules if not isfinite(rule.weight)]
        if not faults and not isfinite(sum(abs(rule.weight) for rule in self.rules)):
            faults.append("the sum of the weights is too large for a number; make the rules hard")
        if faults:
            raise CircuitError("; ".join(faults), place=self.action)

    @property
    def predicates(self) -> tuple[str, ...]:
        """The predicates of the rules, without the action."""
        names = set[str]().union(*(atoms(rule.formula) for rule in self.rules))
        return tuple(sorted(names - {self.action}))


class RuleState(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    speech: Speech
    weight: float
    hard: bool = False
    policy: str = ""
    with_action: bool | None = None
    """Whether the rule is kept if the action is taken. None if that depends on an unknown predicate."""
    without_action: bool | None = None
    unknown: tuple[str, ...] = ()


class Assessment(msgspec.Struct, frozen=True, kw_only=True):
    """The assessment of an action, given the evidence."""

    action: str
    safe: bool
    decision: CircuitAnswer
    margin: float | None
    """P(action) - P(no action). None above the width cap, or if the evidence contradicts the physical rules."""
    interval: tuple[float, float]
    """The range of the margin over all values of the unknown predicates."""
    eps: float
    rules: tuple[RuleState, ...]
    veto: tuple[str, ...] = ()
    """Hard rules that are broken only if the action is taken."""
    conflict: tuple[str, ...] = ()
    """Hard rules that are broken with and without the action, and physical rules that the evidence contradicts."""
    influence: dict[str, float] = {}
    """How much each unknown predicate could change the decision. Empty if the decision is certain."""

    @property
    def p_action(self) -> float | None:
        """The probability of the action under the Markov logic network."""
        return None if self.margin is None else (1.0 + self.margin) / 2.0

    @property
    def ask_next(self) -> str | None:
        """The predicate with the most influence on the decision."""
        if not self.influence:
            return None
        return max(sorted(self.influence), key=self.influence.__getitem__)


def answer_of(interval: tuple[float, float], eps: float) -> CircuitAnswer:
    """Return `allow` if the low end of the margin's range passes, `deny` if the high end fails, and `ask` otherwise."""
    low, high = interval
    return "allow" if low >= eps else "deny" if high < eps else "ask"
