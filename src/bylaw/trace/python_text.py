"""Data that was logged as Python prints it: literals, and the reprs of dataclasses, pydantic models and enumerations.

Frameworks pass a tool's result through `str`, so that `{'status': 'out', 'returned_on': None}` or
`Loan(status='out', returned_on=None)` replaces the JSON. Nothing is evaluated: Python's parser reads the text, and only
nodes that a repr can contain become data.
"""

import ast
import math
import re
import threading
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from typing import Any, Final

from bylaw.trace.contradicted import record_of

LONGEST = 1 << 20
"""Characters of a text that is read; a longer one stays text."""
DEEPEST = 60
_TRIES = 20
_parsing = threading.Lock()

_TOKEN = re.compile(
    r"""(?P<text>b?(?:'[^'\\\n]*(?:\\.[^'\\\n]*)*'|"[^"\\\n]*(?:\\.[^"\\\n]*)*"))"""
    r"""|(?P<factory><class\ '[\w.]+'>,)|(?P<member><[A-Za-z_][\w.]*:\s)|(?P<open>[\[({])|(?P<close>[\])}>])"""
    r"""|(?P<space>(?<=[^,\s(])\s+(?=[A-Za-z_]\w*=))""",
    re.VERBOSE,
)
_FIELD = re.compile(r"[A-Za-z_]\w*=")
_UNPRINTED = re.compile(r"""[^\w\s.,:()\[\]{}'=+-]|\w\s+\w|''\s*\w*''|-\s*-|\b\d\w*_|\b0[xXoObB]""")
"""In a text whose strings are empty, what no repr contains: operators, keywords, adjacent strings, other numerals."""
_ODD_ESCAPE = re.compile(r"""(?<!\\)(?:\\\\)*\\[^xuUntr\\'"0ab]""")
_CLOSER: Final = {"(": ")", "[": "]", "{": "}", "<": ">"}
_CONSTANTS: Final[dict[str, Any]] = {"nan": None, "inf": None, "null": None, "true": True, "false": False}
_CLOCKS: Final[dict[str, Any]] = {"datetime": datetime, "date": date, "time": time}
_LISTS = {"set", "frozenset", "tuple", "list", "deque", "array"}
_ZONES = {"TzInfo", "timezone", "tzutc", "ZoneInfo"}


class NotPython(Exception):
    """The text is no printed value."""


def read_python(text: str) -> Any:
    """The value that Python printed as `text`; `NotPython` if it printed none, or one that is not data."""
    if len(text) > LONGEST or _ODD_ESCAPE.search(text):
        raise NotPython
    text = text.strip()
    if is_bare := _FIELD.match(text) is not None:
        text = f"fields({text})"
    source = _literal(text, is_bare=is_bare)
    try:
        match _parsed(f"[{source}]"):
            case ast.List(elts=[only]) if not source.endswith(","):
                return _value(only)
            case _:
                raise NotPython
    except (SyntaxError, ValueError, TypeError, OverflowError, RecursionError, MemoryError) as error:
        raise NotPython from error


def _parsed(source: str) -> ast.expr:
    # Python 3.11 counts the depth of the trees that all threads build in one place, and fails if two build at once.
    for _ in range(_TRIES):
        with _parsing, suppress(SystemError):
            return ast.parse(source, mode="eval").body
    raise NotPython


def _literal(text: str, *, is_bare: bool) -> str:
    """`text` as an expression: members of enumerations become their values, and bare fields (pydantic's `str`) are
    separated by commas."""
    source: list[str] = []
    skeleton: list[str] = []
    closers: list[str] = []
    end = 0
    for token in _TOKEN.finditer(text):
        between, mark = text[end : token.start()], token[0]
        end = token.end()
        written, shape = mark, mark
        match token.lastgroup:
            case "text":
                shape = "''"
            case "factory":
                written = shape = ""
            case "space":
                written = shape = ", " if is_bare else mark
            case "close":
                if not closers or closers.pop() != mark:
                    raise NotPython
                written = shape = ")" if mark == ">" else mark
            case _:
                closers.append(_CLOSER[mark[0]])
                written = shape = "(" if mark[0] == "<" else mark
        if len(closers) > DEEPEST:
            raise NotPython
        source += (between, written)
        skeleton += (between, shape)
    rest = text[end:]
    if closers or _UNPRINTED.search("".join(skeleton) + rest):
        raise NotPython
    return "".join(source) + rest


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=bytes(data)):
            return data.decode("latin-1")
        case ast.Constant(value=str(text)):
            return text if text.isascii() else text.encode("utf-8", "replace").decode()
        case ast.Constant(value=float(number)):
            return number if math.isfinite(number) else None
        case ast.Constant(value=None | bool() | int() as plain):
            return plain
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            return [_value(item) for item in items]
        case ast.Dict(keys=keys, values=values):
            return record_of((_key(_value(key)), _value(each)) for key, each in zip(keys, values, strict=True) if key)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number if math.isfinite(number) else None
        case ast.UnaryOp(op=ast.USub(), operand=ast.Name(id="inf")):
            return None
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.Call(func=function, args=args, keywords=keywords):
            return _object(_name(function), args, {each.arg or "": each.value for each in keywords})
        case _:
            raise NotPython


def _object(name: str, args: Sequence[ast.expr], named: dict[str, ast.expr]) -> Any:
    """The data in the repr of an object: its fields, its only argument, or a list."""
    if name in _CLOCKS or name == "timedelta":
        return _moment(name, args, named)
    if args and named:
        raise NotPython
    items = [_value(item) for item in args]
    match name, args:
        case (_, []) if named or name not in _LISTS:
            return record_of((name, _value(value)) for name, value in named.items())
        case "OrderedDict", [ast.List(elts=pairs)]:
            if not all(isinstance(pair, ast.Tuple) and len(pair.elts) == 2 for pair in pairs):
                raise NotPython
            return record_of((_key(key), value) for key, value in items[0])
        case _, [_]:
            return items[0]
        case _:
            return items


def _moment(name: str, args: Sequence[ast.expr], named: dict[str, ast.expr]) -> Any:
    """A date, a time or a span of time, as ISO 8601 writes it; a span in seconds."""
    given = [_value(each) for each in args]
    options = {name: _zone(each) if name == "tzinfo" else _value(each) for name, each in named.items()}
    if name == "timedelta":
        return timedelta(*given, **options).total_seconds()
    return _CLOCKS[name](*given, **options).isoformat()


def _zone(node: ast.expr) -> tzinfo | None:
    """A time's zone: UTC, or so many seconds from it. One known by name alone says no offset."""
    match node:
        case ast.Constant(value=None):
            return None
        case ast.Name(id="UTC") | ast.Attribute(attr="utc"):
            return UTC
        case ast.Call(func=function, args=args, keywords=keywords) if _name(function) in _ZONES:
            match [*args, *(each.value for each in keywords)]:
                case [] | [ast.Name(id="UTC") | ast.Constant(value="UTC")]:
                    return UTC
                case [offset]:
                    return timezone(timedelta(seconds=_value(offset)))
                case _:
                    raise NotPython
        case _:
            raise NotPython


def _name(function: ast.expr) -> str:
    """The last part of the dotted name that is called."""
    match function:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name() | ast.Attribute() as owner, attr=name) if _name(owner):
            return name
        case _:
            raise NotPython


def _key(name: Any) -> str:
    """A dict's key, as `json.dumps` writes it."""
    match name:
        case str():
            return name
        case bool():
            return "true" if name else "false"
        case None:
            return "null"
        case int() | float():
            return repr(name)
        case _:
            raise NotPython
