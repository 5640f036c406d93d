"""The events of a conversation: messages, tool calls and tool results.

A step is the index of an event in its trajectory. System prompts are not events. If an agent sends text and two calls
at once, these are three events with the same `turn`.
"""

import hashlib
import re
from array import array
from collections.abc import Iterable, Sequence
from typing import Any, Literal, cast, final

import msgspec
from msgspec import Raw, Struct, field

from bylaw.trace.recorded_value import decode_json, either, merged

Party = Literal["user", "agent"]

NOT_DONE = ("Not done yet: not allowed", "Not done yet: look this up first", "Not done yet: ask first")
"""The start of the result that a shield returns for a call that was refused before its execution."""
MAY_BE_DONE, IS_DONE = "May have been done", "Done"
"""The start of the result that a shield returns for a repeated call: it may have been executed, or it was."""
HOOK = r"PreToolUse:\S+ hook error: "
"""The start of the message that the Claude agent receives if a hook blocked a call."""
_HOOK = re.compile(HOOK)
_NOT_DONE = tuple(f"{each} (" for each in (*NOT_DONE, "Not allowed, and not done"))
"""A refusal starts with one of these phrases and the name of the refused tool. Any other text is a tool's own result.
"""
REFUSALS = ("Not ", "PreToolUse:", f"{MAY_BE_DONE} (")
"""The possible starts of a result that a shield wrote."""


def tells_refusal(text: str) -> bool:
    """Whether a result is a shield's refusal and not the tool's own text."""
    if not text.startswith(REFUSALS):
        return False
    if hook := _HOOK.match(text):
        text = text[hook.end() :]
    return text.startswith(_NOT_DONE)


@final
class Card(Struct, frozen=True, omit_defaults=True):
    """A description of a refused call, which the user may confirm."""

    id: str
    digest: str
    """A digest of the tool and its arguments. The card is valid for exactly this call."""
    text: str
    expires: float | None = None
    """When the card expires, in seconds since the epoch. An answer after this time is not accepted, nor is a call
    based on it.
    """


@final
class Confirmation(Struct, frozen=True, omit_defaults=True):
    """The user's answer to a card, as reported by the host."""

    card: str
    yes: bool
    by: str = ""
    """Who reports the answer, or how the user gave the answer, in the host's words."""
    after: int | None = None
    """How many messages the user had seen before answering. None if the host does not report the number."""


@final
class Message(Struct, frozen=True, tag="message", gc=False):
    """A message from the user or the agent."""

    by: Party
    text: str
    turn: int = 0
    """The number of the turn. It never decreases."""
    agent: str = ""
    """The name of the inner agent that sent or received the message. Empty for the main agent."""
    time: float | None = None
    """The time of the message in seconds since the epoch, if it was recorded."""
    captured: bool = True
    """Whether the text of the message was recorded."""
    confirmation: Confirmation | None = None
    """The user's answer to a card. A message with an answer has no text."""
    handover: dict[str, Any] | None = None
    """The context of a new principal. A message with a handover has no text. Earlier messages came from another
    principal.
    """


@final
class Approved(Struct, frozen=True, omit_defaults=True):
    """A reviewer's approval of one call, as recorded in a decision log."""

    by: str
    policies: tuple[str, ...]
    """The policies that required the approval."""
    note: str = ""
    approval: str = ""
    """The id of the approval in the decision log."""
    time: float | None = None

    def __str__(self) -> str:
        note = f": {self.note}" if self.note else ""
        return f"approved by {self.by}{f' ({self.approval})' if self.approval else ''}{note}"


@final
class LookedUp(Struct, frozen=True, omit_defaults=True):
    """A look-up that a shield made itself before it decided on a call. The result of this look-up is reliable."""

    tool: str
    arguments: dict[str, Any]
    content: str
    failed: bool = False
    shown: bool = False
    """Whether the agent received the look-up's result instead of the result of its call (`resolve: show`)."""


@final
class Call(Struct, frozen=True, tag="call", gc=False):
    """A tool call. Calls in one turn do not see each other's results."""

    tool: str
    arguments: dict[str, Any]
    id: str = ""
    """The id from the source. It may be empty, or equal to the id of another call."""
    by: Party = "agent"
    turn: int = 0
    agent: str = ""
    fault: str = ""
    """Why the arguments cannot be used: they were not captured, are not JSON, or are not an object."""
    time: float | None = None
    refused: bool = False
    """Whether a shield or reviewer refused the call before it was executed."""
    approved: Approved | None = None
    """The reviewer's approval, if the shield required approval."""
    looked_up: tuple[LookedUp, ...] = ()
    """The look-ups that the shield made for the call (`resolve: live` or `show`)."""
    card: Card | None = None
    """The card that a user can confirm, if the call was refused."""
    refused_by_result: bool = False
    """Whether only the text of the result shows that the call was refused. A tool could return the same text."""
    context: dict[str, Any] | None = None
    """The new context from the host, valid from this call on. It is added to the earlier context and takes precedence.
    """


