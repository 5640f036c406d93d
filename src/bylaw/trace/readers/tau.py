"""Results of tau-bench (tau1) and tau2-bench."""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from bylaw.errors import RecordError
from bylaw.trace.document import Layout, Malformed, Record, decode, find_value, not_json, records, salvage
from bylaw.trace.identity import agent_of_model
from bylaw.trace.readers.chat import ChatMessage, Id, follow, text_id
from bylaw.trace.readers.openai import is_full_reward
from bylaw.trace.source import Source
from bylaw.trace.tools import tool_definitions
from bylaw.trace.trajectory import Outcome, Trajectory
from bylaw.trace.transcript import Transcript


class Tau1Run(Struct, gc=False):
    """One run of tau-bench."""

    traj: list[ChatMessage] | None
    task_id: Id = None
    trial: int | None = None
    reward: float | None = None


class Model(Struct):
    llm: str | None = None


class Environment(Struct):
    domain_name: str | None = None
    policy: str | None = None
    tool_defs: Any = None


class Info(Struct):
    """What a tau2 file says about all its simulations."""

    agent_info: Model = field(default_factory=Model)
    environment_info: Environment = field(default_factory=Environment)


class Results(Struct):
    """A tau2 file: the simulations stay undecoded until their turn comes."""

    simulations: list[Raw]
    info: Info | None = None


class DatabaseCheck(Struct):
    db_match: bool | None = None


class RewardInfo(Struct):
    reward: float | None = None
    db_check: DatabaseCheck | None = None


class Simulation(Struct, gc=False):
    """One run of tau2-bench."""

    messages: list[ChatMessage] | None
    id: Id = None
    task_id: Id = None
    trial: int | None = None
    reward_info: RewardInfo | None = None
    termination_reason: str | None = None


_TAU1 = msgspec.json.Decoder(Tau1Run)
_RESULTS = msgspec.json.Decoder(Results)
_INFO = msgspec.json.Decoder(Info)
_SIMULATION = msgspec.json.Decoder(Simulation)


def read_tau1(source: Source, layout: Layout) -> Iterator[Trajectory | RecordError]:
    """The runs of a tau1 file; they have no ids of their own."""
    agent = source.agent or source.agent_by_name
    for record in source.wanted(records(source, layout)):
        if isinstance(record, RecordError):
            yield record
            continue
        try:
            yield _tau1_run(source, record, agent)
        except Malformed as error:
            yield record.fault(source, str(error))


def _tau1_run(source: Source, record: Record, agent: str) -> Trajectory:
    run = decode(_TAU1, record.raw)
    transcript = Transcript()
    follow(run.traj or (), transcript)
    outcome = None if run.reward is None else Outcome(is_full_reward(run.reward), "reward")
    return Trajectory(
        id=f"{source.name}#{record.index}",
        events=transcript.events,
        agent=agent,
        outcome=outcome,
        instructions="\n\n".join(transcript.instructions),
        file=source.name,
        position=record.position,
        format="tau1",
        details={"task_id": text_id(run.task_id), "trial": run.trial, "reward": run.reward},
    )


def read_tau2(source: Source, layout: Layout) -> Iterator[Trajectory | RecordError]:
    """The simulations of a tau2 file, or simulations that stand alone, one a line."""
    info = Info()
    if layout == "lines":
        pieces = records(source, layout)
    else:
        data, why = source.document()
        try:
            results = _RESULTS.decode(data)
        except (msgspec.DecodeError, RecursionError) as error:
            why = why or not_json(error, data)
            info, pieces = _salvage(source, data, why)
        else:
            info = results.info or info
            pieces = (Record(raw, index) for index, raw in enumerate(results.simulations))
    for record in source.wanted(pieces):
        if isinstance(record, RecordError):
            yield record
            continue
        try:
            yield _simulation(source, record, info)
        except Malformed as error:
            yield record.fault(source, str(error))


def _salvage(source: Source, data: bytes, why: str) -> tuple[Info, Iterator[Record | RecordError]]:
    """What is left of a file that is cut short or damaged somewhere."""
    head = find_value(data, b"info")
    info = Info()
    if head is not None:
        try:
            info = _INFO.decode(head)
        except msgspec.DecodeError:
            info = Info()
    at = data.find(b'"simulations"')
    start = data.find(b"[", at) if at >= 0 else -1
    if start < 0:
        return info, iter([source.fault(0, why)])
    return info, salvage(source, data, start + 1, why)


def _simulation(source: Source, record: Record, info: Info) -> Trajectory:
    run = decode(_SIMULATION, record.raw)
    transcript = Transcript()
    follow(run.messages or (), transcript, result_id="id")
    environment = info.environment_info
    reward_info = run.reward_info or RewardInfo()
    db_match = reward_info.db_check.db_match if reward_info.db_check else None
    outcome = None
    if db_match is not None:
        outcome = Outcome(db_match, "reward_info.db_check.db_match")
    elif reward_info.reward is not None:
        outcome = Outcome(is_full_reward(reward_info.reward), "reward")
    model = info.agent_info.llm
    definitions = environment.tool_defs
    return Trajectory(
        id=text_id(run.id) or f"{source.name}#{record.index}",
        events=transcript.events,
        agent=source.agent or (agent_of_model(model) if model else source.agent_by_name),
        outcome=outcome,
        instructions=environment.policy or "\n\n".join(transcript.instructions),
        file=source.name,
        position=record.position,
        format="tau2",
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
