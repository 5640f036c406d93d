"""Validates a host's input.

`signed_in_as` in the context names the principal. If the principal changes, a linked conversation begins, without the
consent, statements and approvals of the first principal.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from difflib import get_close_matches
from typing import Any, cast

import msgspec
from msgspec import ValidationError, convert

from bylaw.errors import UsageError
from bylaw.pack import Pack
from bylaw.policy.folder import ManifestError
from bylaw.policy.tool import Postures
from bylaw.text.visible import own_log
from bylaw.trace.event import Call
from bylaw.trace.recorded_value import EARLIEST, LATEST, read_arguments

_encode = msgspec.json.Encoder(decimal_format="string").encode
DEEPEST = 200
"""The maximum nesting of lists and objects. It is fixed because Python's own limit depends on the call stack."""
_BRACKET = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
"""Matches a bracket or an entire string literal, so that brackets inside strings are skipped."""
PRINCIPAL = "signed_in_as"
"""The context key for the signed-in user."""
_logger = own_log()
_told: set[tuple[str, str]] = set()
MOST_TOLD = 1000
_CALLS = 'such as `[("get_order", {"order_id": "7"}), ("refund", {"order_id": "7"}, "call-2")]`'


def writable(text: str) -> str:
    """Return the text with each unpaired surrogate replaced by `?`, so that it can be encoded."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def text(given: Any, what: str) -> str:
    """Check that the value is a string, and replace characters that cannot be encoded."""
    if not isinstance(given, str):
        raise UsageError(f"{what} must be a string, not `{type(given).__name__}`")
    return writable(given)


def tool_name(given: Any) -> str:
    if given == "":
        raise UsageError("the tool name is empty", hint="use the name in the tool catalogue")
    return text(given, "the tool name")


def seconds(given: Any) -> float:
    """Check a time, given in seconds since 1970."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise UsageError(
            f"a time must be in seconds since 1970, not `{type(given).__name__}`", hint="use `time.time()`"
        )
    if not EARLIEST <= given <= LATEST:
        raise UsageError(f"`{given}` is not a time in seconds since 1970", hint="are these milliseconds?")
    return float(given)


def position(given: Any) -> int:
    """Check that the value is a valid number of messages."""
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise UsageError("`after` must be the number of messages that the user had seen", hint="use `session.position`")
    return given


def moment(given: Any, clock: Callable[[], float]) -> float:
    """Return the given time after a check. The default is the current time."""
    return clock() if given is None else seconds(given)


def yes_or_no(given: Any, what: str) -> bool:
    """Check that the value is a boolean. Other truthy or falsy values are rejected."""
    if not isinstance(given, bool):
        raise UsageError(f"{what} must be true or false, not `{type(given).__name__}`")
    return given


def _listed(given: Any, what: str, hint: str = "") -> list[Any]:
    if isinstance(given, str | bytes | Mapping) or not hasattr(given, "__iter__"):
        raise UsageError(f"{what} must be a list, not `{type(cast(object, given)).__name__}`", hint=hint)
    return list(cast("Iterable[Any]", given))


def calls(given: Any) -> Sequence[tuple[Any, ...]]:
    """Check the calls of one turn, given as tuples of a tool, its arguments and an optional id."""
    found: list[tuple[Any, ...]] = []
    ids: list[Any] = []
    for each in _listed(given, "calls", _CALLS):
        if not isinstance(each, tuple | list) or len(cast("Sequence[Any]", each)) not in (2, 3):
            raise UsageError("a call in a turn must be `(tool, arguments)` or `(tool, arguments, id)`", hint=_CALLS)
        call = tuple(cast("Sequence[Any]", each))
        id = call[2] if len(call) == 3 else ""
        if id and id in ids:
            raise UsageError(f"two calls in the turn have the id `{id}`", hint="give each call its own id")
        ids.append(id)
        found.append(call)
    return found


def none_waits(waiting: Sequence[Call], ids: Sequence[str]) -> None:
    """Raise an error if a call with one of these ids is still waiting for a result."""
    open_ids = {call.id for call in waiting if call.id}
    if taken := next((id for id in ids if id in open_ids), ""):
        raise UsageError(f"call `{taken}` is still waiting for its result", hint="give each call its own id")


def messages(given: Any) -> list[Any]:
    """Check the messages of a conversation, which may be in any supported log format."""
    return _listed(given, "messages")


def postures(given: Any, pack: Pack) -> Postures:
    """Check postures, given as a `Postures` object or as a mapping with the names used under `shield:` in pack.yaml."""
    try:
        found = given if isinstance(given, Postures) else convert(given, Postures)
    except ValidationError as error:
        hint = 'such as `{"posture": "shadow", "policies": {"late-fee": "enforce"}}`'
        raise ManifestError(f"`postures`: {error}", hint=hint) from None
    unknown = [f"policy `{name}`" for name in found.policies if name not in pack.policies]
    unknown += [f"tool `{name}`" for name in found.tools if name not in pack.schema.tools]
    if unknown:
        raise ManifestError(f"`postures` names {', '.join(unknown)}, not found in pack `{pack.name}`")
    return found


