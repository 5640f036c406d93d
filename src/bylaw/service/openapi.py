"""The OpenAPI document, made from the records that the routes read and write."""

from functools import cache
from typing import Any

import msgspec

from bylaw import __version__
from bylaw.record.approval import Approval
from bylaw.record.stop import Stopped
from bylaw.service.authzen import (
    CONFIGURATION,
    EVALUATION,
    EVALUATIONS,
    Configuration,
    Evaluated,
    EvaluatedAll,
    Evaluation,
    Evaluations,
)
from bylaw.service.request import (
    ApprovalAnswer,
    Approvals,
    ConfirmAnswer,
    ConfirmRequest,
    DecideAnswer,
    DecideBatch,
    DecideBatchAnswer,
    DecideRequest,
    EventsAnswer,
    EventsBatch,
    EventsBatchAnswer,
    EventsRequest,
    Failure,
    StopList,
    StopRequest,
)

POSTS: dict[str, tuple[str, Any, Any]] = {
    "/v1/decide": ("Decide on a call, or on the calls of a turn, before they run", DecideRequest, DecideAnswer),
    "/v1/decide/batch": ("Several such requests", DecideBatch, DecideBatchAnswer),
    "/v1/events": ("Say what happened in a conversation", EventsRequest, EventsAnswer),
    "/v1/events/batch": ("Several such requests", EventsBatch, EventsBatchAnswer),
    "/v1/confirm": ("Report the user's answer to a card", ConfirmRequest, ConfirmAnswer),
    "/v1/approvals": ("Approve or reject a call that waits for a person", ApprovalAnswer, Approval),
    "/v1/stops": ("Stop an agent, a tool, a policy or all writes for a while, or lift that", StopRequest, Stopped),
    EVALUATION: ("AuthZEN 1.0: may this subject make this call?", Evaluation, Evaluated),
    EVALUATIONS: ("AuthZEN 1.0: several such questions", Evaluations, EvaluatedAll),
}
"""What each route says of itself, reads and writes."""
FAILURES = {
    "400": "the request cannot be read",
    "401": "no valid key",
    "403": "the key is for something else: an agent's does not approve, a person's does not decide; without keys, "
    "it came from a web page",
    "409": "the conversation began under a version of the pack that is not loaded",
    "413": "the request is too large",
    "415": "the content type is not JSON",
    "422": "the request does not fit the conversation",
    "503": "the log could not be written: nothing was decided",
}


@cache
def document() -> dict[str, Any]:
    types = [type for _, reads, writes in POSTS.values() for type in (reads, writes)] + [
        Approvals,
        StopList,
        Failure,
        Configuration,
    ]
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    named = dict(zip(types, schemas, strict=True))
    failed = {code: {"description": why, "content": _json(named[Failure])} for code, why in FAILURES.items()}
    paths: dict[str, dict[str, Any]] = {}
    for path, (summary, reads, writes) in POSTS.items():
        paths[path] = {
            "post": {
                "summary": summary,
                "operationId": "post_" + path.strip("/").replace("/", "_"),
                "requestBody": {"required": True, "content": _json(named[reads])},
                "responses": {"200": {"description": "done", "content": _json(named[writes])}} | failed,
            }
        }
    status = {"type": "string", "enum": ["waiting", "approved", "rejected", "expired", "used"]}
    paths["/v1/approvals"]["get"] = {
        "summary": "List approvals",
        "operationId": "get_v1_approvals",
        "parameters": [{"name": "status", "in": "query", "required": False, "schema": status}],
        "responses": {"200": {"description": "done", "content": _json(named[Approvals])}} | failed,
    }
    paths["/v1/stops"]["get"] = {
        "summary": "List what is stopped",
        "operationId": "get_v1_stops",
        "parameters": [{"name": "all", "in": "query", "required": False, "schema": {"type": "string"}}],
        "responses": {"200": {"description": "done", "content": _json(named[StopList])}} | failed,
    }
    for path, what in (("/health", "Whether the log answers"), ("/metrics", "Prometheus"), ("/openapi.json", "This")):
        answers: dict[str, Any] = {"200": {"description": "done"}}
        if path == "/health":
            answers["503"] = {"description": "the log does not answer"}
        paths[path] = {"get": {"summary": what, "operationId": f"get_{path[1:].split('.')[0]}", "responses": answers}}
        paths[path]["get"]["security"] = []
    paths[CONFIGURATION] = {
        "get": {
            "summary": "AuthZEN 1.0: where to find each endpoint",
            "operationId": "get_authzen_configuration",
            "responses": {"200": {"description": "done", "content": _json(named[Configuration])}},
            "security": [],
        }
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Bylaw", "version": __version__, "description": "Decisions on an agent's tool calls."},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
        "security": [{"key": []}],
    }


def _json(schema: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
