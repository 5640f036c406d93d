"""A rule: a formula over predicates, with its policy and weight."""

from collections.abc import Mapping
from math import atanh, tanh
from typing import Any, Literal

from msgspec import Struct

from bylaw.facts.value import alike, loose
from bylaw.rule.formula import Formula, parse_rule, show_name
from bylaw.text.day import told_duration


class Rule(Struct, frozen=True):
    name: str
    formula: Formula
    policy: str = ""
    """The id of the rule's policy."""
    weight: float = 1.0
    hard: bool = False
    """Whether the rule is a veto. A veto is not part of the margin and cannot be outvoted."""
    physical: bool = False
    """Whether the rule is knowledge about predicates. A hard one excludes worlds; a soft one makes them less likely."""
    for_each: str | None = None
    """The key of `FOR EACH key:`. Each value of the key has its own monitor."""

    @property
    def text(self) -> str:
        """The rule's text, as `parser` reads it."""
        return f"FOR EACH {show_name(self.for_each)}: {self.formula}" if self.for_each else str(self.formula)

    def denies_alone(self, eps: float) -> bool:
        """Whether a call that breaks only this rule is denied at the margin `eps`."""
        return self.hard or tanh(-self.weight / 2) < eps


def threshold_of(eps: float) -> float:
    """Return the weighted sum that gives the margin `eps`."""
    return 2 * atanh(max(min(eps, 1 - 1e-15), 1e-15 - 1))


def denying_weight(threshold: float) -> float:
    """Return a weight that denies a call on its own, at distance 1 from the threshold."""
    return max(1.0 - threshold, 1.0)


def read_rule(
    name: str, text: str, *, policy: str = "", weight: float = 1.0, hard: bool = False, physical: bool = False
) -> Rule:
    """Parse a rule. Raises `FormulaError` with the column."""
    key, formula = parse_rule(text)
    return Rule(name, formula, policy=policy, weight=weight, hard=hard, physical=physical, for_each=key)


Over = Literal["deny", "ask"]


class Limit(Struct, frozen=True):
    """A maximum number of calls within a time, per tenant, per agent, or per value of the context or call."""

    name: str
    policy: str
    tools: frozenset[str]
    most: int
    within: float
    """The period in seconds."""
    per: str = "tenant"
    """`tenant`, `agent`, `context.NAME` or `call.ARGUMENT`."""
    over: Over = "deny"
    """The decision on a call beyond the limit."""

    @property
    def text(self) -> str:
        """The limit in words."""
        calls = " or ".join(sorted(self.tools))
        return f"at most {self.most} {calls} within a span of {told_duration(self.within)}, per {self.whom}"

    def whose(self, arguments: Mapping[str, Any], agent: str, context: Mapping[str, Any]) -> str | None:
        """Return whom a call counts for; None if unknown."""
        where, _, name = self.per.partition(".")
        if where == "tenant":
            return ""
        found: Any = agent if where == "agent" else (context if where == "context" else arguments).get(name)
        is_told = isinstance(found, str | int) and not isinstance(found, bool) and str(found).strip()
        # Compare names like ids, so that another spelling counts as the same customer.
        return loose(str(found)) or None if is_told else None

    def perhaps(self, whose: str) -> str:
        """Return a key shared by names that a tool may treat as one, such as `ac-22` and `ac22`. Agents and tenants
        stay distinct.
        """
        return alike(whose) if self.per.partition(".")[0] in ("call", "context") else whose

    @property
    def whom(self) -> str:
        """Return the unit of counting in words."""
        return self.per.rpartition(".")[2].replace("_", " ")
