"""Reads OTLP-JSON spans: GenAI conventions (current and earlier), OpenLLMetry, OpenInference and Langfuse."""

import re
from collections.abc import Iterator
from functools import partial
from typing import Any, cast

import msgspec
from msgspec import Struct, field

from bylaw.errors import RecordError
from bylaw.trace.document import Malformed, Record, decode, take_each
from bylaw.trace.event import Trajectory
from bylaw.trace.reader import Look
from bylaw.trace.readers.chat import ChatMessage
from bylaw.trace.readers.parts import first, unwrapped
from bylaw.trace.readers.recorded import messages_in, tool_arguments, tool_outcome
from bylaw.trace.readers.spans import Generation, ToolRun, attempt, lineage, weave
from bylaw.trace.recorded_value import LATEST, read_json
from bylaw.trace.source import Source

_KEY = re.compile(r"^(gen_ai\.prompt|gen_ai\.completion|llm\.input_messages|llm\.output_messages|llm\.tools)\.(.+)$")


class Attribute(Struct):
    key: str
    value: dict[str, Any] | None = None


class SpanEvent(Struct, rename="camel"):
    name: str = ""
    attributes: list[Attribute] = field(default_factory=list[Attribute])


class OtlpSpan(Struct, rename="camel"):
    trace_id: str = ""
    span_id: str = ""
    parent_span_id: str = ""
    name: str = ""
    start_time_unix_nano: str | int = 0
    end_time_unix_nano: str | int = 0
    attributes: list[Attribute] = field(default_factory=list[Attribute])
    events: list[SpanEvent] = field(default_factory=list[SpanEvent])
    status: dict[str, Any] | None = None
    dropped_attributes_count: int = 0


class LogRecord(Struct, rename="camel"):
    """An event in a span. Earlier conventions store messages in events."""

    trace_id: str = ""
    span_id: str = ""
    event_name: str = ""
    body: dict[str, Any] | None = None
    attributes: list[Attribute] = field(default_factory=list[Attribute])


class Scope(Struct, rename="camel"):
    spans: list[OtlpSpan] = field(default_factory=list[OtlpSpan])
    log_records: list[LogRecord] = field(default_factory=list[LogRecord])


class Resource(Struct, rename="camel"):
    scope_spans: list[Scope] = field(default_factory=list[Scope])
    scope_logs: list[Scope] = field(default_factory=list[Scope])


class ExportRequest(Struct, rename="camel"):
    resource_spans: list[Resource] | None = None
    resource_logs: list[Resource] | None = None
    resource_metrics: Any = None


_REQUEST = msgspec.json.Decoder(ExportRequest)


class KnownSpan(Struct):
    span: OtlpSpan
    attributes: dict[str, Any]
    events: list[tuple[str, Any]]


def gather(record: Record, known: dict[str, KnownSpan], logged: dict[str, list[tuple[str, Any]]]) -> None:
    request = decode(_REQUEST, record.raw)
    if request.resource_spans is None and request.resource_logs is None and request.resource_metrics is None:
        raise Malformed("neither spans nor logs; does the file mix formats?")
    for scope in (scope for resource in request.resource_spans or () for scope in resource.scope_spans):
        for span in scope.spans:
            events = [(event.name, _attributes(event.attributes)) for event in span.events]
            # Exporters send each span once. A span without an id is still used, although no other span can name it as
            # its parent.
            known[span.span_id or f"without an id {len(known)}"] = KnownSpan(span, _attributes(span.attributes), events)
    for scope in (scope for resource in request.resource_logs or () for scope in resource.scope_logs):
        for log in scope.log_records:
            attributes = _attributes(log.attributes)
            name = log.event_name or str(attributes.get("event.name", ""))
            body = _plain(log.body) if log.body else None
            fields = cast(dict[str, Any], body) if isinstance(body, dict) else {}
            logged.setdefault(log.span_id, []).append((name, {**attributes, **fields}))


def _plain(value: dict[str, Any]) -> Any:
    for kind, each in value.items():
        match kind:
            case "arrayValue":
                return [_plain(item) for item in each.get("values", ())]
            case "kvlistValue":
                return {item["key"]: _plain(item.get("value") or {}) for item in each.get("values", ())}
            case "intValue":
                return int(each)
            case _:
                return each
    return None


def _attributes(attributes: list[Attribute]) -> dict[str, Any]:
    return {attribute.key: _plain(attribute.value or {}) for attribute in attributes}


def unflatten(has: dict[str, Any]) -> dict[str, Any]:
    """Rebuild lists from attributes named `prefix.N.rest`, and remove the wrappers that OpenInference adds."""
    groups: dict[str, dict[str, Any]] = {}
    for key, value in has.items():
        if found := _KEY.match(key):
            node: Any = groups.setdefault(found[1], {})
            *path, last = found[2].split(".")
            for step in path:
                node = cast(dict[str, Any], node).setdefault(step, {}) if isinstance(node, dict) else None
            if isinstance(node, dict):
                cast(dict[str, Any], node)[last] = value
    return {prefix: _listed(group) for prefix, group in groups.items()}


