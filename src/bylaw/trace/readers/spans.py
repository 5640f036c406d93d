"""Spans of model calls and tool runs, put back together into conversations.

Every model call repeats the history that led to it, so calls are merged by what their histories share, not strung
together. One conversation spans many traces: they are joined by session or, where none was recorded, by a history
that continues another one.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import msgspec
from msgspec import Struct, field

from bylaw.errors import RecordError
from bylaw.trace.document import Malformed, tell
from bylaw.trace.event import Call, Event, Message, Result
from bylaw.trace.identity import agent_of_model
from bylaw.trace.readers.chat import ChatMessage, follow, text_id
from bylaw.trace.readers.langchain import chat_message, is_langchain
from bylaw.trace.source import Source
from bylaw.trace.tools import tool_definitions
from bylaw.trace.trajectory import Trajectory
from bylaw.trace.transcript import NOT_CAPTURED, Transcript, plain_text, read_arguments

Mark = tuple[Any, ...]


ODD = (Malformed, msgspec.MsgspecError, AttributeError, IndexError, KeyError, TypeError, ValueError)
"""What reading a span of an unforeseen shape ends in: it is reported, and the others are read."""


def oddity(error: Exception) -> str:
    """What is odd about a span."""
    return str(error) if isinstance(error, Malformed) else f"not in a shape we know: {tell(error)}"


class Generation(Struct):
    """One call of a model: the history it was given and what it said."""

    start: float
    history: list[ChatMessage]
    output: list[ChatMessage]
    session: str = ""
    trace: str = ""
    agent: str = ""
    model: str = ""
    tools: Sequence[Any] = ()
    called: bool = False
    """The source says that it called tools, whether or not it says which."""


class ToolRun(Struct):
    """One run of a tool."""

    start: float
    end: float
    tool: str
    arguments: Any = None
    result: Any = None
    captured: bool = False
    error: bool | None = None
    id: str = ""
    session: str = ""
    trace: str = ""
    agent: str = ""


class Thread(Struct):
    """What one agent has been told and has said so far."""

    agent: str
    label: str
    seen: list[Mark] = field(default_factory=list[Mark])


class Dialogue(Struct):
    """One conversation while it is being put together."""

    id: str
    transcript: Transcript = field(default_factory=Transcript)
    threads: list[Thread] = field(default_factory=list[Thread])
    waiting: list[ToolRun] = field(default_factory=list[ToolRun])
    """Runs that no history has told of yet."""
    runs: dict[str, int] = field(default_factory=dict[str, int])
    """How many runs of each tool have been placed."""
    generations: int = 0
    bare: int = 0
    """Model calls of which no message was captured."""
    hidden_calls: int = 0
    """Bare model calls that made tool calls, as far as the source says."""
    tools: Sequence[Any] = ()
    model: str = ""

    def add(self, generation: Generation) -> None:
        """Add what a model call's history and output have beyond what is known."""
        self.generations += 1
        self.model = self.model or generation.model
        self.tools = self.tools or generation.tools
        if not generation.history and not generation.output:
            self.bare += 1
            self.hidden_calls += generation.called
            self.place_until(generation.start)
            return
        told = [mark(message) for message in generation.history if not _is_instruction(message)]
        thread, known = self._thread(generation.agent, told)
        fresh: list[ChatMessage] = []
        position = 0
        for message in generation.history:
            if _is_instruction(message):
                fresh.append(message)
            else:
                if position >= known:
                    fresh.append(message)
                position += 1
        for message in (*fresh, *generation.output):
            message.agent = thread.label
        self.transcript.time = generation.start or None
        # What the history tells of a run comes first: it is what the model saw.
        follow(fresh, self.transcript)
        self.place_until(generation.start)
        self.transcript.time = generation.start or None
        follow(generation.output, self.transcript)
        thread.seen = told + [mark(message) for message in generation.output]

    def _thread(self, agent: str, told: list[Mark]) -> tuple[Thread, int]:
        """The thread that a history continues and how much of the history it holds already."""
        same = [thread for thread in self.threads if thread.agent == agent]
        best = max(same, key=lambda thread: _shared(thread.seen, told), default=None)
        if best is not None:
            shared = _shared(best.seen, told)
            if shared:
                return best, shared
            # A window that slid: the history begins somewhere within what is known.
            for length in range(min(len(best.seen), len(told)), 0, -1):
                if best.seen[-length:] == told[:length]:
                    return best, length
            return best, 0
        label = "" if not self.threads else agent or f"agent-{len(self.threads) + 1}"
        thread = Thread(agent, label)
        self.threads.append(thread)
        return thread, 0

    def place_until(self, time: float) -> None:
        """Place the runs that had ended by then."""
        for run in [run for run in self.waiting if run.end <= time]:
            self.waiting.remove(run)
            self.transcript.time = run.end or None
            self._place(run)

    def _place(self, run: ToolRun) -> None:
        """Let a tool run answer its call; where the model's side was not captured it stands for the call itself."""
        events = self.transcript.events
        count = self.runs.get(run.tool, 0)
        self.runs[run.tool] = count + 1
        calls = [
            (step, event) for step, event in enumerate(events) if isinstance(event, Call) and event.tool == run.tool
        ]
        label = next((thread.label for thread in self.threads if thread.agent == run.agent), "")
        if count >= len(calls):
            self.transcript.begin_turn()
            self.transcript.call(run.tool, run.arguments, run.id, agent=label)
        elif not self.transcript.is_open(calls[count][0]):
            return
        self.transcript.answer(
            run.result, run.id or _id_at(calls, count), run.tool, agent=label, error=run.error, captured=run.captured
        )


