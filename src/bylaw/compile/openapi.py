"""The operations of an OpenAPI description as tools."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from bylaw.compile.card import Card, told_schema

_METHODS = ("get", "put", "post", "delete", "patch", "head", "options")


def operations(api: Mapping[str, Any]) -> Iterable[Card]:
    """The operations of an OpenAPI description; GET and HEAD read."""
    for path, item in cast(dict[str, dict[str, Any]], api.get("paths") or {}).items():
        for method, raw in item.items():
            if method not in _METHODS:
                continue
            operation = cast(dict[str, Any], raw)
            default = "_".join([method, *(part.strip("{}") for part in path.split("/") if part)])
            parameters: dict[str, Any] = {}
            required: list[str] = []
            for given in [*item.get("parameters", ()), *operation.get("parameters", ())]:
                one = _resolved(given, api)
                parameters[str(one["name"])] = _resolved(one.get("schema") or {"type": one.get("type")}, api)
                if one.get("required"):
                    required.append(str(one["name"]))
            body = _content(_resolved(operation.get("requestBody") or {}, api), api)
            parameters |= cast(dict[str, Any], body.get("properties") or {})
            required += cast(list[str], body.get("required") or [])
            responses = cast(dict[str, Any], operation.get("responses") or {})
            answer = next((one for code, one in responses.items() if str(code)[0] == "2"), None)
            shown = _content(_resolved(answer or {}, api), api)
            yield Card(
                str(operation.get("operationId") or default),
                str(operation.get("summary") or operation.get("description") or ""),
                parameters,
                tuple(dict.fromkeys(required)),
                "read" if method in ("get", "head", "options") else "write" if method == "delete" else None,
                f"results: {told_schema(shown)}" if shown else "",
                shown,
            )


def _content(holder: Mapping[str, Any], api: Mapping[str, Any]) -> dict[str, Any]:
    content = cast(dict[str, Any], holder.get("content") or {})
    chosen = content.get("application/json") or next(iter(content.values()), {"schema": holder.get("schema")})
    return _resolved(chosen.get("schema") or {}, api)


def _resolved(schema: Any, api: Mapping[str, Any], depth: int = 0) -> Any:
    """A schema with what its `$ref`s point to in place, as far as that ends."""
    if isinstance(schema, list):
        return [_resolved(item, api, depth + 1) for item in cast(list[Any], schema)]
    if not isinstance(schema, dict) or depth > 12:
        return cast(Any, schema)
    record = cast(dict[str, Any], schema)
    if isinstance(reference := record.get("$ref"), str) and reference.startswith("#/"):
        found: Any = api
        for part in reference[2:].split("/"):
            found = cast(dict[str, Any], found).get(part) if isinstance(found, dict) else None
        return _resolved(found, api, depth + 1)
    return {name: _resolved(part, api, depth + 1) for name, part in record.items()}
