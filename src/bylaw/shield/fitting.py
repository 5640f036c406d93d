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
    fitted = tool.fitted(arguments)
    if (wrong := next((value for value in fitted.values() if isinstance(value, Misfit)), None)) is not None:
        return wrong.why
    if not tool.parameters:
        return ""
    for name, value in arguments.items():
        if name not in tool.parameters:
            takes = ", ".join(f"`{each}`" for each in tool.parameters)
            return f"{tool.name} has no argument `{name}`; it takes {takes}"
        if why := _unlike(tool.parameters[name], value):
            return f"argument `{name}` is {why}"
    return ""


def _unlike(schema: Any, value: Any) -> str:
    """How a value is unlike the numbers or the text that one argument is declared as."""
    kinds = cast(dict[str, Any], schema).get("type") if isinstance(schema, dict) else None
    declared = {str(kind) for kind in cast(list[Any], kinds)} if isinstance(kinds, list) else {str(kinds)}
    declared.discard("null")
    if value is None or not declared or declared - {"string", "integer", "number"}:
        return ""
    if isinstance(value, bool):
        return "true or false, and the tool takes a " + ("text" if declared == {"string"} else "number")
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
