"""Results of tau-bench (tau1) and tau2-bench."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from bylaw.errors import BylawError, RecordError
from bylaw.trace.document import Layout, Malformed, Record, decode, documents, elements, not_json, records
from bylaw.trace.event import Result
from bylaw.trace.format import Look
from bylaw.trace.identity import agent_of_model
from bylaw.trace.readers.chat import ChatMessage, Id, follow, text_id
from bylaw.trace.readers.openai import is_full_reward
from bylaw.trace.readers.react import is_react, told_as_calls
from bylaw.trace.readers.record import head_in, read_each, salvaged, trajectory_of
from bylaw.trace.readers.ticks import Tick, messages_of
from bylaw.trace.source import Source
from bylaw.trace.tools import tool_definitions
from bylaw.trace.trajectory import TaskOutcome, Trajectory
from bylaw.trace.transcript import Transcript

_ABSENT = Raw(b"")


class Tau1Run(Struct, gc=False):
    traj: list[ChatMessage] | None = None
    messages: list[ChatMessage] | None = None
    task_id: Id = None
    trial: int | None = None
    reward: float | None = None


class AgentModel(Struct):
    llm: str | None = None


class Environment(Struct):
    domain_name: str | None = None
    policy: str | None = None
    tool_defs: Any = None


class Info(Struct):
    """What a tau2 file says about all its simulations."""

    agent_info: AgentModel | None = None
    environment_info: Environment | None = None


class TauResults(Struct):
    """A tau2 file: the simulations stay undecoded until their turn comes, or are files of their own in a folder."""

    simulations: list[Raw] | None = None
    info: Info | None = None
    domain: str | None = None
    simulation_index: Raw = _ABSENT
    messages: Raw = _ABSENT
    ticks: Raw = _ABSENT
    """The last two where the file is one simulation."""


class DatabaseCheck(Struct):
    db_match: bool | None = None


class RewardInfo(Struct):
    reward: float | None = None
    db_check: DatabaseCheck | None = None


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
    """The runs of a tau1 file, which have no ids of their own; or the simulations of a tau2 file.

    Simulations may stand alone, too: one a line, a list, or a file each.
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
        # A run that failed to start has an empty list; one that has none would count as clean.
        raise Malformed("neither `traj` nor `messages` in it")
    messages = run.traj or run.messages or ()
    follow(told_as_calls(messages) if is_react(messages) else messages, transcript)
    _flag_errors(transcript)
    outcome = None if run.reward is None else TaskOutcome(is_full_reward(run.reward), "reward")
    details = {"task_id": text_id(run.task_id), "trial": run.trial, "reward": run.reward}
    return trajectory_of(source, record, transcript, "tau1", outcome=outcome, details=details)


_ERRORS = ("Error: ", "Unknown action ")
"""tau1 has no error flag: its environment reports every failure as a text that begins with one of these."""


def _flag_errors(transcript: Transcript) -> None:
    for step, event in enumerate(transcript.events):
        if type(event) is Result and event.error is None and event.text.startswith(_ERRORS):
            transcript.events[step] = replace(event, error=True)


Piece = tuple[Info, Record | RecordError]


def _pieces(source: Source, layout: Layout) -> Iterator[Piece]:
    """The simulations, each with what its file says of all of them."""
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
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
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
        yield info, source.fault(0, "neither `simulations` nor `messages` in it")


def _info_beside(source: Source) -> Info:
    """What the `results.json` of a folder of simulations says about each of them."""
    if not isinstance(source.path, Path):
        return Info()
    beside = source.path.parent.parent / "results.json"
    if source.path.parent.name != "simulations" or not beside.is_file():
        return Info()
    try:
        return _RESULTS.decode(Source(beside).document()[0]).info or Info()
    except (BylawError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Info()


def _simulation(source: Source, record: Record, info: Info) -> Trajectory:
    run = decode(_SIMULATION, record.raw)
    if run.messages is UNSET and run.ticks is None:
        raise Malformed("neither `messages` nor `ticks` in it")
    transcript = Transcript()
    follow(run.messages or messages_of(run.ticks or ()), transcript, result_id="id")
    environment = info.environment_info or Environment()
    reward_info = run.reward_info or RewardInfo()
    db_match = reward_info.db_check.db_match if reward_info.db_check else None
    outcome = None
    if db_match is not None:
        outcome = TaskOutcome(db_match, "reward_info.db_check.db_match")
    elif reward_info.reward is not None:
        outcome = TaskOutcome(is_full_reward(reward_info.reward), "reward")
    model = info.agent_info.llm if info.agent_info else None
    definitions = environment.tool_defs
    return trajectory_of(
        source,
        record,
        transcript,
        "tau2",
        id=text_id(run.id),
        agent=agent_of_model(model) if model else "",
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
