"""A call of the conversation as the ledger keeps it, and what it may have changed."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from bylaw.facts.path import NOTHING
from bylaw.facts.value import is_same
from bylaw.policy.tool import Tool
from bylaw.trace.event import Call, Result

TO_USER = "\0user"
"""Who a result was delivered to where the user made the call."""


class CallRecord(Struct, eq=False):
    """One call of the trajectory, its result once that has come, and what it changes."""

    call: Call
    step: int
    start: int
    """First step of the call's turn."""
    tool: Tool | None
    who: str
    """Whom its result is shown to."""
    result: Result | None = None
    delivered: int | None = None
    accepted: bool | None = None
    value: Any = NOTHING

    def counts_at(self, step: int) -> bool:
        """Whether, for all that is known just before `step`, the call may have taken effect."""
        return self.accepted is not False or self.delivered is None or self.delivered >= step

    def counts(self) -> bool:
        """Whether, for all that is known now, the call may have taken effect."""
        return self.accepted is not False

    def is_answered_at(self, step: int | None) -> bool:
        """Whether its answer has come before a step, or by now."""
        return self.delivered is not None and (step is None or self.delivered < step)

    def had(self, match: Mapping[str, Any]) -> bool | None:
        """Whether the call had these arguments; None where a tool may have taken what it had for them."""
        return None if self.call.fault and match else matches(self.call.arguments, match)


def record_of(call: Call, step: int, start: int, tool: Tool | None) -> CallRecord:
    """The record of a call whose turn began at `start`."""
    return CallRecord(call, step, start, tool, TO_USER if call.by == "user" else call.agent)


class Touch(NamedTuple):
    """A write that may change fields of one thing, or of any of its kind."""

    record: CallRecord
    fields: frozenset[str] | None
    """None for all of them."""
    by_result: bool = False
    """It holds only while nobody can tell which thing: once the result does, the thing has a touch of its own."""

    def counts(self, known_at: int | None) -> bool:
        """Whether, for all that is known just before a step, or now, the write may have changed them."""
        record = self.record
        if self.by_result and record.result is not None and record.result.captured:
            delivered = record.delivered
            if known_at is None or (delivered is not None and delivered < known_at):
                return False
        return record.counts() if known_at is None else record.counts_at(known_at)


def matches(given: Mapping[str, Any], match: Mapping[str, Any]) -> bool | None:
    """Whether arguments are these; None where a tool may take them for these or not."""
    found = [is_same(given[name], value) if name in given else False for name, value in match.items()]
    return False if False in found else None if None in found else True
