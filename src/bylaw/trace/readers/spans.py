"""Joins spans of model calls and tool runs into conversations.

Every model call repeats its history, so model calls whose histories have a common start are merged. A conversation may
consist of many traces, which are joined by session. Without a session, two traces are joined if the history of one
continues that of the other.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, field

from bylaw.errors import RecordError
from bylaw.trace.document import UNREADABLE, fault_of
from bylaw.trace.event import Call, Event, Message, Result, Trajectory, agent_of_model, tool_definitions
from bylaw.trace.readers.chat import ChatMessage, ToolCall, follow, name_and_arguments, object_of, text_id
from bylaw.trace.readers.recorded import MessageMark, call_mark, marks, tool_arguments
from bylaw.trace.recorded_value import NOT_CAPTURED, read_content
from bylaw.trace.source import Source
from bylaw.trace.transcript import Transcript

T = TypeVar("T")


def attempt(what: str, make: Callable[[], T], outline: Callable[[], dict[str, Any]]) -> "T | Generation | str":
    """Build a model call or a tool run from a span.

    If the span is unreadable, return a model call that contains the error. If the span's outline is unreadable too,
    return only the error.
    """
    try:
        return make()
    except UNREADABLE as error:
        why = f"{what}: {fault_of(error)}"
    try:
        return Generation(history=[], output=[], fault=why, **outline())
    except UNREADABLE:
        return why


def lineage(each: T | None, id_of: Callable[[T], str], parent_of: Callable[[T], T | None]) -> Iterator[T]:
    """Yield a span, its parent, the parent's parent, and so on. Stop at a cycle."""
    visited: set[str] = set()
    while each is not None and (id := id_of(each)) not in visited:
        visited.add(id)
        yield each
        each = parent_of(each)


class Generation(Struct):
    """A model call with its input history and its output."""

    start: float
    history: list[ChatMessage]
    output: list[ChatMessage]
    session: str = ""
    trace: str = ""
    agent: str = ""
    model: str = ""
    tools: Sequence[Any] = ()
    called: bool = False
    """Whether the source says that the model called tools. The calls may be missing."""
    fault: str = ""
    """Why the model call is unreadable. If set, its whole conversation is reported as an error."""


class ToolRun(Struct):
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


def is_instruction(message: ChatMessage) -> bool:
    """Whether a message contains the host's instructions to the model."""
    return message.role in {"system", "developer"}


def main_calls(generations: Iterable[Generation], runs: Sequence[ToolRun]) -> list[Generation]:
    """Return the model calls that belong to conversations. Calls by helpers, and failed attempts, are left out."""
    groups: dict[str, list[Generation]] = {}
    for each in generations:
        groups.setdefault(each.session or each.trace, []).append(each)
    ran: dict[str, Counter[MessageMark]] = {}
    for run in runs:
        made = ToolCall(name=run.tool, arguments=tool_arguments(run.arguments))
        ran.setdefault(run.session or run.trace, Counter())[call_mark(made)] += 1
    kept: list[Generation] = []
    for key, group in groups.items():
        if len(group) > 1:
            group = _without_helpers(group)
            group = list(_without_failed(group, ran.get(key, Counter())))
        kept += group
    return kept


def _without_helpers(group: list[Generation]) -> list[Generation]:
    """Remove helpers' model calls, such as those of routers or title writers.

    A helper makes no tool calls, its instructions differ from the acting agent's, and its first text is not in the
    agent's histories.
    """
    acting = [each for each in group if _acts(each)]
    if not any(message.role == "assistant" for each in acting for message in each.history):
        return group
    agents = {each.agent for each in acting}
    instructed = {_instructions(each) for each in acting}
    others = [each for each in group if each.agent in agents and _instructions(each) not in instructed]
    if not others:
        return group
    known = {mark for each in acting for mark in (*_told(each), *_said(each))}
    helpers = [id(each) for each in others if (told := _told(each)) and not _acts(each) and told[0] not in known]
    return [each for each in group if id(each) not in helpers]


