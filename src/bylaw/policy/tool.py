"""A tool that the agent may call, with its effects."""

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
    """Replaces an argument that does not match its declaration. A guard that uses this argument cannot decide."""

    why: str


class WrittenChange(Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of `changes` in tools.yaml: facts that a write makes stale."""

    as_: Scalar = field(name="as", default="")
    fields: Scalar | list[Scalar] = "*"
    key: Scalar | dict[str, Scalar] | None = None
    each: Scalar | None = None
    when: Scalar | None = None


class WrittenEffect(Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of `effects` in tools.yaml: how a write changes a database snapshot."""

    as_: Scalar = field(name="as", default="")
    key: Scalar | dict[str, Scalar] | None = None
    each: Scalar | None = None
    set: dict[str, Any] = {}
    delete: bool = False
    when: Scalar | None = None


class WrittenCardFact(Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of `show` in tools.yaml: an additional fact for a tool's cards and sentences."""

    value: Scalar = ""
    """An expression in the guard language that uses `call` and `facts`."""
    title: Scalar = ""
    currency: Scalar = ""
    unit: Scalar = ""


class WrittenCall(Struct, frozen=True, forbid_unknown_fields=True):
    """The fields that tools and actions share in tools.yaml."""

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
    """An element of a page, under `on`, `within` or `content` of tools.yaml."""

    role: Scalar | list[Scalar] = []
    name: Scalar = ""
    named: Scalar = ""
    """A pattern that occurs in the element's name."""


class WrittenTarget(WrittenElement, frozen=True, forbid_unknown_fields=True):
    """The target element of an action, under `on` of tools.yaml."""

    page: Scalar = ""
    """A pattern for the page's address, excluding the query."""
    url: Scalar = ""
    """A pattern for a link's target."""
    within: WrittenElement | None = None


class WrittenReads(Struct, frozen=True, forbid_unknown_fields=True):
    """How to parse an argument, and the conditions that its content must meet. Under `reads` of tools.yaml."""

    argument: Scalar = ""
    as_: Scalar = field(name="as", default="")
    dialect: Scalar = ""
    statements: list[Scalar] = []
    tables: list[Scalar] = []
    """Patterns for the tables that a statement writes to. If it writes to none, patterns for the tables that it reads.

    Each table must match one of the patterns.
    """
    bounded: bool | None = None
    program: Scalar | list[Scalar] = []
    commands: list[Scalar] = []
    """The whole command, with every word known before it runs, must match one of these patterns."""
    operands: list[Scalar] = []
    """Each of these patterns must match at least one operand of the command."""
    options: list[Scalar] = []
    """Option names. The command has, or may have, one of these options."""
    without_options: list[Scalar] = []
    """Option names. The command must certainly have none of these options."""
    root: Scalar = ""
    """The folder to which paths are relative."""
    inside: bool | Literal["unknown"] | None = None
    """Whether every path is in `root`."""
    ordinary: bool | None = None
    """Whether every file whose contents the call reads or changes is named explicitly and has an ordinary name."""
    settings: bool | None = None
    """Whether the call may change one of the `settings` of tools.yaml."""
    runs: bool | None = None
    """Whether the command is one of the `runs` of tools.yaml."""
    fresh: bool = False
    """Whether each call gets a new shell that starts in `root`."""
    privileged: bool | None = None
    """Whether the command runs as another user."""
    scheme: Scalar = ""
    host: Scalar = ""
    path: Scalar = ""
    query: Scalar = ""


class WrittenTable(Struct, frozen=True, forbid_unknown_fields=True):
    """A table in the database that SQL tools use, under `tables` of tools.yaml."""

    columns: list[Scalar] = []
    keys: list[Scalar] = []
    """The columns that identify a row."""


class WrittenTake(Struct, frozen=True, forbid_unknown_fields=True):
    """A parameter of an action, under `take` of tools.yaml."""

    value: Scalar = ""
    type: Scalar = "text"
    optional: bool = False
    title: Scalar = ""
    within: WrittenElement | None = None
    """The part of the page that shows the value."""


class WrittenAction(WrittenCall, frozen=True, forbid_unknown_fields=True):
    """An action performed by calls to generic tools. Under `actions` of tools.yaml."""

    of: Scalar | list[Scalar] = []
    on: WrittenTarget | None = None
    reads: WrittenReads | None = None
    where: dict[str, Scalar] = {}
    fallback: bool = False
    """Whether the action applies only if no other action does."""
    take: dict[str, Scalar | WrittenTake] = {}


_UNCHANGED_BY: tuple[Scalar, ...] = (
    "browser_console_messages", "browser_find", "browser_network_request*", "browser_take_screenshot",
)  # fmt: skip
_DESCRIPTIONS: tuple[Scalar, ...] = ("element", "startElement", "endElement")


class WrittenPages(Struct, frozen=True, forbid_unknown_fields=True):
    """How a conversation reports browser pages. Under `pages` of tools.yaml."""

    tools: list[Scalar] = field(default_factory=lambda: ["browser_*"])
    """Tools that show or change the page. `*` stands for any text."""
    unchanged_by: list[Scalar] = field(default_factory=lambda: list(_UNCHANGED_BY))
    """Browser tools that neither show nor change the page."""
    not_shown_by: list[Scalar] = field(default_factory=lambda: ["browser_evaluate", "browser_run_code*"])
    """Browser tools whose result comes from code. A snapshot in such a result is ignored."""
    snapshot: Scalar = "browser_snapshot"
    """The tool that shows the current page."""
    target: list[Scalar] = field(default_factory=lambda: ["target", "ref"])
    """Arguments that identify an element by its reference."""
    description: list[Scalar] = field(default_factory=lambda: list(_DESCRIPTIONS))
    """Arguments in which the agent describes the element. Their values are never used or shown."""
    content: list[WrittenElement] = []
    """Parts of a page that anybody may have written."""
    passing: list[WrittenElement] = []
    """Parts of the pages that change by themselves and do not matter to a yes, such as a clock."""
    looks: list[Scalar] = []
    """Patterns for the full addresses of view-only pages. Opening such a page in a browser changes nothing."""
    fields: list[Scalar] = []
    """Patterns for the full names of fields on these pages. Typing into such a field changes nothing but the field."""


class ToolsFile(Struct, frozen=True, forbid_unknown_fields=True):
    tools: dict[str, WrittenTool | None] = {}
    actions: dict[str, WrittenAction | None] = {}
    otherwise: dict[str, Scalar] = {}
    """For a tool with actions: the answer to a call that performs no declared action."""
    unread: dict[str, list[Scalar]] = {}
    """The harmless arguments of each tool with actions."""
    secrets: dict[str, list[Scalar]] = {}
    """For each tool, arguments that may hold a secret. A value that looks like one leaves the call unresolved."""
    ordinary: list[Scalar] = []
    """Patterns for the names of files with harmless contents, such as `*.py`."""
    settings: list[Scalar] = []
    """Patterns for the names of files and folders that programs obey or run, such as `.*` and `conftest.py`."""
    runs: list[Scalar] = []
    """Commands that run without asking anybody, such as `pytest [-q] *paths*`."""
    tables: dict[str, WrittenTable | None] = {}
    """The database's tables, by the names that statements use."""
    pages: WrittenPages | None = None
    from_: Scalar = field(name="from", default="")
    refused: Scalar = ""
    """The default for `refused`. Applies to tools that set neither `refused` nor `surely_refused`."""
    surely_refused: Scalar = ""
    """The default for `surely_refused`. Applies to the same tools."""


class Tool(Struct, frozen=True):
    name: str
    effect: Effect
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=dict[str, Any])
    """JSON schemas by argument name."""
    required: tuple[str, ...] = ()
    changes: tuple[Scalar | WrittenChange, ...] | None = None
    """Facts that a write makes stale. None if the pack does not declare any."""
    effects: tuple[WrittenEffect, ...] = ()
    refused: str = ""
    """A pattern for text results of calls that were not accepted."""
    also_called: tuple[str, ...] = ()
    """Words for the tool's action that do not occur in the tool's name."""
    others: Any = False
    """Additional arguments that are allowed: none, any (`true`), or those that match this schema."""
    surely_refused: str = ""
    """A pattern for errors that prove that a call changed nothing. After any other error, this is unknown."""
    trust: Mapping[str, Trust] = {}
    """For each result field, whether the system vouches for it (`record`) or anybody may have written it (`content`).
    `*` covers all other fields. The default is `content`.
    """
    texts: frozenset[str] = frozenset()
    """Arguments that are declared as free text."""
    names: frozenset[str] = frozenset()
    """All property names in the arguments' schemas. Any other key in a record is treated as a value."""
    mask: frozenset[str] = frozenset()
    """Result fields that are hidden from the agent, at any depth. Guards and the log can still see them."""
    mark: bool = False
    """Whether text by other authors is marked before the agent sees the result."""
    prepares: bool = False
    """Whether a write, such as signing in, only prepares other calls. Requests seldom mention such a write."""
    title: str = ""
    """The name shown to users. The default is the tool's name written as words."""
    put_as: tuple[str, ...] = ()
    """Sentences that agents use to ask the user, with `{argument}` in place of each value."""
    show: Mapping[str, WrittenCardFact] = {}
    """Additional facts shown to the user, keyed by their names in `put_as`."""
    of: tuple[str, ...] = ()
    """For an action: the tools that can perform it. Empty for a tool."""
    is_unsaid: bool = False
    """Whether undeclared changes are possible. They may affect any record that the arguments name."""

    def __post_init__(self) -> None:
        plain = [name for name, schema in self.parameters.items() if _is_plain_text(schema)]
        force_setattr(self, "texts", frozenset(plain))
        force_setattr(self, "names", frozenset((*self.parameters, *_names([*self.parameters.values()]))))
        force_setattr(self, "is_unsaid", self.effect == "write" and self.changes is None and not self.effects)

    def trusts(self, field: str) -> bool:
        """Whether the system vouches for a result field. If no field is given, whether it vouches for a result without
        fields.

        If any field is `content`, text without fields is treated as `content`, because its parts cannot be told apart.
        """
        if not field and "content" in self.trust.values():
            return False
        return (self.trust.get(field) or self.trust.get("*")) == "record"

    def vouches_for(self, field: str, within: Iterable[str] = ()) -> bool:
        """Whether the system vouches for a field nested inside these other fields."""
        return self.trusts(field) and "content" not in map(self.trust.get, within)

    def undeclared(self, arguments: Mapping[str, Any]) -> str:
        """Return the first undeclared argument. Empty if there is none or if the tool declares no parameters."""
        if not self.parameters or self.others is not False:
            return ""
        return next((name for name in arguments if name not in self.parameters), "")

    def fitted(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the arguments as guards read them. A `Misfit` replaces each argument that does not match its
        declaration.

        If a tool declares `gold`, it may or may not accept `Gold`, so a guard must not treat `Gold` as a different
        word. Text such as `"7"` is treated as a number if a number is declared, because tools accept it.
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
    """Return the types that a JSON schema allows. Empty if it allows any type."""
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
"""A number that is unambiguous and fits into a float. `007`, `1e3` and `1,000` stay text."""


def _number_meant(schema: Any, text: str) -> int | float | None:
    """Return the number that a string contains, if the schema allows only numbers."""
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
    """Return why an argument does not match its declaration. Tools accept a number and its text form alike."""
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
    """Return what is wrong with a write's arguments before it runs. Empty if the tool declares no parameters.

    A log shows what the tool did with a call. This is not known before the call runs, so this check is stricter than
    `fitted`.
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
    """Return how and where a value differs from its declaration, including inside lists and objects.

    The tool itself checks other constraints in the schema.
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
    # As in JSON Schema, an object may have undeclared members by default.
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
    """Return why a value has none of these types. Tools accept a number and its text form."""
    kind = _KINDS.get(value.__class__, "number")
    is_numeric = kind in ("number", "string") and not kinds.isdisjoint(("integer", "number"))
    if not kinds or (kind in kinds and kind != "number") or (is_numeric and "string" in kinds):
        return ""
    if not is_numeric:
        requires = " or ".join(sorted(_NAMED.get(each, "a number") for each in kinds))
        return f"{_NAMED.get(kind, 'a number')}, but the tool requires {requires}"
    is_whole = "number" not in kinds
    if is_whole and isinstance(value, str) and not _WHOLE.fullmatch(value.strip()):
        # `1.000` means one to some tools and a thousand to others.
        return "not a whole number in plain digits, but the tool requires one"
    number = _number(value)
    if number is None:
        return "not a number, but the tool requires one"
    is_so = not is_whole or number == number.to_integral_value()
    return "" if is_so else "not a whole number, but the tool requires one"


def _number(value: Any) -> Decimal | None:
    """Return a number, given as a number or as text. Tools accept both."""
    try:
        read = Decimal(str(value).strip())
    except InvalidOperation:
        return None
    return read if read.is_finite() else None


Posture = Literal["enforce", "advise", "shadow"]
"""`enforce` stops the call. `advise` lets it run and tells the agent. `shadow` only logs the decision."""

Unguarded = Literal["allow", "ask", "deny"]

Resolve = Literal["agent", "live", "show"]

OnError = Literal["deny", "ask"]
"""The answer to a call that could not be judged. A write is never allowed."""


class _Checked(Struct, frozen=True):
    """A record that validates its fields when code creates it, like records that are read from files."""

    def __post_init__(self) -> None:
        """Raise an error for unknown values. They must never let a call run."""
        for name, kind in get_type_hints(type(self), include_extras=True).items():
            value = getattr(self, name)
            try:
                convert(value, kind)
            except ValidationError as error:
                raise ValueError(f"{name} cannot be `{value}`: {str(error).partition(' - at')[0]}") from None


Seconds = Annotated[float, Meta(gt=0)]


class ApprovalTerms(_Checked, frozen=True, forbid_unknown_fields=True):
    """How long an approval waits for a reviewer, what happens then, and how long the approval is valid."""

    timeout: Seconds = 3600.0
    lifetime: Seconds = 86_400.0
    """The number of seconds after which an unused approval expires."""
    default: Literal["reject", "ask"] = "reject"
    """What happens to a call if no reviewer answers in time: the call is rejected, or a reviewer is asked again."""
    stands_in: tuple[str, ...] = ()
    """Policies for which a reviewer may answer instead of the user if the host does not report user messages."""


class Postures(_Checked, frozen=True, forbid_unknown_fields=True):
    """The section `shield:` of pack.yaml. A policy's posture overrides the tool's, and the tool's the pack's."""

    posture: Posture = "enforce"
    tools: dict[str, Posture] = field(default_factory=dict[str, Posture])
    policies: dict[str, Posture] = field(default_factory=dict[str, Posture])
    on_error: OnError = "deny"
    on_read_error: Literal["deny", "ask", "allow"] = "deny"
    """The answer to a read that could not be judged. With `allow`, the read runs and the decision gives the reason."""
    approval: ApprovalTerms = ApprovalTerms()
    delegation: Literal["ask", "follow"] = "ask"
    """If the user tells the agent to follow written instructions: ask the user, or check calls against them."""
    handover: bool = False
    """Whether another principal may continue a conversation. Look-ups are kept, but messages, consent and approvals are
    not. By default, another principal gets a new conversation.
    """
    unguarded: Unguarded | None = None
    """The answer to a write that no policy applies to. The default is to ask under `enforce` and to allow otherwise."""
    unguarded_tools: dict[str, Unguarded] = field(default_factory=dict[str, "Unguarded"])
    """The answer to such a write, keyed by tool."""
    resolve: Resolve = "agent"
    """Who makes a missing look-up: the agent, or the shield through the host's tools. With `live`, the shield uses the
    result. With `show`, the agent sees the result and repeats the call.
    """

    def of_unguarded(self, tool: str, called: str = "") -> Unguarded:
        """Return the answer to a write to which no policy applies.

        If `called` names a tool, `tool` is an action performed by calls to that tool.
        """
        unset: Unguarded = "ask" if self.of(tool, called=called) == "enforce" else "allow"
        return self.unguarded_tools.get(tool) or self.unguarded_tools.get(called) or self.unguarded or unset

    def of(self, tool: str, policy: str = "", called: str = "") -> Posture:
        """Return the posture for a call under `policy`.

        If `called` names a tool, `tool` is an action performed by calls to that tool.
        """
        return self.policies.get(policy) or self.tools.get(tool) or self.tools.get(called) or self.posture
