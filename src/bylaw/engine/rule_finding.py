"""What the rules of a pack say of one act of the agent."""

from collections.abc import Mapping
from typing import Any, Literal, get_args

from msgspec import Struct

from bylaw.consent import Reason
from bylaw.engine.wording import consent_words_for_agent, rule_words
from bylaw.rule.rule import Rule

RuleStanding = Literal["broken", "open", "waiting"]
"""Broken by the act; broken or not, hanging on what is not known; still waiting when the conversation ended."""

PUTTABLE = frozenset(get_args(Reason)) - {"confirmed", "declined"}
"""Why the user has not surely agreed, where they may be asked; who has just said no is not asked again."""


class RuleFinding(Struct, frozen=True):
    """What an act did to a rule."""

    step: int
    rule: Rule
    standing: RuleStanding
    values: tuple[tuple[str, bool | None], ...] = ()
    """The rule's predicates at the act, by name; None where unknown. Empty for a rule that waited."""
    whys: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    """Of some predicates, why they have this value: of consent, what was told, and when."""
    binding: str = ""
    """What a `FOR EACH` rule is about here, as it was first spelt."""

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
        """What the agent has to put to the user, or put again; empty where the rule is not about that."""
        return "; ".join(filter(None, (consent_words_for_agent(why) for _, why in self.whys)))

    @property
    def puts_card(self) -> bool:
        """Whether the user could still agree to the act, which this hangs on."""
        return any(why.get("reason") in PUTTABLE for _, why in self.whys)


class ActFindings(Struct, frozen=True):
    """What the rules say of one act."""

    step: int
    turn: int
    """The number of the act's turn among the agent's turns."""
    broken: tuple[RuleFinding, ...] = ()
    open: tuple[RuleFinding, ...] = ()
