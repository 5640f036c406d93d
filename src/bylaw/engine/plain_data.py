"""What a host gives of calls and results, as plain data that JSON can hold."""

import re
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from bylaw.errors import UsageError
from bylaw.trace.transcript import read_arguments

_encode = msgspec.json.Encoder(decimal_format="string").encode


DEEPEST = 200
"""Lists and objects within each other at most. Python reads more of them, but how many depends on where it is asked:
what was written by one part of a program, another could not read again."""
_BRACKET = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
"""A string, whose brackets do not count, or a bracket."""


def refuse_deep(json: bytes, most: int = DEEPEST) -> bytes:
    """The same JSON; a `ValueError` where it is nested too deep."""
    if json.count(b"[") + json.count(b"{") > most:
        depth = 0
        for found in _BRACKET.finditer(json):
            depth += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(found[0], 0)
            if depth > most:
                raise ValueError(f"nested more than {most} deep")
    return json


def check_name(tool: object) -> None:
    """Refuse what cannot be the name of a tool."""
    if not isinstance(tool, str):
        raise UsageError(f"a tool's name is a text, not `{type(tool).__name__}`")
    if not tool:
        raise UsageError("a tool's name is empty", hint="give the name that the catalogue has for it")


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
