"""Reads the results of tau-bench (tau1) and tau2-bench."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field
from msgspec.structs import replace

from bylaw.errors import BylawError, RecordError
from bylaw.trace.document import (
    BROKEN,
    Layout,
    Malformed,
    Record,
    decode,
    documents,
    elements,
    head_in,
    not_json,
    read_each,
    records,
    salvaged,
    trajectory_of,
)
from bylaw.trace.event import Result, TaskOutcome, Trajectory, agent_of_model, tool_definitions
from bylaw.trace.reader import Look
from bylaw.trace.readers.chat import ChatMessage, Function, Id, ToolCall, follow, text_id
from bylaw.trace.readers.openai import is_full_reward
from bylaw.trace.source import Source
from bylaw.trace.transcript import Transcript

_MARK = "Action:"
_ANSWER = "API output: "
_RESPOND = "respond"


class WrittenAction(Struct):
    """The JSON that the agent writes after `Action:`."""

    name: str
    arguments: dict[str, object]


_ACTION = msgspec.json.Decoder(WrittenAction)


def is_react(messages: Sequence[ChatMessage]) -> bool:
    """Whether the agent writes its calls as text: the action in one message, and the output in the next."""
    return not any(message.tool_calls or message.role == "tool" for message in messages) and any(
        _action(asked) is not None and _answer(answered) is not None for asked, answered in pairwise(messages)
    )


def told_as_calls(messages: Sequence[ChatMessage]) -> Iterator[ChatMessage]:
    """Yield the messages, with actions as calls and outputs as results.

    Thoughts are left out, because no user sees them.
    """
    is_asked = False
    for message in messages:
        action = _action(message)
        answer = _answer(message) if is_asked else None
        is_asked = action is not None and action.name != _RESPOND
        if action is not None and is_asked:
            yield ChatMessage("assistant", tool_calls=[ToolCall(function=Function(action.name, action.arguments))])
        elif action is not None:
            yield ChatMessage("assistant", action.arguments.get("content"))
        elif answer is not None:
            yield ChatMessage("tool", answer)
        elif message.role == "assistant" and isinstance(message.content, str):
            # The benchmark passes text that it cannot parse on to the user.
            yield ChatMessage("assistant", message.content.rpartition(_MARK)[2].strip())
        else:
            yield message


def _action(message: ChatMessage) -> WrittenAction | None:
    if message.role != "assistant" or not isinstance(message.content, str):
        return None
    try:
        return _ACTION.decode(message.content.rpartition(_MARK)[2].strip())
    except msgspec.DecodeError:
        return None


def _answer(message: ChatMessage) -> str | None:
    content = message.content
    if message.role == "user" and isinstance(content, str) and content.startswith(_ANSWER):
        return content.removeprefix(_ANSWER)
    return None


class Tick(Struct, gc=False):
    agent_chunk: ChatMessage | None = None
    user_chunk: ChatMessage | None = None
    agent_tool_calls: list[ToolCall] | None = field(default=None)
    user_tool_calls: list[ToolCall] | None = field(default=None)
    agent_tool_results: list[ChatMessage] | None = field(default=None)
    user_tool_results: list[ChatMessage] | None = field(default=None)


def messages_of(ticks: Iterable[Tick]) -> Iterator[ChatMessage]:
    """Yield the messages that the ticks contain, in order. Consecutive chunks from one speaker become one message."""
    spoken = ChatMessage()
    for message in _flat(ticks):
        if message.role != "tool" and not message.tool_calls and not message.content:
            continue
        is_speech = message.role != "tool" and not message.tool_calls and isinstance(message.content, str)
        if is_speech and message.role == spoken.role:
            spoken.content += message.content
            continue
        if spoken.role:
            yield spoken
            spoken = ChatMessage()
        if is_speech:
            spoken = ChatMessage(message.role, message.content)
        else:
            yield message
    if spoken.role:
        yield spoken


def _flat(ticks: Iterable[Tick]) -> Iterator[ChatMessage]:
    for tick in ticks:
        said = tick.agent_chunk.content if tick.agent_chunk else None
        yield ChatMessage("assistant", said, tick.agent_tool_calls)
        yield from tick.agent_tool_results or ()
        said = tick.user_chunk.content if tick.user_chunk else None
        yield ChatMessage("user", said, tick.user_tool_calls)
        yield from tick.user_tool_results or ()


_ABSENT = Raw(b"")


class Tau1Run(Struct, gc=False):
    traj: list[ChatMessage] | None = None
    messages: list[ChatMessage] | None = None
    task_id: Id = None
    trial: int | None = None
    reward: float | None = None


class Environment(Struct):
    domain_name: str | None = None
    policy: str | None = None
    tool_defs: Any = None


class Info(Struct):
    """Fields of a tau2 file that apply to all its simulations."""

    agent_info: dict[str, Any] | None = None
    environment_info: Environment | None = None


class TauResults(Struct):
    """A tau2 file. Its simulations are decoded one by one. They may also be separate files in a folder."""

    simulations: list[Raw] | None = None
    info: Info | None = None
    domain: str | None = None
    simulation_index: Raw = _ABSENT
    messages: Raw = _ABSENT
    ticks: Raw = _ABSENT
    """Like `messages`, this field is set if the file contains a single simulation."""


class RewardInfo(Struct):
    reward: float | None = None
    db_check: dict[str, Any] | None = None


class Simulation(Struct, gc=False):
    messages: list[ChatMessage] | UnsetType | None = UNSET
    ticks: list[Tick] | None = None
    id: Id = None
    task_id: Id = None
    trial: int | None = None
    reward_info: RewardInfo | None = None
    termination_reason: str | None = None


_TAU1 = msgspec.json.Decoder(Tau1Run)
_RESULTS = msgspec.json.Decoder(TauResults)
_INFO = msgspec.json.Decoder(Info)
_SIMULATION = msgspec.json.Decoder(Simulation)


def read(source: Source, found: Look) -> Iterator[Trajectory | RecordError]:
    """Yield the runs in a tau1 file, or the simulations in a tau2 file.

    Runs have no ids. Simulations may also be separate lines, members of a list, or separate files.
    """
    if found.format == "tau1":
        pieces = source.wanted(records(source, found.layout))
        yield from read_each(source, pieces, lambda record: _tau1_run(source, record))
        return
    for info, record in source.wanted(_pieces(source, found.layout)):
        yield from read_each(source, (record,), lambda record, info=info: _simulation(source, record, info))


def _tau1_run(source: Source, record: Record) -> Trajectory:
    run = decode(_TAU1, record.raw)
    transcript = Transcript()
    if run.traj is None and run.messages is None:
        # If a run failed to start, its messages are an empty list. Report missing messages, because the run would
        # otherwise appear to be compliant.
        raise Malformed("it contains neither `traj` nor `messages`")
    messages = run.traj or run.messages or ()
    follow(told_as_calls(messages) if is_react(messages) else messages, transcript)
    for step, event in enumerate(transcript.events):
        if type(event) is Result and event.error is None and event.text.startswith(_ERRORS):
            transcript.events[step] = replace(event, error=True)
    outcome = None if run.reward is None else TaskOutcome(is_full_reward(run.reward), "reward")
    details = {"task_id": text_id(run.task_id), "trial": run.trial, "reward": run.reward}
    return trajectory_of(source, record, transcript, "tau1", outcome=outcome, details=details)


_ERRORS = ("Error: ", "Unknown action ")
"""The starts of failed results in tau1, which has no error flag."""


Piece = tuple[Info, Record | RecordError]


def _pieces(source: Source, layout: Layout) -> Iterator[Piece]:
    if layout == "document":
        yield from _pieces_of(source, *source.document())
        return
    for record in records(source, layout):
        if isinstance(record, Record) and b'"simulations"' in bytes(record.raw):
            yield from _pieces_of(source, bytes(record.raw), "")
        else:
            yield Info(), record


def _pieces_of(source: Source, data: bytes, why: str) -> Iterator[Piece]:
    if data.lstrip().startswith(b"["):
        info = _info_beside(source)
        yield from ((info, each) for each in elements(source, data, why))
        return
    try:
        results = _RESULTS.decode(data)
    except BROKEN as error:
        why = why or not_json(error, data)
        parts = documents(source, data)
        if len(parts) > 1:
            for part in parts:
                yield from [(Info(), part)] if isinstance(part, RecordError) else _pieces_of(source, part, "")
        else:
            info = head_in(data, b"info", _INFO, Info())
            yield from ((info, each) for each in salvaged(source, data, data.find(b'"simulations"'), why))
        return
    info = results.info or Info()
    if info.environment_info is None and results.domain is not None:
        info = Info(info.agent_info, Environment(results.domain))
    if results.simulations:
        yield from ((info, Record(raw, index)) for index, raw in enumerate(results.simulations))
    elif bytes(results.messages) or bytes(results.ticks):
        yield _info_beside(source), Record(data, 0)
    elif results.simulations is not None:
        yield info, source.fault(0, "`simulations` is empty")
    elif not bytes(results.simulation_index):
        yield info, source.fault(0, "it contains neither `simulations` nor `messages`")


def _info_beside(source: Source) -> Info:
    if not isinstance(source.path, Path):
        return Info()
    beside = source.path.parent.parent / "results.json"
    if source.path.parent.name != "simulations" or not beside.is_file():
        return Info()
    try:
        return _RESULTS.decode(Source(beside).document()[0]).info or Info()
    except (BylawError, *BROKEN):
        return Info()


def _simulation(source: Source, record: Record, info: Info) -> Trajectory:
    run = decode(_SIMULATION, record.raw)
    if run.messages is UNSET and run.ticks is None:
        raise Malformed("it contains neither `messages` nor `ticks`")
    transcript = Transcript()
    follow(run.messages or messages_of(run.ticks or ()), transcript, result_id="id")
    environment = info.environment_info or Environment()
    reward_info = run.reward_info or RewardInfo()
    db_match = (reward_info.db_check or {}).get("db_match")
    outcome = None
    if db_match is not None:
        outcome = TaskOutcome(db_match, "reward_info.db_check.db_match")
    elif reward_info.reward is not None:
        outcome = TaskOutcome(is_full_reward(reward_info.reward), "reward")
    model = (info.agent_info or {}).get("llm")
    definitions = environment.tool_defs
    return trajectory_of(
        source,
        record,
        transcript,
        "tau2",
        id=text_id(run.id),
        agent=agent_of_model(str(model)) if model else "",
        outcome=outcome,
        instructions=environment.policy,
        details={
            "task_id": text_id(run.task_id),
            "trial": run.trial,
            "reward": reward_info.reward,
            "db_match": db_match,
            "termination_reason": run.termination_reason,
            "domain": environment.domain_name,
        },
        tools=tool_definitions(definitions) if isinstance(definitions, list) else (),  # pyright: ignore[reportUnknownArgumentType]
    )
