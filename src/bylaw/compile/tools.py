"""Reads tools from an OpenAPI description, an MCP `tools/list`, function definitions, JSON schemas or
Python functions.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace

from bylaw.compile.card import Card, Results, schema_text
from bylaw.compile.python_tools import python_cards
from bylaw.errors import BylawError, UsageError
from bylaw.policy.catalogue import CatalogueError, read_catalogue_file
from bylaw.policy.yaml import YamlError, read_yaml_file
from bylaw.scan.shape import Shapes, parameters_of
from bylaw.trace import Trajectory


def read_tools(given: Sequence[str]) -> dict[str, Card]:
    """Return the tools of every given catalogue: a data file, or Python functions (`tools.py`, `module:function`)."""
    cards: dict[str, Card] = {}
    for each in given:
        path = Path(each)
        is_data = path.suffix != ".py" and (path.exists() or path.suffix in (".json", ".yaml", ".yml"))
        found = _from_file(path) if is_data else python_cards(each)
        for card in found:
            if card.name in cards:
                raise UsageError(f"tool `{card.name}` is listed twice", place=each)
            cards[card.name] = card
    return cards


def with_logs(
    cards: Mapping[str, Card], trajectories: Iterable[Trajectory | BylawError]
) -> tuple[dict[str, Card], list[Trajectory]]:
    """Add recorded results to the cards, and tools that only the logs know. Return also the conversations."""
    shapes, results = Shapes(), Results()
    read: list[Trajectory] = []
    for trajectory in trajectories:
        if isinstance(trajectory, Trajectory):
            shapes.add(trajectory)
            results.add(trajectory)
            read.append(trajectory)
    made = dict(cards)
    for name, shape in sorted(shapes.tools.items()):
        if name not in made and shape.calls:
            record = _normal(parameters_of(shape))
            made[name] = Card(name, str(shape.definition.get("description", "")), *record)
    for name, card in made.items():
        if text := results.text(name):
            # Recorded results take precedence over a schema, but words may describe unrecorded results.
            words = [line for line in card.results.splitlines() if line.startswith("returns: ")]
            shown = results.schema(name)
            made[name] = replace(card, results="\n".join([*words, text]), output=shown or card.output)
    return made, read


def _from_file(path: Path) -> list[Card]:
    data = _data(path)
    if isinstance(data, dict) and ("openapi" in data or "swagger" in data):
        return list(operations(cast(dict[str, Any], data)))
    found = read_catalogue_file(path)
    return [
        Card(
            name,
            str(body.get("description", "")),
            *_normal(body.get("parameters") or {}),
            body.get("effect"),
            _promised(body),
            body.get("output") or {},
        )
        for name, body in found.items()
    ]


def _promised(body: Mapping[str, Any]) -> str:
    """Return a catalogue's description of a tool's results, by schema or in words."""
    lines = [f"results: {schema_text(body['output'])}"] if body.get("output") else []
    return "\n".join([*lines, *([f"returns: {' '.join(body['returns'].split())}"] if body.get("returns") else [])])


def _data(path: Path) -> Any:
    if path.suffix in (".yaml", ".yml"):
        try:
            return read_yaml_file(path, file=path.name).data
        except (YamlError, OSError) as error:
            raise CatalogueError(f"cannot be read: {error}", place=str(path)) from None
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None  # `read_catalogue_file` reports the error.


def _normal(given: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return argument schemas and required arguments, from either notation."""
    if isinstance(given.get("properties"), dict):
        return cast(dict[str, Any], given["properties"]), tuple(given.get("required") or ())
    plain = {name: {"type": str(kind).removesuffix("?")} for name, kind in given.items()}
    return plain, tuple(name for name, kind in given.items() if not str(kind).endswith("?"))


_METHODS = ("get", "put", "post", "delete", "patch", "head", "options")


def operations(api: Mapping[str, Any]) -> Iterable[Card]:
    """Yield the operations of an OpenAPI description. GET and HEAD are reads."""
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
                f"results: {schema_text(shown)}" if shown else "",
                shown,
            )


def _content(holder: Mapping[str, Any], api: Mapping[str, Any]) -> dict[str, Any]:
    content = cast(dict[str, Any], holder.get("content") or {})
    chosen = content.get("application/json") or next(iter(content.values()), {"schema": holder.get("schema")})
    return _resolved(chosen.get("schema") or {}, api)


def _resolved(schema: Any, api: Mapping[str, Any], depth: int = 0) -> Any:
    """Resolve a schema's `$ref`s, up to a maximum depth."""
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
