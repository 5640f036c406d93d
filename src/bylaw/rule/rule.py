"""A rule: a formula over predicates, with the policy it comes from and how much it weighs."""

from collections.abc import Mapping
from math import atanh, tanh
from typing import Any, Literal

from msgspec import Struct

from bylaw.facts.value import alike, loose
from bylaw.rule.formula import Formula, show_name
from bylaw.rule.parser import parse_rule
from bylaw.text.day import told_duration


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


Over = Literal["deny", "ask"]


class Limit(Struct, frozen=True):
    """At most so many calls of these tools within a time, per tenant, agent, or a value of the context or the call."""

    name: str
    policy: str
    tools: frozenset[str]
    most: int
    within: float
    """Seconds."""
    per: str = "tenant"
    """`tenant`, `agent`, `context.NAME` or `call.ARGUMENT`."""
    over: Over = "deny"
    """What becomes of a call beyond it."""

    @property
    def text(self) -> str:
        """The limit in words."""
        calls = " or ".join(sorted(self.tools))
        return f"at most {self.most} {calls} within a span of {told_duration(self.within)}, per {self.whom}"

    def whose(self, arguments: Mapping[str, Any], agent: str, context: Mapping[str, Any]) -> str | None:
        """Whom a call counts for; None where nobody says."""
        where, _, name = self.per.partition(".")
        if where == "tenant":
            return ""
        found: Any = agent if where == "agent" else (context if where == "context" else arguments).get(name)
        is_told = isinstance(found, str | int) and not isinstance(found, bool) and str(found).strip()
        # As ids are compared: another spelling is not another customer.
        return loose(str(found)) or None if is_told else None

    def perhaps(self, whose: str) -> str:
        """What all share of whom a tool may take for one: `ac-22` and `ac22`; of an agent or tenant only itself."""
        return alike(whose) if self.per.partition(".")[0] in ("call", "context") else whose

    @property
    def whom(self) -> str:
        """Per whom it counts, in words."""
        return self.per.rpartition(".")[2].replace("_", " ")