def _id_at(calls: list[tuple[int, Call]], index: int) -> str:
    return calls[index][1].id if index < len(calls) else ""


def weave(
    source: Source, generations: Iterable[Generation], runs: Iterable[ToolRun], format: str
) -> Iterator[Trajectory | RecordError]:
    """The conversations that model calls and tool runs belong to, in the order in which they began."""
    dialogues: dict[str, Dialogue] = {}
    ends: dict[Mark, str] = {}
    """Where a history stood at the end of each conversation that has no session."""
    spans: list[Generation | ToolRun] = sorted([*generations, *runs], key=lambda span: span.start)
    traces: dict[str, str] = {}
    faults: dict[str, str] = {}
    for span in spans:
        key = span.session or traces.get(span.trace, "")
        if not key:
            key = _continued(span, ends) if isinstance(span, Generation) else ""
            key = traces[span.trace] = key or span.trace
        dialogue = dialogues.setdefault(key, Dialogue(key))
        try:
            if isinstance(span, ToolRun):
                dialogue.waiting.append(span)
            else:
                dialogue.add(span)
                if not span.session and dialogue.threads:
                    ends[tuple(dialogue.threads[0].seen)] = key
        except ODD as error:
            faults.setdefault(key, oddity(error))
    for position, (key, dialogue) in enumerate(dialogues.items()):
        dialogue.place_until(float("inf"))
        if key in faults:
            yield source.fault(position, f"conversation `{key}`: {faults[key]}")
            continue
        if dialogue.bare and (dialogue.hidden_calls > sum(dialogue.runs.values()) or not dialogue.transcript.events):
            how_many = f"{dialogue.bare} of {dialogue.generations} model calls"
            yield source.fault(position, f"conversation `{key}`: content capture was off for {how_many}")
            if not dialogue.transcript.events:
                continue
        yield _trajectory(source, dialogue, position, format)


def _continued(generation: Generation, ends: dict[Mark, str]) -> str:
    """The conversation whose end this history contains; it must have got as far as an answer."""
    told = tuple(mark(message) for message in generation.history if not _is_instruction(message))
    for length in range(len(told) - 1, 1, -1):
        if key := ends.pop(told[:length], ""):
            return key
    return ""


def _trajectory(source: Source, dialogue: Dialogue, position: int, format: str) -> Trajectory:
    transcript = dialogue.transcript
    details: dict[str, Any] = {"model_calls": dialogue.generations}
    if dialogue.bare or any(_is_hidden(event) for event in transcript.events):
        details["content_captured"] = False
    return Trajectory(
        id=dialogue.id or f"{source.name}#{position}",
        events=transcript.events,
        agent=source.agent or (agent_of_model(dialogue.model) if dialogue.model else source.agent_by_name),
        instructions="\n\n".join(transcript.instructions),
        file=source.name,
        position=position,
        format=format,
        details=details,
        tools=tool_definitions(dialogue.tools),
    )


