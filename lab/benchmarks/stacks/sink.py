"""Minimal servers for tracers' clients. They return posted data in the format that the APIs document."""

import email.parser
import email.policy
import gzip
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

PROJECT = "00000000-0000-0000-0000-000000000001"


class Sink:
    """Collects posted data by path. `answers` holds the responses to GET and POST on other paths."""

    def __init__(self) -> None:
        self.posted: list[tuple[str, dict[str, str], bytes]] = []
        self.answers: dict[str, Any] = {}
        sink = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                self._answer(sink.answers.get(urlsplit(self.path).path, {"data": [], "meta": {"totalPages": 0}}))

            def do_POST(self) -> None:
                path, body = urlsplit(self.path).path, self._body()
                if path in sink.answers:
                    self._answer(sink.answers[path])
                    return
                sink.posted.append((path, dict(self.headers), body))
                self._answer({})

            do_PATCH = do_PUT = do_POST

            def _body(self) -> bytes:
                if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                    return self.rfile.read(int(self.headers.get("Content-Length", 0)))
                pieces = []
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    pieces.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                return b"".join(pieces)

            def _answer(self, value: Any) -> None:
                data = json.dumps(value).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{server.server_port}"

    def bodies(self, end: str) -> list[tuple[dict[str, str], bytes]]:
        """Return the unpacked data posted to paths with this ending."""
        return [(headers, _unpacked(headers, body)) for path, headers, body in self.posted if path.endswith(end)]


def _unpacked(headers: dict[str, str], body: bytes) -> bytes:
    match headers.get("Content-Encoding"):
        case "gzip":
            return gzip.decompress(body)
        case "zstd":
            import zstandard

            return zstandard.ZstdDecompressor().decompressobj().decompress(body)
        case _:
            return body


def langsmith_runs(sink: Sink) -> list[dict[str, Any]]:
    """Return the posted runs, merged as the server merges them. Each part of a body is a run or one of its fields."""
    runs: dict[str, dict[str, Any]] = {}
    for headers, body in sink.bodies("/multipart"):
        head = f"Content-Type: {headers['Content-Type']}\r\n\r\n".encode()
        for part in email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + body).iter_parts():
            _event, id, *field = part.get_param("name", header="content-disposition").split(".")
            value = json.loads(part.get_payload(decode=True))
            told = {field[0]: value} if field else {name: each for name, each in value.items() if each is not None}
            runs.setdefault(id, {}).update(told)
    return [{**run, "session_id": PROJECT} for run in runs.values()]


def langfuse_rows(sink: Sink) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the spans as observations and traces of Langfuse's API."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    rows: list[dict[str, Any]] = []
    traces: dict[str, dict[str, Any]] = {}
    for _, body in sink.bodies("/v1/traces"):
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for span in (span for scope in resource.scope_spans for span in scope.spans):
                has = {each.key: each.value.string_value for each in span.attributes}
                trace = span.trace_id.hex()
                row = {
                    "id": span.span_id.hex(),
                    "traceId": trace,
                    "type": has.get("langfuse.observation.type", "span").upper(),
                    "name": span.name,
                    "startTime": _iso(span.start_time_unix_nano),
                    "endTime": _iso(span.end_time_unix_nano),
                    "parentObservationId": span.parent_span_id.hex() or None,
                    "input": _loaded(has.get("langfuse.observation.input")),
                    "output": _loaded(has.get("langfuse.observation.output")),
                    "model": has.get("langfuse.observation.model.name"),
                    "level": has.get("langfuse.observation.level", "DEFAULT"),
                }
                rows.append(row)
                if session := has.get("session.id") or has.get("langfuse.session.id"):
                    traces[trace] = {"id": trace, "sessionId": session, "timestamp": row["startTime"]}
    return rows, list(traces.values())


def _iso(nanoseconds: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(nanoseconds / 1e9, UTC).isoformat().replace("+00:00", "Z")


def _loaded(text: str | None) -> Any:
    """Decode a value as the API does: values sent as JSON come back decoded."""
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return text