def _without_failed(group: list[Generation], ran: Counter[MessageMark]) -> Iterator[Generation]:
    """Remove failed attempts at a model call.

    If an input has several outputs, drop the outputs that no later history continues. If no output is continued, keep
    all of them, except duplicates with the same call ids.
    """
    same: dict[object, list[Generation]] = {}
    for each in group:
        same.setdefault((each.agent, len(each.history), _instructions(each)), []).append(each)
    failed: set[int] = set()
    for each in same.values():
        attempts: dict[tuple[MessageMark, ...], list[Generation]] = {}
        for one in each if len(each) > 1 else ():
            if one.output:
                attempts.setdefault(tuple(_exactly(one.history)), []).append(one)
        for given, several in attempts.items():
            if len(several) > 1:
                failed |= _failed(given, several, group, ran)
    return (each for each in group if id(each) not in failed)


def _failed(
    given: tuple[MessageMark, ...], several: list[Generation], group: list[Generation], ran: Counter[MessageMark]
) -> set[int]:
    made = Counter(mark for each in several for mark in _said(each))
    if any(ran[mark] > 1 and ran[mark] >= count for mark, count in made.items()):
        return set()  # All of the calls were executed.
    later = [told for each in group if len(told := _exactly(each.history)) > len(given)]
    told_of = [each for each in several if any(_goes_on(told, given, _exactly(each.output)) for told in later)]
    # Treat equal outputs as one output.
    used = {tuple(_exactly(each.output)): id(each) for each in told_of or several}
    are_alike = {ids for ids in used if any(mark[0] == "call" and mark[-1] for mark in ids)}
    if not told_of and not (len(used) == 1 and are_alike):
        return set()
    return {id(each) for each in several} - set(used.values())


def _goes_on(told: list[MessageMark], given: tuple[MessageMark, ...], said: list[MessageMark]) -> bool:
    return bool(said) and tuple(told[: len(given)]) == given and told[len(given) :][: len(said)] == said


def _acts(generation: Generation) -> bool:
    told = (*generation.history, *generation.output)
    return generation.called or any(message.tool_calls or message.function_call is not None for message in told)


def _instructions(generation: Generation) -> tuple[str, ...]:
    return tuple(str(message.content) for message in generation.history if is_instruction(message))


def _told(generation: Generation) -> list[MessageMark]:
    return [mark for message in generation.history if not is_instruction(message) for mark in marks(message)]


def _said(generation: Generation) -> list[MessageMark]:
    return [mark for message in generation.output for mark in marks(message)]


def _exactly(messages: Iterable[ChatMessage]) -> list[MessageMark]:
    found: list[MessageMark] = []
    for message in messages:
        calls = message.tool_calls
        found += [(*call_mark(call), text_id(call.id)) for call in calls] if calls else marks(message)
    return found


class Thread(Struct):
    """The messages that one agent has seen and sent."""

    agent: str
    label: str
    seen: list[MessageMark] = field(default_factory=list[MessageMark])
    calls: set[MessageMark] = field(default_factory=set[MessageMark])
    """The known calls that have ids."""


