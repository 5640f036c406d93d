"""Reads OpenAI chat, with one conversation per line or a list of conversations.

Chat messages from other SDKs are converted. If part of a message cannot be read, the message is refused. The module
`parts` reads the parts of messages. The Vercel AI SDK stores calls in `toolInvocations` or `parts`. LangChain stores
the provider's calls in `additional_kwargs`.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import msgspec
from msgspec import Raw, Struct

from bylaw.errors import RecordError, UsageError
from bylaw.text.cost import spend
from bylaw.trace.document import (
    BROKEN,
    Malformed,
    Record,
    conversations_in,
    decode,
    is_list,
    read_each,
    reason,
    trajectory_of,
)
from bylaw.trace.event import TaskOutcome, Trajectory, agent_of_model, tool_definitions
from bylaw.trace.reader import Look
from bylaw.trace.readers.chat import ChatMessage, Function, Id, ToolCall, follow, text_id
from bylaw.trace.readers.parts import (
    call_in,
    check_parts,
    first,
    has_words,
    invocation_answer,
    may_call,
    may_tell,
    words_in,
)
from bylaw.trace.recorded_value import seconds
from bylaw.trace.source import Source
from bylaw.trace.transcript import Transcript

Fields = dict[str, Any]

HARMLESS = frozenset(
    (
        *("annotations", "logprobs", "finish_reason", "finishReason", "stop_reason", "stopReason"),
        *("stop_sequence", "index", "reasoning", "reasoning_content", "reasoning_details", "reasoningContent"),
        *("thinking", "thinking_blocks", "reasoning_text", "reasoningText", "encrypted_content", "signature"),
        *("parsed", "phase", "weight", "prefix", "usage", "model", "status", "metadata", "response_metadata"),
        *("usage_metadata", "provider_specific_fields", "providerMetadata", "provider_metadata"),
        *("providerOptions", "experimental_providerMetadata", "provider", "provider_data", "cache_control"),
        *("cacheControl", "created", "created_at", "createdAt", "updated_at", "updatedAt", "object"),
        *("stop_details", "incomplete_details", "container", "context_management", "system_fingerprint"),
        *("service_tier", "cost", "latency", "tokens", "raw_data", "turn_idx", "example", "revisionId"),
        *("feedback", "rating", "tags", "author", "sender", "user", "username", "user_name", "display_name"),
        *("from", "to", "channel", "title", "source", "uuid", "parent_id", "parentId", "thread_id", "run_id"),
        *("assistant_id", "session_id", "conversation_id"),
    )
)
"""Keys of a message that never contain text, calls or results."""
_TOLD = frozenset(ChatMessage.__struct_fields__)
_ALIASES = {
    "toolCalls": "tool_calls",
    "toolCallId": "tool_call_id",
    "tool_use_id": "tool_call_id",
    "toolUseId": "tool_call_id",
    "functionCall": "function_call",
    "isError": "is_error",
    "toolName": "name",
    "tool_name": "name",
}
"""The names that other SDKs use for the known fields."""
_OWN = frozenset(
    (
        *("parts", "toolInvocations", "tool_invocations", "toolResults", "tool_results", "additional_kwargs"),
        *("text", "attachments", "experimental_attachments", "result"),
    )
)
_PLAIN_ROLES = frozenset(("user", "assistant", "system", "developer", "tool", "function"))
_ROLES = {"model": "assistant", "ai": "assistant", "human": "user"}


class Named(Struct, gc=False, kw_only=True):
    """The fields that may contain a conversation's id."""

    id: Id = None
    conversation_id: Id = None
    session_id: Id = None
    thread_id: Id = None
    custom_id: Id = None


class Described(Named, gc=False, kw_only=True):
    agent: str | None = None
    model: str | None = None
    outcome: Any = None
    success: bool | None = None
    reward: float | None = None
    metadata: dict[str, Any] | None = None
    details: dict[str, Any] | None = None
    tools: list[Any] | None = None
    functions: list[Any] | None = None
    instructions: str | None = None
    context: Any = None
    time: Any = None
    timestamp: Any = None
    start_time: Any = None
    started_at: Any = None
    created_at: Any = None

    @property
    def began(self) -> float | None:
        """Return when the conversation started, if recorded. Messages without a time get this time."""
        told = (self.time, self.timestamp, self.start_time, self.started_at, self.created_at)
        return next((found for each in told if each is not None and (found := seconds(each)) is not None), None)


