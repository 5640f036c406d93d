"""Reads a tool catalogue: an MCP `tools/list` result, function definitions for a model, or JSON schemas.

Only names, descriptions and parameters are read. The effects of a tool must be declared in the pack.
"""

import json
from pathlib import Path
from typing import Any, cast, get_args

from bylaw.errors import BylawError
from bylaw.policy.tool import Effect
from bylaw.policy.yaml import Located

_SCHEMAS = ("inputSchema", "input_schema", "parameters", "inputs")


class CatalogueError(BylawError):
    """Raised if the file that `from:` names in tools.yaml is not a tool catalogue."""

    code = "BY410"


def with_catalogue(source: Located, data: bytes, *, file: str) -> tuple[Located, list[BylawError]]:
    """Return the entries of `tools.yaml`, merged with the catalogue's entries for the same tools."""
    try:
        found = read_catalogue(data, file=file)
    except CatalogueError as error:
        return source, [error]
    given: Any = source.data.get("tools") or {}
    if not isinstance(given, dict) or not all(isinstance(each or {}, dict) for each in cast(Any, given).values()):
        return source, []
    said = {name: body or {} for name, body in cast(dict[str, dict[str, Any] | None], given).items()}
    faults: list[BylawError] = []
    for name, body in said.items():
        if name not in found and not body.get("parameters"):
            hint = f"the file has {_listed(found)}; use one of these, or add `parameters`"
            faults.append(source.fault(CatalogueError, f"`{name}` is not in {file}", "tools", name, hint=hint))
    for name, body in found.items():
        if "effect" not in said.get(name, {}) and "effect" not in body:
            hint = f"add `{name}: {{effect: read}}`, or write, or none"
            at = ("tools", name) if name in said else ("from",)
            faults.append(source.fault(CatalogueError, f"tool `{name}` of {file} has no effect", *at, hint=hint))
            body["effect"] = "write"
    for body in found.values():
        body.pop("output", None)
    tools = {name: {**found.get(name, {}), **said.get(name, {})} for name in (*said, *found)}
    return source.with_data({**source.data, "tools": tools}), faults


def read_catalogue_file(path: Path) -> dict[str, dict[str, Any]]:
    try:
        return read_catalogue(path.read_bytes(), file=path.name)
    except OSError as error:
        raise CatalogueError(f"cannot be read: {(error.strerror or str(error)).lower()}", place=path.name) from None


def read_catalogue(text: bytes, *, file: str) -> dict[str, dict[str, Any]]:
    """Return each tool's description and parameters. Raise `CatalogueError` if the catalogue contains no tools."""
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        raise CatalogueError("is not JSON", place=f"{file}:{line}" if line else file) from None
    if isinstance(data, dict):
        record = cast(dict[str, Any], data)
        inner = record.get("result", record)
        listed: Any = cast(dict[str, Any], inner).get("tools") if isinstance(inner, dict) else None
        if not isinstance(listed, list | dict):
            listed = record
        if isinstance(listed, dict):
            named = cast(dict[str, Any], listed)
            return {name: _one({"name": name, **_schema(body)}, file, name)[1] for name, body in named.items()}
        data = cast(list[Any], listed)
    if not isinstance(data, list):
        hint = "pass an MCP tools/list result, a list of function definitions, or a JSON schema by tool"
        raise CatalogueError("lists no tools", place=file, hint=hint)
    found: dict[str, dict[str, Any]] = {}
    for index, body in enumerate(cast(list[Any], data), 1):
        name, made = _one(body, file, f"tool {index}")
        if name in found:
            raise CatalogueError(f"tool {index} has the same name as an earlier one, `{name}`", place=file)
        found[name] = made
    return found


def _schema(body: Any) -> dict[str, Any]:
    if not isinstance(body, dict):
        return {"parameters": body}
    record = cast(dict[str, Any], body)
    is_definition = any(isinstance(record.get(name), dict) for name in (*_SCHEMAS, "function"))
    return record if is_definition and "properties" not in record else {"parameters": record}


def _one(body: Any, file: str, what: str) -> tuple[str, dict[str, Any]]:
    record = cast(dict[str, Any], body) if isinstance(body, dict) else {}
    if isinstance(record.get("function"), dict):
        record = {**record, **cast(dict[str, Any], record["function"])}
    name: Any = record.get("name")
    if not isinstance(name, str) or not name:
        raise CatalogueError(f"{what} has no name", place=file)
    schema: Any = next((record[key] for key in _SCHEMAS if record.get(key) is not None), None)
    made: dict[str, Any] = {}
    if schema is not None:
        properties: Any = cast(dict[str, Any], schema).get("properties", {}) if isinstance(schema, dict) else None
        if not isinstance(properties, dict):
            hint = "an object with `properties`"
            raise CatalogueError(f"the parameters of `{name}` are not a JSON schema", place=file, hint=hint)
        for argument, part in cast(dict[str, Any], properties).items():
            if not isinstance(part, dict | bool):
                raise CatalogueError(f"argument `{argument}` of `{name}` has no JSON schema", place=file)
        required: Any = cast(dict[str, Any], schema).get("required") or []
        made["parameters"] = {"type": "object", "properties": properties, "required": required}
        if "additionalProperties" in schema:
            made["parameters"]["additionalProperties"] = cast(dict[str, Any], schema)["additionalProperties"]
    if isinstance(record.get("description"), str):
        made["description"] = record["description"]
    notes: Any = record.get("annotations")
    hints = cast(dict[str, Any], notes) if isinstance(notes, dict) else {}
    if hints.get("readOnlyHint") is True:
        made["effect"] = "read"
    elif hints.get("destructiveHint") is True:
        made["effect"] = "write"
    elif record.get("effect") in get_args(Effect):
        made["effect"] = record["effect"]
    if isinstance(record.get("outputSchema"), dict):
        made["output"] = record["outputSchema"]
    if isinstance(record.get("returns"), str):
        made["returns"] = record["returns"]
    return name, made


def _listed(found: dict[str, dict[str, Any]]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(found)[:8]) + (" ..." if len(found) > 8 else "")
