"""A limit: so many calls of a tool within a time, counted over all conversations."""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from bylaw.facts.value import loose, near
from bylaw.text.duration import told_duration

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
        return near(whose) if self.per.partition(".")[0] in ("call", "context") else whose

    @property
    def whom(self) -> str:
        """Per whom it counts, in words."""
        return self.per.rpartition(".")[2].replace("_", " ")
