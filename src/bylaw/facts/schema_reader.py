"""A pack's entities, observations and changes, compiled once from their YAML."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast, get_args

from msgspec import UNSET

from bylaw.errors import BylawError, GuardError
from bylaw.facts.entity import Entity, Field, FieldType, Origin, ReadTool, Saying
from bylaw.facts.observation import Change, Observation
from bylaw.facts.path import NOTHING, Getter, PathError, PathScope, compile_each, compile_misfit, compile_path
from bylaw.facts.schema import Schema
from bylaw.facts.stored import Stored
from bylaw.facts.value import key_of, names_several
from bylaw.facts.world_change import Expression, WorldChange
from bylaw.facts.written import (
    EntitiesFile,
    FieldBody,
    WrittenEntity,
    WrittenField,
    WrittenKey,
    WrittenObservation,
    WrittenRead,
    WrittenSaying,
    WrittenStored,
    WrittenWhen,
)
from bylaw.policy.pattern import Pattern, PatternError, compile_pattern
from bylaw.policy.reading import Scalar, read_record
from bylaw.policy.tool import Tool, WrittenChange
from bylaw.policy.yaml import Located, YamlPath

_TYPES = frozenset(get_args(FieldType))
_NOT_THERE = r"not found|no such|do(es)? not exist|doesn't exist"
"""How look-ups say that there is nothing to show."""


class SchemaError(BylawError):
    """Entities, observations or changes of a pack do not fit together."""

    code = "BY404"


class SchemaReader:
    """Reads `entities.yaml` and what `tools.yaml` says of changes; keeps every fault it meets."""

    def __init__(
        self,
        source: Located | None,
        tools: Mapping[str, Tool],
        tool_source: Located | None,
        compile: Callable[[str, str], Expression] | None = None,
    ) -> None:
        self._compile = compile
        """Makes an expression of its text and its place; this area does not know the language."""
        self._file, self._source, self.faults = read_record(source or Located("entities.yaml", {}, {}), EntitiesFile)
        self._tools = dict(tools)
        self._tool_source = tool_source
        self._entities: dict[str, Entity] = {}

    def read(self) -> Schema:
        """The compiled schema; look at `faults` before using it."""
        for name, body in self._file.entities.items():
            self._entities[name] = self._entity(name, body or WrittenEntity())
        if context := self._file.context:
            fields = {name: self._field(name, body, ("context", name), "context") for name, body in context.items()}
            self._entities["context"] = Entity("context", (), fields)
        shows: dict[str, dict[str, list[Observation]]] = {}
        for tool, bodies in self._file.observations.items():
            if tool not in self._tools:
                self._fault(f"`{tool}` is not a tool", "observations", tool, hint="add it to tools.yaml")
            for index, body in enumerate(_listed(bodies)):
                observation = self._observation(body, ("observations", tool, index))
                if observation is not None:
                    shows.setdefault(tool, {}).setdefault(observation.entity.name, []).append(observation)
        for entity in list(self._entities.values()):
            # A look-up shows the thing that it looks up, unless its observations say what it shows.
            tool = entity.read.tool if entity.read is not None else ""
            if tool in self._tools and tool not in self._file.observations:
                shown = self._observation(WrittenObservation(entity.name, absent=_NOT_THERE), ("entities", entity.name))
                shows.setdefault(tool, {}).setdefault(entity.name, []).extend([shown] if shown else ())
        writes = [tool for tool in self._tools.values() if tool.effect == "write"]
        return Schema(
            self._entities,
            self._tools,
            {tool: {kind: tuple(found) for kind, found in kinds.items()} for tool, kinds in shows.items()},
            {tool.name: tuple(self._changes(tool)) for tool in writes},
            {tool.name: tuple(self._effects(tool)) for tool in writes},
            stored={name: tuple(self._stored(name, body)) for name, body in self._file.world.items()},
        )

    def _stored(self, name: str, bodies: WrittenStored | list[WrittenStored] | None) -> Iterator[Stored]:
        """Where things of one kind stand in a database."""
        for index, body in enumerate(_listed(bodies)):
            at = ("world", name, index)
            if body.of is not None and body.each is None:
                self._fault("`of` holds things: say with `each` where they stand in it", *at)
            for part in (body.of, body.each):
                self._each(part, at)
            shown = WrittenObservation(name, key=body.key, fields=body.fields, only=body.only, when=body.when)
            observation = self._observation(shown, at)
            if body.list:
                self._must_list(name, body, _listed(bodies), at)
            if observation is not None:
                table, each = str(body.table), str(body.each or "")
                each = each or ("$[*]" if table else "")
                yield Stored(observation, table, str(body.of or ""), each, str(body.list))

    def _must_list(self, name: str, body: WrittenStored, places: Sequence[WrittenStored], at: YamlPath) -> None:
        entity = self._entities.get(name)
        field = entity.fields.get(str(body.list)) if entity is not None else None
        if entity is not None and (field is None or field.type != "list"):
            hint = f"declare it: `{body.list}: list`"
            self._fault(f"`{body.list}` is not a list of `{name}`", *at, hint=hint)
        if all(each.list for each in places):
            hint = f"give the place of each `{name}` first: one that no item names has an empty list"
            self._fault(f"nothing says which `{name}` there are", *at, hint=hint)
        if body.fields:
            self._fault("items of a list are taken as they are, without `fields`", *at)

    def _entity(self, name: str, body: WrittenEntity) -> Entity:
        at = ("entities", name)
        key = _names(body.key)
        origin: Any = body.origin
        if origin not in ("system", "conversation"):
            self._fault(f"origin `{origin}` is neither system nor conversation", *at)
        fields = {
            field: self._field(field, spec, (*at, "fields", field), origin) for field, spec in body.fields.items()
        }
        for part in key:
            fields.setdefault(part, Field(part))
        if body.complete and origin != "conversation":
            hint = "a tool may know of others; give it `origin: conversation` if only conversations make such things"
            self._fault(f"`{name}` cannot be complete", *at, hint=hint)
        read = self._lookup(body.read, key, (*at, "read"))
        return Entity(name, key, fields, read, body.fresh_for, origin, body.complete)

    def _lookup(self, body: Scalar | WrittenRead | None, key: tuple[str, ...], at: YamlPath) -> ReadTool | None:
        if body is None:
            return None
        if not isinstance(body, WrittenRead):
            body = WrittenRead(body, {part: part for part in key})
        tool, arguments = str(body.tool), {name: str(part) for name, part in body.arguments.items()}
        if tool not in self._tools:
            self._fault(f"`{tool}` is not a tool", *at)
        elif unknown := sorted(set(arguments) - set(self._tools[tool].parameters)):
            takes = [f"`{name}`" for name in self._tools[tool].parameters]
            hint = (
                f"it takes {', '.join(takes) or 'none'}; write `{{tool: {tool}, arguments: {{argument: key field}}}}`,"
                " and `arguments: {}` where the key does not tell them"
            )
            self._fault(f"`{tool}` has no argument `{unknown[0]}`", *at, hint=hint)
        for part in sorted(set(arguments.values()) - set(key)):
            self._fault(f"`{part}` is not a key", *at, hint="arguments are named, then the key field each takes")
        return ReadTool(tool, arguments)

    def _field(self, name: str, body: FieldBody, at: YamlPath, origin: Any) -> Field:
        if isinstance(body, list):
            if len(body) == 1 and body[0] in _TYPES:
                self._fault(f"a list is the words of an enumeration, and `{body[0]}` is a type", *at)
            body = WrittenField(values=body)
        record = body if isinstance(body, WrittenField) else WrittenField(type=body)
        type_ = record.type if record.type is not None else "string" if record.values is None else "enum"
        if type_ not in _TYPES:
            self._fault(f"`{type_}` is not a type", *at, hint=f"types are {', '.join(sorted(_TYPES))}")
            type_ = "string"
        origin = record.origin or origin
        if origin not in get_args(Origin):
            self._fault(f"origin `{origin}` is not one of {', '.join(get_args(Origin))}", *at)
            origin = "system"
        sayings = tuple(map(_saying, record.from_))
        for saying in sayings:
            if not saying.argument and not saying.says:
                self._fault("`from` needs `argument` or `says`", *at)
            if saying.but_not and not saying.says:
                self._fault("`but_not` needs `says` beside it", *at)
            if saying.about and not saying.says:
                self._fault("`about` needs `says` beside it", *at)
            elif saying.about and not any(saying.about in tool.parameters for tool in self._tools.values()):
                self._fault(f"no tool has an argument `{saying.about}`", *at)
            self._pattern(saying.says, at, but_not=saying.but_not)
        return Field(
            name,
            cast(FieldType, type_),
            tuple(map(str, record.values or ())),
            origin,
            str(record.question),
            sayings,
            tuple((value, tuple(map(str, said))) for value, said in record.claims.items() if said is not None),
            record.default,
            record.private,
        )

    def _observation(self, body: WrittenObservation, at: YamlPath) -> Observation | None:
        if body.as_ is None:
            self._fault("an observation needs `as:` and the kind of thing it shows", *at)
            return None
        entity = self._entities.get(str(body.as_))
        if entity is None:
            self._fault(f"`{body.as_}` is not an entity", *at)
            return None
        for name in body.fields.keys() - entity.fields.keys():
            self._fault(f"`{entity.name}` has no field `{name}`", *at)
        return Observation(
            entity,
            self._each(body.each, at),
            self._key(entity, body.key, at),
            {name: self._value(path, at) for name, path in body.fields.items()},
            body.only,
            self._when(body.when, at) if body.when is not None else None,
            self._pattern(body.text, at) if body.text is not None else None,
            self._pattern(body.absent, at) if body.absent is not None else None,
        )

    def _when(self, body: WrittenWhen, at: YamlPath) -> Callable[[PathScope], bool] | None:
        path = self._value(body.path, at)
        if body.is_ is not UNSET:
            return lambda scope: path(scope) == body.is_
        if body.in_ is not None:
            allowed = body.in_
            return lambda scope: path(scope) in allowed
        self._fault("`when` needs `is` or `in`", *at)
        return None

    def _key(self, entity: Entity, body: WrittenKey | None, at: YamlPath) -> tuple[tuple[Getter, ...], ...]:
        if is_through(entity, body):
            return ((self._through(cast(dict[str, Scalar], body), at),),)
        if isinstance(body, dict):
            given = body
        else:
            given = {entity.key[0]: body} if entity.key and body is not None else {}
        for name in given.keys() - set(entity.key):
            self._fault(f"`{name}` is not a key of `{entity.name}`", *at)
        return tuple(
            (self._value(given[part], at),)
            if part in given
            else (compile_path(f"$['{part}']"), compile_path(f"$args['{part}']"))
            for part in entity.key
        )

    def _through(self, body: Mapping[str, Scalar], at: YamlPath) -> Getter:
        """The key of a thing that a field of another one names: `{of: Line.account_id, key: $args.line_id}`."""
        name, _, field = str(body["of"]).partition(".")
        other = self._entities.get(name)
        if other is None or field not in other.fields:
            self._fault(f"`{body['of']}` is not a field", *at, hint="write it like `Line.account_id`")
            return lambda scope: NOTHING
        for each in body.keys() - {"of", "key"}:
            self._fault(f"`{each}` is not known beside `of`", *at, hint="known: key")
        if at[:1] != ("tools",):
            self._fault("a result shows things by its own values, not through others", *at)
        if len(other.key) != 1:
            self._fault(f"`{name}` has not just one key field", *at)
            return lambda scope: NOTHING
        given = body.get("key", f"$args['{other.key[0]}']")
        inner, read = self._value(given, at), other.fields[field]

        def found(scope: PathScope) -> Any:
            part = inner(scope)
            if scope.find is None or part is NOTHING or part is None or names_several(part):
                return NOTHING
            value = scope.find(name, key_of([part]), read.name)
            return NOTHING if value is None else value

        return found

    def _changes(self, tool: Tool) -> list[Change]:
        at = ("tools", tool.name, "changes")
        if tool.changes is None:
            if tool.effects:
                faults = len(self.faults)
                told = list(self._told_by_effects(tool))
                del self.faults[faults:]  # told where effects are read
                return told
            keyed = [e for e in self._entities.values() if e.key and set(e.key) <= set(tool.parameters)]
            return [Change(e.name, None, self._argument_key(e), None) for e in keyed]
        found: list[Change] = []
        for said in tool.changes:
            body = said if isinstance(said, WrittenChange) else _change(str(said))
            entity = self._entities.get(str(body.as_))
            if entity is None:
                self._fault(f"`{body.as_ if body is said else said}` does not name an entity", *at)
                continue
            fields = _names(body.fields)
            for name in sorted(set(fields) - {"*", "exists"} - set(entity.fields)):
                self._fault(f"`{entity.name}` has no field `{name}`", *at)
            if body.key is not None:
                key = self._key(entity, body.key, at)
            else:
                key = self._argument_key(entity) if set(entity.key) <= set(tool.parameters) else None
            each = self._each(body.each, at)
            misfit = compile_misfit(str(body.each)) if each is not None else None
            changed = None if "*" in fields else frozenset(fields)
            if body is not said and fields == ("*",) and "." in str(said):
                changed = frozenset(entity.fields)
            by_result = "$result" in f"{body.each} {body.key}"
            when = self._expression(body.when, at) if body.when is not None else None
            found.append(Change(entity.name, each, key, changed, misfit, by_result, when))
        return found

    def _told_by_effects(self, tool: Tool) -> Iterator[Change]:
        """What a write makes stale that says only what it does."""
        at = ("tools", tool.name, "effects")
        for body in tool.effects:
            entity = self._entities.get(str(body.as_))
            if entity is not None:
                fields = None if body.delete else frozenset(body.set)
                each = self._each(body.each, at)
                misfit = compile_misfit(str(body.each)) if each is not None else None
                by_result = "$result" in f"{body.each} {body.key}"
                when = self._expression(body.when, at) if body.when is not None else None
                yield Change(entity.name, each, self._key(entity, body.key, at), fields, misfit, by_result, when)

    def _argument_key(self, entity: Entity) -> tuple[tuple[Getter, ...], ...]:
        return tuple((compile_path(f"$args['{part}']"),) for part in entity.key)

    def _effects(self, tool: Tool) -> list[WorldChange]:
        at = ("tools", tool.name, "effects")
        found: list[WorldChange] = []
        for body in tool.effects:
            entity = self._entities.get(str(body.as_))
            if entity is None:
                self._fault(f"`{body.as_}` is not an entity", *at)
                continue
            changes: dict[str, tuple[str, Getter]] = {}
            computed: dict[str, Expression] = {}
            for name, value in body.set.items():
                if name not in entity.fields:
                    self._fault(f"`{entity.name}` has no field `{name}`", *at)
                if isinstance(value, dict) and "to" in value:
                    if (expression := self._expression(cast(Any, value)["to"], at)) is not None:
                        computed[name] = expression
                    continue
                how, value = self._how(name, value, at)
                changes[name] = (how, self._value(value, at))
            key = self._key(entity, body.key, at)
            each = self._each(body.each, at)
            lacking = [part for part in entity.key if part not in tool.parameters]
            if body.key is None and each is None and lacking and not tool.others:
                hint = f"give its `key`: `$args....`, `$result.{lacking[0]}`, or `{{of: Other.{lacking[0]}}}`"
                self._fault(f"nothing says which `{entity.name}` moves", *at, hint=hint)
            when = self._expression(body.when, at) if body.when is not None else None
            passes = is_through(entity, body.key)
            found.append(WorldChange(entity.name, each, key, changes, body.delete, when, computed, passes))
        return found

    def _expression(self, text: Any, at: YamlPath) -> Expression | None:
        if self._compile is None:
            self._fault("expressions are not read here", *at)
            return None
        try:
            return self._compile(str(text), self._place(*at))
        except GuardError as error:
            self.faults.append(error)
            return None

    def _how(self, field: str, value: Any, at: YamlPath) -> tuple[str, Any]:
        """How an effect moves a field, and by what."""
        if not isinstance(value, dict):
            return "is", value
        record = cast(dict[str, Any], value)
        if "of" in record:
            name, _, other = str(record["of"]).partition(".")
            if name not in self._entities or other not in self._entities[name].fields:
                self._fault(f"`{record['of']}` is not a field", *at, hint="write it like `Slot.starts_at`")
            elif len(self._entities[name].key) != 1:
                self._fault(f"`{name}` does not have exactly one key field", *at)
            return f"of {record['of']}", record.get("key")
        if record.keys() == {"remove", "by"}:
            return f"remove by {record['by']}", record["remove"]
        how = next(iter(record), "")
        if len(record) != 1 or how not in ("is", "plus", "minus", "append", "extend", "remove"):
            hint = "give one of is, to, plus, minus, append, extend, remove, or of and key"
            self._fault(f"nothing says how `{field}` moves", *at, hint=hint)
        return how, record.get(how)

    def _value(self, path: Any, at: YamlPath) -> Getter:
        if not isinstance(path, str) or not path.startswith(("$", "=")):
            return lambda scope: path
        if path.startswith("$of") and at[:1] != ("world",):
            self._fault(f"`{path}` means something only under `world:`", *at)
        try:
            return compile_path(path)
        except PathError as error:
            self._fault(error.message, *at, hint=error.hint)
            return lambda scope: None

    def _each(self, path: Any, at: YamlPath) -> Callable[[PathScope], Sequence[tuple[Any, Any]]] | None:
        if path is None:
            return None
        try:
            return compile_each(str(path))
        except PathError as error:
            self._fault(error.message, *at, hint=error.hint)
            return None

    def _pattern(self, text: Any, at: YamlPath, *, but_not: str = "") -> Pattern | None:
        try:
            return compile_pattern(str(text), but_not)
        except PatternError as error:
            self.faults.append(PatternError(error.message, place=self._place(*at), hint=error.hint))
        return None

    def _fault(self, message: str, *at: str | int, hint: str = "") -> None:
        self.faults.append(SchemaError(message, place=self._place(*at), hint=hint))

    def _place(self, *at: str | int) -> str:
        if at[:1] != ("tools",):
            return self._source.place(*at)
        return self._tool_source.place(*at) if self._tool_source is not None else "tools.yaml"


_Body = TypeVar("_Body")


def _listed(bodies: _Body | list[_Body] | None) -> list[_Body]:
    """One or several, as a list."""
    if isinstance(bodies, list):
        return cast(list[_Body], bodies)
    return [] if bodies is None else [bodies]


def _names(value: Scalar | list[Scalar]) -> tuple[str, ...]:
    return tuple(map(str, _listed(value)))


def is_through(entity: Entity, body: Any) -> bool:
    """Whether a key is what a field of another thing says."""
    return isinstance(body, dict) and "of" in body and "of" not in entity.key


def _change(text: str) -> WrittenChange:
    """`Order.state`, or `Order` for all of it."""
    name, _, field = text.partition(".")
    return WrittenChange(name, field or "*")


def _saying(record: WrittenSaying) -> Saying:
    return Saying(str(record.argument), str(record.says), record.value, str(record.but_not), str(record.about))
