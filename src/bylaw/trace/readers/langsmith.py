"""LangSmith runs: one a line, a list, or the batches that its SDK posts."""

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from bylaw.errors import RecordError
from bylaw.trace.document import ODD, Malformed, Record, decode, oddity, take_each
from bylaw.trace.format import Look
from bylaw.trace.readers.recorded import messages_in, tool_arguments, tool_result
from bylaw.trace.readers.spans import Generation, ToolRun, lineage, weave
from bylaw.trace.recorded_value import seconds
from bylaw.trace.source import Source
from bylaw.trace.trajectory import Trajectory

FORMAT = "langsmith"
_OBJECT = msgspec.json.Decoder(dict[str, Any])
# A run's `session_id` names its project; a conversation is named in its metadata.
_THREAD = ("thread_id", "session_id", "conversation_id")

_LISTS = ("runs", "post", "patch", "child_runs", "data")
# A patch names a run by its id alone, with what has become of it.
_TELLING = (*_LISTS, "run_type", "trace_id", "dotted_order", "parent_run_id", "outputs", "end_time")

Row = dict[str, Any]


def read(source: Source, found: Look) -> Iterator[Trajectory | RecordError]:
    """The conversations of a file of runs. All runs are held: a thread may go on to the last line."""
    runs: dict[str, Row] = {}

    def take(record: Record) -> None:
        given = decode(_OBJECT, record.raw)
        rows = list(_rows(given))
        if not any(name in row for row in (given, *rows) for name in _TELLING):
            raise Malformed("neither a run nor a batch of them: another format in the same file?")
        for row in rows:
            known = {key: each for key, each in row.items() if each is not None}
            runs.setdefault(str(row.get("id") or f"without an id {len(runs)}"), {}).update(known)

    yield from take_each(source, found.layout, take)
    generations: list[Generation] = []
    tools: list[ToolRun] = []
    for id, run in runs.items():
        try:
            if run.get("run_type") == "llm":
                generations.append(_generation(run, runs))
            elif run.get("run_type") == "tool":
                tools.append(_tool(run, runs))
        except ODD as error:
            why = f"run `{id}`: {oddity(error)}"
            try:
                start, thread, trace = _time(run.get("start_time")), _thread(run, runs), str(run.get("trace_id") or id)
            except ODD:
                yield source.fault(len(generations), why)
                continue
            generations.append(Generation(start, [], [], thread, trace, fault=why))
    yield from weave(source, generations, tools, FORMAT)


def _rows(value: Row) -> Iterator[Row]:
    """The runs in a record: itself, those inside it, or a batch's."""
    for name in _LISTS:
        listed = value.get(name)
        if isinstance(listed, list):
            for each in cast(list[Any], listed):
                if isinstance(each, dict):
                    yield from _rows(cast(Row, each))
    if "id" in value or "run_type" in value:
        yield value


def _generation(run: Row, runs: dict[str, Row]) -> Generation:
    extra: Row = run.get("extra") or {}
    metadata: Row = extra.get("metadata") or {}
    settings: Row = extra.get("invocation_params") or {}
    given: Any = run.get("inputs")
    inputs = cast(Row, given) if isinstance(given, dict) else Row()
    model = inputs.get("model") or metadata.get("ls_model_name") or settings.get("model") or ""
    return Generation(
        start=_time(run.get("start_time")),
        history=messages_in(given, "user"),
        output=messages_in(run.get("outputs"), "assistant"),
        session=_thread(run, runs),
        trace=str(run.get("trace_id") or run.get("id")),
        agent=_agent(run, runs),
        model=str(model),
        tools=inputs.get("tools") or settings.get("tools") or (),
    )


def _tool(run: Row, runs: dict[str, Row]) -> ToolRun:
    outputs: Row = run.get("outputs") or {}
    message: Any = outputs.get("output")
    status: Any = cast(Row, message).get("status") if isinstance(message, dict) else None
    failed = bool(run.get("error")) or status == "error"
    start = _time(run.get("start_time"))
    extra: Row = run.get("extra") or {}
    return ToolRun(
        start=start,
        end=_time(run.get("end_time")) or start,
        tool=str(run.get("name") or ""),
        arguments=tool_arguments(run.get("inputs")),
        result=tool_result(outputs) if outputs else run.get("error"),
        captured=bool(outputs or run.get("error")),
        error=True if failed else None,
        id=str(extra.get("tool_call_id") or ""),
        session=_thread(run, runs),
        trace=str(run.get("trace_id") or run.get("id")),
        agent=_agent(run, runs),
    )


def _metadata(run: Row) -> Row:
    extra: Row = run.get("extra") or {}
    return extra.get("metadata") or {}


def _time(recorded: Any) -> float:
    return seconds(recorded) or 0.0


def _lineage(run: Row, runs: dict[str, Row]) -> Iterator[Row]:
    return lineage(run, lambda each: str(each.get("id")), lambda each: runs.get(str(each.get("parent_run_id"))))


def _thread(run: Row, runs: dict[str, Row]) -> str:
    for each in _lineage(run, runs):
        metadata = _metadata(each)
        for name in _THREAD:
            if metadata.get(name):
                return str(metadata[name])
    return ""


def _agent(run: Row, runs: dict[str, Row]) -> str:
    """The agent's name, where LangChain or LangGraph recorded one."""
    for each in _lineage(run, runs):
        metadata = _metadata(each)
        if name := metadata.get("lc_agent_name") or metadata.get("agent_name"):
            return str(name)
    return ""