def _is_hidden(event: Event) -> bool:
    match event:
        case Call():
            return event.fault == NOT_CAPTURED
        case Result():
            return not event.captured
        case Message():
            return False


def _is_instruction(message: ChatMessage) -> bool:
    return message.role in {"system", "developer"}


def _shared(seen: list[Mark], told: list[Mark]) -> int:
    count = 0
    for one, other in zip(seen, told, strict=False):
        if one != other:
            break
        count += 1
    return count


def mark(message: ChatMessage) -> Mark:
    """What makes two recordings of a message the same: role, text, and what is called or answered."""
    calls: list[Any] = []
    for call in message.tool_calls or ():
        function = call.function
        name, arguments = call.name, call.arguments if call.args is None else call.args
        if isinstance(function, str):
            name = function
        elif function is not None:
            name, arguments = function.name, function.arguments
        if not isinstance(arguments, dict):
            arguments, _ = read_arguments(arguments)
        calls.append((name, msgspec.json.encode(arguments, order="sorted")))
    if calls:
        # Some instrumentations leave out, in a history, the text that went with calls.
        return message.role, tuple(calls)
    content = message.content
    if isinstance(content, dict):
        content = msgspec.json.encode(content, order="sorted").decode()
    return message.role, plain_text(content), text_id(message.tool_call_id)


def messages_in(recorded: Any, role: str) -> list[ChatMessage]:
    """The messages in whatever a tracer kept as input or output; bare text is said by `role`."""
    if isinstance(recorded, str):
        if recorded[:1] in ("[", "{"):
            try:
                return messages_in(msgspec.json.decode(recorded), role)
            except msgspec.DecodeError:
                pass
        return [ChatMessage(role=role, content=recorded)] if recorded else []
    if isinstance(recorded, list):
        return [message for each in cast(list[Any], recorded) for message in messages_in(each, role)]
    if not isinstance(recorded, dict):
        return []
    value = cast(dict[str, Any], recorded)
    if choices := value.get("choices"):
        return messages_in(choices[0], role)
    if "role" in value and isinstance(value.get("parts"), list):
        return message_of_parts(value)
    for name in ("generations", "message", "messages"):
        if isinstance(value.get(name), list | dict):
            return messages_in(value[name], role)
    return _single(value, role)


def _single(message: dict[str, Any], role: str) -> list[ChatMessage]:
    if is_langchain(message):
        return [chat_message(message)]
    if "role" in message:
        try:
            return [msgspec.convert(message, ChatMessage)]
        except msgspec.ValidationError as error:
            raise Malformed(f"a message is malformed: {error}") from error
    for name in ("input", "output", "content", "prompt"):
        if name in message:
            return messages_in(message[name], role)
    return []


def message_of_parts(message: dict[str, Any]) -> list[ChatMessage]:
    """A message of the GenAI conventions: text, calls and answers are parts of it."""
    texts: list[str] = []
    calls: list[dict[str, Any]] = []
    answers: list[ChatMessage] = []
    for part in cast(list[dict[str, Any]], message["parts"]):
        match part.get("type"):
            case "text":
                texts.append(str(part.get("content") or ""))
            case "tool_call" | "function_call":
                calls.append({"id": part.get("id"), "name": part.get("name"), "arguments": part.get("arguments")})
            case "tool_call_response":
                result = part.get("response", part.get("result"))
                answers.append(ChatMessage(role="tool", content=result, tool_call_id=text_id(part.get("id"))))
            case _:
                # Reasoning, images and files say nothing that can be checked.
                pass
    if answers or message["role"] == "tool":
        return answers
    try:
        spoken = {"role": message["role"], "content": "\n".join(texts) or None, "tool_calls": calls or None}
        return [msgspec.convert(spoken, ChatMessage)]
    except msgspec.ValidationError as error:
        raise Malformed(f"a message is malformed: {error}") from error
