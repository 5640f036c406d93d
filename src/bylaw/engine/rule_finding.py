"""Findings of a pack's rules about one act of the agent."""

from collections.abc import Mapping
from typing import Any, Literal, get_args

from msgspec import Struct

from bylaw.consent import Reason
from bylaw.engine.wording import consent_words_for_agent, rule_words
from bylaw.rule.rule import Rule

RuleStanding = Literal["broken", "open", "waiting"]
"""Broken by the act; broken or not, hanging on what is not known; still waiting when the conversation ended."""

PUTTABLE = frozenset(get_args(Reason)) - {"confirmed", "declined"}
"""Reasons for uncertain consent after which the user may be asked; someone who has just said no is not."""


class RuleFinding(Struct, frozen=True):
    """The effect of an act on a rule."""

    step: int
    rule: Rule
    standing: RuleStanding
    values: tuple[tuple[str, bool | None], ...] = ()
    """The rule's predicates at the act, by name; None where unknown. Empty for a rule that waited."""
    whys: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    """Reasons for the values of some predicates; for consent, what was told, and when."""
    binding: str = ""
    """The binding of a `FOR EACH` rule, in its first spelling."""

    def record(self) -> dict[str, Any]:
        """The reason as `findings.jsonl` holds it."""
        whys = dict(self.whys)
        predicates = [
            {"name": name, "value": value} | ({"why": whys[name]} if name in whys else {})
            for name, value in self.values
        ]
        told: dict[str, Any] = {"standing": self.standing, "predicates": predicates}
        return told | {"binding": {"name": self.rule.for_each, "value": self.binding}} if self.binding else told

    @property
    def because(self) -> str:
        """The reason in words."""
        return rule_words(self.record())

    @property
    def for_agent(self) -> str:
        """What the agent must ask the user, possibly again; empty if the rule is not about that."""
        return "; ".join(filter(None, (consent_words_for_agent(why) for _, why in self.whys)))

    @property
    def puts_card(self) -> bool:
        """Whether the outcome depends on consent the user could still give."""
        return any(why.get("reason") in PUTTABLE for _, why in self.whys)


class ActFindings(Struct, frozen=True):
    """The findings of all rules about one act."""

    step: int
    turn: int
    """The number of the act's turn among the agent's turns."""
    broken: tuple[RuleFinding, ...] = ()
    open: tuple[RuleFinding, ...] = ()
