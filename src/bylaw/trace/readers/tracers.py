"""Reads exports from Langfuse and LangSmith. A later row may add fields to an earlier row with the same id."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

import msgspec
from msgspec import Struct, field

from bylaw.errors import RecordError
from bylaw.trace.document import Malformed, decode, take_each
from bylaw.trace.event import Trajectory
from bylaw.trace.reader import Look
from bylaw.trace.readers.parts import first
from bylaw.trace.readers.recorded import messages_in, tool_arguments, tool_result
from bylaw.trace.readers.spans import Generation, ToolRun, attempt, lineage, weave
from bylaw.trace.recorded_value import read_json, seconds
from bylaw.trace.source import Source

Row = dict[str, Any]
Rows = dict[str, Row]
_OBJECT = msgspec.json.Decoder(Row)
_OBSERVATIONS = ("data", "batch", "observations", "traces")
"""Keys whose values are lists of rows in a Langfuse export."""
_RUNS = ("runs", "post", "patch", "child_runs", "data")
"""Keys whose values are lists of rows in a LangSmith export."""
# A patch contains only the id of a run and its new fields.
_OF_A_RUN = (*_RUNS, "run_type", "trace_id", "dotted_order", "parent_run_id", "outputs", "end_time")
_EVENTS = frozenset(("generation", "span", "event", "tool", "agent", "observation"))
_START = ("startTime", "start_time", "timestamp")
_END = ("endTime", "end_time")
_TRACE = ("traceId", "trace_id")
_PARENT = ("parentObservationId", "parent_observation_id", "parent_run_id")
_SESSION = ("sessionId", "session_id")
_THREAD = ("thread_id", "session_id", "conversation_id")
"""The names that LangSmith metadata uses for a conversation's id. A run's own `session_id` is not among them, because
it is the id of a project.
"""


class _Export(Struct):
    """All rows of a file. They stay in memory, because even the last line may continue a conversation."""

    rows: Rows = field(default_factory=Rows)
    traces: Rows = field(default_factory=Rows)

    def read(
        self, what: str, row: Row, make: "Callable[[Row, _Export], Generation | ToolRun]"
    ) -> Generation | ToolRun | str:
        return attempt(what, partial(make, row, self), partial(self.outline, row))

    def outline(self, row: Row) -> dict[str, Any]:
        return {
            "start": _time(row),
            "session": _session(row, self),
            "trace": _trace(row),
            "agent": _agent(row, self),
        }

    def around(self, row: Row) -> Iterator[Row]:
        return lineage(row, lambda each: str(each.get("id")), lambda each: self.rows.get(str(first(each, _PARENT))))


def read(source: Source, found: Look) -> Iterator[Trajectory | RecordError]:
    export = _Export()
    is_langfuse = found.format == "langfuse"
    gather = _gather_observations if is_langfuse else _gather_runs
    yield from take_each(source, found.layout, lambda record: gather(decode(_OBJECT, record.raw), export))
    yield from weave(source, _observations(export) if is_langfuse else _runs(export), found.format)


def _complete(rows: Rows, row: Row) -> None:
    known = {key: each for key, each in row.items() if each is not None}
    rows.setdefault(str(row.get("id") or f"without an id {len(rows)}"), {}).update(known)


def _listed(value: Row, name: str) -> list[Row]:
    listed = value.get(name)
    return [each for each in cast("list[Any]", listed) if isinstance(each, dict)] if isinstance(listed, list) else []


def _gather_observations(given: Row, export: _Export) -> None:
    rows = list(_observations_in(given, {}))
    if not rows and not any(name in given for name in _OBSERVATIONS):
        raise Malformed("neither an observation nor a trace; does the file mix formats?")
    for kind, row in rows:
        _complete(export.traces if kind == "trace" else export.rows, row)


def _observations_in(value: Row, context: Row) -> Iterator[tuple[str, Row]]:
    for name in _OBSERVATIONS:
        inner = {"traceId": value.get("id")} if name == "observations" else {}
        for each in _listed(value, name):
            yield from _observations_in(each, inner)
    body = value.get("body")
    if isinstance(body, dict) and isinstance(value.get("type"), str):
        kind = str(value["type"]).split("-")[0]
        if kind in _EVENTS:
            yield "observation", {"type": kind.upper(), **cast("Row", body)}
        elif kind == "trace":
            yield "trace", cast("Row", body)
    elif "type" in value and (any(name in value for name in _TRACE) or context):
        yield "observation", {**context, **value}
    elif "id" in value and ("input" in value or any(name in value for name in _SESSION)):
        yield "trace", value


def _observations(export: _Export) -> Iterator[Generation | ToolRun | str]:
    told: set[str] = set()
    for id, row in export.rows.items():
        kind, what = str(row.get("type", "")).upper(), f"observation `{id}`"
        if kind == "GENERATION":
            yield export.read(what, row, _observed_generation)
            told.add(_trace(row))
        elif kind == "TOOL":
            yield export.read(what, row, _observed_tool)
    # If an export contains only traces, use the traces' inputs and outputs.
    for id, row in export.traces.items():
        if id not in told:
            yield export.read(f"trace `{id}`", {**row, "traceId": id}, _observed_generation)


def _observed_generation(row: Row, export: _Export) -> Generation:
    given: Any = row.get("input")
    given = read_json(given) if isinstance(given, str) and given[:1] == "{" else given
    tools: Any = cast("Row", given).get("tools") if isinstance(given, dict) else None
    return Generation(
        history=messages_in(given, "user"),
        output=messages_in(row.get("output"), "assistant"),
        model=str(first(row, ("model", "providedModelName", "provided_model_name")) or ""),
        tools=cast("list[Any]", tools) if isinstance(tools, list) else (),
        **export.outline(row),
    )


def _observed_tool(row: Row, export: _Export) -> ToolRun:
    has_failed, output = row.get("level") == "ERROR", row.get("output")
    if output is None and has_failed:
        output = row.get("statusMessage") or "Error"
    return ToolRun(
        end=_time(row, _END) or _time(row),
        tool=str(row.get("name") or ""),
        arguments=tool_arguments(row.get("input")),
        result=tool_result(output),
        captured=output is not None,
        error=True if has_failed else None,
        **export.outline(row),
    )


def _gather_runs(given: Row, export: _Export) -> None:
    rows = list(_runs_in(given))
    if not any(name in row for row in (given, *rows) for name in _OF_A_RUN):
        raise Malformed("neither a run nor a batch of them; does the file mix formats?")
    for row in rows:
        _complete(export.rows, row)


def _runs_in(value: Row) -> Iterator[Row]:
    for name in _RUNS:
        for each in _listed(value, name):
            yield from _runs_in(each)
    if "id" in value or "run_type" in value:
        yield value


def _runs(export: _Export) -> Iterator[Generation | ToolRun | str]:
    for id, run in export.rows.items():
        make = {"llm": _llm_run, "tool": _tool_run}.get(str(run.get("run_type")))
        if make is not None:
            yield export.read(f"run `{id}`", run, make)


def _llm_run(run: Row, export: _Export) -> Generation:
    extra: Row = run.get("extra") or {}
    settings: Row = extra.get("invocation_params") or {}
    given: Any = run.get("inputs")
    inputs = cast("Row", given) if isinstance(given, dict) else Row()
    model = inputs.get("model") or _metadata(run).get("ls_model_name") or settings.get("model") or ""
    return Generation(
        history=messages_in(given, "user"),
        output=messages_in(run.get("outputs"), "assistant"),
        model=str(model),
        tools=inputs.get("tools") or settings.get("tools") or (),
        **export.outline(run),
    )


def _tool_run(run: Row, export: _Export) -> ToolRun:
    outputs: Row = run.get("outputs") or {}
    message: Any = outputs.get("output")
    status: Any = cast("Row", message).get("status") if isinstance(message, dict) else None
    extra: Row = run.get("extra") or {}
    return ToolRun(
        end=_time(run, _END) or _time(run),
        tool=str(run.get("name") or ""),
        arguments=tool_arguments(run.get("inputs")),
        result=tool_result(outputs) if outputs else run.get("error"),
        captured=bool(outputs or run.get("error")),
        error=True if run.get("error") or status == "error" else None,
        id=str(extra.get("tool_call_id") or ""),
        **export.outline(run),
    )


def _time(row: Row, names: tuple[str, ...] = _START) -> float:
    return seconds(first(row, names)) or 0.0


def _trace(row: Row) -> str:
    return str(first(row, _TRACE) or row.get("id"))


def _session(row: Row, export: _Export) -> str:
    if "run_type" not in row:
        return str(first(row, _SESSION) or first(export.traces.get(_trace(row), {}), _SESSION) or "")
    named = (str(found) for each in export.around(row) for name in _THREAD if (found := _metadata(each).get(name)))
    return next(named, "")


def _agent(row: Row, export: _Export) -> str:
    for each in export.around(row):
        if str(each.get("type", "")).upper() == "AGENT":
            return str(each.get("name") or "")
        if name := _metadata(each).get("lc_agent_name") or _metadata(each).get("agent_name"):
            return str(name)
    return ""


def _metadata(row: Row) -> Row:
    extra: Row = row.get("extra") or {}
    return extra.get("metadata") or {}