@final
class Result(Struct, frozen=True, tag="result", dict=True):
    """A tool's result. `content` is decoded on first use."""

    call: int | None
    """The step of the call, or None if no call matches."""
    content: str | Raw
    """The content as text or undecoded JSON."""
    error: bool | None = None
    """Whether the source marks the result as failed. None if the source does not say."""
    captured: bool = True
    """Whether the content of the result was recorded."""
    tool: str = ""
    agent: str = ""
    time: float | None = None
    refused: bool | None = None
    """For a failed result, whether the tool was not executed. False if a shield could not tell, None if unknown."""

    def value(self) -> Any:
        """The decoded content: data if it is JSON or a printed Python value, otherwise text. Do not modify the data."""
        kept: Any = self.__dict__
        if "data" not in kept:
            content = self.content
            kept["data"] = decode_text(content) if isinstance(content, str) else _data(content)
        return kept["data"]

    @property
    def text(self) -> str:
        content = self.content
        return content if isinstance(content, str) else bytes(content).decode("utf-8", "replace")

    def is_json(self) -> bool:
        """Whether the first characters look like JSON."""
        content = self.content
        if isinstance(content, str):
            return content.startswith(_OPENINGS) or _JSON.match(content) is not None
        return True


Event = Message | Call | Result

_OPENINGS = ('{"', '[{"', "[]")
"""The first characters of nearly all JSON results."""
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
    return f"{text}{_NOTE}{note}"


def decode_text(text: str) -> Any:
    """Return the value if `text` is JSON or a printed Python value.

    Return other text, and deeply nested values, unchanged.
    """
    if _NOTE in text:
        text = text.partition(_NOTE)[0]
    try:
        return _unwrapped(decode_json(text))
    except (msgspec.DecodeError, RecursionError):
        pass
    if not _PRINTED.match(text):
        return text
    from bylaw.trace.recorded_value import NotPython, read_python

    try:
        return _unwrapped(read_python(text))
    except NotPython:
        return text


def _unwrapped(value: Any) -> Any:
    """Return a tool's own data, without the text part or MCP result that wraps it."""
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
    """Return the structured data in an MCP result, compared with the result's text.

    The comparison is needed because hosts may show either to the agent. Prose in the text is ignored. JSON in the text
    that has different values contradicts the data.
    """
    texts = [text for part in parts if (text := _part_text(part)) is not None]
    if not texts or len(texts) < len(parts):
        return inner
    if inner.__class__ is dict and list(cast("dict[str, Any]", inner)) == ["result"]:
        return {"result": _result_as_text_tells(inner["result"], texts)}
    told = decode_text(texts[0]) if len(texts) == 1 else None
    return merged(inner, told) if isinstance(told, dict | list) else inner


def _result_as_text_tells(result: Any, texts: list[str]) -> Any:
    """Compare a value with its text form, in which each item of a list may be a separate text part."""
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
    if type(part) is not dict:
        return None
    fields = cast("dict[str, Any]", part)
    text = fields["text"] if "text" in fields else fields.get("content")
    return text if fields.get("type") == "text" and type(text) is str and fields.keys() <= _PART else None


_SCHEMA_NAMES = ("parameters", "input_schema", "inputSchema", "args_schema")


def tool_definitions(recorded: Iterable[Any] | None) -> Sequence[dict[str, Any]]:
    """Return the tool definitions that have a known structure, with MCP annotations such as `readOnlyHint`."""
    if not recorded:
        return ()
    return tuple(filter(None, map(_definition, recorded)))


def _definition(recorded: Any) -> dict[str, Any] | None:
    match recorded:
        case {"function": {"name": str()} as function, **outer}:
            body: dict[str, Any] = {**outer, **function}  # pyright: ignore[reportUnknownVariableType]
        case {"name": str()}:
            body = recorded  # pyright: ignore[reportUnknownVariableType]
        case _:
            return None
    definition: dict[str, Any] = {"name": body["name"]}
    if isinstance(body.get("description"), str):
        definition["description"] = body["description"]
    for name in _SCHEMA_NAMES:
        if isinstance(body.get(name), dict):
            definition["parameters"] = body[name]
            break
    if isinstance(body.get("annotations"), dict):
        definition["annotations"] = body["annotations"]
    return definition


