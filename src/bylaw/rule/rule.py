"""A rule: a formula over predicates, with the policy it comes from and how much it weighs."""

from math import atanh, tanh

from msgspec import Struct

from bylaw.rule.formula import Formula, show_name
from bylaw.rule.parser import parse_rule


class Rule(Struct, frozen=True):
    """One rule of a pack."""

    name: str
    formula: Formula
    policy: str = ""
    """The id of the policy it enforces."""
    weight: float = 1.0
    hard: bool = False
    """A veto: kept out of the margin, never outvoted."""
    physical: bool = False
    """Knowledge about predicates, not a demand on an act: hard, it rules worlds out; soft, it makes them rarer."""
    for_each: str | None = None
    """The key of `FOR EACH key:`: one monitor runs per value of it."""

    @property
    def text(self) -> str:
        """The rule in the surface language."""
        return f"FOR EACH {show_name(self.for_each)}: {self.formula}" if self.for_each else str(self.formula)

    def denies_alone(self, eps: float) -> bool:
        """Whether a call that breaks only this rule is denied when a call must reach the margin `eps`."""
        return self.hard or tanh(-self.weight / 2) < eps


def threshold_of(eps: float) -> float:
    """The weighted sum that gives the margin `eps`."""
    return 2 * atanh(max(min(eps, 1 - 1e-15), 1e-15 - 1))


def denying_weight(threshold: float) -> float:
    """A weight that denies a call on its own, at distance 1 from the threshold."""
    return max(1.0 - threshold, 1.0)


def read_rule(
    name: str, text: str, *, policy: str = "", weight: float = 1.0, hard: bool = False, physical: bool = False
) -> Rule:
    """The rule a text stands for; `FormulaError` with its column otherwise."""
    key, formula = parse_rule(text)
    return Rule(name, formula, policy=policy, weight=weight, hard=hard, physical=physical, for_each=key)
