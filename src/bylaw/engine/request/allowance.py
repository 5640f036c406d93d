"""Defines what a request allows: the actions that it needs, the permitted sources of each argument, and a description.

An allowance depends only on the user's words and the tool catalogue. It is determined before anything else is read. The
design follows Progent's least privilege and ShieldAgent's action plans.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

import msgspec
from msgspec import Struct

from bylaw.facts.provenance import Traced
from bylaw.policy.tool import Tool

Fill = Literal["said", "found", "free", "open"]
"""How an argument may be filled.

`said`: as stated by the user. `found`: from a source that the user named. `open`: either of these two. `free`: composed
by the agent.
"""
Order = Literal["most", "least"]


class Span(Struct, frozen=True, array_like=True):
    """A range of characters in the user's words. The log stores ranges instead of words."""

    start: int
    end: int


class Source(Struct, frozen=True, omit_defaults=True):
    """A source of a value: the tool that shows the value, and the names by which the user referred to the source."""

    tool: str = ""
    named: tuple[Span, ...] = ()


class Choice(Struct, frozen=True):
    """Selects the entity with the highest or lowest value of a field."""

    field: str
    order: Order


class Limit(Struct, frozen=True, omit_defaults=True):
    """A limit on a field: a number, a date or a time of day, written in digits."""

    field: str
    least: str | None = None
    most: str | None = None


class Slot(Struct, frozen=True, omit_defaults=True):
    name: str
    fill: Fill
    said: tuple[Span, ...] = ()
    sources: tuple[Source, ...] = ()
    choice: Choice | None = None
    limits: tuple[Limit, ...] = ()
    every: bool = False
    """Whether all matching entities are meant. If False, each source provides one entity."""
    but: tuple[Span, ...] = ()
    """The user's words for matching entities to exclude."""
    field: str = ""
    """The field of the record that the user wants."""
    factor: float | None = None
    """A shown amount is multiplied by this factor, and then `plus` is added."""
    plus: float = 0.0
    clear: bool = False
    """Whether the time must be free: it must not overlap anything that the sources show."""
    minutes: int | None = None
    """The duration in minutes, used if the value is the end of a period."""
    value: str | float | bool | None = None
    """The user's words, converted to a value that the tool accepts."""
    must: tuple[Span, ...] = ()
    """The user's words (numbers, dates, times and names) that the text must contain."""
    judged: tuple[Span, ...] = ()
    """Words that identify the entity but cannot be compared with the results by code."""


class Deed(Struct, frozen=True, omit_defaults=True):
    """An action that the request needs: one or more calls to one tool."""

    tool: str
    asked: tuple[Span, ...] = ()
    """The words that ask for the action."""
    slots: tuple[Slot, ...] = ()

    def slot(self, name: str) -> Slot | None:
        """Return how an argument may be filled, or None if the request does not mention the argument."""
        return next((slot for slot in self.slots if slot.name == name), None)


class Delegation(Struct, frozen=True, omit_defaults=True):
    """An instruction to follow the instructions in a text, as in "do what the letter says"."""

    asked: tuple[Span, ...] = ()
    sources: tuple[Source, ...] = ()


class Allowance(Struct, frozen=True, omit_defaults=True):
    deeds: tuple[Deed, ...] = ()
    delegations: tuple[Delegation, ...] = ()
    faults: tuple[str, ...] = ()
    """Errors in the model's answer. The parts of the answer with errors allow nothing."""
    unread: str = ""
    """Why the request could not be read. If set, the user must be asked about each action."""

    def may_need(self, tool: Tool) -> bool:
        """Whether the request may need a tool: because the tool only reads or prepares, or because it was or may have
        been asked for.
        """
        return not is_deed(tool) or tool.prepares or bool(self.delegations or self.unread or self.deeds_of(tool.name))

    @property
    def digest(self) -> str:
        """The id of the allowance in the log."""
        return hashlib.sha256(msgspec.json.encode(self, order="sorted")).hexdigest()[:16]

    def deeds_of(self, tool: str) -> tuple[Deed, ...]:
        return tuple(deed for deed in self.deeds if deed.tool == tool)