class Dialogue(Struct):
    """A conversation that is being built."""

    id: str
    transcript: Transcript = field(default_factory=Transcript)
    threads: list[Thread] = field(default_factory=list[Thread])
    waiting: list[ToolRun] = field(default_factory=list[ToolRun])
    """Tool runs that no history contains yet."""
    placed: set[int] = field(default_factory=set[int])
    """The steps of calls whose tool runs are known."""
    answered: set[str] = field(default_factory=set[str])
    """The ids of calls whose results came from tool runs. Later histories repeat these results."""
    generations: int = 0
    bare: int = 0
    """The number of model calls whose messages were not captured."""
    hidden_calls: int = 0
    """The number of model calls that were not captured but that made tool calls, according to the source."""
    tools: Sequence[Any] = ()
    model: str = ""
    agent: str = ""
    """The name of the first agent that speaks, if its spans name the agent."""

    def add(self, generation: Generation) -> None:
        """Add the messages of a model call that are new, from its history and output."""
        self.generations += 1
        self.model = self.model or generation.model
        self.agent = self.agent or generation.agent
        self.tools = self.tools or generation.tools
        if not generation.history and not generation.output:
            self.bare += 1
            self.hidden_calls += generation.called
            self.place_until(generation.start)
            return
        history = [message for message in generation.history if not is_instruction(message)]
        told = _told(generation)
        thread, known = self._thread(generation.agent, told)
        fresh: list[ChatMessage] = [message for message in generation.history if is_instruction(message)]
        position = 0
        for message in history:
            position += len(marks(message))
            if position > known and (new := self._beyond(message, thread)) is not None:
                fresh.append(new)
        for message in (*fresh, *generation.output):
            message.agent = thread.label
            thread.calls.update((text_id(call.id), call_mark(call)) for call in message.tool_calls or ())
        self.transcript.time = generation.start or None
        # Prefer the result in the history, because the model saw this version.
        follow(fresh, self.transcript)
        self.place_until(generation.start)
        self.transcript.time = generation.start or None
        follow(generation.output, self.transcript)
        thread.seen = told + _said(generation)

    def _thread(self, agent: str, told: list[MessageMark]) -> tuple[Thread, int]:
        """Return the thread that a history continues, and how many of the history's messages the thread already has."""
        same = [thread for thread in self.threads if thread.agent == agent]
        # An agent that receives the whole conversation continues that conversation's thread.
        same = same or [each for each in self.threads if 1 < len(each.seen) == _shared(each.seen, told)]
        best = max(same, key=lambda thread: _shared(thread.seen, told), default=None)
        if best is not None:
            shared = _shared(best.seen, told)
            if shared:
                return best, shared
            # If the host uses a sliding window, the history starts in the middle of the known messages.
            for length in range(min(len(best.seen), len(told)), 0, -1):
                if best.seen[-length:] == told[:length]:
                    return best, length
            return best, 0
        label = "" if not self.threads else agent or f"agent-{len(self.threads) + 1}"
        thread = Thread(agent, label)
        self.threads.append(thread)
        return thread, 0

    def _beyond(self, message: ChatMessage, thread: Thread) -> ChatMessage | None:
        if message.role == "tool" and text_id(message.tool_call_id) in self.answered:
            return None
        calls = message.tool_calls
        if not calls:
            return message
        left = [call for call in calls if not self._is_known(call, thread)]
        if len(left) == len(calls):
            return message
        return msgspec.structs.replace(message, content=None, tool_calls=left) if left else None

    def _is_known(self, call: ToolCall, thread: Thread) -> bool:
        if id := text_id(call.id):
            return (id, call_mark(call)) in thread.calls
        # A call without an id is already known if it repeats a call that has no result.
        name, arguments = name_and_arguments(call)
        return any(
            isinstance(event, Call) and event.tool == name and event.arguments == object_of(arguments)
            for step, event in enumerate(self.transcript.events)
            if step in self.transcript.open
        )

    def place_until(self, time: float) -> None:
        """Add the tool runs that ended before this time."""
        for run in [run for run in self.waiting if run.end <= time]:
            self.waiting.remove(run)
            self.transcript.time = run.end or None
            self._place(run)

    def _place(self, run: ToolRun) -> None:
        label = next((thread.label for thread in self.threads if thread.agent == run.agent), "")
        step = self._call_of(run)
        if step is None:
            step = len(self.transcript.events)
            self.transcript.begin_turn()
            self.transcript.call(run.tool, run.arguments, run.id, agent=label)
        self.placed.add(step)
        call = self.transcript.events[step]
        if step in self.transcript.open:
            id = call.id if isinstance(call, Call) else ""
            self.answered.add(id or run.id or run.tool)
            self.transcript.answer(run.result, id, run.tool, agent=label, error=run.error, captured=run.captured)
        else:
            self._complete(step, run)

    def _call_of(self, run: ToolRun) -> int | None:
        """Return the step of a tool run's call.

        It is found by id or by arguments, or else it is the tool's first call.
        """
        calls = [
            (step, event)
            for step, event in enumerate(self.transcript.events)
            if isinstance(event, Call) and event.tool == run.tool and step not in self.placed
        ]
        given = object_of(run.arguments)
        for step, call in calls:
            if run.id and call.id == run.id:
                return step
        same = (step for step, call in calls if call.arguments == given)
        return next(same, calls[0][0] if calls else None)

    def _complete(self, step: int, run: ToolRun) -> None:
        events = self.transcript.events
        at = next((at for at, event in enumerate(events) if isinstance(event, Result) and event.call == step), None)
        result = events[at] if at is not None else None
        if at is None or not isinstance(result, Result):
            return
        own = Result(step, read_content(run.result), captured=run.captured)
        is_data = own.is_json() and isinstance(own.value(), dict | list)
        if run.captured and (not result.captured or (not result.is_json() and is_data)):
            result = msgspec.structs.replace(result, content=own.content, captured=True)
        if run.error and not result.error:
            result = msgspec.structs.replace(result, error=True)
        events[at] = result


