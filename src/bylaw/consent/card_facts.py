"""The facts shown to the user with a call, as the agent has seen them, live and in audits."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from bylaw.facts.call_record import CallRecord
from bylaw.facts.entity import Fact
from bylaw.facts.ledger import Ledger
from bylaw.facts.schema import Computed
from bylaw.facts.seen import SeenFacts
from bylaw.facts.value import currency_of, plain
from bylaw.trace.event import Result


class CardFacts(Struct, frozen=True):
    """The facts a card shows besides the call's arguments, or what is missing for that."""

    values: Mapping[str, Any] = {}
    schemas: Mapping[str, Any] = {}
    """How to format each value."""
    lacking: tuple[Fact, ...] = ()
    """Facts that must be looked up first, including stale ones."""
    faults: tuple[str, ...] = ()
    """Why values cannot be computed from known facts."""

    @property
    def is_known(self) -> bool:
        """Whether the call can be shown to the user."""
        return not self.lacking and not self.faults

    def plain(self) -> dict[str, Any]:
        """The values as JSON; equal for values that read alike on a card."""
        return {name: _plain(value) for name, value in self.values.items()}


NO_FACTS = CardFacts()


def card_facts(call: CallRecord, ledger: Ledger) -> CardFacts:
    """Evaluate the facts the pack shows with a call, from what the agent had seen before its turn, unless a result of
    the turn contradicts it.
    """
    declared = ledger.schema.card_facts.get(call.call.tool, ())
    if call.tool is None or call.call.fault or not (declared or call.untold):
        return NO_FACTS
    arguments, seen = call.tool.fitted(call.call.arguments), SeenFacts(ledger, call, {})
    computed = {fact.name: fact.compute(arguments, seen) for fact in declared}
    if any(type(event) is Result for event in ledger.events[call.start : call.step]):
        # A result of the turn may have updated what the agent knew before it.
        seen = SeenFacts(ledger, replace(call, start=call.step), {})
        known = [fact for fact in declared if _is_known(computed[fact.name])]
        computed |= {fact.name: fact.compute(arguments, seen) for fact in known}
    return CardFacts(
        {**{name: each.value for name, each in computed.items()}, **call.untold},
        {fact.name: fact.schema for fact in declared} | {name: {"title": name} for name in call.untold},
        tuple(dict.fromkeys(fact for each in computed.values() for fact in each.lacking)),
        tuple(f"`{name}`: {each.fault}" for name, each in computed.items() if each.fault),
    )


def _is_known(computed: Computed) -> bool:
    return not computed.lacking and not computed.fault


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in cast("Sequence[Any]", value)]
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return plain(value)
    whole, _, part = format(Decimal(str(value)), "f").partition(".")
    part = part.rstrip("0")
    number = f"{whole}.{part}" if part else whole
    currency = currency_of(value)
    return f"{number} {currency}" if currency else number
