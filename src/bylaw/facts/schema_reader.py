from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, cast, get_args

from msgspec import UNSET

from bylaw.errors import BylawError, GuardError, meant
from bylaw.facts.entity import PLACE, Entity, Field, FieldType, Origin, ReadTool, Saying
from bylaw.facts.observation import (
    NOTHING,
    Getter,
    ItemPath,
    Observation,
    PageObservations,
    PathError,
    PathScope,
    compile_path,
    first_name,
)
from bylaw.facts.schema import Change, Expression, Schema, Stored
from bylaw.facts.value import CURRENCIES, key_of, names_several
from bylaw.facts.written import (
    EntitiesFile,
    FieldBody,
    WrittenEntity,
    WrittenField,
    WrittenKey,
    WrittenObservation,
    WrittenRead,
    WrittenStored,
    WrittenWhen,
    listed,
    listed_names,
)
from bylaw.policy.pattern import Pattern, PatternError, compile_pattern
from bylaw.policy.tool import Tool, WrittenChange, WrittenEffect
from bylaw.policy.yaml import Located, Scalar, YamlPath, read_record

if TYPE_CHECKING:
    from bylaw.actions.action import Actions


class SchemaError(BylawError):
    """Raised if the entities, observations or changes of a pack contradict each other."""

    code = "BY404"


class PathReader:
    """Compiles paths and expressions from `entities.yaml` and `tools.yaml`. All errors are collected."""

    def __init__(
        self,
        source: Located,
        tool_source: Located | None,
        faults: list[BylawError],
        compile: Callable[[str, str], Expression] | None,
    ) -> None:
        self.entities: dict[str, Entity] = {}
        self.faults = faults
        self._source, self._tool_source = source, tool_source
        self._compile = compile
        """Compiles an expression, given its text and its place. It is passed in, because this package must not import
        `guard`.
        """

    def value(self, path: Any, at: YamlPath) -> Getter:
        """Compile a path. A value that is not a path is a constant."""
        if not isinstance(path, str) or not path.startswith(("$", "=")):
            return lambda scope: path
        if path.startswith("$of") and at[:1] != ("world",):
            self.fault(f"`{path}` is allowed only under `world:`", *at)
        with self.noting(PathError, at):
            return compile_path(path)
        return lambda scope: None

    def each(self, path: Any, at: YamlPath) -> ItemPath | None:
        """Compile a path with `*` to a function that yields the items with their keys."""
        with self.noting(PathError, at):
            return ItemPath(str(path)) if path is not None else None
        return None

    def key(self, entity: Entity, body: WrittenKey | None, at: YamlPath) -> tuple[tuple[Getter, ...], ...]:
        """Compile the paths to the parts of a key."""
        if is_through(entity, body):
            return ((self.through(cast(dict[str, Scalar], body), at),),)
        given = body if isinstance(body, dict) else {name: body for name in entity.key[:1] if body is not None}
        for name in given.keys() - set(entity.key):
            self.fault(f"`{name}` is not a key of `{entity.name}`", *at)
        return tuple(
            (self.value(given[part], at),)
            if part in given
            else (compile_path(f"$['{part}']"), compile_path(f"$args['{part}']"))
            for part in entity.key
        )

    def through(self, body: Mapping[str, Scalar], at: YamlPath) -> Getter:
        """Compile a reference to a field of another entity, such as `{of: Line.account_id, key: $args.line_id}`."""
        name, _, field = str(body["of"]).partition(".")
        other = self.entities.get(name)
        if other is None or field not in other.fields:
            self.fault(f"`{body['of']}` is not a field", *at, hint="write it like `Line.account_id`")
            return lambda scope: NOTHING
        for each in body.keys() - {"of", "key"}:
            self.fault(f"`{each}` is not allowed together with `of`", *at, hint="known: key")
        if at[:1] not in (("tools",), ("actions",)):
            self.fault("an observation must take keys from the result itself, not through another entity (`of`)", *at)
        if len(other.key) != 1:
            self.fault(f"`{name}` does not have exactly one key field", *at)
            return lambda scope: NOTHING
        given = body.get("key", f"$args['{other.key[0]}']")
        inner, read = self.value(given, at), other.fields[field]

        def found(scope: PathScope) -> Any:
            part = inner(scope)
            if scope.find is None or part is NOTHING or part is None or names_several(part):
                return NOTHING
            return scope.find(name, key_of([part]), read.name)

        return found

    def when(self, body: WrittenWhen, at: YamlPath) -> Callable[[PathScope], bool] | None:
        path = self.value(body.path, at)
        if body.is_ is not UNSET:
            return lambda scope: path(scope) == body.is_
        if body.in_ is not None:
            allowed = body.in_
            return lambda scope: path(scope) in allowed
        if (exists := body.exists) is not None:
            return lambda scope: (path(scope) not in (NOTHING, None)) == exists
        self.fault("`when` needs `is`, `in` or `exists`", *at)
        return None

    def pattern(self, text: Any, at: YamlPath, *, but_not: str = "") -> Pattern | None:
        try:
            return compile_pattern(str(text), but_not)
        except PatternError as error:
            self.faults.append(PatternError(error.message, place=self.place(*at), hint=error.hint))
        return None

    def expression(self, text: Any, at: YamlPath) -> Expression | None:
        if self._compile is None:
            self.fault("expressions are not allowed here", *at)
            return None
        try:
            return self._compile(str(text), self.place(*at))
        except GuardError as error:
            self.faults.append(error)
            return None

    @contextmanager
    def noting(self, kind: type[BylawError], at: YamlPath) -> Generator[None, None, None]:
        """Collect an error of this kind instead of raising it."""
        try:
            yield
        except kind as error:
            self.fault(error.message, *at, hint=error.hint)

    def fault(self, message: str, *at: str | int, hint: str = "", lacks: str = "") -> None:
        self.faults.append(SchemaError(message, place=self.place(*at), hint=hint, lacks=lacks))

    def no_tool(self, tool: str, known: Iterable[str], *at: str | int) -> None:
        """Report a reference to a tool that tools.yaml does not declare."""
        self.fault(f"`{tool}` is not a tool", *at, hint=meant(tool, known), lacks=f"tool {tool}")

    def entity(self, said: Any, fields: Iterable[str], at: YamlPath) -> Entity | None:
        """Return a declared entity. Report an unknown entity, and fields that the entity does not have."""
        entity = self.entities.get(str(said))
        if entity is None:
            self.fault(f"`{said}` is not an entity", *at, hint=meant(str(said), self.entities), lacks=f"entity {said}")
            return None
        for name in fields:
            if name not in entity.fields:
                message, lacks = f"`{entity.name}` has no field `{name}`", f"field {entity.name}.{name}"
                self.fault(message, *at, hint=meant(name, entity.fields), lacks=lacks)
        return entity

    def place(self, *at: str | int) -> str:
        """Return a place in the pack's files."""
        if at[:1] not in (("tools",), ("actions",)):
            return self._source.place(*at)
        return self._tool_source.place(*at) if self._tool_source is not None else "tools.yaml"


