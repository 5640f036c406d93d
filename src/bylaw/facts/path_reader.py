"""How the files of a pack point at things: paths, keys, patterns and expressions, each fault with its place."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from msgspec import UNSET

from bylaw.errors import BylawError, GuardError, meant
from bylaw.facts.entity import Entity
from bylaw.facts.path import NOTHING, Getter, PathError, PathScope, compile_each, compile_path
from bylaw.facts.value import key_of, names_several
from bylaw.facts.world_change import Expression
from bylaw.facts.written import WrittenKey, WrittenWhen
from bylaw.policy.pattern import Pattern, PatternError, compile_pattern
from bylaw.policy.reading import Scalar
from bylaw.policy.yaml import Located, YamlPath


class SchemaError(BylawError):
    """Entities, observations or changes of a pack do not fit together."""

    code = "BY404"


class PathReader:
    """Compiles what stands in `entities.yaml` and `tools.yaml`; keeps every fault it meets."""

    def __init__(
        self,
        source: Located,
        tool_source: Located | None,
        faults: list[BylawError],
        compile: Callable[[str, str], Expression] | None,
    ) -> None:
        self.entities: dict[str, Entity] = {}
        """Those that were read so far."""
        self.faults = faults
        self._source, self._tool_source = source, tool_source
        self._compile = compile
        """Makes an expression of its text and its place; this area does not know the language."""

    def value(self, path: Any, at: YamlPath) -> Getter:
        """What a path finds; a value that is not a path stands for itself."""
        if not isinstance(path, str) or not path.startswith(("$", "=")):
            return lambda scope: path
        if path.startswith("$of") and at[:1] != ("world",):
            self.fault(f"`{path}` means something only under `world:`", *at)
        try:
            return compile_path(path)
        except PathError as error:
            self.fault(error.message, *at, hint=error.hint)
            return lambda scope: None

    def each(self, path: Any, at: YamlPath) -> Callable[[PathScope], Sequence[tuple[Any, Any]]] | None:
        """What a path with stars finds: items, each with its key."""
        if path is None:
            return None
        try:
            return compile_each(str(path))
        except PathError as error:
            self.fault(error.message, *at, hint=error.hint)
            return None

    def key(self, entity: Entity, body: WrittenKey | None, at: YamlPath) -> tuple[tuple[Getter, ...], ...]:
        """The ways to the parts of a thing's key."""
        if is_through(entity, body):
            named = self.through(cast(dict[str, Scalar], body), at)
            return ((lambda scope: NOTHING if (part := named(scope)) is None else part,),)
        if isinstance(body, dict):
            given = body
        else:
            given = {entity.key[0]: body} if entity.key and body is not None else {}
        for name in given.keys() - set(entity.key):
            self.fault(f"`{name}` is not a key of `{entity.name}`", *at)
        return tuple(
            (self.value(given[part], at),)
            if part in given
            else (compile_path(f"$['{part}']"), compile_path(f"$args['{part}']"))
            for part in entity.key
        )

    def through(self, body: Mapping[str, Scalar], at: YamlPath) -> Getter:
        """What a field of another thing says: `{of: Line.account_id, key: $args.line_id}`."""
        name, _, field = str(body["of"]).partition(".")
        other = self.entities.get(name)
        if other is None or field not in other.fields:
            self.fault(f"`{body['of']}` is not a field", *at, hint="write it like `Line.account_id`")
            return lambda scope: NOTHING
        for each in body.keys() - {"of", "key"}:
            self.fault(f"`{each}` is not known beside `of`", *at, hint="known: key")
        if at[:1] != ("tools",):
            self.fault("a result shows things by its own values, not through others", *at)
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
        """Whether an item counts."""
        path = self.value(body.path, at)
        if body.is_ is not UNSET:
            return lambda scope: path(scope) == body.is_
        if body.in_ is not None:
            allowed = body.in_
            return lambda scope: path(scope) in allowed
        self.fault("`when` needs `is` or `in`", *at)
        return None

    def pattern(self, text: Any, at: YamlPath, *, but_not: str = "") -> Pattern | None:
        """A pattern on text."""
        try:
            return compile_pattern(str(text), but_not)
        except PatternError as error:
            self.faults.append(PatternError(error.message, place=self.place(*at), hint=error.hint))
        return None

    def expression(self, text: Any, at: YamlPath) -> Expression | None:
        """A small computation over the call and the thing."""
        if self._compile is None:
            self.fault("expressions are not read here", *at)
            return None
        try:
            return self._compile(str(text), self.place(*at))
        except GuardError as error:
            self.faults.append(error)
            return None

    def fault(self, message: str, *at: str | int, hint: str = "", lacks: str = "") -> None:
        """Note what is wrong, with its place."""
        self.faults.append(SchemaError(message, place=self.place(*at), hint=hint, lacks=lacks))

    def no_tool(self, tool: str, known: Iterable[str], *at: str | int) -> None:
        """Note that a tool is named which tools.yaml does not list."""
        self.fault(f"`{tool}` is not a tool", *at, hint=meant(tool, known), lacks=f"tool {tool}")

    def no_entity(self, entity: str, *at: str | int) -> None:
        """Note that a kind of thing is named which entities.yaml does not declare."""
        known = meant(entity, self.entities)
        self.fault(f"`{entity}` is not an entity", *at, hint=known, lacks=f"entity {entity}")

    def no_field(self, entity: Entity, name: str, *at: str | int) -> None:
        """Note that a field is named which its kind of thing does not have."""
        known = meant(name, entity.fields)
        message = f"`{entity.name}` has no field `{name}`"
        self.fault(message, *at, hint=known, lacks=f"field {entity.name}.{name}")

    def place(self, *at: str | int) -> str:
        """Where something stands in the files."""
        if at[:1] != ("tools",):
            return self._source.place(*at)
        return self._tool_source.place(*at) if self._tool_source is not None else "tools.yaml"


def is_through(entity: Entity, body: Any) -> bool:
    """Whether a key is what a field of another thing says."""
    return isinstance(body, dict) and "of" in body and "of" not in entity.key
