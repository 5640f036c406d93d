"""OTLP-JSON as exporters write it: requests of spans and logs, values with their types, names with dots in them."""

import re
from typing import Any, cast

import msgspec
from msgspec import Struct, field

from bylaw.trace.document import Malformed, Record, decode

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
    """An event that was logged for a span: earlier conventions keep messages there."""

    trace_id: str = ""
    span_id: str = ""
    event_name: str = ""
    body: dict[str, Any] | None = None
    attributes: list[Attribute] = field(default_factory=list[Attribute])


class ScopeSpans(Struct):
    spans: list[OtlpSpan] = field(default_factory=list[OtlpSpan])


class ResourceSpans(Struct, rename="camel"):
    scope_spans: list[ScopeSpans] = field(default_factory=list[ScopeSpans])


class ScopeLogs(Struct, rename="camel"):
    log_records: list[LogRecord] = field(default_factory=list[LogRecord])


class ResourceLogs(Struct, rename="camel"):
    scope_logs: list[ScopeLogs] = field(default_factory=list[ScopeLogs])


class ExportRequest(Struct, rename="camel"):
    resource_spans: list[ResourceSpans] | None = None
    resource_logs: list[ResourceLogs] | None = None
    resource_metrics: Any = None


_REQUEST = msgspec.json.Decoder(ExportRequest)


class KnownSpan(Struct):
    """A span with its attributes decoded and what was logged for it."""

    span: OtlpSpan
    attributes: dict[str, Any]
    events: list[tuple[str, Any]]


def gather(record: Record, known: dict[str, KnownSpan], logged: dict[str, list[tuple[str, Any]]]) -> None:
    """Add a request's spans, and what was logged for spans, to those known."""
    request = decode(_REQUEST, record.raw)
    if request.resource_spans is None and request.resource_logs is None and request.resource_metrics is None:
        raise Malformed("neither spans nor logs: another format in the same file?")
    for scope in (scope for resource in request.resource_spans or () for scope in resource.scope_spans):
        for span in scope.spans:
            events = [(event.name, _attributes(event.attributes)) for event in span.events]
            # Exporters send a span once. One without an id is nobody's parent, but a span all the same.
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
    """Lists that were flattened into attributes `prefix.N.rest`, with OpenInference's wrappers taken off."""
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
    """Objects whose keys are all numbers are lists; `message` and the like wrap what they name."""
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