class ChatConversation(Described, gc=False):
    messages: list[ChatMessage]


class KnownMessage(ChatMessage, forbid_unknown_fields=True, gc=False):
    """A message that has no unknown fields."""


class _KnownConversation(Described, gc=False):
    messages: list[KnownMessage]


class _AnyDialect(Described):
    """A conversation in the format of any SDK, or a Gemini request."""

    messages: list[Fields] | None = None
    contents: list[Fields] | None = None
    system_instruction: Any = None
    systemInstruction: Any = None


_known_conversation: Any = msgspec.json.Decoder(_KnownConversation)
_known_messages: Any = msgspec.json.Decoder(list[KnownMessage])
_any_conversation = msgspec.json.Decoder(_AnyDialect)
_any_messages = msgspec.json.Decoder(list[Fields])


def read_talk(raw: Raw | bytes, *, listed: bool) -> ChatConversation:
    """Read a conversation in the format of any SDK: an object with `messages`, or a plain list."""
    try:
        return ChatConversation(_known_messages.decode(raw)) if listed else _known_conversation.decode(raw)
    except BROKEN:
        pass
    if listed:
        return ChatConversation(_as_chat(decode(_any_messages, raw)))
    given = decode(_any_conversation, raw)
    told = {name: getattr(given, name) for name in Described.__struct_fields__}
    if given.messages is not None:
        return ChatConversation(_as_chat(given.messages), **told)
    if given.contents is None:
        raise Malformed("object missing required field `messages`")
    # In a Gemini request, contents without a role come from the user.
    system = given.system_instruction or given.systemInstruction
    parts = _listed(cast("Fields", system).get("parts")) if isinstance(system, dict) else [system]
    told["instructions"] = "\n".join(text for part in parts if (text := words_in(part))) or given.instructions
    declared = [first(each, ("functionDeclarations", "function_declarations")) for each in given.tools or ()]
    told["tools"] = [tool for each in declared if each is not None for tool in _listed(each)] or given.tools
    return ChatConversation(_as_chat(given.contents, "user"), **told)


def _as_chat(messages: Iterable[Fields], role: str = "") -> list[ChatMessage]:
    return [each for place, message in enumerate(messages) for each in as_chat(message, f"message {place}", role)]


def as_chat(message: Fields, place: str, role: str = "") -> list[ChatMessage]:
    """Return the chat messages in a message of any SDK.

    `role` is used if the message has no role. Raise Malformed for an unknown field that may contain a call or a
    result.
    """
    if is_langchain(message):
        return [chat_message(message)]
    try:
        known = msgspec.convert(message, KnownMessage)
    except msgspec.ValidationError:
        return _translated(message, place, role)
    return [known] if known.role in _PLAIN_ROLES else _translated(message, place, role)


def _translated(message: Fields, place: str, role: str) -> list[ChatMessage]:
    fields = _named(message, place)
    said = fields.get("role") or role
    fields["role"] = _ROLES.get(str(said), said) or None
    extra = fields.pop("additional_kwargs", None)
    if isinstance(extra, dict):
        told = _named(cast("Fields", extra), place)
        fields |= {name: value for name, value in told.items() if not fields.get(name)}
    if fields["role"] is None and fields.get("type") == "reasoning":
        # Neither the thoughts nor their summary are shown to the user.
        fields.pop("summary", None)
    given = {name: fields.pop(name) for name in _OWN if name in fields}
    is_more_said = _check(fields, place, is_silent=not any(given.values()))
    if fields.get("tool_calls") is not None:
        fields["tool_calls"] = [_call(each) for each in _listed(fields["tool_calls"])]
    if isinstance(audio := fields.get("audio"), dict) and not fields.get("content"):
        fields["content"] = cast("Fields", audio).get("transcript")
    if fields["role"] == "tool" and fields.get("content") is None:
        fields["content"] = first({**fields, **given}, ("output", "result", "parts"))
    elif "result" in given and may_tell(given["result"]):
        raise _unknown("result", place)
    made = _converted({name: value for name, value in fields.items() if name in _TOLD}, place)
    if made.role == "tool" or (made.role == "user" and made.tool_call_id not in (None, "")):
        return [made]
    made.content = _content(made.content, given, made.role)
    if is_more_said:
        made.content = [*(_listed(made.content) if made.content is not None else ()), {"type": "field"}]
    return [made, *_invoked(made, given)]


