"""What happens in a conversation: messages, tool calls and tool results, in order.

A step is an event's position in its trajectory. Instructions (system prompts) are not events.
An agent turn that says something and calls two tools is three events that share one `turn`.
"""

import re
from typing import Any, Literal, cast, final

import msgspec
from msgspec import Raw, Struct

from bylaw.trace.recorded_value import decode_json, either, merged

Party = Literal["user", "agent"]

NOT_DONE = ("Not done yet: not allowed", "Not done yet: look this up first", "Not done yet: ask first")
"""How the text begins that a shield returns in place of a result, for a call it refused before it ran."""
MAY_BE_DONE, IS_DONE = "May have been done", "Done"
"""How that text begins if the same call was made before."""
HOOK = r"PreToolUse:\S+ hook error: "
"""What the Claude agent puts before the message of a hook that blocked a call."""
_HOOK = re.compile(HOOK)
_NOT_DONE = tuple(f"{each} (" for each in (*NOT_DONE, "Not allowed, and not done"))
"""Followed by the name of the refused tool; anything else that begins so is a tool's own result."""
REFUSALS = ("Not ", "PreToolUse:", f"{MAY_BE_DONE} (")
"""How a result begins that a shield may have written."""


def tells_refusal(text: str) -> bool:
    """Whether a result is a shield's refusal, not the tool's own text."""
    if not text.startswith(REFUSALS):
        return False
    if hook := _HOOK.match(text):
        text = text[hook.end() :]
    return text.startswith(_NOT_DONE)


@final
class Card(Struct, frozen=True, omit_defaults=True):
    """A call in plain words, to be shown to the user; kept with the refused call it was made for."""

    id: str
    digest: str
    """Of the tool and its arguments: the card is valid for this exact call."""
    text: str
    expires: float | None = None
    """Seconds since the epoch; after that, no answer to the card counts, nor does a call based on one."""


@final
class Confirmation(Struct, frozen=True, omit_defaults=True):
    """The user's answer to a card, as the host reports it."""

    card: str
    yes: bool
    by: str = ""
    """How it was given, or who reports it, as the host describes it."""
    after: int | None = None
    """How many messages the user had seen when they answered, if the host reports it."""


@final
class Message(Struct, frozen=True, tag="message", gc=False):
    """Something the user or the agent said."""

    by: Party
    text: str
    turn: int = 0
    """Events of one turn share a number; it grows along the trajectory."""
    agent: str = ""
    """Which agent spoke or was spoken to, if a trajectory has several; empty for the main one."""
    time: float | None = None
    """Seconds since the epoch, if the source records it."""
    captured: bool = True
    """False if the source recorded that something was said but not what."""
    confirmation: Confirmation | None = None
    """The user's answer to a card that the host showed; the message then has no text."""
    handover: dict[str, Any] | None = None
    """The context that the host vouches for from here on, if another principal continues the conversation. The message
    has no text, and earlier messages do not count as the new principal's."""


@final
class Approved(Struct, frozen=True, omit_defaults=True):
    """A reviewer's approval of one call, as recorded in a decision log."""

    by: str
    policies: tuple[str, ...]
    """The policies that asked for it."""
    note: str = ""
    approval: str = ""
    """Its id in the log."""
    time: float | None = None

    def __str__(self) -> str:
        note = f": {self.note}" if self.note else ""
        return f"approved by {self.by}{f' ({self.approval})' if self.approval else ''}{note}"


@final
class LookedUp(Struct, frozen=True, omit_defaults=True):
    """A look-up that a shield made itself before it decided on a call; its result is true."""

    tool: str
    arguments: dict[str, Any]
    content: str
    failed: bool = False
    shown: bool = False
    """Whether the agent was shown the result in place of the call's own (`resolve: show`)."""


@final
class Call(Struct, frozen=True, tag="call", gc=False):
    """A tool call. Calls of one turn do not see each other's results."""

    tool: str
    arguments: dict[str, Any]
    id: str = ""
    """The source's own id; may be empty, reused or duplicated."""
    by: Party = "agent"
    turn: int = 0
    agent: str = ""
    fault: str = ""
    """Why the arguments cannot be used: not captured, not JSON, not an object."""
    time: float | None = None
    refused: bool = False
    """Whether it was refused before it ran, by a shield or a person: attempted, never done."""
    approved: Approved | None = None
    """The reviewer who approved it, if a shield asked for one."""
    looked_up: tuple[LookedUp, ...] = ()
    """What a shield looked up for it (`resolve: live` or `show`)."""
    card: Card | None = None
    """For a refused call: the card to show to the user, who may confirm it."""
    refused_by_result: bool = False
    """Whether only its result says that it was refused; a tool could write that too."""
    context: dict[str, Any] | None = None
    """Context that the host vouches for from this call on; it adds to or replaces earlier context."""


