"""A rule: a formula over predicates, with the policy it comes from and how much it weighs."""

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


def read_rule(
    name: str, text: str, *, policy: str = "", weight: float = 1.0, hard: bool = False, physical: bool = False
) -> Rule:
    """The rule a text stands for; `FormulaError` with its column otherwise."""
    key, formula = parse_rule(text)
    return Rule(name, formula, policy=policy, weight=weight, hard=hard, physical=physical, for_each=key)