def _listed(node: Any) -> Any:
    """Turn objects that have only numeric keys into lists, and remove wrappers such as `message`."""
    if not isinstance(node, dict):
        return node
    inner: dict[str, Any] = {key: _listed(value) for key, value in cast(dict[str, Any], node).items()}
    if inner and all(key.isdigit() for key in inner):
        return [inner[key] for key in sorted(inner, key=int)]
    for wrapper in ("message", "tool_call", "message_content"):
        if len(inner) == 1 and isinstance(inner.get(wrapper), dict):
            return inner[wrapper]
    if "contents" in inner and "content" not in inner:
        inner["content"] = inner.pop("contents")
    return inner


FORMAT = "otlp"

_SESSION = (
    "gen_ai.conversation.id",
    "session.id",
    "langfuse.session.id",
    "traceloop.association.properties.session_id",
    "traceloop.association.properties.thread_id",
    "langsmith.trace.session_id",
)
_INPUT = ("gen_ai.tool.call.arguments", "input.value", "langfuse.observation.input", "traceloop.entity.input")
_OUTPUT = ("gen_ai.tool.call.result", "output.value", "langfuse.observation.output", "traceloop.entity.output")
_KINDS = ("openinference.span.kind", "langfuse.observation.type", "traceloop.span.kind")
_ADK = "gcp.vertex.agent."
_EVENT = re.compile(r"gen_ai\.(system|user|assistant|tool)\.message$")


def read(source: Source, found: Look) -> Iterator[Trajectory | RecordError]:
    """Yield the conversations of a file.

    All spans stay in memory, because even the last line may continue a conversation.
    """
    known: dict[str, KnownSpan] = {}
    logged: dict[str, list[tuple[str, Any]]] = {}
    yield from take_each(source, found.layout, lambda record: gather(record, known, logged))
    yield from weave(source, _read_spans(known, logged), FORMAT)


def _read_spans(
    known: dict[str, KnownSpan], logged: dict[str, list[tuple[str, Any]]]
) -> Iterator[Generation | ToolRun | str]:
    for id, span in known.items():
        span.events += logged.get(id, ())
        read = attempt(f"span `{id}`", partial(_read_span, span, known), partial(_outline, span, known))
        if read is None:
            continue
        yield read
        dropped = span.span.dropped_attributes_count
        if dropped and isinstance(read, Generation) and not read.fault:
            why = f"the SDK dropped {dropped} attributes, possibly those of the first messages"
            yield f"span `{id}`: {why}; raise OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT"


def _read_span(known: KnownSpan, all_spans: dict[str, KnownSpan]) -> Generation | ToolRun | None:
    if _is_tool(known):
        return _run(known, all_spans)
    return _generation(known, all_spans) if _is_generation(known) else None


def _outline(known: KnownSpan, all_spans: dict[str, KnownSpan]) -> dict[str, Any]:
    return {
        "start": _moment(known.span.start_time_unix_nano),
        "session": _inherited(known, all_spans, _SESSION),
        "trace": known.span.trace_id,
        "agent": _agent(known, all_spans),
    }


def _is_generation(known: KnownSpan) -> bool:
    has = known.attributes
    kind = str(has.get("openinference.span.kind") or has.get("langfuse.observation.type") or "").lower()
    if kind:
        return kind in {"llm", "generation"}
    return has.get("gen_ai.operation.name") in {"chat", "text_completion", "generate_content"} or (
        "gen_ai.request.model" in has and "gen_ai.operation.name" not in has
    )


def _is_tool(known: KnownSpan) -> bool:
    has = known.attributes
    if str(has.get("gen_ai.tool.name")).startswith("(merged"):
        # For parallel calls, ADK also writes a span that merges them.
        return False
    return has.get("gen_ai.operation.name") == "execute_tool" or _is_kind(has, "tool")


def _is_kind(has: dict[str, Any], kind: str) -> bool:
    return any(str(has.get(name)).lower() == kind for name in _KINDS)


def _generation(known: KnownSpan, all_spans: dict[str, KnownSpan]) -> Generation:
    has = known.attributes
    nested = unflatten(has)
    history = _instructions(has) + messages_in(
        has.get("gen_ai.input.messages")
        or nested.get("llm.input_messages")
        or nested.get("gen_ai.prompt")
        or has.get("langfuse.observation.input"),
        "user",
    )
    output = messages_in(
        has.get("gen_ai.output.messages")
        or nested.get("llm.output_messages")
        or nested.get("gen_ai.completion")
        or has.get("langfuse.observation.output"),
        "assistant",
    )
    for name, body in known.events:
        if name == "gen_ai.client.inference.operation.details":
            history = history or _instructions(body) + messages_in(body.get("gen_ai.input.messages"), "user")
            output = output or messages_in(body.get("gen_ai.output.messages"), "assistant")
        elif found := _EVENT.match(name):
            history += _event_message(body, found[1])
        elif name == "gen_ai.choice":
            output += _event_message(body, "assistant")
    reasons = str(has.get("gen_ai.response.finish_reasons") or has.get("llm.finish_reason") or "")
    return Generation(
        history=history,
        output=output,
        model=str(first(has, ("gen_ai.request.model", "llm.model_name", "langfuse.observation.model.name")) or ""),
        tools=_tools(has, nested),
        called="tool_call" in reasons,
        **_outline(known, all_spans),
    )


