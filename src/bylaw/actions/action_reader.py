"""Reads the sections `actions`, `otherwise` and `pages` of tools.yaml. Every error states its line."""

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, cast, get_args

from msgspec.structs import replace

from bylaw.actions.action import FIELDS, Action, Actions, Otherwise, PageTerms, ReadTerms, TargetTerms
from bylaw.actions.run_line import RunLine, read_run_line
from bylaw.actions.taking import ActionError, ElementTerms, Kind, Take, TakenType, compile_take
from bylaw.errors import BylawError, meant
from bylaw.policy.pattern import Pattern, PatternError, compile_pattern
from bylaw.policy.tool import (
    Tool,
    ToolsFile,
    WrittenAction,
    WrittenCall,
    WrittenElement,
    WrittenPages,
    WrittenReads,
    WrittenTake,
    WrittenTarget,
    WrittenTool,
)
from bylaw.policy.yaml import Located, Scalar, read_record
from bylaw.reading.sql_tables import Table
from bylaw.reading.sql_text import DIALECTS
from bylaw.text.host import is_host, names_host

_OF_SHELL = frozenset(
    (
        "program",
        "commands",
        "operands",
        "options",
        "without_options",
        "root",
        "inside",
        "ordinary",
        "settings",
        "runs",
        "fresh",
        "privileged",
    )
)
_AS: Mapping[str, tuple[Kind, frozenset[str]]] = {
    "sql": ("sql", frozenset(("dialect", "statements", "tables", "bounded"))),
    "shell": ("shell", _OF_SHELL),
    "path": ("path", frozenset(("root", "inside", "ordinary", "settings"))),
    "url": ("url", frozenset(("scheme", "host", "path", "query"))),
}
"""Maps each value of `reads` to the kind of action and the conditions it allows."""
_SCHEMAS: Mapping[TakenType, str] = {
    "text": "string",
    "money": "string",
    "number": "number",
    "boolean": "boolean",
    "list": "array",
}


def action_tools(
    file: ToolsFile, source: Located, faults: list[BylawError]
) -> Iterator[tuple[str, WrittenTool, tuple[str, ...]]]:
    """Yield each action in the form of a tool with parameters, and the tools that perform the action."""
    for name, body in file.actions.items():
        record = body or WrittenAction()
        if name in file.tools:
            message = f"an action and the tool at {source.place('tools', name)} have the same name, `{name}`"
            faults.append(
                ActionError(message, place=source.place("actions", name), hint="give the action another name")
            )
            continue
        parameters: dict[str, Any] = {}
        for key, written in record.take.items():
            taken = written if isinstance(written, WrittenTake) else WrittenTake(written)
            type = cast(TakenType, str(taken.type))
            if type not in _SCHEMAS:
                place, known = source.place("actions", name, "take", key), ", ".join(_SCHEMAS)
                faults.append(ActionError(f"`{type}` is not a parameter type", place=place, hint=f"known: {known}"))
                type = "text"
            schema = {"type": _SCHEMAS[type], "title": str(taken.title), "optional": taken.optional}
            parameters[key] = {each: value for each, value in schema.items() if value}
        told = {each: getattr(record, each) for each in WrittenCall.__struct_fields__}
        yield name, WrittenTool(parameters=parameters, **told), _listed(record.of)


def read_actions(source: Located, tools: Mapping[str, Tool]) -> tuple[Actions, list[BylawError]]:
    """Return the actions in tools.yaml. Its tools must have been read before."""
    file, source, _ = read_record(source, ToolsFile)
    tables = {
        name: Table(frozenset(map(str, (*table.columns, *table.keys))), frozenset(map(str, table.keys)))
        for name, table in file.tables.items()
        if table is not None
    }
    reader = _Reader(source, tools, file, tables)
    actions = [
        reader.action(name, body or WrittenAction()) for name, body in file.actions.items() if name not in file.tools
    ]
    by_tool: dict[str, list[Action]] = {}
    for action in actions:
        for tool in action.of:
            by_tool.setdefault(tool, []).append(action)
    # A call performs no action if its tool has no actions.
    by_tool |= {tool: [] for tool in file.otherwise if tool in tools and tool not in by_tool}
    otherwise = reader.otherwise(file.otherwise, by_tool)
    plain = {name: replace(tools[name], effect="read") for name in by_tool if name in tools}
    unread, secrets = reader.arguments("unread", file.unread), reader.arguments("secrets", file.secrets)
    pages = reader.pages(file.pages)
    frozen = {name: tuple(each) for name, each in by_tool.items()}
    found = Actions(frozen, otherwise, pages, unread, secrets, plain)
    return found, reader.faults