class TaskOutcome(Struct, frozen=True):
    """Whether a conversation reached its goal, according to the source."""

    good: bool
    source: str
    """The field that contains the outcome, such as `reward` or `reward_info.db_check.db_match`."""


class Trajectory(Struct, frozen=True):
    """A recorded conversation: its participants, its events and, if known, its outcome."""

    id: str
    events: Sequence[Event]
    agent: str = ""
    """The name that results use for the agent, such as the name of its model."""
    outcome: TaskOutcome | None = None
    instructions: str = ""
    """The recorded system prompt."""
    file: str = ""
    position: int = 0
    """The line in `file`, or the index if `file` is a single document."""
    format: str = ""
    details: dict[str, Any] = field(default_factory=dict[str, Any])
    """Other recorded data that packs may use, such as the task id, the trial and other outcomes."""
    context: dict[str, Any] = field(default_factory=dict[str, Any])
    """Facts recorded by the host, such as who is signed in."""
    tools: Sequence[dict[str, Any]] = ()
    """The tool definitions recorded with the conversation, as JSON schemas."""

    @property
    def bears_times(self) -> bool:
        return any(event.time is not None for event in self.events)


_EXTENSIONS = (".gz", ".bz2", ".zst", ".parquet", ".json", ".jsonl", ".ndjson", ".eval", ".log", ".txt")
_DATE = re.compile(r"-\d{4}-\d{2}-\d{2}$")
_PART_NUMBER = re.compile(r"\.\d+$")


class Identities:
    """Makes the ids in an audit unique.

    A repeated id gets the suffix `~2`, `~3`, and so on. The suffixes depend on the order of calls, so pass
    trajectories in the order of files and conversations. Ids are stored as 64-bit digests. If two ids happen to have
    the same digest, the later id gets an unnecessary suffix.
    """

    def __init__(self) -> None:
        self._given = _Digests()
        self._counts: dict[int, int] = {}
        """The last number that was appended to each repeated id."""

    def unique(self, id: str) -> str:
        """Return `id`, or `id~N` if it has been used before."""
        digest = _digest(id)
        if self._given.add(digest):
            return id
        count = self._counts.get(digest, 1) + 1
        while not self._given.add(_digest(candidate := f"{id}~{count}")):
            count += 1
        self._counts[digest] = count
        return candidate

    def __contains__(self, name: str) -> bool:
        return _digest(name) in self._given

    def own(self, trajectory: Trajectory) -> Trajectory:
        id = self.unique(trajectory.id)
        return trajectory if id == trajectory.id else msgspec.structs.replace(trajectory, id=id)


class _Digests:
    """A set of non-zero 64-bit numbers in one flat table with linear probing."""

    def __init__(self) -> None:
        self._table = array("Q", bytes(8 << 10))
        self._mask = len(self._table) - 1
        self._count = 0

    def __contains__(self, digest: int) -> bool:
        return self._table[self._place(digest)] == digest

    def add(self, digest: int) -> bool:
        place = self._place(digest)
        if self._table[place]:
            return False
        self._table[place] = digest
        self._count += 1
        if self._count * 2 > len(self._table):
            self._grow()
        return True

    def _place(self, digest: int) -> int:
        table, mask = self._table, self._mask
        place = digest & mask
        while (here := table[place]) and here != digest:
            place = place + 1 & mask
        return place

    def _grow(self) -> None:
        kept = self._table
        self._table = array("Q", bytes(8 * 2 * len(kept)))
        self._mask = len(self._table) - 1
        for digest in kept:
            if digest:
                self._table[self._place(digest)] = digest


def _digest(id: str) -> int:
    digest = hashlib.blake2b(id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") or 1


def agent_of_file(name: str) -> str:
    """Return the name of a file without its extensions, and without a number at the end such as `.2`."""
    while name.lower().endswith(_EXTENSIONS):
        name = name[: name.rindex(".")]
    return _PART_NUMBER.sub("", name)


def agent_of_model(model: str) -> str:
    """Return the name of a model without its provider. A fine-tuned model becomes `ft-` and its base model."""
    name = model.rsplit("/", 1)[-1]
    if name.startswith("ft:"):
        base = name.split(":")[1]
        return f"ft-{_DATE.sub('', base)}"
    return name