def _event_message(body: dict[str, Any], role: str) -> list[ChatMessage]:
    message: dict[str, Any] = dict(body)
    inner = body.get("gen_ai.event.content")
    if isinstance(inner, str):
        told = read_json(inner)
        message = cast(dict[str, Any], told) if isinstance(told, dict) else {"content": inner}
    if isinstance(message.get("message"), dict):
        message = message["message"]
    if isinstance(message.get("tool_calls"), str):
        message["tool_calls"] = msgspec.json.decode(message["tool_calls"])
    shown = {name: message.get(name) for name in ("content", "tool_calls") if message.get(name) is not None}
    if role == "tool":
        captured = "content" in message
        return [ChatMessage("tool", message.get("content"), tool_call_id=message.get("id"), captured=captured)]
    return messages_in({**shown, "role": role}, role) if shown else []


def _decoded(recorded: Any) -> Any:
    return msgspec.json.decode(recorded) if isinstance(recorded, str) else recorded


def _instructions(has: dict[str, Any]) -> list[ChatMessage]:
    recorded = _decoded(has.get("gen_ai.system_instructions"))
    return [ChatMessage(role="system", content=recorded)] if recorded else []


def _tools(has: dict[str, Any], nested: dict[str, Any]) -> list[Any]:
    recorded = _decoded(has.get("gen_ai.tool.definitions"))
    if not recorded and (listed := nested.get("llm.tools")):
        recorded = [msgspec.json.decode(item["tool"]["json_schema"]) for item in listed if "tool" in item]
    if not recorded and isinstance(given := has.get("langfuse.observation.input"), str) and '"tools"' in given:
        document: Any = msgspec.json.decode(given)
        recorded = cast(dict[str, Any], document).get("tools") if isinstance(document, dict) else None
    return cast(list[Any], recorded) if isinstance(recorded, list) else []


def _run(known: KnownSpan, all_spans: dict[str, KnownSpan]) -> ToolRun:
    has = known.attributes
    given = first(has, _INPUT)
    result = first(has, _OUTPUT)
    code = (known.span.status or {}).get("code")
    content, failed = tool_outcome(result)
    # ADK's spans have attributes named after ADK, or the tool's class name as the tool type.
    if str(has.get("gen_ai.tool.type")).endswith("Tool") or any(name.startswith(_ADK) for name in has):
        content = _unwrapped(content)
    failed = failed or code in (2, "STATUS_CODE_ERROR")
    if failed and result is None:
        # A call that raised an exception has an end time but no output.
        result = content = str((known.span.status or {}).get("message") or "Error")
    return ToolRun(
        end=_moment(known.span.end_time_unix_nano),
        tool=str(first(has, ("gen_ai.tool.name", "tool.name", "traceloop.entity.name")) or known.span.name),
        arguments=tool_arguments(given),
        result=content,
        captured=result is not None,
        error=True if failed else None,
        id=str(first(has, ("gen_ai.tool.call.id", "tool_call.id")) or ""),
        **_outline(known, all_spans),
    )


def _unwrapped(content: Any) -> Any:
    """Return the value without the object `{"result": ...}` in which ADK wraps values that are not objects."""
    value = read_json(content) if isinstance(content, str) and content.startswith('{"result"') else content
    inner, failed = unwrapped(value)
    return content if failed or inner is value else inner


def _moment(nanoseconds: str | int) -> float:
    """Convert an OTLP time to seconds since the epoch. A missing time becomes 0."""
    count = int(nanoseconds)
    if not 0 <= count < 1 << 64:
        raise Malformed("its time cannot be read: OTLP counts nanoseconds in 64 bits")
    moment = count / 1e9
    return moment if moment <= LATEST else 0.0


def _inherited(known: KnownSpan, all_spans: dict[str, KnownSpan], names: tuple[str, ...]) -> str:
    for each in _lineage(known, all_spans):
        for name in names:
            if value := each.attributes.get(name):
                return str(value)
    return ""


def _agent(known: KnownSpan, all_spans: dict[str, KnownSpan]) -> str:
    for each in _lineage(known, all_spans):
        has = each.attributes
        if name := has.get("gen_ai.agent.name") or has.get("agent.name"):
            return str(name)
        if _is_kind(has, "agent"):
            return each.span.name
    return ""


def _lineage(known: KnownSpan, all_spans: dict[str, KnownSpan]) -> Iterator[KnownSpan]:
    return lineage(known, lambda each: each.span.span_id, lambda each: all_spans.get(each.span.parent_span_id))
