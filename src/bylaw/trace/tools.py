"""Tool definitions as logs record them, brought to one form: name, description, parameters, annotations."""

from collections.abc import Iterable, Sequence
from typing import Any

_SCHEMA_NAMES = ("parameters", "input_schema", "inputSchema", "args_schema")


def tool_definitions(recorded: Iterable[Any] | None) -> Sequence[dict[str, Any]]:
    """The definitions that can be understood; MCP's annotations (`readOnlyHint`, ...) are kept."""
    if not recorded:
        return ()
    return tuple(filter(None, map(_definition, recorded)))


def _definition(recorded: Any) -> dict[str, Any] | None:
    match recorded:
        case {"function": {"name": str()} as function, **outer}:
            body: dict[str, Any] = {**outer, **function}  # pyright: ignore[reportUnknownVariableType]
        case {"name": str()}:
            body = recorded  # pyright: ignore[reportUnknownVariableType]
        case _:
            return None
    definition: dict[str, Any] = {"name": body["name"]}
    if isinstance(body.get("description"), str):
        definition["description"] = body["description"]
    for name in _SCHEMA_NAMES:
        if isinstance(body.get(name), dict):
            definition["parameters"] = body[name]
            break
    if isinstance(body.get("annotations"), dict):
        definition["annotations"] = body["annotations"]
    return definition