@final
class Result(Struct, frozen=True, tag="result", dict=True):
    """What a tool returned. `content` is kept as it came, and decoded when first asked for."""

    call: int | None
    """Step of the call this answers; None for a result that answers no call in the trajectory."""
    content: str | Raw
    """Text, or JSON not yet decoded."""
    error: bool | None = None
    """Whether the source marks it as failed; None if the source does not say."""
    captured: bool = True
    """False if the source recorded that a result came but not its content."""
    tool: str = ""
    agent: str = ""
    time: float | None = None
    refused: bool | None = None
    """For a failure: True if the tool did not run, False if a shield could not tell whether it ran, None if unknown."""

    def value(self) -> Any:
        """The content as data: decoded if it is JSON or printed by Python, else the text itself.

        All callers share one object, so it must not be changed.
        """
        kept: Any = self.__dict__
        if "data" not in kept:
            content = self.content
            kept["data"] = decode_text(content) if isinstance(content, str) else _data(content)
        return kept["data"]

    @property
    def text(self) -> str:
        """The content as text, whether or not it came as JSON."""
        content = self.content
        return content if isinstance(content, str) else bytes(content).decode("utf-8", "replace")

    def is_json(self) -> bool:
        """Whether the content looks like JSON by its first characters."""
        content = self.content
        if isinstance(content, str):
            return content.startswith(_OPENINGS) or _JSON.match(content) is not None
        return True


Event = Message | Call | Result

_OPENINGS = ('{"', '[{"', "[]")
"""How nearly all JSON results begin."""
_JSON = re.compile(r"""[\s\[{]*["\d\]}-]|[\s\[]*(?:true|false|null)\b""")
_PRINTED = re.compile(r"\s*(?:[{\[(]|[A-Za-z_][\w.]*[(=]|None\s*$|True\s*$|False\s*$)")
_PART = {"type", "text", "content", "annotations", "meta", "_meta"}


_NOTE = "\n\n[bylaw] "


def _data(content: Raw) -> Any:
    try:
        return _unwrapped(decode_json(content))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return bytes(content).decode("utf-8", "replace")


def with_note(text: str, note: str) -> str:
    """A result followed by a shield's advice."""
    return f"{text}{_NOTE}{note}"


def decode_text(text: str) -> Any:
    """`text` as data if it is JSON or printed by Python; unchanged otherwise, or if it is nested too deep."""
    if _NOTE in text:
        text = text.partition(_NOTE)[0]
    try:
        return _unwrapped(decode_json(text))
    except (msgspec.DecodeError, RecursionError):
        pass
    if not _PRINTED.match(text):
        return text
    from bylaw.trace.python_text import NotPython, read_python

    try:
        return _unwrapped(read_python(text))
    except NotPython:
        return text


def _unwrapped(value: Any) -> Any:
    """A tool's own data, without the text part or MCP result that wraps it."""
    if type(value) is list:
        listed: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
        text = _part_text(listed[0]) if len(listed) == 1 else None
        return listed if text is None else decode_text(text)
    if type(value) is not dict:
        return value
    record: dict[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
    parts = record.get("content")
    if parts is None and "text" not in record:
        return record
    if "text" in record or type(parts) is str:
        text = _part_text(record)
        return record if text is None else decode_text(text)
    if type(parts) is not list or record.get("isError"):
        return record
    inner = record.get("structuredContent")
    if isinstance(inner, dict | list):
        return _as_text_tells(cast("dict[str, Any] | list[Any]", inner), cast("list[Any]", parts))
    text = _part_text(parts[0]) if len(cast("list[Any]", parts)) == 1 and "isError" in record else None
    return record if text is None else decode_text(text)


def _as_text_tells(inner: Any, parts: list[Any]) -> Any:
    """The structured data of an MCP result, compared with its text, which hosts may show to the agent instead.

    Prose next to the data is ignored; a JSON text with other values contradicts the data.
    """
    texts = [text for part in parts if (text := _part_text(part)) is not None]
    if not texts or len(texts) < len(parts):
        return inner
    if inner.__class__ is dict and list(cast("dict[str, Any]", inner)) == ["result"]:
        return {"result": _result_as_text_tells(inner["result"], texts)}
    told = decode_text(texts[0]) if len(texts) == 1 else None
    return merged(inner, told) if isinstance(told, dict | list) else inner


def _result_as_text_tells(result: Any, texts: list[str]) -> Any:
    """The same for a value that is not an object, which servers wrap in one; each item of a list may be a text part."""
    told = [decode_text(text) for text in texts]
    if result.__class__ is list and not (len(told) == 1 and isinstance(told[0], list)):
        items: list[Any] = result
        is_each = len(items) == len(texts)
        said = [item if item == text else data for item, text, data in zip(items, texts, told, strict=is_each)]
        return merged(items, said) if is_each else either(items, told)
    if len(texts) > 1 or result == texts[0]:
        return result
    is_prose = isinstance(told[0], str) and not isinstance(result, str)
    return result if is_prose else merged(result, told[0])


def _part_text(part: Any) -> str | None:
    """The text of a part that has nothing but text."""
    if type(part) is not dict:
        return None
    fields = cast("dict[str, Any]", part)
    text = fields["text"] if "text" in fields else fields.get("content")
    return text if fields.get("type") == "text" and type(text) is str and fields.keys() <= _PART else None