def is_through(entity: Entity, body: Any) -> bool:
    """Whether the key refers to a field of another entity."""
    return isinstance(body, dict) and "of" in body and "of" not in entity.key


class ChangeReader:
    def __init__(self, paths: PathReader) -> None:
        self._paths = paths

    def changes(self, tool: Tool, effects: list[Change]) -> list[Change]:
        """Return the declared changes of a tool. If it declares none, its effects are its changes."""
        at = (_section(tool), tool.name, "changes")
        if tool.changes is None:
            if tool.effects:
                return effects
            # An entity without key fields exists only once, so any write may change it.
            kinds = [e for e in self._paths.entities.values() if not e.is_always_there]
            return [Change(e.name, key=_argument_key(e)) for e in kinds if set(e.key) <= set(tool.parameters)]
        found: list[Change] = []
        for said in tool.changes:
            body = said if isinstance(said, WrittenChange) else _change(str(said))
            fields = listed_names(body.fields)
            entity = self._paths.entity(body.as_, sorted({*fields} - {"*", "exists"}), at)
            if entity is None:
                continue
            if body.key is not None:
                key = self._paths.key(entity, body.key, at)
            else:
                key = _argument_key(entity) if set(entity.key) <= set(tool.parameters) else None
            changed = None if "*" in fields else frozenset(fields)
            if body is not said and fields == ("*",) and "." in str(said):
                changed = frozenset(entity.fields)
            each, when = self._paths.each(body.each, at), self._when(body, at)
            found.append(Change(entity.name, each, key, changed, _is_by_result(body), when=when))
        self._moved_unsaid(tool, {change.entity for change in found})
        return found

    def _moved_unsaid(self, tool: Tool, said: set[str]) -> None:
        """Report entities that an effect changes but `changes` leaves out, because their old values would wrongly stay
        valid.
        """
        made = [
            body for body in tool.effects if _is_by_result(body)
        ]  # A new entity was never shown, so nothing is stale.
        for name in dict.fromkeys(str(body.as_) for body in tool.effects if body not in made):
            if name in self._paths.entities and name not in said:
                said_so = f"`effects` change `{name}`, which `changes` does not list"
                hint = f"add `{name}` to `changes`, or remove `changes` so that the `effects` say what changes"
                self._paths.fault(said_so, _section(tool), tool.name, "changes", hint=hint)

    def _when(self, body: WrittenChange | WrittenEffect, at: YamlPath) -> Expression | None:
        return self._paths.expression(body.when, at) if body.when is not None else None

    def effects(self, tool: Tool) -> list[Change]:
        at = (_section(tool), tool.name, "effects")
        found: list[Change] = []
        for body in tool.effects:
            entity = self._paths.entity(body.as_, body.set, at)
            if entity is None:
                continue
            changes: dict[str, tuple[str, Getter]] = {}
            computed: dict[str, Expression] = {}
            for name, value in body.set.items():
                if isinstance(value, dict) and "to" in value:
                    if (expression := self._paths.expression(cast(Any, value)["to"], at)) is not None:
                        computed[name] = expression
                    continue
                how, value = self._how(name, value, at)
                changes[name] = (how, self._given(value, at))
            key = self._paths.key(entity, body.key, at)
            each = self._paths.each(body.each, at)
            lacking = [part for part in entity.key if part not in tool.parameters]
            if body.key is None and each is None and lacking and not tool.others:
                hint = f"add its `key`: `$args....`, `$result.{lacking[0]}`, or `{{of: Other.{lacking[0]}}}`"
                self._paths.fault(f"the effect does not say which `{entity.name}` changes", *at, hint=hint)
            fields = None if body.delete else frozenset((*changes, *computed))
            when, by_result, passes = self._when(body, at), _is_by_result(body), is_through(entity, body.key)
            found.append(
                Change(entity.name, each, key, fields, by_result, passes, when, changes, computed, body.delete)
            )
        return found

    def _how(self, field: str, value: Any, at: YamlPath) -> tuple[str, Any]:
        if not isinstance(value, dict):
            return "is", value
        record = cast(dict[str, Any], value)
        if "of" in record:
            return "is", record
        if record.keys() == {"remove", "by"}:
            return f"remove by {record['by']}", record["remove"]
        how = next(iter(record), "")
        if len(record) != 1 or how not in ("is", "plus", "minus", "append", "extend", "remove"):
            hint = "use one of is, to, plus, minus, append, extend and remove, or use of and key together"
            self._paths.fault(f"`{field}` has no operation", *at, hint=hint)
        return how, record.get(how)

    def _given(self, value: Any, at: YamlPath) -> Getter:
        if isinstance(value, dict):
            if "of" in value:
                return self._paths.through(cast(dict[str, Any], value), at)
            hint = "use a path, a value, or `{of: Plan.price, key: $args.plan_id}`"
            self._paths.fault(f"`{value}` is not a value", *at, hint=hint)
        return self._paths.value(value, at)


