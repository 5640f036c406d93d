"""Tools in: an OpenAPI description, an MCP `tools/list`, function definitions, JSON schemas or Python callables."""

import importlib
import inspect
import json
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

from msgspec import Struct, field
from msgspec.structs import replace

from bylaw.compile.result import Results
from bylaw.errors import BylawError, UsageError
from bylaw.policy.catalogue import CatalogueError, read_catalogue
from bylaw.policy.tool import Effect
from bylaw.policy.yaml import YamlError, read_yaml_file
from bylaw.scan.shape import Shapes, parameters_of
from bylaw.trace import Trajectory

_METHODS = ("get", "put", "post", "delete", "patch", "head", "options")
_LONGEST = 1_200
_TYPES: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", Decimal: "string"}


class Card(Struct, frozen=True):
    """What is known of one tool before anybody has said what it does."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=dict[str, Any])
    """Argument -> JSON schema."""
    required: tuple[str, ...] = ()
    effect: Effect | None = None
    """As a hint in the catalogue says."""
    results: str = ""
    """The form of its results and errors, in words."""

    @property
    def signature(self) -> str:
        """Name and arguments on one line."""
        given = (
            f"{name}{'' if name in self.required else '?'}: {_kind(schema)}" for name, schema in self.parameters.items()
        )
        return f"{self.name}({', '.join(given)})"

    @property
    def short(self) -> str:
        """For whoever has to choose among tools."""
        hint = f" [{self.effect}]" if self.effect else ""
        return f"- {self.signature}{hint}: {_first(self.description)}"

    @property
    def whole(self) -> str:
        """For whoever has to know what it reads and changes."""
        hint = f"The catalogue says: {self.effect}." if self.effect else ""
        lines = [" ".join(self.description.split())[:_LONGEST], hint, self.results]
        return "\n  ".join([self.signature, *(part for line in lines if line for part in line.splitlines())])


def read_tools(given: Sequence[str]) -> dict[str, Card]:
    """The tools of every catalogue given: a file, or `module:function` (`module` for all its public functions)."""
    cards: dict[str, Card] = {}
    for each in given:
        path = Path(each)
        found = _from_file(path) if path.exists() or path.suffix in (".json", ".yaml", ".yml") else _from_python(each)
        for card in found:
            if card.name in cards:
                raise UsageError(f"tool `{card.name}` is listed twice", place=each)
            cards[card.name] = card
    return cards


def with_logs(
    cards: Mapping[str, Card], trajectories: Iterable[Trajectory | BylawError]
) -> tuple[dict[str, Card], list[Trajectory]]:
    """The cards with the results that were recorded, tools included that only the logs know; and the conversations."""
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
        if told := results.told(name):
            made[name] = replace(card, results=told)
    return made, read


def _from_file(path: Path) -> list[Card]:
    data = _data(path)
    if isinstance(data, dict) and ("openapi" in data or "swagger" in data):
        return list(_operations(cast(dict[str, Any], data)))
    found = read_catalogue(path, file=path.name)
    return [
        Card(
            name,
            str(body.get("description", "")),
            *_normal(body.get("parameters") or {}),
            body.get("effect"),
            f"results: {_told(body['output'])}" if body.get("output") else "",
        )
        for name, body in found.items()
    ]


def _data(path: Path) -> Any:
    if path.suffix in (".yaml", ".yml"):
        try:
            return read_yaml_file(path, file=path.name).data
        except (YamlError, OSError) as error:
            raise CatalogueError(f"cannot be read: {error}", place=str(path)) from None
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None  # told by `read_catalogue`


def _operations(api: Mapping[str, Any]) -> Iterable[Card]:
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
                f"results: {_told(shown)}" if shown else "",
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


def _from_python(said: str) -> list[Card]:
    module_name, _, name = said.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        hint = "give a catalogue's file, or `module:function`"
        raise UsageError(f"no catalogue of tools: {error}", place=said, hint=hint) from None
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
    shown = f"results: {_told(_schema_of(returned))}" if returned not in (None, type(None)) else ""
    return Card(function.__name__, inspect.getdoc(function) or "", parameters, tuple(required), None, shown)


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


def _normal(given: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Parameters as argument -> schema, and which are required, from either way of writing them."""
    if isinstance(given.get("properties"), dict):
        return cast(dict[str, Any], given["properties"]), tuple(given.get("required") or ())
    plain = {name: {"type": str(kind).removesuffix("?")} for name, kind in given.items()}
    return plain, tuple(name for name, kind in given.items() if not str(kind).endswith("?"))


def _kind(schema: Any) -> str:
    record = cast(dict[str, Any], schema) if isinstance(schema, dict) else {}
    if isinstance(words := record.get("enum"), list):
        return "|".join(map(str, cast(list[Any], words)))
    if record.get("type") == "array":
        return f"list of {_kind(record.get('items'))}"
    return str(record.get("format") or record.get("type") or "any")


def _told(schema: Any) -> str:
    """A result's JSON schema, in the words of `result.Form`."""
    record = cast(dict[str, Any], schema) if isinstance(schema, dict) else {}
    properties = record.get("properties")
    if isinstance(properties, dict):
        return "{" + ", ".join(f"{name}: {_told(one)}" for name, one in cast(dict[str, Any], properties).items()) + "}"
    if record.get("type") == "array":
        return f"[{_told(record.get('items'))}, ...]"
    return _kind(record)


def _first(text: str) -> str:
    """The first sentence of a description."""
    line = " ".join(text.split())
    end = line.find(". ")
    return line if end < 0 else line[: end + 1]
