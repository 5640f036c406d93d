"""Python functions as tools: name, docstring and annotations."""

import importlib
import inspect
import types
import typing
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from bylaw.compile.card import Card, told_schema
from bylaw.errors import UsageError

_TYPES: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", Decimal: "string"}


def python_cards(said: str) -> list[Card]:
    module_name, _, name = said.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        hint = "give a catalogue's file, or `module:function`"
        raise UsageError(f"not a catalogue of tools: {error}", place=said, hint=hint) from None
    if name:
        return [callable_card(getattr(module, each)) for each in name.split(",")]
    public = getattr(module, "__all__", None) or [each for each in vars(module) if not each.startswith("_")]
    functions = [getattr(module, each) for each in public]
    return [callable_card(each) for each in functions if inspect.isfunction(each) and each.__module__ == module_name]


def callable_card(function: Any) -> Card:
    """A Python function as a tool: its name, docstring and annotations."""
    hints = typing.get_type_hints(function)
    parameters: dict[str, Any] = {}
    required: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL) or name == "self":
            continue
        parameters[name] = _schema_of(hints.get(name, str))
        if parameter.default is parameter.empty:
            required.append(name)
    returned = hints.get("return")
    output = _schema_of(returned) if returned not in (None, type(None)) else {}
    shown = f"results: {told_schema(output)}" if output else ""
    return Card(function.__name__, inspect.getdoc(function) or "", parameters, tuple(required), None, shown, output)


def _schema_of(hint: Any) -> dict[str, Any]:
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return {"type": "string", "enum": list(inside)}
    if origin in (typing.Union, types.UnionType):
        kept = [each for each in inside if each is not type(None)]
        return _schema_of(kept[0]) if kept else {}
    if origin in (list, tuple, set) or hint in (list, tuple, set):
        return {"type": "array", "items": _schema_of(inside[0]) if inside else {}}
    if hint in (date, datetime):
        return {"type": "string", "format": "date" if hint is date else "date-time"}
    if typing.is_typeddict(hint):
        return {"type": "object", "properties": {k: _schema_of(v) for k, v in typing.get_type_hints(hint).items()}}
    return {"type": _TYPES.get(hint, "object")}
