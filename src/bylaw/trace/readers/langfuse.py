"""Langfuse observations: exports of its API, of its blob storage, and the batches that its earlier SDKs post."""

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from bylaw.errors import RecordError
from bylaw.trace.document import ODD, Malformed, Record, decode, oddity, take_each
from bylaw.trace.format import Look
from bylaw.trace.readers.parts import first
from bylaw.trace.readers.recorded import messages_in, tool_arguments, tool_result
from bylaw.trace.readers.spans import Generation, ToolRun, lineage, weave
from bylaw.trace.recorded_value import seconds
from bylaw.trace.source import Source
from bylaw.trace.trajectory import Trajectory

FORMAT = "langfuse"
_OBJECT = msgspec.json.Decoder(dict[str, Any])

_LISTS = ("data", "batch", "observations", "traces")

Row = dict[str, Any]


def read(source: Source, found: Look) -> Iterator[Trajectory | RecordError]:
    """The conversations of a file of observations. All are held: a session may go on to the last line."""
    observations: dict[str, Row] = {}
    traces: dict[str, Row] = {}

    def take(record: Record) -> None:
        given = decode(_OBJECT, record.raw)
        rows = list(_rows(given, {}))
        if not rows and not any(name in given for name in _LISTS):
            raise Malformed("neither an observation nor a trace: another format in the same file?")
        for kind, row in rows:
            target = traces if kind == "trace" else observations
            known = {key: each for key, each in row.items() if each is not None}
            target.setdefault(str(row.get("id") or f"without an id {len(target)}"), {}).update(known)

    yield from take_each(source, found.layout, take)
    generations: list[Generation] = []
    tools: list[ToolRun] = []
    told: set[str] = set()
    for id, row in observations.items():
        kind = str(row.get("type", "")).upper()
        try:
            if kind == "GENERATION":
                generations.append(_generation(row, observations, traces))
                told.add(_trace(row))
            elif kind == "TOOL":
                tools.append(_tool(row, observations, traces))
        except ODD as error:
            why = f"observation `{id}`: {oddity(error)}"
            if kind == "TOOL":
                yield source.fault(len(generations), why)
                continue
            told.add(_trace(row))
            generations.append(Generation(_start(row), [], [], _session(row, traces), _trace(row), fault=why))
    # An export of traces alone still has what went in and what came out.
    for id, row in traces.items():
        if id not in told:
            try:
                generations.append(_generation({**row, "traceId": id}, {}, traces))
            except ODD as error:
                why = f"trace `{id}`: {oddity(error)}"
                generations.append(Generation(_start(row), [], [], _session(row, traces), id, fault=why))
    yield from weave(source, generations, tools, FORMAT)


def _rows(value: Row, context: Row) -> Iterator[tuple[str, Row]]:
    """The observations and traces in a record, however deep."""
    for name in _LISTS:
        listed = value.get(name)
        if isinstance(listed, list):
            inner = {"traceId": value.get("id")} if name == "observations" else {}
            for each in cast(list[Any], listed):
                if isinstance(each, dict):
                    yield from _rows(cast(Row, each), inner)
    body = value.get("body")
    if isinstance(body, dict) and isinstance(value.get("type"), str):
        event = str(value["type"])
        kind = event.split("-")[0]
        if kind in {"generation", "span", "event", "tool", "agent", "observation"}:
            yield "observation", {"type": kind.upper(), **cast(Row, body)}
        elif kind == "trace":
            yield "trace", cast(Row, body)
        return
    if "type" in value and ("traceId" in value or "trace_id" in value or context):
        yield "observation", {**context, **value}
    elif "id" in value and ("input" in value or "sessionId" in value or "session_id" in value):
        yield "trace", value


def _get(row: Row, *names: str) -> Any:
    return first(row, names)


def _trace(row: Row) -> str:
    return str(_get(row, "traceId", "trace_id") or row.get("id"))


def _session(row: Row, traces: dict[str, Row]) -> str:
    session = _get(row, "sessionId", "session_id") or _get(traces.get(_trace(row), {}), "sessionId", "session_id")
    return str(session or "")


def _start(row: Row) -> float:
    return seconds(_get(row, "startTime", "start_time", "timestamp")) or 0.0


def _agent(row: Row, observations: dict[str, Row]) -> str:
    """The name of the nearest agent around an observation."""

    def parent(each: Row) -> Row | None:
        return observations.get(str(_get(each, "parentObservationId", "parent_observation_id")))

    around = lineage(row, lambda each: str(each.get("id")), parent)
    return next((str(each.get("name") or "") for each in around if str(each.get("type", "")).upper() == "AGENT"), "")


def _generation(row: Row, observations: dict[str, Row], traces: dict[str, Row]) -> Generation:
    given: Any = row.get("input")
    if isinstance(given, str) and given[:1] == "{":
        try:
            given = msgspec.json.decode(given)
        except msgspec.DecodeError:
            given = row.get("input")
    tools: Any = cast(Row, given).get("tools") if isinstance(given, dict) else None
    return Generation(
        start=_start(row),
        history=messages_in(given, "user"),
        output=messages_in(row.get("output"), "assistant"),
        session=_session(row, traces),
        trace=_trace(row),
        agent=_agent(row, observations),
        model=str(_get(row, "model", "providedModelName", "provided_model_name") or ""),
        tools=cast(list[Any], tools) if isinstance(tools, list) else (),
    )


def _tool(row: Row, observations: dict[str, Row], traces: dict[str, Row]) -> ToolRun:
    start = seconds(_get(row, "startTime", "start_time")) or 0.0
    output = row.get("output")
    if output is None and row.get("level") == "ERROR":
        output = row.get("statusMessage") or "Error"
    return ToolRun(
        start=start,
        end=seconds(_get(row, "endTime", "end_time")) or start,
        tool=str(row.get("name") or ""),
        arguments=tool_arguments(row.get("input")),
        result=tool_result(output),
        captured=output is not None,
        error=True if row.get("level") == "ERROR" else None,
        session=_session(row, traces),
        trace=_trace(row),
        agent=_agent(row, observations),
    )