def weave(
    source: Source, found: Iterable[Generation | ToolRun | str], format: str
) -> Iterator[Trajectory | RecordError]:
    """Return the conversations in model calls and tool runs, ordered by start time.

    A string in the input is an error message.
    """
    generations: list[Generation] = []
    runs: list[ToolRun] = []
    for each in found:
        if isinstance(each, Generation):
            generations.append(each)
        elif isinstance(each, ToolRun):
            runs.append(each)
        else:
            yield source.fault(len(generations), each)
    dialogues: dict[str, Dialogue] = {}
    ends: dict[MessageMark, str] = {}
    """For each conversation without a session, the last known history."""
    spans: list[Generation | ToolRun] = sorted([*main_calls(generations, runs), *runs], key=lambda span: span.start)
    traces: dict[str, str] = {}
    faults: dict[str, str] = {}
    for span in spans:
        key = span.session or traces.get(span.trace, "")
        if not key:
            key = _continued(span, ends) if isinstance(span, Generation) else ""
            key = traces[span.trace] = key or span.trace
        dialogue = dialogues.setdefault(key, Dialogue(key))
        if isinstance(span, Generation) and span.fault:
            faults.setdefault(key, span.fault)
            continue
        try:
            if isinstance(span, ToolRun):
                dialogue.waiting.append(span)
            else:
                dialogue.add(span)
                if not span.session and dialogue.threads:
                    ends[tuple(dialogue.threads[0].seen)] = key
        except UNREADABLE as error:
            faults.setdefault(key, fault_of(error))
    for position, (key, dialogue) in enumerate(dialogues.items()):
        dialogue.place_until(float("inf"))
        if key in faults:
            yield source.fault(position, f"conversation `{key}`: {faults[key]}")
            continue
        if not dialogue.generations:
            # Report an error, because without the messages, rules about messages would seem to be broken.
            yield source.fault(position, f"conversation `{key}`: only tool runs were recorded, without a model call")
            continue
        if dialogue.bare and (dialogue.hidden_calls > len(dialogue.placed) or not dialogue.transcript.events):
            how_many = f"{dialogue.bare} of {dialogue.generations} model calls"
            yield source.fault(position, f"conversation `{key}`: content capture was off for {how_many}")
            if not dialogue.transcript.events:
                continue
        yield _trajectory(source, dialogue, position, format)


def _continued(generation: Generation, ends: dict[MessageMark, str]) -> str:
    """Return the id of the conversation that this history continues, or an empty string.

    Conversations without an answer do not count.
    """
    told = tuple(_told(generation))
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
        agent=source.agent
        or dialogue.agent
        or (agent_of_model(dialogue.model) if dialogue.model else source.agent_by_name),
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


def _shared(seen: list[MessageMark], told: list[MessageMark]) -> int:
    count = 0
    for one, other in zip(seen, told, strict=False):
        if one != other:
            break
        count += 1
    return count
