"""Generates the OpenAPI document from the request and response types."""

from functools import cache
from typing import Any

import msgspec

from bylaw import __version__
from bylaw.record.approval import Approval
from bylaw.record.stop import Stopped
from bylaw.service import authzen, request

POSTS: dict[str, tuple[str, Any, Any]] = {
    "/v1/decide": (
        "Decide a call, or the calls of a turn, before they run",
        request.DecideRequest,
        request.DecideAnswer,
    ),
    "/v1/decide/batch": ("Decide several requests at once", request.DecideBatch, request.DecideBatchAnswer),
    "/v1/events": ("Report events of a conversation", request.EventsRequest, request.EventsAnswer),
    "/v1/events/batch": (
        "Report events of several conversations at once",
        request.EventsBatch,
        request.EventsBatchAnswer,
    ),
    "/v1/confirm": ("Report the user's answer to a card", request.ConfirmRequest, request.ConfirmAnswer),
    "/v1/approvals": ("Approve or reject a call that waits for a reviewer", request.ApprovalAnswer, Approval),
    "/v1/stops": (
        "Stop an agent, a tool, a policy or all writes for a set time, or lift a stop",
        request.StopRequest,
        Stopped,
    ),
    authzen.EVALUATION: ("AuthZEN 1.0: may this subject make this call?", authzen.Evaluation, authzen.Evaluated),
    authzen.EVALUATIONS: ("AuthZEN 1.0: several evaluations", authzen.Evaluations, authzen.EvaluatedAll),
}
"""Each route's description, request type and response type."""
FAILURES = {
    "400": "the request cannot be read",
    "401": "no valid key",
    "403": "the key has the wrong role: an agent's key cannot approve, and a person's key cannot request decisions. "
    "If no keys are configured: the request came from a web page",
    "409": "the conversation began under a version of the pack that is not loaded",
    "413": "the request is too large or needs too many steps; nothing was decided",
    "415": "the content type is not JSON",
    "422": "the request conflicts with the conversation",
    "503": "the log could not be written; nothing was decided",
}


@cache
def document() -> dict[str, Any]:
    types = [type for _, reads, writes in POSTS.values() for type in (reads, writes)]
    types += [request.Approvals, request.StopList, request.Instructions, request.Failure, authzen.Configuration]
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    named = dict(zip(types, schemas, strict=True))
    failed = {code: {"description": why, "content": _json(named[request.Failure])} for code, why in FAILURES.items()}

    def route(summary: str, id: str, writes: Any, **more: Any) -> dict[str, Any]:
        answers = {"200": {"description": "done", "content": _json(named[writes])}} | failed
        return {"summary": summary, "operationId": id, **more, "responses": answers}

    paths: dict[str, dict[str, Any]] = {}
    for path, (summary, reads, writes) in POSTS.items():
        body = {"required": True, "content": _json(named[reads])}
        id = "post_" + path.strip("/").replace("/", "_")
        paths[path] = {"post": route(summary, id, writes, requestBody=body)}
    status = {"type": "string", "enum": ["waiting", "approved", "rejected", "expired", "used"]}
    wanted = [{"name": "status", "in": "query", "required": False, "schema": status}]
    paths["/v1/approvals"]["get"] = route("List approvals", "get_v1_approvals", request.Approvals, parameters=wanted)
    every = [{"name": "all", "in": "query", "required": False, "schema": {"type": "string"}}]
    paths["/v1/stops"]["get"] = route("List stops", "get_v1_stops", request.StopList, parameters=every)
    told = "Text for an agent's system prompt"
    paths["/v1/instructions"] = {"get": route(told, "get_v1_instructions", request.Instructions)}
    for path, what in (("/health", "Whether the log responds"), ("/metrics", "Prometheus"), ("/openapi.json", "This")):
        answers: dict[str, Any] = {"200": {"description": "done"}}
        if path == "/health":
            answers["503"] = {"description": "the log does not respond, or no anchor can be written"}
        id = f"get_{path[1:].split('.')[0]}"
        paths[path] = {"get": {"summary": what, "operationId": id, "responses": answers, "security": []}}
    found = {"200": {"description": "done", "content": _json(named[authzen.Configuration])}}
    told = {"summary": "AuthZEN 1.0: where to find each endpoint", "operationId": "get_authzen_configuration"}
    paths[authzen.CONFIGURATION] = {"get": {**told, "responses": found, "security": []}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Bylaw", "version": __version__, "description": "Decisions on an agent's tool calls."},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
        "security": [{"key": []}],
    }


def _json(schema: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