ReadRequest = Callable[[str], Allowance]
"""Determines what a request allows, using only the user's words."""

ParameterKind = Literal["link", "address", "text", "moment", "number", "flag", "name"]
_TEXT_NAMES = "body content text message subject title description note comment summary reason location"
_TEXTS = frozenset(_TEXT_NAMES.split())
_LINKS = frozenset(("url", "uri", "link", "href", "webpage", "website"))
_MOMENTS = frozenset(("date", "time", "day", "start", "end", "when", "until", "deadline"))
_FORMATS: dict[str, ParameterKind] = {
    "uri": "link", "url": "link", "email": "address", "date": "moment", "date-time": "moment", "time": "moment",
    "text": "text", "name": "name",
}  # fmt: skip
_MOST = 4096
_NAMES = frozenset(("id", "ids", "name", "file", "code", "account", "number"))


def parameter_kind(name: str, schema: object) -> ParameterKind:
    """Return the kind of an argument from its declared format and type or, if it has none, from its name."""
    declared: Mapping[str, object] = schema if isinstance(schema, Mapping) else {}  # pyright: ignore[reportUnknownVariableType]
    words = set(name.lower().replace("-", "_").split("_"))
    kind, form = declared.get("type"), declared.get("format")
    if isinstance(form, str) and form in _FORMATS:
        return _FORMATS[form]
    if words & _LINKS:
        return "link"
    if "email" in words:
        return "address"
    if kind == "boolean" or "enum" in declared:
        return "flag"
    if kind in ("number", "integer") and not words & _NAMES:
        return "number"
    if words & _MOMENTS:
        return "moment"
    if words & _TEXTS and not words & _NAMES:
        return "text"
    return "name"


_KINDS: dict[int, tuple[Tool, dict[str, ParameterKind]]] = {}
"""A cache keyed by the tool's Python id. The cache keeps the tool alive, so the id is not reused."""


def kinds_of(tool: Tool) -> Mapping[str, ParameterKind]:
    known = _KINDS.get(id(tool))
    if known is None or known[0] is not tool:
        if len(_KINDS) > _MOST:
            _KINDS.clear()
        kinds: dict[str, ParameterKind] = {
            name: parameter_kind(name, schema) for name, schema in tool.parameters.items()
        }
        known = _KINDS[id(tool)] = (tool, kinds)
    return known[1]


def is_deed(tool: Tool) -> bool:
    """Whether a tool may be called only at the user's request, because it changes something or contacts a website."""
    return tool.effect == "write" or fetches(tool)


def fetches(tool: Tool) -> bool:
    """Whether a read-only tool contacts an address that it receives as an argument."""
    return tool.effect != "write" and "link" in kinds_of(tool).values()


def told(allowance: Allowance, request: str) -> list[str]:
    """Return one line per action, with the words of the `request` that ask for it."""
    lines: list[str] = []
    for deed in allowance.deeds:
        slots = "; ".join(f"{slot.name} {_fill(slot, request)}" for slot in deed.slots)
        asked = f" ({_quoted(deed.asked, request)})" if deed.asked else ""
        lines.append(f"{deed.tool}{asked}{': ' if slots else ''}{slots}")
    lines += [
        f"anything that a document or message asks for ({_quoted(each.asked, request)})"
        for each in allowance.delegations
    ]
    return [
        "The request, as read by a model, asks for:",
        *(f"  {line}" for line in lines or ["no change"]),
    ]


def _fill(slot: Slot, request: str) -> str:
    match slot.fill:
        case "said":
            meant = f" ({slot.value})" if slot.value is not None else ""
            return (
                f"is {_quoted(slot.said, request)}{meant}{_which(slot, request)}"
                if slot.said
                else "is what the user said"
            )
        case "found":
            said = f" ({_quoted(slot.said, request)})" if slot.said else ""
            every = "every one that is found" if slot.every else "found"
            of = f" as its {slot.field}" if slot.field else ""
            return f"is {every}{said}{_places(slot, ' in ', request)}{of}{_which(slot, request)}"
        case "free":
            return f"may have any value{_places(slot, ', from ', request)}{_which(slot, request)}"
        case "open":
            return "is a value that the user said or a result shows"


