"""Could that earlier call have been this one? Consent, requests, limits and `done()` all ask it here.

An earlier call is known only by its record. The record may be cut off, redacted, in another spelling, or without a
result because its worker crashed. Each of these means "possibly". "No" needs a readable difference.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from bylaw.facts.call_record import CallRecord, matches
from bylaw.facts.value import alike, is_same, loose
from bylaw.policy.tool import Tool
from bylaw.trace.event import Call

_MASK = re.compile(
    r"\[[^\[\]]*\]|<[^<>]*>|\*+|\.{2,}|[\u2026\u2022\u25cf\u2588\u2593\u2592\u2591\u25a0\ufffd]+|(?i:x{3,}|_{3,})"
)
"""A gap in a recorded text: a placeholder in brackets, or marks written over characters or in their place."""


def may_have_run(earlier: CallRecord, step: int) -> bool:
    """Whether a call may have been carried out, by all that is known just before `step`."""
    return earlier.counts_at(step) or not earlier.is_surely_refused()


def could_be_same_call(earlier: CallRecord, call: CallRecord, ignored: frozenset[str] = frozenset()) -> bool:
    """Whether an earlier call of the same tool may have done the same as `call`; `ignored` arguments do not count."""
    if earlier.call.tool != call.call.tool:
        return False
    wanted = {name: value for name, value in call.call.arguments.items() if name not in ignored}
    if not could_have_had(earlier.call, earlier.tool, wanted):
        return False
    more = [name for name, value in earlier.call.arguments.items() if value is not None and name not in ignored]
    # An undeclared argument may be an artefact of the record, or one that the tool does not read.
    return all(name in wanted or not _declares(earlier.tool, name) for name in more)


def could_have_had(earlier: Call, tool: Tool | None, arguments: Mapping[str, Any]) -> bool:
    """Whether a recorded call may have had these arguments, among others."""
    if earlier.fault:
        return True
    for name, value in arguments.items():
        if name in earlier.arguments:
            if not could_be_same_value(earlier.arguments[name], value):
                return False
        elif value is not None and not (tool is not None and name in tool.required):
            # A required argument that the record lacks was left out of the record.
            return False
    return True


def had(earlier: CallRecord, match: Mapping[str, Any]) -> bool | None:
    """Whether a call had these arguments; None if it may have had them."""
    if not match or (not earlier.call.fault and matches(earlier.call.arguments, match)):
        return True
    return None if could_have_had(earlier.call, earlier.tool, match) else False


def could_be_same_value(recorded: Any, value: Any) -> bool:
    """Whether a recorded value may stand for `value`: in another spelling, or cut off or masked."""
    if isinstance(recorded, Mapping) and isinstance(value, Mapping):
        some, others = cast("Mapping[str, Any]", recorded), cast("Mapping[str, Any]", value)
        names = {name for each in (some, others) for name, part in each.items() if part is not None}
        return all(could_be_same_value(some.get(name), others.get(name)) for name in names)
    if isinstance(recorded, list | tuple) and isinstance(value, list | tuple):
        these, those = cast("Sequence[Any]", recorded), cast("Sequence[Any]", value)
        return len(these) == len(those) and all(map(could_be_same_value, these, those))
    if alike(recorded) == alike(value) or is_same(recorded, value) is not False:
        return True
    return isinstance(recorded, str) and _could_be_masked(recorded, value)


def is_readable(call: Call, tool: Tool | None) -> bool:
    """Whether a record shows a call whole: only then are two calls that differ in it surely two."""
    if call.fault or _has_gap(call.arguments):
        return False
    if tool is None:
        return True
    return all(name in call.arguments for name in tool.required) and not tool.undeclared(call.arguments)


def _declares(tool: Tool | None, name: str) -> bool:
    return tool is None or not tool.parameters or tool.others is not False or name in tool.parameters


def _has_gap(value: Any) -> bool:
    if isinstance(value, str):
        return _MASK.search(value) is not None
    if isinstance(value, Mapping):
        return any(map(_has_gap, cast("Mapping[str, Any]", value).values()))
    return isinstance(value, list | tuple) and any(map(_has_gap, cast("Sequence[Any]", value)))


def _could_be_masked(recorded: str, value: Any) -> bool:
    """Whether a text with gaps may stand for a value: the characters that are left must occur in it, in their order."""
    parts = _MASK.split(recorded)
    if len(parts) == 1:
        return False
    if isinstance(value, Mapping | list | tuple):
        return True
    pattern = ".*".join(re.escape(loose(part)) for part in parts)
    return re.fullmatch(pattern, loose(str(value)), re.DOTALL) is not None