def _content(content: Any, given: Fields, role: str | None) -> Any:
    """Return a message's content, collected from all its fields. Text that repeats the parts is left out."""
    parts = given.get("parts")
    words = content if content not in (None, "") else given.get("text")
    said = list(cast("list[Any]", parts)) if isinstance(parts, list) else []
    files = first(given, ("attachments", "experimental_attachments"))
    if files and role == "user":
        said.append({"type": "file"})
    if not said:
        return words
    if words is None or (isinstance(words, str) and _same(words, said)):
        return said
    return [*(cast("list[Any]", words) if isinstance(words, list) else [words]), *said]


def _same(words: str, parts: Iterable[Any]) -> bool:
    told = "".join(text for part in parts if (text := words_in(part)))
    return "".join(words.split()) in ("", "".join(told.split()))


def _invoked(message: ChatMessage, given: Fields) -> list[ChatMessage]:
    listed = _listed(first(given, ("toolInvocations", "tool_invocations")) or [])
    if any(not isinstance(each, dict) for each in listed):
        raise Malformed("a tool invocation is not an object")
    blocks = [cast("Fields", part) for part in _listed(message.content) if isinstance(part, dict)]
    told = {call[2] for block in blocks if (call := call_in(block))}
    told.update(text_id(call.id) for call in message.tool_calls or ())
    fresh = [each for each in cast("list[Fields]", listed) if text_id(each.get("toolCallId")) not in told]
    if fresh:
        calls = [msgspec.convert(_call(each), ToolCall) for each in fresh]
        message.tool_calls = [*(message.tool_calls or ()), *calls]
    answers = [answer for each in fresh if (answer := invocation_answer(each)) is not None]
    results = _listed(first(given, ("toolResults", "tool_results")) or [])
    answers += [invocation_answer({"state": "result", **cast("Fields", each)}) for each in results]
    return [
        ChatMessage("tool", each.content, tool_call_id=each.id, is_error=each.error, refused=each.refused or None)
        for each in answers
        if each is not None
    ]


def _named(message: Fields, place: str) -> Fields:
    """Rename fields to their known names. If a field occurs under two names, the values must be equal."""
    fields: Fields = {}
    for name, value in message.items():
        ours = _ALIASES.get(name, name)
        if value is None or (value in ([], "") and ours in fields):
            continue
        if fields.get(ours) not in (None, [], "", value):
            raise Malformed(f"{place} contains `{ours}` twice with different values")
        fields[ours] = value
    return fields


def _call(call: Any) -> Any:
    if not isinstance(call, dict):
        return call
    fields = cast("Fields", call)
    if "function" in fields or "custom" in fields:
        return fields
    named = {"id": first(fields, ("id", "toolCallId", "call_id", "toolUseId"))}
    named["name"] = first(fields, ("name", "toolName", "tool_name"))
    return {**fields, **named, "arguments": first(fields, ("arguments", "args", "input"))}


def _check(fields: Fields, place: str, *, is_silent: bool) -> bool:
    """Return whether a user's message has text in an unknown field.

    For other messages, raise Malformed if an unknown field may contain a call or a result. If `is_silent` is set, also
    raise Malformed if the field may contain text.
    """
    unknown = sorted(fields.keys() - _TOLD - HARMLESS - {"audio"})
    if fields["role"] == "user":
        return any(has_words(fields[name]) for name in unknown)
    is_silent = is_silent and not any(fields.get(name) for name in ("content", "tool_calls", "function_call"))
    for name in unknown:
        if (may_tell if is_silent else may_call)(fields[name]):
            raise _unknown(name, place)
    return False


def _unknown(name: str, place: str) -> Malformed:
    return Malformed(f"{place} has a field that cannot be read: `{name}`")


def _converted(fields: Fields, place: str) -> ChatMessage:
    try:
        return msgspec.convert(fields, ChatMessage)
    except msgspec.ValidationError as error:
        raise Malformed(f"{place} is malformed: {reason(error)}") from error


