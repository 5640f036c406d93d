"""A tool that the agent may call, and the effects of the tool."""

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Literal, cast, get_type_hints

from msgspec import Meta, Struct, ValidationError, convert, field
from msgspec.structs import force_setattr

from bylaw.policy.yaml import Scalar

Effect = Literal["read", "write", "none"]
Trust = Literal["record", "content"]


class Misfit(Struct, frozen=True):
    """Replaces an argument that does not match its declaration. A guard that uses such an argument is undecided."""

    why: str


class WrittenChange(Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of `changes` in tools.yaml: the facts that a write makes outdated."""

    as_: Scalar = field(name="as", default="")
    fields: Scalar | list[Scalar] = "*"
    key: Scalar | dict[str, Scalar] | None = None
    each: Scalar | None = None
    when: Scalar | None = None


class WrittenEffect(Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of `effects` in tools.yaml: how a write changes a snapshot of the database."""

    as_: Scalar = field(name="as", default="")
    key: Scalar | dict[str, Scalar] | None = None
    each: Scalar | None = None
    set: dict[str, Any] = {}
    delete: bool = False
    when: Scalar | None = None


class WrittenCardFact(Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of `show` in tools.yaml: an additional fact in a tool's cards and sentences."""

    value: Scalar = ""
    """An expression in the guard language that uses `call` and `facts`."""
    title: Scalar = ""
    currency: Scalar = ""
    unit: Scalar = ""


class WrittenCall(Struct, frozen=True, forbid_unknown_fields=True):
    """The fields that tools and actions have in common in tools.yaml."""

    effect: Scalar = ""
    description: Scalar = ""
    refused: Scalar = ""
    surely_refused: Scalar = ""
    also_called: list[Scalar] = []
    title: Scalar = ""
    put_as: Scalar | list[Scalar] = []
    show: dict[str, Scalar | WrittenCardFact] = {}
    changes: list[Scalar | WrittenChange] | None = None
    effects: list[WrittenEffect] = []


class WrittenTool(WrittenCall, frozen=True, forbid_unknown_fields=True):
    returns: Scalar = ""
    alters: Scalar = ""
    parameters: dict[str, Any] = {}
    trust: Trust | dict[str, Trust] = "content"
    mask: list[Scalar] = []
    mark: bool = False
    prepares: bool = False


class WrittenElement(Struct, frozen=True, forbid_unknown_fields=True):
    """An element of a web page, under `on`, `within` or `content` in tools.yaml."""

    role: Scalar | list[Scalar] = []
    name: Scalar = ""
    named: Scalar = ""
    """A pattern that occurs in the element's name."""


class WrittenTarget(WrittenElement, frozen=True, forbid_unknown_fields=True):
    """The page element on which an action is performed, under `on` in tools.yaml."""

    page: Scalar = ""
    """A pattern for the page's address without its query."""
    url: Scalar = ""
    """A pattern for the address to which a link leads."""
    within: WrittenElement | None = None


class WrittenReads(Struct, frozen=True, forbid_unknown_fields=True):
    """How to parse an argument, and the conditions that its content must meet, under `reads` in tools.yaml."""

    argument: Scalar = ""
    as_: Scalar = field(name="as", default="")
    dialect: Scalar = ""
    statements: list[Scalar] = []
    tables: list[Scalar] = []
    """Patterns for tables. Each table that a statement writes to must match one of them. If the statement writes to no
    table, each table that it reads must match.
    """
    bounded: bool | None = None
    program: Scalar | list[Scalar] = []
    commands: list[Scalar] = []
    """Patterns for the whole command. It must match one of them, and every word must be known before the command runs.
    """
    operands: list[Scalar] = []
    """Patterns for operands. Each pattern must match at least one operand of the command."""
    options: list[Scalar] = []
    """Names of options. The command must have, or possibly have, at least one of these options."""
    without_options: list[Scalar] = []
    """Names of options. It must be certain that the command has none of these options."""
    root: Scalar = ""
    """The folder against which relative paths are resolved."""
    inside: bool | Literal["unknown"] | None = None
    """Whether every path is inside `root`."""
    ordinary: bool | None = None
    """Whether every file whose contents the call reads or changes is named explicitly and has an `ordinary` name."""
    settings: bool | None = None
    """Whether the call may change one of the files under `settings` in tools.yaml."""
    runs: bool | None = None
    """Whether the command is one of those under `runs` in tools.yaml."""
    fresh: bool = False
    """Whether each call runs in a new shell, which starts in `root`."""
    privileged: bool | None = None
    """Whether the command runs as another user."""
    scheme: Scalar = ""
    host: Scalar = ""
    path: Scalar = ""
    query: Scalar = ""


class WrittenTable(Struct, frozen=True, forbid_unknown_fields=True):
    """A table of the database that SQL tools use, under `tables` in tools.yaml."""

    columns: list[Scalar] = []
    keys: list[Scalar] = []
    """The columns whose values identify a row."""


class WrittenTake(Struct, frozen=True, forbid_unknown_fields=True):
    """A parameter of an action, under `take` in tools.yaml."""

    value: Scalar = ""
    type: Scalar = "text"
    optional: bool = False
    title: Scalar = ""
    within: WrittenElement | None = None
    """The part of the page in which the value is shown."""


class WrittenAction(WrittenCall, frozen=True, forbid_unknown_fields=True):
    """An action that calls to generic tools perform, under `actions` in tools.yaml."""

    of: Scalar | list[Scalar] = []
    on: WrittenTarget | None = None
    reads: WrittenReads | None = None
    where: dict[str, Scalar] = {}
    fallback: bool = False
    """Whether the action applies only if no other action applies."""
    take: dict[str, Scalar | WrittenTake] = {}


_UNCHANGED_BY: tuple[Scalar, ...] = (
    "browser_console_messages", "browser_find", "browser_network_request*", "browser_take_screenshot",
)  # fmt: skip
_DESCRIPTIONS: tuple[Scalar, ...] = ("element", "startElement", "endElement")


class WrittenPages(Struct, frozen=True, forbid_unknown_fields=True):
    """How a conversation reports web pages, under `pages` in tools.yaml."""

    tools: list[Scalar] = field(default_factory=lambda: ["browser_*"])
    """Browser tools that show or change the page. `*` matches any text."""
    unchanged_by: list[Scalar] = field(default_factory=lambda: list(_UNCHANGED_BY))
    """Browser tools that neither show nor change the page."""
    not_shown_by: list[Scalar] = field(default_factory=lambda: ["browser_evaluate", "browser_run_code*"])
    """Browser tools whose result comes from code. Page snapshots in these results are ignored."""
    snapshot: Scalar = "browser_snapshot"
    """The tool that shows the current page."""
    target: list[Scalar] = field(default_factory=lambda: ["target", "ref"])
    """Arguments whose value is the reference of a page element."""
    description: list[Scalar] = field(default_factory=lambda: list(_DESCRIPTIONS))
    """Arguments in which the agent describes a page element. These descriptions are neither used nor shown."""
    content: list[WrittenElement] = []
    """Parts of a page that may have been written by anybody."""
    passing: list[WrittenElement] = []
    """Parts of a page that change by themselves and do not affect a user's consent, such as a clock."""
    looks: list[Scalar] = []
    """Patterns that match the full address of read-only pages. Opening one of these pages changes nothing."""
    fields: list[Scalar] = []
    """Patterns that match the full name of fields on read-only pages. Typing into such a field changes nothing else."""


class ToolsFile(Struct, frozen=True, forbid_unknown_fields=True):
    tools: dict[str, WrittenTool | None] = {}
    actions: dict[str, WrittenAction | None] = {}
    otherwise: dict[str, Scalar] = {}
    """For each tool with actions, the answer to a call that performs no declared action."""
    unread: dict[str, list[Scalar]] = {}
    """For each tool with actions, the harmless arguments. They do not affect which actions a call performs."""
    secrets: dict[str, list[Scalar]] = {}
    """For each tool, the arguments that may contain a secret. If one seems to, the call matches no action."""
    ordinary: list[Scalar] = []
    """Patterns for the names of files whose contents are harmless, such as `*.py`."""
    settings: list[Scalar] = []
    """Patterns for the names of files and folders that configure programs or run, such as `.*` and `conftest.py`."""
    runs: list[Scalar] = []
    """Commands that run without approval, such as `pytest [-q] *paths*`."""
    tables: dict[str, WrittenTable | None] = {}
    """The tables of the database, keyed by the name that SQL statements use."""
    pages: WrittenPages | None = None
    from_: Scalar = field(name="from", default="")
    refused: Scalar = ""
    """The default of `refused` for tools that set neither `refused` nor `surely_refused`."""
    surely_refused: Scalar = ""
    """The default of `surely_refused` for tools that set neither `refused` nor `surely_refused`."""


class Tool(Struct, frozen=True):
    name: str
    effect: Effect
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=dict[str, Any])
    """The parameters' JSON schemas, keyed by argument name."""
    required: tuple[str, ...] = ()
    changes: tuple[Scalar | WrittenChange, ...] | None = None
    """The facts that a write makes outdated. None if the pack does not declare them."""
    effects: tuple[WrittenEffect, ...] = ()
    refused: str = ""
    """A pattern for text results which show that the call was not accepted."""
    also_called: tuple[str, ...] = ()
    """Words for the tool's action that are not in the tool's name."""
    others: Any = False
    """Whether additional arguments are allowed: none (`false`), any (`true`), or those that match this schema."""
    surely_refused: str = ""
    """A pattern for errors that prove that a call changed nothing. After other errors, this is unknown."""
    trust: Mapping[str, Trust] = {}
    """For each result field, whether it comes from the system (`record`) or may have been written by anybody
    (`content`). `*` stands for all fields that are not listed. The default is `content`.
    """
    texts: frozenset[str] = frozenset()
    """Arguments that are declared as free text."""
    names: frozenset[str] = frozenset()
    """All property names in the schemas of the arguments. In a record, any other key is treated as a value."""
    mask: frozenset[str] = frozenset()
    """Result fields to hide from the agent, at any depth. Guards and the log still see these fields."""
    mark: bool = False
    """Whether text by other authors is marked as such before the agent sees the result."""
    prepares: bool = False
    """Whether a write only prepares other calls, as signing in does. Users seldom ask for such a write."""
    title: str = ""
    """The name of the tool for users. By default, it is the tool's name, written as words."""
    put_as: tuple[str, ...] = ()
    """Sentences with which the agent asks the user to confirm a call. `{argument}` stands for the argument's value."""
    show: Mapping[str, WrittenCardFact] = {}
    """Additional facts to show to the user, keyed by their names in `put_as`."""
    of: tuple[str, ...] = ()
    """For an action, the tools that can perform it. Empty if this is a tool."""
    is_unsaid: bool = False
    """Whether the write may make undeclared changes. They may affect any record that the arguments name."""

    def __post_init__(self) -> None:
        plain = [name for name, schema in self.parameters.items() if _is_plain_text(schema)]
        force_setattr(self, "texts", frozenset(plain))
        force_setattr(self, "names", frozenset((*self.parameters, *_names([*self.parameters.values()]))))
        force_setattr(self, "is_unsaid", self.effect == "write" and self.changes is None and not self.effects)

    def trusts(self, field: str) -> bool:
        """Whether a result field comes from the system.

        If no field is given, whether a result without fields does. If any field is `content`, text without fields
        counts as `content`, because it is unknown which of its parts are.
        """
        if not field and "content" in self.trust.values():
            return False
        return (self.trust.get(field) or self.trust.get("*")) == "record"

    def vouches_for(self, field: str, within: Iterable[str] = ()) -> bool:
        """Whether a field that is nested in these other fields comes from the system."""
        return self.trusts(field) and "content" not in map(self.trust.get, within)

    def undeclared(self, arguments: Mapping[str, Any]) -> str:
        """Return the first undeclared argument.

        Return an empty string if there is none, or if the tool declares no parameters.
        """
        if not self.parameters or self.others is not False:
            return ""
        return next((name for name in arguments if name not in self.parameters), "")

    def fitted(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the arguments for use in guards, with a `Misfit` in place of each argument that does not match its
        declaration.

        A tool that declares `gold` may or may not accept `Gold`, so a guard must not treat `Gold` as a different
        value. Text such as `"7"` becomes a number if a number is declared, because tools accept it.
        """
        parameters, required, texts = self.parameters, self.required, self.texts
        fitted = arguments
        for name, value in arguments.items():
            if value.__class__ is str and name in texts:
                continue
            if name in parameters and (why := _unfit(parameters[name], value, name in required)):
                fitted = {**fitted, name: Misfit(f"argument `{name}` {why}")}
            elif value.__class__ is str and (number := _number_meant(parameters.get(name), value)) is not None:
                fitted = {**fitted, name: number}
        return fitted


_SHAPES: dict[str, tuple[type, ...]] = {
    "array": (list,),
    "object": (dict,),
    "boolean": (bool,),
    **dict.fromkeys(("string", "integer", "number"), (str, int, float)),
}
_CHOICES = frozenset(("anyOf", "oneOf", "enum"))


def _kinds_of(declared: Mapping[str, Any]) -> list[str]:
    """Return the types that a JSON schema allows. Empty if the schema allows any type."""
    kinds: Any = declared.get("type")
    return [str(kind) for kind in (cast(list[Any], kinds) if isinstance(kinds, list) else [kinds] if kinds else [])]


def _names(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        declared = cast(dict[str, Any], schema)
        if isinstance(declared.get("properties"), dict):
            yield from declared["properties"]
        schema = [*declared.values()]
    for part in cast(list[Any], schema) if isinstance(schema, list) else ():
        yield from _names(part)


def _is_plain_text(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return False
    declared: dict[str, Any] = schema  # pyright: ignore[reportUnknownVariableType]
    return declared.get("type") == "string" and declared.keys().isdisjoint(_CHOICES)


_WHOLE = re.compile(r"[+-]?[0-9]+")
_PLAIN_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(\.[0-9]{1,6})?")
"""Matches a number that is unambiguous and fits into a float. `007`, `1e3` and `1,000` do not match and stay text."""


def _number_meant(schema: Any, text: str) -> int | float | None:
    """Return the number that a text contains, if the schema allows only numbers."""
    if not isinstance(schema, dict):
        return None
    declared = cast(dict[str, Any], schema)
    kinds = {*_kinds_of(declared)} - {"null"}
    plain = _PLAIN_NUMBER.fullmatch(text)
    if plain is None or not kinds or not kinds <= {"integer", "number"} or not _CHOICES.isdisjoint(declared):
        return None
    if plain[1]:
        return float(text) if "number" in kinds else None
    return int(text)


def _unfit(schema: Any, value: Any, is_required: bool) -> str:
    """Return why an argument does not match its declaration.

    A number and its text form are equivalent, as they are for tools.
    """
    if not isinstance(schema, dict):
        return ""
    declared: dict[str, Any] = schema  # pyright: ignore[reportUnknownVariableType]
    words, kind = declared.get("enum"), declared.get("type")
    if words is None and isinstance(kind, str) and value.__class__ in _SHAPES.get(kind, ()):
        return ""
    if value.__class__ is str and isinstance(words, list) and value in words:
        return ""
    kinds = _kinds_of(declared)
    if value is None:
        nullable = not is_required or "null" in kinds or not kinds
        return "" if nullable or (isinstance(words, list) and None in words) else "is null"
    if isinstance(words, list) and value not in words:
        return "is not one of its declared values"
    if not {*kinds} - {"null"} or not {*kinds} - {"null"} <= _SHAPES.keys():
        return ""
    fits = any(isinstance(value, _SHAPES[kind]) for kind in kinds if kind != "null")
    return "" if fits else f"is not of type {' or '.join(kinds)}"


def misfit(tool: Tool | None, arguments: Mapping[str, Any]) -> str:
    """Return what is wrong with the arguments of a write that has not run yet.

    Empty if the tool declares no parameters. This check is stricter than `fitted`, which reads logs: a log shows what
    the tool did with the call.
    """
    if tool is None or tool.effect != "write":
        return ""
    for name in tool.required:
        if arguments.get(name) is None:
            return f"argument `{name}` is missing"
    texts = tool.texts
    for name, value in arguments.items():
        if value.__class__ is not str or name not in texts:
            break
    else:
        return ""
    fitted = tool.fitted(arguments)
    if fitted is not arguments and (why := next((v.why for v in fitted.values() if isinstance(v, Misfit)), "")):
        return why
    if not tool.parameters:
        return ""
    for name, value in arguments.items():
        schema = tool.parameters.get(name, tool.others)
        if schema is False:
            takes = ", ".join(f"`{each}`" for each in tool.parameters)
            return f"{tool.name} has no argument `{name}`; it takes {takes}"
        if why := _unlike(schema, value, name):
            return f"argument {why}"
    return ""


def _unlike(schema: Any, value: Any, place: str) -> str:
    """Return how and where a value differs from its declaration, also inside lists and objects.

    Constraints other than types and values are left to the tool.
    """
    if not isinstance(schema, dict) or value is None:
        return ""
    declared = cast(dict[str, Any], schema)
    if declared.get("type") == "string" and value.__class__ is str and _CHOICES.isdisjoint(declared):
        return ""
    for either in ("anyOf", "oneOf"):
        if isinstance(declared.get(either), list):
            found = [_unlike(each, value, place) for each in cast(list[Any], declared[either])]
            return "" if not found or "" in found else found[0]
    if why := _wrong_kind({*_kinds_of(declared)} - {"null"}, value):
        return f"`{place}` is {why}"
    if isinstance(value, list):
        items = enumerate(cast(list[Any], value))
        return next((why for at, each in items if (why := _unlike(declared.get("items"), each, f"{place}[{at}]"))), "")
    if isinstance(value, dict):
        return _unlike_object(declared, cast(dict[str, Any], value), place)
    words = declared.get("enum")
    return f"`{place}` is not one of its declared values" if isinstance(words, list) and value not in words else ""


def _unlike_object(declared: dict[str, Any], value: dict[str, Any], place: str) -> str:
    parts = declared.get("properties")
    if not isinstance(parts, dict):
        return ""
    fields = cast(dict[str, Any], parts)
    for name in declared.get("required") or ():
        if name not in value:
            return f"`{place}.{name}` is missing"
    # As in JSON Schema, undeclared members of an object are allowed by default.
    others = declared.get("additionalProperties", True)
    for name, each in value.items():
        if name not in fields and others is False and "patternProperties" not in declared:
            has = ", ".join(f"`{field}`" for field in fields)
            return f"`{place}.{name}` is not a field of the object; it has {has}"
        if why := _unlike(fields.get(name, others), each, f"{place}.{name}"):
            return why
    return ""


_NAMED = {"array": "a list", "object": "an object", "boolean": "true or false", "string": "text"}
_KINDS = {list: "array", dict: "object", bool: "boolean", str: "string"}


def _wrong_kind(kinds: set[str], value: Any) -> str:
    """Return why a value has none of these types. A number and its text form are equivalent, as they are for tools."""
    kind = _KINDS.get(value.__class__, "number")
    is_numeric = kind in ("number", "string") and not kinds.isdisjoint(("integer", "number"))
    if not kinds or (kind in kinds and kind != "number") or (is_numeric and "string" in kinds):
        return ""
    if not is_numeric:
        requires = " or ".join(sorted(_NAMED.get(each, "a number") for each in kinds))
        return f"{_NAMED.get(kind, 'a number')}, but the tool requires {requires}"
    is_whole = "number" not in kinds
    if is_whole and isinstance(value, str) and not _WHOLE.fullmatch(value.strip()):
        # `1.000` means one to some tools, and a thousand to others.
        return "not a whole number in plain digits, but the tool requires one"
    number = _number(value)
    if number is None:
        return "not a number, but the tool requires one"
    is_so = not is_whole or number == number.to_integral_value()
    return "" if is_so else "not a whole number, but the tool requires one"


def _number(value: Any) -> Decimal | None:
    """Return the number in a value, which is a number or its text form. Tools accept both."""
    try:
        read = Decimal(str(value).strip())
    except InvalidOperation:
        return None
    return read if read.is_finite() else None


Posture = Literal["enforce", "advise", "shadow"]
"""`enforce` stops a denied call. `advise` lets the call run and informs the agent. `shadow` only logs the decision."""

Unguarded = Literal["allow", "ask", "deny"]

Resolve = Literal["agent", "live", "show"]

OnError = Literal["deny", "ask"]
"""The answer to a call that could not be judged because of an error. A write is never allowed."""


class _Checked(Struct, frozen=True):
    """A record whose fields are also validated if it is created in code. Records from files are always validated."""

    def __post_init__(self) -> None:
        """Raise an error for an unknown value, because it might let a call run."""
        for name, kind in get_type_hints(type(self), include_extras=True).items():
            value = getattr(self, name)
            try:
                convert(value, kind)
            except ValidationError as error:
                raise ValueError(f"{name} cannot be `{value}`: {str(error).partition(' - at')[0]}") from None


Seconds = Annotated[float, Meta(gt=0)]


class ApprovalTerms(_Checked, frozen=True, forbid_unknown_fields=True):
    """How long an approval request waits for a reviewer, what happens after that, and how long an approval is valid."""

    timeout: Seconds = 3600.0
    lifetime: Seconds = 86_400.0
    """The time in seconds after which an unused approval expires."""
    default: Literal["reject", "ask"] = "reject"
    """What happens if no reviewer answers in time: the call is rejected, or a reviewer is asked again."""
    stands_in: tuple[str, ...] = ()
    """Policies for which a reviewer may answer in place of the user, if the host does not report the user's messages.
    """


class Postures(_Checked, frozen=True, forbid_unknown_fields=True):
    """The section `shield:` of pack.yaml.

    The posture of a policy overrides that of the tool, which overrides that of the pack.
    """

    posture: Posture = "enforce"
    tools: dict[str, Posture] = field(default_factory=dict[str, Posture])
    policies: dict[str, Posture] = field(default_factory=dict[str, Posture])
    on_error: OnError = "deny"
    on_read_error: Literal["deny", "ask", "allow"] = "deny"
    """The answer to a read that could not be judged. With `allow`, the read runs, and the decision gives the reason."""
    approval: ApprovalTerms = ApprovalTerms()
    delegation: Literal["ask", "follow"] = "ask"
    """If the user refers the agent to written instructions: ask the user, or check calls against the instructions."""
    handover: bool = False
    """Whether another principal may continue a conversation. If so, look-ups are kept, but messages, consent and
    approvals are not. By default, another principal starts a new conversation.
    """
    unguarded: Unguarded | None = None
    """The answer to a write to which no policy applies. The default is to ask under `enforce`, otherwise to allow."""
    unguarded_tools: dict[str, Unguarded] = field(default_factory=dict[str, "Unguarded"])
    """The answer to a write to which no policy applies, keyed by tool. It overrides `unguarded`."""
    resolve: Resolve = "agent"
    """Who makes a missing look-up: the agent, or the shield with the host's tools. With `live`, the shield uses the
    result itself. With `show`, the agent receives the result and repeats its call.
    """

    def of_unguarded(self, tool: str, called: str = "") -> Unguarded:
        """Return the answer to a write to which no policy applies.

        If `tool` is an action, `called` is the tool that performs it.
        """
        unset: Unguarded = "ask" if self.of(tool, called=called) == "enforce" else "allow"
        return self.unguarded_tools.get(tool) or self.unguarded_tools.get(called) or self.unguarded or unset

    def of(self, tool: str, policy: str = "", called: str = "") -> Posture:
        """Return the posture for a call under `policy`.

        If `tool` is an action, `called` is the tool that performs it.
        """
        return self.policies.get(policy) or self.tools.get(tool) or self.tools.get(called) or self.posture
