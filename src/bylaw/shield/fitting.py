"""Whether the arguments of a write are those that its tool declares: what a tool makes of others, nobody knows.

A log is judged for what its tools made of a call; before it runs that is not known, so the shield asks for more.
"""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, cast

from bylaw.policy.tool import Misfit, Tool


def misfit(tool: Tool | None, arguments: Mapping[str, Any]) -> str:
    """What is wrong with the arguments of a call; empty where it changes nothing, or its tool declares none."""
    if tool is None or tool.effect != "write":
        return ""
    for name in tool.required:
        if arguments.get(name) is None:
            return f"argument `{name}` is missing"
    texts = tool.texts
    for name, value in arguments.items():
        if value.__class__ is not str or name not in texts:
            break
    else:
        return ""
    fitted = tool.fitted(arguments)
    if fitted is not arguments:
        return next((value.why for value in fitted.values() if isinstance(value, Misfit)), "")
    if not tool.parameters:
        return ""
    for name, value in arguments.items():
        schema = tool.parameters.get(name, tool.others)
        if schema is False:
            takes = ", ".join(f"`{each}`" for each in tool.parameters)
            return f"{tool.name} has no argument `{name}`; it takes {takes}"
        if why := _unlike(schema, value, name):
            return f"argument {why}"
    return ""


_CHOICES = frozenset(("anyOf", "oneOf", "enum"))


def _unlike(schema: Any, value: Any, place: str) -> str:
    """How a value is unlike what is declared of it, and where: inside of lists and objects too.

    What a schema says beyond types, words and fields is the tool's own affair.
    """
    if not isinstance(schema, dict) or value is None:
        return ""
    declared = cast(dict[str, Any], schema)
    kinds = declared.get("type")
    if kinds == "string" and value.__class__ is str and _CHOICES.isdisjoint(declared):
        return ""
    for either in ("anyOf", "oneOf"):
        if isinstance(declared.get(either), list):
            found = [_unlike(each, value, place) for each in cast(list[Any], declared[either])]
            return "" if not found or "" in found else found[0]
    named: list[Any] = cast(list[Any], kinds) if isinstance(kinds, list) else [kinds] if kinds else []
    listed = {str(kind) for kind in named} - {"null"}
    if isinstance(value, list):
        return _unlike_list(declared, cast(list[Any], value), place, listed)
    if isinstance(value, dict):
        return _unlike_object(declared, cast(dict[str, Any], value), place, listed)
    if why := _unlike_scalar(listed, value):
        return f"`{place}` is {why}"
    words = declared.get("enum")
    if isinstance(words, list) and value not in words:
        return f"`{place}` is not one of its declared words"
    return ""


def _unlike_list(declared: dict[str, Any], value: list[Any], place: str, listed: set[str]) -> str:
    if listed and "array" not in listed:
        return f"`{place}` is a list, and the tool takes {_named(listed)}"
    items = declared.get("items")
    return next((why for at, each in enumerate(value) if (why := _unlike(items, each, f"{place}[{at}]"))), "")


def _unlike_object(declared: dict[str, Any], value: dict[str, Any], place: str, listed: set[str]) -> str:
    if listed and "object" not in listed:
        return f"`{place}` is an object, and the tool takes {_named(listed)}"
    parts = declared.get("properties")
    if not isinstance(parts, dict):
        return ""
    fields = cast(dict[str, Any], parts)
    for name in declared.get("required") or ():
        if name not in value:
            return f"`{place}.{name}` is missing"
    # As JSON Schema has it, an object may hold more than is declared, unless it says otherwise.
    others = declared.get("additionalProperties", True)
    for name, each in value.items():
        if name not in fields and others is False and "patternProperties" not in declared:
            return f"`{place}.{name}` is not a field of it; it has {', '.join(f'`{field}`' for field in fields)}"
        if why := _unlike(fields.get(name, others), each, f"{place}.{name}"):
            return why
    return ""


def _named(listed: set[str]) -> str:
    """What kinds are called."""
    called = {"array": "a list", "object": "an object", "boolean": "true or false", "string": "a text"}
    return " or ".join(sorted(called.get(kind, "a number") for kind in listed))


def _unlike_scalar(declared: set[str], value: Any) -> str:
    """How a value is unlike the numbers, the text or the yes or no that is declared."""
    if not declared:
        return ""
    if not declared & {"string", "integer", "number"}:
        is_so = isinstance(value, bool) and "boolean" in declared
        return "" if is_so else f"no {' or '.join(sorted(declared))}, and the tool takes {_named(declared)}"
    if isinstance(value, bool):
        return "" if "boolean" in declared else f"true or false, and the tool takes {_named(declared)}"
    if "string" in declared:
        return "" if isinstance(value, str) or len(declared) > 1 else "a number, and the tool takes a text"
    if isinstance(value, int):
        return ""
    number = _number(value)
    if number is None:
        return "no number, and the tool takes one"
    is_whole = number == number.to_integral_value()
    return "no whole number, and the tool takes one" if declared == {"integer"} and not is_whole else ""


def _number(value: Any) -> Decimal | None:
    """A number, or a text of one, which tools take as well."""
    try:
        read = Decimal(str(value).strip())
    except InvalidOperation:
        return None
    return read if read.is_finite() else None
