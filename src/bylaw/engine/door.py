"""What a host may say: each thing of its own type and as plain data that JSON can hold, or it is refused at once with
what to give in its place."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec import ValidationError, convert

from bylaw.engine.context import copied
from bylaw.errors import UsageError
from bylaw.pack import Pack
from bylaw.policy.folder import ManifestError
from bylaw.policy.posture import Postures
from bylaw.trace.event import Call
from bylaw.trace.recorded_value import EARLIEST, LATEST, read_arguments

_encode = msgspec.json.Encoder(decimal_format="string").encode
DEEPEST = 200
"""Lists and objects within each other at most. Python reads more of them, but how many depends on where it is asked:
what was written by one part of a program, another could not read again."""
_BRACKET = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
"""A string, whose brackets do not count, or a bracket."""
_CALLS = 'such as `[("get_order", {"order_id": "7"}), ("refund", {"order_id": "7"}, "call-2")]`'


def writable(text: str) -> str:
    """A text that can be written down: what is no character of its own becomes `?`."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def text(given: Any, what: str) -> str:
    """A text, such as it can be written down."""
    if not isinstance(given, str):
        raise UsageError(f"{what} is a text, not `{type(given).__name__}`")
    return writable(given)


def tool_name(given: Any) -> str:
    """The name of a tool."""
    if given == "":
        raise UsageError("a tool's name is empty", hint="give the name that the catalogue has for it")
    return text(given, "a tool's name")


def seconds(given: Any) -> float:
    """A time, as seconds since 1970."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise UsageError(f"a time is seconds since 1970, not `{type(given).__name__}`", hint="give `time.time()`")
    if not EARLIEST <= given <= LATEST:
        raise UsageError(f"`{given}` is not a time in seconds since 1970", hint="are these milliseconds?")
    return float(given)


def position(given: Any) -> int:
    """How many messages of a conversation came before something."""
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise UsageError("`after` is the number of messages that the user had seen", hint="give `session.position`")
    return given


def moment(given: Any, clock: Callable[[], float]) -> float:
    """When something happens: as is said, else by the clock."""
    return clock() if given is None else seconds(given)


def yes_or_no(given: Any, what: str) -> bool:
    """True or false, and nothing that only counts as such."""
    if not isinstance(given, bool):
        raise UsageError(f"{what} is true or false, not `{type(given).__name__}`")
    return given


def calls(given: Any) -> Sequence[tuple[Any, ...]]:
    """Calls of one turn, each as tool, arguments and, where it has one, id."""
    if isinstance(given, str | Mapping) or not hasattr(given, "__iter__"):
        raise UsageError(f"calls are a list, not `{type(cast(object, given)).__name__}`", hint=_CALLS)
    found = list(cast(Sequence[Any], given))
    for each in found:
        if not isinstance(each, tuple | list) or len(cast(Sequence[Any], each)) not in (2, 3):
            raise UsageError("a call of a turn is `(tool, arguments)` or `(tool, arguments, id)`", hint=_CALLS)
    ids = [each[2] for each in found if len(each) == 3 and each[2]]
    if twice := next((id for place, id in enumerate(ids) if id in ids[:place]), ""):
        raise UsageError(f"two calls of the turn have the id `{twice}`", hint="give each call an id of its own")
    return [tuple(each) for each in found]


def none_waits(waiting: Sequence[Call], ids: Sequence[str]) -> None:
    """Whether none of these ids is that of a call that still waits for its result."""
    open_ids = {call.id for call in waiting if call.id}
    if taken := next((id for id in ids if id in open_ids), ""):
        raise UsageError(f"a call `{taken}` still waits for its result", hint="give each call an id of its own")


def messages(given: Any) -> list[Any]:
    """Messages of a conversation, in any shape logs may have."""
    if type(given) is list:
        return cast("list[Any]", given).copy()
    if isinstance(given, str | bytes | Mapping) or not hasattr(given, "__iter__"):
        raise UsageError(f"messages are a list, not `{type(cast(object, given)).__name__}`")
    return list(cast(Sequence[Any], given))


def postures(given: Any, pack: Pack) -> Postures:
    """How firmly a pack is held to: `Postures`, or a mapping as `shield:` of pack.yaml is, of names the pack knows."""
    try:
        found = given if isinstance(given, Postures) else convert(given, Postures)
    except ValidationError as error:
        hint = 'such as `{"posture": "shadow", "policies": {"late-fee": "enforce"}}`'
        raise ManifestError(f"`postures`: {error}", hint=hint) from None
    unknown = [f"policy `{name}`" for name in found.policies if name not in pack.policies]
    unknown += [f"tool `{name}`" for name in found.tools if name not in pack.schema.tools]
    if unknown:
        raise ManifestError(f"`postures` names {', '.join(unknown)}, which `{pack.name}` does not have")
    return found


def one_waits(waiting: Sequence[Call], tool: str = "") -> None:
    """Whether it is clear which call a result without an id answers; `tool` says whose result it is."""
    open_calls = [call for call in waiting if tool in ("", call.tool)]
    for call in open_calls[1:]:
        first = open_calls[0]
        if call.tool != first.tool:
            hint = "give each call an `id`, and its result the same; or say of which `tool` the result is"
            names = f"`{first.tool}` and `{call.tool}`"
            raise UsageError(f"calls of {names} wait for a result, and this one has no id", hint=hint)
        if call.arguments != first.arguments:
            hint = "give each call an `id`, and its result the same"
            raise UsageError(f"several calls of `{call.tool}` wait for a result, and this one has no id", hint=hint)


def context(given: Any) -> Mapping[str, Any] | None:
    """What a host vouches for, by name."""
    if given is not None and not isinstance(given, Mapping):
        hint = 'give names with values, such as `{"signed_in_as": "C1"}`'
        raise UsageError(f"a context is a mapping, not `{type(given).__name__}`", hint=hint)
    return None if given is None else copied(cast("Mapping[str, Any]", given))


def refuse_deep(json: bytes, most: int = DEEPEST) -> bytes:
    """The same JSON; a `ValueError` where it is nested too deep."""
    if json.count(b"[") + json.count(b"{") > most:
        depth = 0
        for found in _BRACKET.finditer(json):
            depth += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(found[0], 0)
            if depth > most:
                raise ValueError(f"nested more than {most} deep")
    return json


def as_object(arguments: Mapping[str, Any] | str) -> tuple[dict[str, Any], str]:
    """Arguments as plain data, and what is wrong with them if they are none: then no guard is asked."""
    fault = ""
    try:
        if isinstance(arguments, str):
            plain, fault = read_arguments(arguments)
        elif isinstance(arguments, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            plain = cast("dict[str, Any]", msgspec.to_builtins(dict(arguments), str_keys=True))
        else:
            return {}, f"arguments are not an object but `{type(arguments).__name__}`"
        refuse_deep(_encode(plain))
        return plain, fault
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        return {}, f"arguments are not plain data: {error}"


def as_content(content: Any) -> Any:
    """A result as a text or as data that JSON can hold."""
    if content is None or isinstance(content, str):
        return content
    try:
        return msgspec.Raw(refuse_deep(_encode(content)))
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise UsageError(f"the result is not plain data: {error}", hint="give text, or what JSON can hold") from error