def one_waits(waiting: Sequence[Call], tool: str = "") -> None:
    """Raise an error if a result without an id could belong to several calls (of `tool`, if given)."""
    open_calls = [call for call in waiting if tool in ("", call.tool)]
    for call in open_calls[1:]:
        first = open_calls[0]
        if call.tool != first.tool:
            hint = "give each call an `id` and its result the same `id`, or name the result's `tool`"
            names = f"`{first.tool}` and `{call.tool}`"
            raise UsageError(f"calls of {names} are waiting for results, but this result has no id", hint=hint)
        if call.arguments != first.arguments:
            hint = "give each call an `id`, and its result the same `id`"
            raise UsageError(
                f"several calls of `{call.tool}` are waiting for results, but this result has no id", hint=hint
            )


def context(given: Any) -> Mapping[str, Any] | None:
    if given is not None and not isinstance(given, Mapping):
        hint = 'pass names with values, such as `{"signed_in_as": "C1"}`'
        raise UsageError(f"the context must be a mapping, not `{type(given).__name__}`", hint=hint)
    return None if given is None else copied(cast("Mapping[str, Any]", given))


def refuse_deep(json: bytes, most: int = DEEPEST) -> bytes:
    """Return the JSON unchanged, or raise `ValueError` if it is nested too deeply."""
    if len(json) > most and json.count(b"[") + json.count(b"{") > most:
        depth = 0
        for found in _BRACKET.finditer(json):
            depth += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(found[0], 0)
            if depth > most:
                raise ValueError(f"nested more than {most} levels deep")
    return json


def as_object(arguments: Mapping[str, Any] | str) -> tuple[dict[str, Any], str]:
    """Return the arguments as plain data, and an error text if they are invalid, because guards must never see invalid
    arguments.
    """
    fault = ""
    try:
        if isinstance(arguments, str):
            plain, fault = read_arguments(arguments)
        elif isinstance(arguments, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            plain = cast("dict[str, Any]", msgspec.to_builtins(dict(arguments), str_keys=True))
        else:
            return {}, f"arguments must be an object, not `{type(arguments).__name__}`"
        refuse_deep(_encode(plain))
        return plain, fault
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        return {}, f"arguments are not valid JSON data: {error}"


def as_content(content: Any) -> Any:
    """Return a tool result as text or as JSON-compatible data."""
    if content is None or isinstance(content, str):
        return content
    try:
        return msgspec.Raw(refuse_deep(_encode(content)))
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise UsageError(f"the result is not valid JSON data: {error}", hint="report text or JSON data") from error


class AnotherPrincipal(UsageError):
    def __init__(self, conversation: str) -> None:
        super().__init__(
            f"conversation `{conversation}` was opened with a different context, so it may belong to another principal",
            hint="open a new conversation, or omit `context`",
        )


def goes_on(known: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    """Whether a new context belongs to the same principal. If neither context names a principal, they must be equal."""
    if PRINCIPAL in known:
        return _is_same(given.get(PRINCIPAL, known[PRINCIPAL]), known[PRINCIPAL])
    return PRINCIPAL not in given and all(_is_same(known.get(name, value), value) for name, value in given.items())


def is_of_one(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return goes_on(one, other) and goes_on(other, one)


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values are equal. Unlike `==`, this distinguishes the customer `1` from `True`."""
    return one == other and isinstance(one, bool) is isinstance(other, bool)


def copied(context: Mapping[str, Any]) -> Mapping[str, Any]:
    if not context:
        return {}
    try:
        return deepcopy(dict(context))
    except Exception:
        # Objects that cannot be copied are kept as passed by the host. The host can then no longer add names to the
        # context.
        return dict(context)


def warn_of_model(pack: Pack) -> None:
    """Warn once if a pack from before version 0.2 lets a model consent in place of the user, because this is no longer
    possible.
    """
    silent = [each.name for each in pack.book.predicates.values() if each.consent == "told" and not each.says_of_model]
    if silent and (pack.digest, "model") not in _told and len(_told) < MOST_TOLD:
        _told.add((pack.digest, "model"))
        names = ", ".join(f"`{name}`" for name in silent)
        _logger.warning(
            "%s: since 0.2, a model no longer settles %s in live conversations. The user is asked instead. To let a "
            "model settle it, write `model: may settle` next to `consented: told`; to keep "
            "the current behaviour, write `model: never`",
            pack.name,
            names,
        )


def warn_of_unknown(pack: Pack, context: Mapping[str, Any]) -> None:
    """Warn once about each context name that the pack does not declare, because the name may be misspelt."""
    if not context:
        return
    entities = pack.schema.entities.values()
    declared = {name for entity in entities for name, field in entity.fields.items() if field.origin == "context"}
    for name in context:
        if name in declared or (pack.digest, name) in _told or len(_told) >= MOST_TOLD:
            continue
        _told.add((pack.digest, name))
        close = get_close_matches(str(name), declared, n=1)
        hint = f"; did you mean `{close[0]}`?" if close else ""
        # The names may come from an untrusted source, and this text is printed to a terminal.
        shown = str(name)[:200] if str(name).isprintable() else ascii(str(name)[:200])
        _logger.warning("%s: the context contains `%s`, but the pack does not declare it%s", pack.name, shown, hint)