def _places(slot: Slot, before: str, request: str) -> str:
    places = " or ".join(_place(each, request) for each in slot.sources)
    return f"{before}{places}" if places else ""


def _which(slot: Slot, request: str) -> str:
    bounds = [(limit.field, way, bound) for limit in slot.limits for way, bound in _bounds(limit)]
    chosen = [f", with the {slot.choice.order} {slot.choice.field}"] if slot.choice else []
    share = [f", {slot.factor or 1:g} times what is shown{f' {slot.plus:+g}' if slot.plus else ''}"]
    share = share if slot.factor or slot.plus else []
    when = [f", {slot.minutes} minutes"] if slot.minutes else []
    when += [", when no other event takes place"] if slot.clear else []
    must = [f", with {_quoted(slot.must, request)}"] if slot.must else []
    but = [f", but not {_quoted(slot.but, request)}"] if slot.but else []
    judged = [f", as only a reader can tell: {_quoted(slot.judged, request)}"] if slot.judged else []
    limits = [f", {field} at {way} {bound}" for field, way, bound in bounds]
    return "".join([*chosen, *limits, *share, *when, *must, *but, *judged])


def _bounds(limit: Limit) -> list[tuple[str, str]]:
    return [(way, bound) for way, bound in (("least", limit.least), ("most", limit.most)) if bound]


def _place(source: Source, request: str) -> str:
    named = f" of {_quoted(source.named, request)}" if source.named else ""
    return f"{source.tool or 'any result'}{named}"


def _quoted(spans: Iterable[Span], request: str) -> str:
    words = (" ".join(request[span.start : span.end].split()) for span in spans)
    return ", ".join(f'"{each[:80]}"' for each in words)


Why = Literal[
    "not_asked", "done", "unread", "unheard", "delegated", "not_said", "not_found", "not_chosen", "left_out", "link",
    "too_much", "as_shown", "unsaid", "in_part", "not_given", "not_meant", "not_looked_at",
]  # fmt: skip
_WORDS: dict[Why, str] = {
    "not_asked": "the request does not ask for this",
    "done": "the requested change was already made, or may have been",
    "unread": "the request could not be read: {value}",
    "unheard": "the user may have said more since the request, but their messages are unknown",
    "delegated": "the request leaves the decision to the contents of a document",
    "not_said": "{value} (`{argument}`) is not what the user said{origin}",
    "not_found": "{value} (`{argument}`) was neither said by the user nor found in a place that the user named{origin}",
    "not_chosen": "{value} (`{argument}`) may not be the one that the user asked for",
    "left_out": "{value} (`{argument}`) may be something that the user excluded",
    "link": "the text contains unapproved content: {value}{origin}",
    "as_shown": "{value} (`{argument}`) should be calculated, but a result shows exactly this value",
    "in_part": "{value} (`{argument}`) may not be exactly what the user said",
    "not_given": "the call omits `{argument}`, but the user stated or described it",
    "unsaid": "the text does not contain {value}",
    "not_meant": "{value} (`{argument}`) may not be what the user means, according to a model",
    "not_looked_at": "no model has confirmed that this call is what the user means",
    "too_much": "{value} (`{argument}`) goes beyond what the user said and the results show",
}


class Objection(Struct, frozen=True):
    """Why the request does not cover a call."""

    why: Why
    argument: str = ""
    value: str = ""
    traced: Traced | None = None

    def __str__(self) -> str:
        value = self.value if self.why == "unread" else f"`{self.value[:80]}`"
        return _WORDS[self.why].format(value=value, argument=self.argument, origin=self._from())

    def _from(self) -> str:
        traced = self.traced
        if traced is None or traced.source in ("user", "host"):
            return ""
        if traced.source == "agent":
            return "; it has no known source"
        place = f" (`{traced.field}`)" if traced.field else ""
        return f"; it came from a result of `{traced.tool}`{place}"