def _section(tool: Tool) -> str:
    return "actions" if tool.of else "tools"


def _is_by_result(body: WrittenChange | WrittenEffect) -> bool:
    return "$result" in f"{body.each} {body.key}"


def _argument_key(entity: Entity) -> tuple[tuple[Getter, ...], ...]:
    return tuple((compile_path(f"$args['{part}']"),) for part in entity.key)


def _change(text: str) -> WrittenChange:
    """Parse `Order.state` into an entity and a field. `Order` means all fields."""
    name, _, field = text.partition(".")
    return WrittenChange(name, field or "*")


_TYPES = frozenset(get_args(FieldType))
_NOT_THERE = r"not found|no such|do(es)? not exist|doesn't exist"
"""Matches messages with which look-ups report that they found nothing."""


class SchemaReader:
    """Reads `entities.yaml` and the changes in `tools.yaml`. All errors are collected."""

    def __init__(
        self,
        source: Located | None,
        tools: Mapping[str, Tool],
        tool_source: Located | None,
        compile: Callable[[str, str], Expression] | None = None,
        compared_with_none: Collection[str] = (),
        actions: "Actions | None" = None,
    ) -> None:
        """`compared_with_none` contains the fields that guards compare with None."""
        self._actions = actions
        self._pages = actions.pages if actions is not None else None
        self._file, located, self.faults = read_record(source or Located("entities.yaml", {}, {}), EntitiesFile)
        self._tools = dict(tools)
        self._compared_with_none = compared_with_none
        self._paths = PathReader(located, tool_source, self.faults, compile)

    def read(self) -> Schema:
        """Compile the schema. It may be used only if `faults` is empty."""
        for name, body in self._file.entities.items():
            self._paths.entities[name] = self._entity(name, body or WrittenEntity())
        if context := self._file.context:
            fields = {name: self._field(name, body, ("context", name), "context") for name, body in context.items()}
            self._paths.entities["context"] = Entity("context", (), fields)
        shows: dict[str, dict[str, list[Observation]]] = {}
        for tool, bodies in self._file.observations.items():
            if tool not in self._tools:
                self._paths.no_tool(tool, self._tools, "observations", tool)
            self._check_evidence(tool, listed(bodies))
            for index, body in enumerate(listed(bodies)):
                observation = self._observation(body, ("observations", tool, index), tool)
                if observation is not None:
                    shows.setdefault(tool, {}).setdefault(observation.entity.name, []).append(observation)
        for entity in list(self._paths.entities.values()):
            # A look-up shows its own entity, unless the observations of the tool say otherwise.
            tool = entity.read.tool if entity.read is not None else ""
            if tool in self._tools and tool not in self._file.observations and not self._is_generic(tool):
                own = WrittenObservation(entity.name, absent=_NOT_THERE)
                shown = self._observation(own, ("entities", entity.name), tool)
                shows.setdefault(tool, {}).setdefault(entity.name, []).extend([shown] if shown else ())
        if self._file.pages:
            self._add_pages(shows)
        changes = ChangeReader(self._paths)
        writes = [tool for tool in self._tools.values() if tool.effect == "write"]
        effects = {tool.name: changes.effects(tool) for tool in writes}
        return Schema(
            self._paths.entities,
            self._tools,
            {tool: {kind: tuple(found) for kind, found in kinds.items()} for tool, kinds in shows.items()},
            {tool.name: tuple(changes.changes(tool, effects[tool.name])) for tool in writes},
            {name: tuple(found) for name, found in effects.items()},
            stored={name: tuple(self._stored(name, body)) for name, body in self._file.world.items()},
        )

    def _check_evidence(self, tool: str, bodies: Sequence[WrittenObservation]) -> None:
        """Report observations of results that the agent may have written itself."""
        if self._actions is None:
            return
        from bylaw.actions.evidence import why_no_evidence

        named = {part for each in bodies if (of := self._paths.entities.get(str(each.as_))) for part in of.key}
        why, hint = why_no_evidence(self._actions, tool, map(repr, bodies), named)
        if why:
            self._paths.fault(why, "observations", tool, hint=hint)

    def _is_generic(self, tool: str) -> bool:
        """Whether a tool shows no record of its own, but pages or the results of its actions."""
        is_browser = bool(self._file.pages) and self._pages is not None and self._pages.shows(tool)
        return is_browser or any(tool in each.of for each in self._tools.values())

    def _add_pages(self, shows: dict[str, dict[str, list[Observation]]]) -> None:
        reader = PageObservations(self._paths, self._pages)
        tools = [name for name, tool in self._tools.items() if not tool.of and reader.terms.shows(name)]
        if not tools:
            hint = "declare the browser's tools, and name them under `pages` in tools.yaml"
            self._paths.fault("no tool shows pages", "pages", hint=hint)
        for index, body in enumerate(self._file.pages):
            observation = reader.read(body, ("pages", index))
            if observation is None:
                continue
            for tool in tools:
                shows.setdefault(tool, {}).setdefault(str(body.as_), []).append(reader.shown_by(tool, observation))

    def _stored(self, name: str, bodies: WrittenStored | list[WrittenStored] | None) -> Iterator[Stored]:
        for index, body in enumerate(listed(bodies)):
            at = ("world", name, index)
            if body.of is not None and body.each is None:
                self._paths.fault("`of` is only the path of the container; set the path of its items in `each`", *at)
            for part in (body.of, body.each):
                self._paths.each(part, at)
            shown = WrittenObservation(name, key=body.key, fields=body.fields, only=body.only, when=body.when)
            observation = self._observation(shown, at)
            if body.list:
                self._must_list(name, body, listed(bodies), at)
            if observation is not None:
                table, each = str(body.table), str(body.each or "")
                each = each or ("$[*]" if table else "")
                yield Stored(observation, table, str(body.of or ""), each, str(body.list))

    def _must_list(self, name: str, body: WrittenStored, places: Sequence[WrittenStored], at: YamlPath) -> None:
        entity = self._paths.entities.get(name)
        field = entity.fields.get(str(body.list)) if entity is not None else None
        if entity is not None and (field is None or field.type != "list"):
            hint = f"declare it: `{body.list}: list`"
            self._paths.fault(f"`{body.list}` is not a list of `{name}`", *at, hint=hint)
        if all(each.list for each in places):
            hint = (
                f"set the location of `{name}` records first;"
                " otherwise Bylaw cannot tell an empty list from a missing record"
            )
            self._paths.fault(f"the location of `{name}` records is missing", *at, hint=hint)
        if body.fields:
            self._paths.fault("list items cannot be changed by `fields`; remove it", *at)

    def _entity(self, name: str, body: WrittenEntity) -> Entity:
        at = ("entities", name)
        key = listed_names(body.key)
        origin: Any = body.origin
        if origin not in ("system", "conversation"):
            self._paths.fault(f"origin `{origin}` is neither system nor conversation", *at)
        fields = {
            field: self._field(field, spec, (*at, "fields", field), origin) for field, spec in body.fields.items()
        }
        for part in key:
            fields.setdefault(part, Field(part))
        if body.complete and origin != "conversation":
            hint = (
                "tools may know other records; use `origin: conversation` if this entity exists only in conversations"
            )
            self._paths.fault(f"`{name}` cannot be declared `complete`", *at, hint=hint)
        read = self._lookup(body.read, key, (*at, "read"))
        return Entity(name, key, fields, read, body.fresh_for, origin, body.complete)

    def _lookup(self, body: Scalar | WrittenRead | None, key: tuple[str, ...], at: YamlPath) -> ReadTool | None:
        if body is None:
            return None
        if not isinstance(body, WrittenRead):
            body = WrittenRead(body, {part: part for part in key})
        tool, arguments = str(body.tool), {name: str(part) for name, part in body.arguments.items()}
        if tool not in self._tools:
            self._paths.no_tool(tool, self._tools, *at)
        elif arguments and not self._tools[tool].parameters:
            self._no_parameters(tool, sorted(arguments), at)
        elif unknown := sorted(set(arguments) - set(self._tools[tool].parameters)):
            takes = [f"`{name}`" for name in self._tools[tool].parameters]
            hint = (
                f"it takes {', '.join(takes) or 'none'}; write `{{tool: {tool}, arguments: {{argument: key field}}}}`,"
                " or `arguments: {}` if they are not part of the key"
            )
            lacks = f"argument {tool}.{unknown[0]}"
            self._paths.fault(f"`{tool}` has no argument `{unknown[0]}`", *at, hint=hint, lacks=lacks)
        named = {name for part in arguments.values() for name in PLACE.findall(part) or (part,)}
        for part in sorted(named - set(key)):
            self._paths.fault(f"`{part}` is not a key", *at, hint="map each argument to a key field")
        return ReadTool(tool, arguments)

    def _no_parameters(self, tool: str, arguments: Sequence[str], at: YamlPath) -> None:
        """Report a look-up by key whose tool declares no parameters, because they were probably forgotten."""
        declared = ", ".join(f"{name}: string" for name in arguments)
        said = f"`{tool}` has no `parameters`, but {self._paths.place(*at)} needs them to look up `{at[1]}`"
        hint = (
            f"write `parameters: {{{declared}}}` or, if it takes none,"
            f" `read: {{tool: {tool}, arguments: {{}}}}` in the entity"
        )
        self._paths.fault(said, "tools", tool, hint=hint, lacks=f"argument {tool}.{arguments[0]}")

    def _field(self, name: str, body: FieldBody, at: YamlPath, origin: Any) -> Field:
        if isinstance(body, list):
            if len(body) == 1 and body[0] in _TYPES:
                self._paths.fault(
                    f"a list may contain only the values of an enumeration, but `{body[0]}` is a type", *at
                )
            body = WrittenField(values=body)
        record = body if isinstance(body, WrittenField) else WrittenField(type=body)
        type_ = record.type if record.type is not None else "string" if record.values is None else "enum"
        nullable = str(type_).endswith("?") or record.default is None or name in self._compared_with_none
        type_ = type_.removesuffix("?") if isinstance(type_, str) else type_
        if type_ not in _TYPES:
            self._paths.fault(f"`{type_}` is not a type", *at, hint=f"types are {', '.join(sorted(_TYPES))}")
            type_ = "string"
        origin = record.origin or origin
        if origin not in get_args(Origin):
            self._paths.fault(f"origin `{origin}` is not one of {', '.join(get_args(Origin))}", *at)
            origin = "system"
        sayings = tuple(
            Saying(str(each.argument), str(each.says), each.value, str(each.but_not), str(each.about))
            for each in record.from_
        )
        for saying in sayings:
            if not saying.argument and not saying.says:
                self._paths.fault("`from` needs `argument` or `says`", *at)
            if saying.but_not and not saying.says:
                self._paths.fault("`but_not` needs `says`", *at)
            if saying.about and not saying.says:
                self._paths.fault("`about` needs `says`", *at)
            elif saying.about and not any(saying.about in tool.parameters for tool in self._tools.values()):
                lacks = f"argument {saying.about}"
                self._paths.fault(f"no tool has an argument `{saying.about}`", *at, lacks=lacks)
            self._paths.pattern(saying.says, at, but_not=saying.but_not)
        currency = str(record.currency)
        if currency and type_ != "money":
            self._paths.fault(f"`{name}` has a currency but is not of type money", *at)
        elif currency and currency not in CURRENCIES:
            self._paths.fault(f"`{currency}` is not a currency", *at, hint="use a three-letter code, such as EUR")
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
            nullable,
            currency,
            self._keys_of(str(record.keys_of), type_, at) if record.keys_of else None,
        )

    def _keys_of(self, said: str, type_: Any, at: YamlPath) -> tuple[str, str] | None:
        """Parse `keys_of: Loan.member_id` into an entity and a field."""
        kind, _, field = said.partition(".")
        entities = self._file.entities
        body, own = entities.get(kind), entities.get(str(at[1]))
        if body is None or field not in body.fields:
            self._paths.fault(f"`{said}` is not a field", *at, hint="write it like `Loan.member_id`")
        elif any(each is None or len(listed_names(each.key)) != 1 for each in (body, own)):
            self._paths.fault(f"`{kind}` and `{at[1]}` must each have one key field for `keys_of`", *at)
        elif type_ != "list":
            self._paths.fault("a field with `keys_of` is a list", *at, hint="add `type: list`")
        else:
            return kind, field
        return None

    def _observation(self, body: WrittenObservation, at: YamlPath, tool: str = "") -> Observation | None:
        if body.as_ is None:
            self._paths.fault("an observation requires `as:` with the entity that it shows", *at)
            return None
        entity = self._paths.entity(body.as_, body.fields, at)
        if entity is None:
            return None
        return Observation(
            entity,
            self._paths.each(body.each, at),
            self._paths.key(entity, body.key, at),
            {name: self._paths.value(path, at) for name, path in body.fields.items()},
            body.only,
            self._paths.when(body.when, at) if body.when is not None else None,
            self._paths.pattern(body.text, at) if body.text is not None else None,
            self._paths.pattern(body.absent, at) if body.absent is not None else None,
            self._is_whole(entity, tool, str(body.each or "")),
            _names_read(body),
        )

    def _is_whole(self, entity: Entity, tool: str, each: str) -> bool:
        """Whether a tool shows a complete record (as the entity's own look-up does) and not a list."""
        declared = self._tools.get(tool)
        if declared is None or declared.effect == "write":
            return False
        return entity.origin == "conversation" or (
            entity.read is not None and entity.read.tool == tool and "*" not in each
        )


def _names_read(body: WrittenObservation) -> frozenset[str]:
    keys = body.key.values() if isinstance(body.key, dict) else (body.key,)
    within = (*keys, *body.fields.values())
    # With `each`, a path that begins with `$.` starts at the item.
    paths = [path for path in within if body.each is None or str(path).startswith("$result")]
    found: set[str] = set()
    for path in (body.each, *paths):
        with suppress(PathError):
            if isinstance(path, str) and path.startswith("$") and (name := first_name(path)) is not None:
                found.add(name)
    return frozenset(found)
