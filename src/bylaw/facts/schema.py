"""A pack's entities, observations and changes, compiled once from its YAML."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast, get_args

from msgspec import Struct

from bylaw.errors import BylawError
from bylaw.facts.entity import UNDECLARED, Entity, Field, FieldType, Lookup, Saying
from bylaw.facts.observation import Change, Observation
from bylaw.facts.path import Getter, PathError, Scope, compile_each, compile_path
from bylaw.policy.tool import Tool
from bylaw.policy.yaml import Located

_TYPES = frozenset(get_args(FieldType))


class SchemaError(BylawError):
    """Entities, observations or changes of a pack do not fit together."""

    code = "BY404"


class Effect(Struct, frozen=True):
    """How an accepted write moves one thing of a snapshot world."""

    entity: str
    each: Callable[[Scope], Sequence[tuple[Any, Any]]] | None
    key: tuple[tuple[Getter, ...], ...]
    set: dict[str, tuple[str, Getter]]
    """Field -> (`is`, `plus`, `minus`, `append` or `of Entity.field`, value or key)."""
    delete: bool = False


class Schema(Struct, frozen=True):
    """What the tools of a pack show and change."""

    entities: dict[str, Entity]
    tools: dict[str, Tool]
    shows: dict[str, dict[str, tuple[Observation, ...]]]
    """Tool -> kind of thing -> how its results show it."""
    changes: dict[str, tuple[Change, ...]]
    effects: dict[str, tuple[Effect, ...]]

    def arguments(self, tools: Sequence[str]) -> frozenset[str]:
        """Declared argument names of the given tools."""
        return frozenset(name for tool in tools if tool in self.tools for name in self.tools[tool].parameters)


class SchemaReader:
    """Reads `entities.yaml` and what `tools.yaml` says of changes; keeps every fault it meets."""

    def __init__(self, source: Located | None, tools: Mapping[str, Tool], tool_source: Located | None) -> None:
        self._source = source
        self._data: dict[str, Any] = source.data if source is not None else {}
        self._tools = dict(tools)
        self._tool_source = tool_source
        self.faults: list[BylawError] = []
        self._entities: dict[str, Entity] = {}

    def read(self) -> Schema:
        """The compiled schema; look at `faults` before using it."""
        for name in self._data.keys() - {"entities", "context", "observations"}:
            self._fault(f"`{name}` is not a section", name, hint="sections are entities, context, observations")
        for name, body in self._section("entities").items():
            self._entities[name] = self._entity(name, body)
        if context := self._section("context"):
            fields = {name: self._field(name, body, ("context", name), "context") for name, body in context.items()}
            self._entities["context"] = Entity("context", (), fields)
        shows: dict[str, dict[str, list[Observation]]] = {}
        for tool, bodies in self._section("observations").items():
            if tool not in self._tools:
                self._fault(f"`{tool}` is not a tool", "observations", tool, hint="add it to tools.yaml")
            for index, body in enumerate(cast(list[Any], bodies) if isinstance(bodies, list) else [bodies]):
                observation = self._observation(body, ("observations", tool, index))
                if observation is not None:
                    shows.setdefault(tool, {}).setdefault(observation.entity.name, []).append(observation)
        writes = [tool for tool in self._tools.values() if tool.effect == "write"]
        return Schema(
            self._entities,
            self._tools,
            {tool: {kind: tuple(found) for kind, found in kinds.items()} for tool, kinds in shows.items()},
            {tool.name: tuple(self._changes(tool)) for tool in writes},
            {tool.name: tuple(self._effects(tool)) for tool in writes},
        )

    def _entity(self, name: str, body: Any) -> Entity:
        at = ("entities", name)
        if not isinstance(body, dict):
            self._fault(f"entity `{name}` must have key and fields", *at)
            return Entity(name, (), {})
        record = cast(dict[str, Any], body)
        self._known(record, {"key", "read", "fields", "fresh_for", "description"}, at)
        key = _names(record.get("key", []))
        raw: Any = record.get("fields") or {}
        fields = {field: self._field(field, spec, (*at, "fields", field), "system") for field, spec in raw.items()}
        for part in key:
            fields.setdefault(part, Field(part))
        return Entity(name, key, fields, self._lookup(record.get("read"), key, (*at, "read")), record.get("fresh_for"))

    def _lookup(self, body: Any, key: tuple[str, ...], at: tuple[str | int, ...]) -> Lookup | None:
        if body is None:
            return None
        if isinstance(body, str):
            body = {"tool": body, "arguments": {part: part for part in key}}
        tool, arguments = body.get("tool"), body.get("arguments", {})
        if tool not in self._tools:
            self._fault(f"`{tool}` is not a tool", *at)
        elif unknown := sorted(set(arguments) - set(self._tools[tool].parameters)):
            self._fault(f"`{tool}` has no argument `{unknown[0]}`", *at)
        return Lookup(str(tool), dict(arguments))

    def _field(self, name: str, body: Any, at: tuple[str | int, ...], origin: Any) -> Field:
        record = cast(dict[str, Any], {"type": body} if isinstance(body, str) else body or {})
        self._known(
            record,
            {"type", "values", "origin", "question", "from", "claims", "default", "private", "description"},
            at,
        )
        type_ = record.get("type", "enum" if "values" in record else "string")
        if type_ not in _TYPES:
            self._fault(f"`{type_}` is not a type", *at, hint=f"types are {', '.join(sorted(_TYPES))}")
            type_ = "string"
        origin = record.get("origin", origin)
        if origin not in ("system", "user", "context"):
            self._fault(f"origin `{origin}` is none of system, user, context", *at)
        sayings = tuple(
            Saying(s.get("argument", ""), s.get("says", ""), s.get("value")) for s in record.get("from", [])
        )
        for saying in sayings:
            self._pattern(saying.says or ".", at)
        claims = tuple(
            (value, tuple(str(phrase) for phrase in phrases))
            for value, phrases in cast(dict[str, list[str]], record.get("claims") or {}).items()
        )
        return Field(
            name,
            cast(FieldType, type_),
            tuple(str(value) for value in record.get("values", ())),
            origin,
            str(record.get("question", "")),
            sayings,
            claims,
            record.get("default", UNDECLARED),
            bool(record.get("private", False)),
        )

    def _observation(self, body: Any, at: tuple[str | int, ...]) -> Observation | None:
        if not isinstance(body, dict) or "as" not in cast(dict[str, Any], body):
            self._fault("an observation needs `as:` and the kind of thing it shows", *at)
            return None
        record = cast(dict[str, Any], body)
        self._known(record, {"as", "each", "key", "fields", "only", "when", "text", "absent"}, at)
        entity = self._entities.get(record["as"])
        if entity is None:
            self._fault(f"`{record['as']}` is not an entity", *at)
            return None
        fields: dict[str, Getter] = {}
        for name, path in cast(dict[str, Any], record.get("fields") or {}).items():
            if name not in entity.fields:
                self._fault(f"`{entity.name}` has no field `{name}`", *at)
            fields[name] = self._value(path, at)
        when = record.get("when")
        return Observation(
            entity,
            self._each(record.get("each"), at),
            self._key(entity, record.get("key"), at),
            fields,
            bool(record.get("only", False)),
            self._when(when, at) if when else None,
            self._pattern(record["text"], at) if "text" in record else None,
            self._pattern(record["absent"], at) if "absent" in record else None,
        )

    def _when(self, body: Any, at: tuple[str | int, ...]) -> Callable[[Scope], bool] | None:
        path = self._value(body.get("path", "$"), at)
        if "is" in body:
            wanted = body["is"]
            return lambda scope: path(scope) == wanted
        if "in" in body:
            allowed = body["in"]
            return lambda scope: path(scope) in allowed
        self._fault("`when` needs `is` or `in`", *at)
        return None

    def _key(self, entity: Entity, body: Any, at: tuple[str | int, ...]) -> tuple[tuple[Getter, ...], ...]:
        if isinstance(body, str):
            body = {entity.key[0]: body} if entity.key else {}
        given: dict[str, Any] = body or {}
        for name in given.keys() - set(entity.key):
            self._fault(f"`{name}` is not a key of `{entity.name}`", *at)
        return tuple(
            (self._value(given[part], at),)
            if part in given
            else (compile_path(f"$['{part}']"), compile_path(f"$args['{part}']"))
            for part in entity.key
        )

    def _changes(self, tool: Tool) -> list[Change]:
        at = ("tools", tool.name, "changes")
        if tool.changes is None:
            keyed = [e for e in self._entities.values() if e.key and set(e.key) <= set(tool.parameters)]
            return [Change(e.name, None, self._argument_key(e), None) for e in keyed]
        found: list[Change] = []
        for body in tool.changes:
            record = _change_record(body)
            entity = self._entities.get(record.get("as", ""))
            if entity is None:
                self._tool_fault(f"`{body}` names no entity", *at)
                continue
            fields = _names(record.get("fields", ["*"]))
            for name in set(fields) - {"*", "exists"} - set(entity.fields):
                self._tool_fault(f"`{entity.name}` has no field `{name}`", *at)
            if "key" in record:
                key = self._key(entity, record["key"], at)
            else:
                key = self._argument_key(entity) if set(entity.key) <= set(tool.parameters) else None
            each = self._each(record.get("each"), at)
            found.append(Change(entity.name, each, key, None if "*" in fields else frozenset(fields)))
        return found

    def _argument_key(self, entity: Entity) -> tuple[tuple[Getter, ...], ...]:
        return tuple((compile_path(f"$args['{part}']"),) for part in entity.key)

    def _effects(self, tool: Tool) -> list[Effect]:
        at = ("tools", tool.name, "effects")
        found: list[Effect] = []
        for body in tool.effects:
            entity = self._entities.get(body.get("as", ""))
            if entity is None:
                self._tool_fault(f"`{body.get('as')}` is not an entity", *at)
                continue
            changes: dict[str, tuple[str, Getter]] = {}
            for name, value in cast(dict[str, Any], body.get("set") or {}).items():
                if name not in entity.fields:
                    self._tool_fault(f"`{entity.name}` has no field `{name}`", *at)
                how = "is"
                if isinstance(value, dict):
                    record = cast(dict[str, Any], value)
                    how, value = next(iter(record.items()))
                    if how == "of":
                        how, value = f"of {value}", record.get("key")
                    elif how not in ("is", "plus", "minus", "append"):
                        self._tool_fault(f"`{how}` is none of is, plus, minus, append, of", *at)
                changes[name] = (how, self._value(value, at))
            key = self._key(entity, body.get("key"), at)
            each = self._each(body.get("each"), at)
            found.append(Effect(entity.name, each, key, changes, bool(body.get("delete", False))))
        return found

    def _value(self, path: Any, at: tuple[str | int, ...]) -> Getter:
        if not isinstance(path, str) or not path.startswith(("$", "=")):
            return lambda scope: path
        try:
            return compile_path(path)
        except PathError as error:
            self._fault(error.message, *at, hint=error.hint)
            return lambda scope: None

    def _each(self, path: Any, at: tuple[str | int, ...]) -> Callable[[Scope], Sequence[tuple[Any, Any]]] | None:
        if path is None:
            return None
        try:
            return compile_each(str(path))
        except PathError as error:
            self._fault(error.message, *at, hint=error.hint)
            return None

    def _pattern(self, text: Any, at: tuple[str | int, ...]) -> re.Pattern[str] | None:
        try:
            return re.compile(str(text), re.IGNORECASE)
        except re.error as error:
            self._fault(f"`{text}` is not a pattern: {error}", *at)
            return None

    def _section(self, name: str) -> dict[str, Any]:
        body: Any = self._data.get(name) or {}
        if not isinstance(body, dict):
            self._fault(f"`{name}` must be a mapping", name)
            return {}
        return cast(dict[str, Any], body)

    def _known(self, record: Mapping[str, Any], names: set[str], at: tuple[str | int, ...]) -> None:
        for name in sorted(record.keys() - names):
            self._fault(f"`{name}` means nothing here", *at, name, hint=f"known: {', '.join(sorted(names))}")

    def _fault(self, message: str, *at: str | int, hint: str = "") -> None:
        place = self._source.place(*at) if self._source is not None else "entities.yaml"
        self.faults.append(SchemaError(message, place=place, hint=hint))

    def _tool_fault(self, message: str, *at: str | int, hint: str = "") -> None:
        place = self._tool_source.place(*at) if self._tool_source is not None else "tools.yaml"
        self.faults.append(SchemaError(message, place=place, hint=hint))


def _names(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(str(name) for name in value or ())


def _change_record(body: Any) -> dict[str, Any]:
    if isinstance(body, dict):
        return cast(dict[str, Any], body)
    name, _, field = str(body).partition(".")
    return {"as": name, "fields": [field or "*"]}