def _listed(value: Any) -> Sequence[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [value]


_TYPES = {
    "human": "user",
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "tool": "tool",
    "system": "system",
    "developer": "developer",
    "function": "tool",
}
_CLASSES = {"Human": "human", "AI": "ai", "Tool": "tool", "System": "system", "Function": "function"}


class Extra(Struct):
    """The fields of a LangChain message that are in the provider's own format."""

    tool_calls: list[ToolCall] | None = None
    function_call: Function | None = None
    refusal: str | None = None


class MessageBody(Struct):
    """The fields of a LangChain message without its wrapper."""

    content: Any = None
    tool_calls: list[ToolCall] | None = None
    invalid_tool_calls: list[ToolCall] | None = None
    tool_call_id: Id = None
    name: str | None = None
    status: str | None = None
    additional_kwargs: Extra | None = None


def is_langchain(message: dict[str, Any]) -> bool:
    return "lc" in message or (str(message.get("type")) in _TYPES and "role" not in message)


def chat_message(message: dict[str, Any]) -> ChatMessage:
    kind: Any = message.get("type")
    recorded: Any = message
    if "lc" in message:
        path = message.get("id")
        name = str(cast(list[Any], path)[-1]) if isinstance(path, list) and path else ""
        kind = next((kind for start, kind in _CLASSES.items() if name.startswith(start)), kind)
        recorded = message.get("kwargs")
    elif "data" in message:
        recorded = message["data"]
    role = _TYPES.get(str(kind))
    if role is None:
        raise Malformed(f"a message has the unknown type `{kind}`")
    try:
        body = msgspec.convert(recorded, MessageBody)
    except msgspec.ValidationError as error:
        raise Malformed(f"a message is malformed: {reason(error)}") from error
    extra = body.additional_kwargs or Extra()
    return ChatMessage(
        role=role,
        content=body.content,
        tool_calls=_langchain_calls(body, extra),
        tool_call_id=body.tool_call_id,
        name=body.name,
        is_error=True if body.status == "error" else None,
        function_call=extra.function_call,
        refusal=extra.refusal,
    )


def _langchain_calls(body: MessageBody, extra: Extra) -> list[ToolCall]:
    calls = [*(body.tool_calls or ()), *(body.invalid_tool_calls or ())]
    told = {text_id(call.id) for call in calls}
    return calls + [call for call in extra.tool_calls or () if not calls or text_id(call.id) not in told]


MOST = 4096
"""The maximum number of records to hold back because a later record may continue them."""
MOST_BYTES = 32 << 20
_NAMES = ("id", "conversation_id", "session_id", "thread_id", "custom_id")


class _Head(Named, gc=False):
    """The fields that show whether one record continues another record. Messages are not decoded."""

    messages: list[Raw]
    metadata: dict[str, Any] | None = None
    agent: str | None = None
    context: Any = None


_head = msgspec.json.Decoder(_Head)


def without_beginnings(pieces: Iterator[Record | RecordError]) -> Iterator[Record | RecordError]:
    """Yield the records in order, but leave out a record that a later record continues."""
    waiting: dict[int, tuple[Record | RecordError, str, _Head | None]] = {}
    latest: dict[str, int] = {}
    """The number of the latest held record for each id."""
    size = 0
    for number, piece in enumerate(pieces):
        id, head = _head_of(piece)
        earlier = latest.get(id)
        if earlier is not None and _goes_on(head, waiting[earlier][2]):
            size -= _size(waiting.pop(earlier)[0])
        if id:
            latest[id] = number
        waiting[number] = piece, id, head
        size += _size(piece)
        while waiting and (len(waiting) > MOST or size > MOST_BYTES or not latest):
            first = next(iter(waiting))
            ready, id, _ = waiting.pop(first)
            size -= _size(ready)
            if latest.get(id) == first:
                del latest[id]
            yield ready
    yield from (piece for piece, _, _ in waiting.values())


def _size(piece: Record | RecordError) -> int:
    return 0 if isinstance(piece, RecordError) else len(memoryview(piece.raw))


def named_by(told: Any, about: dict[str, Any]) -> str:
    for name in _NAMES:
        if id := text_id(getattr(told, name)):
            return id
    return next((id for name in _NAMES[1:4] if (id := text_id(about.get(name)))), "")


def _head_of(piece: Record | RecordError) -> tuple[str, _Head | None]:
    try:
        head = None if isinstance(piece, RecordError) else _head.decode(piece.raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        head = None
    return ("", None) if head is None else (named_by(head, head.metadata or {}), head)


def _goes_on(long: _Head | None, short: _Head | None) -> bool:
    if long is None or short is None or len(long.messages) <= len(short.messages):
        return False
    if (long.agent, long.context) != (short.agent, short.context):
        return False
    return all(bytes(one) == bytes(other) for one, other in zip(short.messages, long.messages, strict=False))


FORMAT = "openai"


def read(source: Source, found: Look) -> Iterator[Trajectory | RecordError]:
    pieces = without_beginnings(conversations_in(source, found.layout, single=found.single))
    wanted = pieces if found.single else source.wanted(pieces)
    return read_each(source, wanted, lambda record: conversation(source, record))


def conversation(source: Source, record: Record) -> Trajectory:
    talk = read_talk(record.raw, listed=is_list(record))
    transcript = Transcript()
    if talk.instructions:
        transcript.instruct(talk.instructions)
    transcript.time = talk.began
    follow(talk.messages, transcript)
    about = talk.metadata or {}
    vouched: Any = talk.context
    return trajectory_of(
        source,
        record,
        transcript,
        FORMAT,
        id=named_by(talk, about),
        agent=talk.agent or _model(talk, about),
        outcome=outcome_of(talk),
        details={**about, **talk.details} if talk.details else about,
        context=cast("dict[str, Any]", vouched) if isinstance(vouched, dict) else {},
        tools=tool_definitions(talk.tools or talk.functions),
    )


def _model(talk: ChatConversation, about: dict[str, Any]) -> str:
    agent = about.get("agent")
    if isinstance(agent, str):
        return agent
    return agent_of_model(talk.model) if talk.model else ""


def outcome_of(talk: ChatConversation) -> TaskOutcome | None:
    """Return the outcome from the first of these fields that exists: `outcome`, `success`, `reward`."""
    match talk.outcome:
        case bool(good):
            return TaskOutcome(good, "outcome")
        case str(word) if word.lower() in {"success", "succeeded", "good", "pass", "passed"}:
            return TaskOutcome(True, "outcome")
        case str(word) if word.lower() in {"failure", "failed", "bad", "fail"}:
            return TaskOutcome(False, "outcome")
        case {"good": bool(good), **rest}:
            return TaskOutcome(good, str(rest.get("source", "outcome")))
        case {"success": bool(good)}:
            return TaskOutcome(good, "outcome.success")
        case _:
            pass
    if talk.success is not None:
        return TaskOutcome(talk.success, "success")
    if talk.reward is not None:
        return TaskOutcome(is_full_reward(talk.reward), "reward")
    return None


def is_full_reward(reward: float) -> bool:
    """Whether a reward is 1, the maximum, within rounding."""
    return reward >= 1 - 1e-6


READING = 20
"""The cost of reading one message."""


def follow_messages(messages: Iterable[Any], transcript: Transcript) -> None:
    """Add messages to a transcript.

    The messages are dicts or SDK objects in the format of OpenAI, Anthropic or LangChain. If any message cannot be
    read, raise UsageError and add none of them.
    """
    try:
        chat = [each for place, message in enumerate(messages) for each in _read(message, place)]
        for place, message in enumerate(chat):
            if message.role == "user" and message.agent:
                # A message to an inner agent does not come from the user.
                message.name = message.name or message.agent
            if message.role == "assistant" and message.content.__class__ is list:
                check_parts(message.content, f"message {place}")
        follow(chat, transcript)
    except Malformed as error:
        raise UsageError(str(error), hint="pass messages as they were sent to the model") from error


def _read(message: Any, place: int) -> list[ChatMessage]:
    spend(READING)
    dump = getattr(message, "model_dump", None)
    record: Any = dump(mode="json") if callable(dump) else message
    if not isinstance(record, dict):
        kind = type(message).__name__
        raise UsageError(f"message {place} is a `{kind}`", hint="pass a dict, or an object with `model_dump`")
    return as_chat(cast("dict[str, Any]", record), f"message {place}")
