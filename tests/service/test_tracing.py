"""The service's spans, through OpenTelemetry's own SDK."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("opentelemetry.sdk", reason="needs opentelemetry-sdk")

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from bylaw.record import Log
from bylaw.service.app import Service
from bylaw.service.desk import Desk
from bylaw.service.metrics import Tracing
from tests.service.asgi import post
from tests.service.malformed import LOOK, REFUND
from tests.shield.scenes import shop


def spans(folder: Path, *requests: tuple[str, Any], close: bool = False, **more: Any) -> Any:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with Log(str(folder / "decisions.db")) as log:
        app = Service(Desk(shop(), log), {}, tracing=Tracing(provider))
        if close:
            log.close()
        for path, content in requests:
            post(app, path, content, **more)
    return exporter.get_finished_spans()


def test_a_request_is_a_span_and_each_decision_an_event_of_it(tmp_path: Path) -> None:
    user = {"user": "my card is 4111 1111"}
    asked = {"conversation": "c", "calls": [LOOK, REFUND], "events": [user]}
    (span,) = spans(tmp_path, ("/v1/decide", asked))
    assert (span.name, span.kind.name, span.attributes["http.response.status_code"]) == (
        "POST /v1/decide",
        "SERVER",
        200,
    )
    assert (span.attributes["bylaw.tenant"], span.attributes["gen_ai.conversation.id"]) == ("default", "c")
    told = [(each.attributes["gen_ai.tool.name"], each.attributes["bylaw.answer"]) for each in span.events]
    assert told == [("get_order", "allow"), ("refund", "look_up")]
    assert span.events[1].attributes["bylaw.policies"] == ("returned-first",)
    assert "4111" not in span.to_json(), "a span tells what was decided, not what was said"


def test_batches_and_authzen_are_told_too(tmp_path: Path) -> None:
    evaluation = {"subject": {"type": "a", "id": "b"}, "action": {"name": "refund", "properties": {"order_id": "7"}},
                  "resource": {"type": "order", "id": "7"}, "context": {"conversation": "z"}}  # fmt: skip
    batch = {"requests": [{"conversation": "a", **REFUND}, {"conversation": "b", **LOOK}]}
    first, second = spans(tmp_path, ("/v1/decide/batch", batch), ("/access/v1/evaluation", evaluation))
    assert [each.attributes["bylaw.answer"] for each in first.events] == ["look_up", "allow"]
    assert [each.attributes["bylaw.answer"] for each in second.events] == ["look_up"]


def test_a_span_continues_the_callers_trace(tmp_path: Path) -> None:
    trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    headers = [(b"traceparent", f"00-{trace}-{parent}-01".encode())]
    (span,) = spans(tmp_path, ("/v1/decide", {"conversation": "c", **REFUND}), headers=headers)
    assert (f"{span.context.trace_id:032x}", f"{span.parent.span_id:016x}") == (trace, parent)


def test_where_nothing_is_decided_the_span_says_so(tmp_path: Path) -> None:
    (bad,) = spans(tmp_path, ("/v1/decide", b"{"))
    assert (bad.attributes["http.response.status_code"], bad.status.status_code.name) == (400, "UNSET")
    (failed,) = spans(tmp_path, ("/v1/decide", {"conversation": "c", **REFUND}), close=True)
    assert (failed.attributes["http.response.status_code"], failed.status.status_code.name) == (503, "ERROR")
    assert not failed.events