def default_pages() -> PageTerms:
    """Return the default settings for how a conversation reports pages."""
    return _Reader(Located("tools.yaml", {}, {}), {}).pages(None)


class _Reader:
    def __init__(
        self,
        source: Located,
        tools: Mapping[str, Tool],
        file: ToolsFile | None = None,
        tables: Mapping[str, Table] = MappingProxyType({}),
    ) -> None:
        file = file or ToolsFile()
        self._source = source
        self._ordinary = tuple(map(str, file.ordinary))
        self._settings = tuple(map(str, file.settings))
        self._tables = tables
        self._tools = {name: tool for name, tool in tools.items() if not tool.of}
        self.faults: list[BylawError] = []
        self._runs = tuple(filter(None, (self._run_line(str(each), place) for place, each in enumerate(file.runs))))

    def _fault(self, message: str, *at: str | int, hint: str = "", lacks: str = "") -> None:
        self.faults.append(ActionError(message, place=self._source.place(*at), hint=hint, lacks=lacks))

    def _run_line(self, text: str, place: int) -> RunLine | None:
        if (line := read_run_line(text)) is None:
            self._fault(f"`{text}` is not a command", "runs", place, hint="write it like `pytest [-q -x] *paths*`")
        return line

    def action(self, name: str, body: WrittenAction) -> Action:
        at = ("actions", name)
        of = _listed(body.of)
        if not of:
            self._fault(f"action `{name}` does not list its tools", *at, hint="add `of: [tool, ...]`")
        for tool in of:
            if tool not in self._tools:
                hint = meant(tool, self._tools) or "declare it under `tools`"
                self._fault(f"`{tool}` is not a tool", *at, "of", hint=hint, lacks=f"tool {tool}")
        if body.on is not None and body.reads is not None:
            self._fault(f"`{name}` has both `on` and `reads`", *at, hint="split it into two actions")
        on = self._target(body.on, (*at, "on")) if body.on is not None else None
        roles = on.element.roles if on is not None else FIELDS
        if str(body.effect) != "write" and not (roles and FIELDS.issuperset(roles)):
            hint = "write `effect: write`; to read a page, agents open an address listed under `pages.looks`"
            self._fault(f"`{name}` may click or press a key, which may have any effect", *at, hint=hint)
        reads = self._reads(body.reads, of, (*at, "reads")) if body.reads is not None else None
        where = {key: found for key, each in body.where.items() if (found := self._pattern(each, *at, "where", key))}
        for key in body.where:
            self._must_take(key, of, *at, "where", key)
        kind: Kind = "page" if on is not None else "call" if reads is None else reads.kind
        takes, effect = tuple(self._takes(name, body, of, kind)), cast(Any, str(body.effect))
        return Action(name, of, effect, on, reads, where, takes, body.fallback)

    def _takes(self, name: str, body: WrittenAction, of: Sequence[str], kind: Kind) -> Iterator[Take]:
        arguments = {
            argument: schema
            for tool in of
            if tool in self._tools
            for argument, schema in self._tools[tool].parameters.items()
        }
        for key, written in body.take.items():
            taken = written if isinstance(written, WrittenTake) else WrittenTake(written)
            type = cast(TakenType, str(taken.type)) if str(taken.type) in _SCHEMAS else "text"
            try:
                take = compile_take(
                    key, str(taken.value), frozenset((kind,)), type, optional=taken.optional, arguments=arguments
                )
            except (ActionError, PatternError) as error:
                place = self._source.place("actions", name, "take", key)
                self.faults.append(type_of(error)(error.message, place=place, hint=error.hint))
                continue
            yield take if taken.within is None else self._placed(take, taken.within, ("actions", name, "take", key))

    def _placed(self, take: Take, within: WrittenElement, at: tuple[str, ...]) -> Take:
        """Return a parameter whose value must appear in the part of the page that `within` describes."""
        if take.source != "page" or take.field not in ("text", "heading", "field"):
            self._fault(
                f"`within` is not allowed with `${take.source}.{take.field}`", *at, hint="use it with `$page.text`"
            )
        return replace(take, within=self._named(within, (*at, "within")))

    def _target(self, body: WrittenTarget, at: tuple[str, ...]) -> TargetTerms:
        page = self._pattern(body.page, *at, "page") if body.page != "" else None
        element = self._element(body, at)
        within = self._named(body.within, (*at, "within")) if body.within is not None else None
        if not element.roles and not element.name and element.named is None:
            hint = "name the element by `role`, `name` or `named`"
            self._fault("an action must name an element of the page", *at, hint=hint)
        url = self._pattern(body.url, *at, "url") if body.url != "" else None
        return TargetTerms(page, element, within, url)

    def _element(self, body: WrittenElement, at: tuple[str | int, ...]) -> ElementTerms:
        named = self._pattern(body.named, *at, "named") if body.named != "" else None
        return ElementTerms(_listed(body.role), " ".join(str(body.name).split()), named)

    def _named(self, body: WrittenElement, at: tuple[str | int, ...]) -> ElementTerms:
        element = self._element(body, at)
        if not element.roles and not element.name and element.named is None:
            self._fault(
                "without a role or a name, this matches every element of the page",
                *at,
                hint="name the element by `role`, `name` or `named`",
            )
        return element

    def _reads(self, body: WrittenReads, of: Sequence[str], at: tuple[str, ...]) -> ReadTerms | None:
        how = str(body.as_)
        if how not in _AS:
            self._fault(f"`{how}` is not a known format", *at, hint=f"use one of {', '.join(_AS)}")
            return None
        kind, known = _AS[how]
        if how == "sql" and find_spec("sqlglot") is None:
            self._fault("no installed package reads `sql`", *at, hint="pip install 'bylaw[read-sql]'")
        given = {field for field in body.__struct_fields__ if getattr(body, field) not in ("", [], None, False)}
        for field in sorted(given - known - {"argument", "as_"}):
            self._fault(
                f"`{field}` is not allowed with `as: {how}`", *at, field, hint=f"known: {', '.join(sorted(known))}"
            )
        if body.dialect != "" and body.dialect not in DIALECTS:
            self._fault(
                f"`{body.dialect}` is not a supported dialect", *at, "dialect", hint=f"known: {', '.join(DIALECTS)}"
            )
        self._must_take(str(body.argument), of, *at, "argument")
        if body.root == "" and (how == "path" or body.inside is not None):
            self._fault("the root folder of the path is missing", *at, hint="add `root`")
        if body.ordinary is not None and not self._ordinary:
            self._fault(
                "the pack lists no ordinary files",
                *at,
                "ordinary",
                hint="list the names of ordinary files: `ordinary: ['*.py']`",
            )

        def patterns(name: str, texts: Sequence[Scalar]) -> tuple[Pattern, ...]:
            return tuple(found for text in texts if (found := self._pattern(text, *at, name)) is not None)

        return ReadTerms(
            str(body.argument),
            kind,
            str(body.dialect) or None,
            tuple(str(each).lower() for each in body.statements),
            patterns("tables", body.tables),
            self._tables,
            body.bounded,
            _listed(body.program),
            patterns("operands", body.operands),
            tuple(map(str, body.options)),
            tuple(map(str, body.without_options)),
            str(body.root),
            body.inside,
            body.ordinary,
            self._ordinary,
            body.settings,
            self._settings,
            body.runs,
            self._runs,
            body.fresh,
            patterns("commands", [f"^(?:{each})$" for each in body.commands]),
            body.privileged,
            *(next(iter(patterns(name, [getattr(body, name)])), None) if getattr(body, name) != "" else None
              for name in ("scheme", "host", "path", "query")),
            names_host=is_host(str(body.host)),
        )  # fmt: skip

    def _must_take(self, argument: str, of: Sequence[str], *at: str) -> None:
        for tool in of:
            declared = self._tools.get(tool)
            if declared is not None and declared.parameters and argument not in declared.parameters:
                takes = ", ".join(f"`{each}`" for each in declared.parameters)
                self._fault(f"`{tool}` has no argument `{argument}`", *at, hint=f"it takes {takes}")

    def _pattern(self, text: Scalar, *at: str | int) -> Pattern | None:
        try:
            return compile_pattern(str(text), ignore_case=False)
        except PatternError as error:
            self.faults.append(PatternError(error.message, place=self._source.place(*at), hint=error.hint))
            return None

    def otherwise(self, given: Mapping[str, Scalar], by_tool: Mapping[str, Any]) -> dict[str, Otherwise]:
        found: dict[str, Otherwise] = dict.fromkeys(by_tool, "ask")
        for tool, answer in given.items():
            at = ("otherwise", tool)
            if tool not in self._tools:
                self._fault(f"`{tool}` is not a tool", *at, hint=meant(tool, self._tools), lacks=f"tool {tool}")
            elif answer not in get_args(Otherwise):
                self._fault(f"`{answer}` is not a valid `otherwise`", *at, hint="write ask, deny or allow")
            elif answer == "allow" and self._tools[tool].effect == "write":
                hint = f"write `ask` or `deny`, or declare that `{tool}` only reads"
                self._fault(f"`{tool}` may write, so a call that matches no action is not allowed", *at, hint=hint)
            else:
                found[tool] = cast(Otherwise, answer)
        return found

    def arguments(self, key: str, given: Mapping[str, list[Scalar]]) -> dict[str, frozenset[str]]:
        for tool in given:
            if tool not in self._tools:
                self._fault(f"`{tool}` is not a tool", key, tool, hint=meant(tool, self._tools), lacks=f"tool {tool}")
        return {tool: frozenset(map(str, arguments)) for tool, arguments in given.items()}

    def pages(self, body: WrittenPages | None) -> PageTerms:
        record = body or WrittenPages()
        content = tuple(self._named(each, ("pages", "content", place)) for place, each in enumerate(record.content))
        passing = tuple(self._named(each, ("pages", "passing", place)) for place, each in enumerate(record.passing))
        looks = tuple(filter(None, (self._look(str(each), place) for place, each in enumerate(record.looks))))
        named = (self._pattern(f"^(?:{each})$", "pages", "fields", place) for place, each in enumerate(record.fields))
        fields = tuple(filter(None, named))
        lists = (record.tools, record.unchanged_by, record.not_shown_by)
        tools, unchanged, unshown = (tuple(map(str, each)) for each in lists)
        target, description = tuple(map(str, record.target)), tuple(map(str, record.description))
        return PageTerms(
            tools, unchanged, unshown, str(record.snapshot), target, description, content, looks, fields, passing
        )

    def _look(self, text: str, place: int) -> Pattern | None:
        if not names_host(f"^{text}"):
            hint = "begin it with a scheme and a complete host, such as `https://shop[.]example/`, and do not use `|`"
            self._fault("a pattern under `looks` must match a single host", "pages", "looks", place, hint=hint)
        return self._pattern(f"^{text}$", "pages", "looks", place)


def type_of(error: BylawError) -> type[BylawError]:
    """Return the class of an error, so that the error can be raised again with its position in the file."""
    return type(error)


def _listed(given: Scalar | list[Scalar]) -> tuple[str, ...]:
    return tuple(map(str, given)) if isinstance(given, list) else (str(given),) if given != "" else ()
