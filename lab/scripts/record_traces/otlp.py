"""What an OpenTelemetry SDK exports, as OTLP-JSON: one request a line, as the collector's file exporter writes it."""

import base64
import json
from pathlib import Path

from google.protobuf.json_format import MessageToDict

_IDS = {"traceId", "spanId", "parentSpanId"}


def as_json(request) -> dict:
    """A protobuf export request in OTLP's JSON mapping: ids are hexadecimal, not base64."""
    return _hexadecimal(MessageToDict(request, use_integers_for_enums=True))


def _hexadecimal(value):
    if isinstance(value, dict):
        return {
            key: base64.b64decode(each).hex() if key in _IDS and isinstance(each, str) else _hexadecimal(each)
            for key, each in value.items()
        }
    return [_hexadecimal(each) for each in value] if isinstance(value, list) else value


def span_file(path: Path):
    """An SDK span exporter that appends to a file."""
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

    class Exporter(SpanExporter):
        def export(self, spans):
            with path.open("a") as out:
                out.write(json.dumps(as_json(encode_spans(spans))) + "\n")
            return SpanExportResult.SUCCESS

    return Exporter()


def log_file(path: Path):
    """An SDK log exporter that appends to a file: older instrumentations record messages as log events."""
    from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
    from opentelemetry.sdk._logs import export

    base = getattr(export, "LogRecordExporter", None) or export.LogExporter
    results = getattr(export, "LogRecordExportResult", None) or export.LogExportResult

    class Exporter(base):
        def export(self, batch):
            with path.open("a") as out:
                out.write(json.dumps(as_json(encode_logs(batch))) + "\n")
            return results.SUCCESS

        def shutdown(self):
            pass

        def force_flush(self, timeout_millis=0):
            return True

    return Exporter()


def tracer_provider(path: Path):
    """A tracer provider that writes to a file and names nothing of the machine."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    path.unlink(missing_ok=True)
    provider = TracerProvider(resource=Resource({"service.name": "clinic"}))
    provider.add_span_processor(BatchSpanProcessor(span_file(path)))
    return provider
