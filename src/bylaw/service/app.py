"""The routes of the service: decisions, events, approvals, AuthZEN, health, metrics and OpenAPI.

Without keys, only programs on the same machine may use the service. Because a web page in a local browser could send
requests too, `Origin` and `Host` are checked.
"""
# pyright: basic, reportMissingImports=false

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from bylaw.errors import BylawError
from bylaw.record.entry import DEFAULT_TENANT
from bylaw.service import authzen
from bylaw.service.desk import PATIENCE, WRONG, Desk, failure
from bylaw.service.fairness import LARGE
from bylaw.service.keys import Key, Role, bearer_of, holder_of, key_of
from bylaw.service.metrics import Board, Failing, Metrics, waiting_text
from bylaw.service.openapi import POSTS, document
from bylaw.service.request import (
    Approvals,
    BadRequest,
    DecideAnswer,
    DecideBatch,
    DecideBatchAnswer,
    DecideOutcome,
    DecideRequest,
    EventsBatch,
    EventsBatchAnswer,
    EventsOutcome,
    EventsRequest,
    Instructions,
    StopList,
    refusal,
)
from bylaw.shield.instructions import instructions, write_instructions
from bylaw.trace.recorded_value import repeated_key

if TYPE_CHECKING:
    from bylaw.service.metrics import Tracing
    from bylaw.service.webhook import Webhook


_HERE = re.compile(rb"(localhost|127(\.\d+){3}|\[::1\])(:\d+)?")
_JSON = re.compile(rb"application/(\w[\w.+-]*\+)?json\s*(;.*)?", re.IGNORECASE)

Headers = Iterable[tuple[bytes, bytes]]


def is_from_here(headers: Headers) -> bool:
    """Whether the request is addressed to this machine and was not sent by another machine's web page."""
    for name, value in headers:
        if name == b"host" and not _HERE.fullmatch(value):
            return False
        if name == b"origin" and not _HERE.fullmatch(value.partition(b"://")[2]):
            return False
    return True


def is_json(headers: Headers) -> bool:
    """Whether the body is declared as JSON. Other types are not accepted, because web pages can send them without a
    preflight request.
    """
    return any(name == b"content-type" and _JSON.fullmatch(value) is not None for name, value in headers)


LARGEST = 1 << 20
"""The maximum size of a request body in bytes."""

SHARE_AFTER = 0.25
"""How often a worker shares its counts with other workers, in seconds."""

T = TypeVar("T")
Answer = Callable[[str, Any], Awaitable[Any]]
_encode = msgspec.json.Encoder(enc_hook=str, decimal_format="string").encode
GONE = 499
"""The status that is recorded if the client closed the connection. It is never sent."""
APPROVALS = "/v1/approvals"
"""The route for approvals. Only reviewers may answer approvals; any key of the tenant may list them."""
STOPS = "/v1/stops"
"""The route for stops. Only reviewers may add and lift stops; any key of the tenant may list them."""
INSTRUCTIONS = "/v1/instructions"
"""The route that returns text for an agent's system prompt."""
ELSEWHERE = (
    "without keys, the service answers only local programs that use this machine's own name; it does not answer"
    " web pages"
)
NO_JSON = "send JSON, as `Content-Type: application/json`"
JSON = "application/json"
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
_CHALLENGE = {"WWW-Authenticate": "Bearer"}
_STATUSES = {"waiting", "approved", "rejected", "expired", "used"}


class Service:
    """The service as an ASGI application. The desk makes the decisions."""

    def __init__(
        self,
        desk: Desk,
        keys: Mapping[str, Key],
        *,
        largest: int = LARGEST,
        tracing: "Tracing | None" = None,
        board: Board | None = None,
        worker: int = 0,
        url: str = "",
        webhook: "Webhook | None" = None,
        anchors: Failing | None = None,
        pages: ASGIApp | None = None,
        is_page: Callable[[str], bool] = lambda path: False,
    ) -> None:
        self.desk = desk
        self.webhook = webhook
        self._pages = pages
        """The web pages, or None. `is_page` recognises their paths."""
        self._is_page = is_page
        self._url = url
        """The public URL. It replaces the client's `Host`, which could direct other clients to another site."""
        self.tracing = tracing
        self._board = board
        self._anchors = anchors or Failing()
        self._worker = worker
        self._has_unshared_counts = False
        """Whether this worker has counts that it has not shared with the other workers yet."""
        if board is not None and (before := board.read(worker)) is not None:
            desk.metrics.add(before)
        self._keys = keys
        self.largest = largest
        posts: dict[str, Answer] = {
            "/v1/decide": self._decide,
            "/v1/decide/batch": self._decide_batch,
            "/v1/events": desk.take,
            "/v1/events/batch": self._events_batch,
            "/v1/confirm": desk.confirm,
            APPROVALS: desk.answer,
            STOPS: desk.stop,
            authzen.EVALUATION: self._evaluate,
            authzen.EVALUATIONS: self._evaluate_all,
        }
        self._posts = {path: _Post(path, self, answer, keys) for path, answer in posts.items()}
        routes = [Route(path, post, methods=["POST"]) for path, post in self._posts.items()]
        routes += [
            Route(APPROVALS, self._get(APPROVALS, self._approvals), methods=["GET"]),
            Route(STOPS, self._get(STOPS, self._stops), methods=["GET"]),
            Route(INSTRUCTIONS, self._get(INSTRUCTIONS, self._instructions), methods=["GET"]),
            Route("/health", self._health, methods=["GET"]),
            Route("/metrics", self._metrics, methods=["GET"]),
            Route("/openapi.json", self._openapi, methods=["GET"]),
            Route(authzen.CONFIGURATION, self._configuration, methods=["GET"]),
        ]
        self._rest = Starlette(routes=routes, exception_handlers={404: _not_here, 405: _not_here})
        # A redirect from `/health/` would repeat the client's host name.
        self._rest.router.redirect_slashes = False
        self.routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request. The requests for which agents wait take the fastest path through the code."""
        if not self._keys and scope["type"] == "http" and not is_from_here(scope["headers"]):
            await respond(send, 403, _encode(refusal(ELSEWHERE)))
        elif scope["type"] == "http" and scope["method"] == "POST" and (post := self._posts.get(scope["path"])):
            await (post.respond if self.tracing is None else post)(scope, receive, send)
        elif self._pages is not None and scope["type"] == "http" and self._is_page(scope["path"]):
            await self._pages(scope, receive, send)
        else:
            await self._rest(scope, receive, send)

    async def answered(
        self, path: str, header: str, body: bytes | None, answer: Answer, role: Role | None = None
    ) -> tuple[int, bytes]:
        """Return the status and body of the response to a request. The key must have the right role. A body of None was
        too large.
        """
        key = key_of(header, self._keys) if self._keys else None
        if self._keys and key is None:
            status, content = 401, refusal("no valid key; send it as `Authorization: Bearer KEY`")
        elif key is not None and role is not None and key.role != role:
            status, content = 403, refusal(f"this key does not have the required role `{role}`")
        elif body is None:
            status, content = 413, refusal(f"the request is larger than {self.largest:,} bytes")
        else:
            try:
                status, content = 200, await answer(DEFAULT_TENANT if key is None else key.tenant, body)
            except WRONG as error:
                status, content = failure(error)
        self.desk.metrics.requests[path, status] += 1
        if self._board is not None and not self._has_unshared_counts:
            self._has_unshared_counts = True
            asyncio.get_running_loop().call_later(SHARE_AFTER, self._share_counts)
        return status, _encode(content)

    def _share_counts(self) -> None:
        self._has_unshared_counts = False
        if self._board is not None:
            self._board.put(self._worker, self._counts())

    def _counts(self) -> Metrics:
        own = self.desk.metrics
        return replace(own, commits=own.commits + self.desk.log.journal.commits, sessions=self.desk.open_sessions)

    async def _decide(self, tenant: str, request: DecideRequest) -> DecideAnswer:
        """Decide, and report the decisions to the traces and the webhook."""
        started = time.perf_counter()
        answer = await self.desk.decide(tenant, request)
        self.desk.metrics.took(time.perf_counter() - started)
        if self.tracing is not None:
            self.tracing.tell(tenant, answer.decisions)
        if self.webhook is not None:
            self.webhook.tell(tenant, answer.decisions)
        return answer

    async def _decide_batch(self, tenant: str, batch: DecideBatch) -> DecideBatchAnswer:
        async def outcome(request: DecideRequest) -> DecideOutcome:
            return DecideOutcome((await self._decide(tenant, request)).decisions)

        return DecideBatchAnswer([await _outcome(outcome(each), DecideOutcome) for each in batch.requests])

    async def _events_batch(self, tenant: str, batch: EventsBatch) -> EventsBatchAnswer:
        async def outcome(request: EventsRequest) -> EventsOutcome:
            taken = await self.desk.take(tenant, request)
            return EventsOutcome(taken.conversation, taken.taken)

        return EventsBatchAnswer([await _outcome(outcome(each), EventsOutcome) for each in batch.requests])

    async def _evaluate(self, tenant: str, evaluation: authzen.Evaluation) -> authzen.Evaluated:
        return authzen.evaluated(await self._decide(tenant, authzen.request_of(evaluation)))

    async def _evaluate_all(self, tenant: str, asked: authzen.Evaluations) -> authzen.EvaluatedAll:
        if not asked.evaluations:
            one = authzen.evaluated(await self._decide(tenant, authzen.request_of(asked.alone())))
            return authzen.EvaluatedAll(decision=one.decision, context=one.context)
        answers: list[authzen.Evaluated] = []
        is_told = False
        for evaluation in asked.each():
            # Several evaluations may share these events, so record them only once.
            is_shared = evaluation.context is asked.context
            try:
                request = authzen.request_of(
                    authzen.without_events(evaluation) if is_shared and is_told else evaluation
                )
                answer = authzen.evaluated(await self._decide(tenant, request))
                is_told |= is_shared
            except WRONG as error:
                answer = authzen.refused(*failure(error))
            answers.append(answer)
            if asked.options.ends_at(answer.decision):
                break
        return authzen.EvaluatedAll(answers)

    def _get(self, path: str, answer: Answer) -> Callable[[Request], Awaitable[Response]]:
        """Return an endpoint that responds with the result of `answer`, which takes the tenant and the query
        parameters.
        """

        async def get(request: Request) -> Response:
            bearer, query = bearer_of(request.headers.raw), request.query_params
            status, body = await self.answered(path, bearer, b"", lambda tenant, _: answer(tenant, query))
            return Response(body, status, _CHALLENGE if status == 401 else None, JSON)

        return get

    async def _approvals(self, tenant: str, query: Mapping[str, str]) -> Approvals:
        status: Any = query.get("status") or None
        if status is not None and status not in _STATUSES:
            raise BadRequest(f"`{status}` is not one of {', '.join(sorted(_STATUSES))}")
        return await self.desk.approvals(tenant, status)

    async def _stops(self, tenant: str, query: Mapping[str, str]) -> StopList:
        return await self.desk.stops(tenant, every=bool(query.get("all")))

    async def _instructions(self, tenant: str, query: Mapping[str, str]) -> Instructions:
        pack = self.desk.pack
        return Instructions(pack.name, pack.version, write_instructions(pack), instructions(pack))

    async def _health(self, request: Request) -> Response:
        wrong, status = await self.desk.log_fault(), "the log does not respond"
        if not wrong and (seconds := self._anchors.seconds):
            wrong = f"writing anchors has been failing for {seconds:.0f} seconds: see the service's output"
            status = "anchors cannot be written"
        pack = self.desk.pack
        told: dict[str, Any] = {"status": status if wrong else "ok"}
        told["pack"] = {"name": pack.name, "version": pack.version, "digest": pack.digest}
        if wrong:
            told["error"] = wrong
        return Response(_encode(told), 503 if wrong else 200, media_type=JSON)

    async def _metrics(self, request: Request) -> Response:
        key = key_of(bearer_of(request.headers.raw), self._keys)
        tenant = key.tenant if key is not None else None if self._keys else DEFAULT_TENANT
        self._share_counts()
        everybody = Metrics()
        for counts in self._board.all() if self._board is not None else [self._counts()]:
            everybody.add(counts)
        told = everybody.text(tenant, self.desk.log.journal.waits_for, self._anchors.seconds)
        return Response(told + await self._waiting_told(tenant), media_type=PROMETHEUS)

    async def _waiting_told(self, tenant: str | None) -> str:
        """Return the gauges for waiting calls as text: the number of calls, and the age of the oldest in seconds."""
        try:
            async with asyncio.timeout(PATIENCE):
                count, since = await asyncio.to_thread(self.desk.log.waiting, tenant, time.time())
        except (BylawError, TimeoutError):
            # Another gauge shows that the log is unavailable.
            return ""
        return waiting_text(tenant, count, max(0.0, time.time() - since) if count else 0.0)

    async def _openapi(self, request: Request) -> Response:
        return Response(_encode(document()), media_type=JSON)

    async def _configuration(self, request: Request) -> Response:
        if not self._url:
            why = "the service does not know its public address; start it with `--public-url`"
            return Response(_encode(refusal(why)), 404, None, JSON)
        return Response(_encode(authzen.configuration(self._url)), media_type=JSON)


class _Post:
    def __init__(self, path: str, service: "Service", answer: Answer, keys: Mapping[str, Key]) -> None:
        self._path, self._service, self._answer, self._keys = path, service, answer, keys
        self._decode = msgspec.json.Decoder(POSTS[path][1]).decode
        self._role: Role = "approve" if path in (APPROVALS, STOPS) else "decide"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond, within a span."""
        assert self._service.tracing is not None
        with self._service.tracing.request(self._path, scope["headers"]) as ended:
            ended(await self.respond(scope, receive, send))

    async def respond(self, scope: Scope, receive: Receive, send: Send) -> int:
        try:
            body = await _body(receive, self._service.largest)
        except ClientDisconnect:
            return GONE
        headers: Headers = scope["headers"]
        if is_json(headers):
            bearer = bearer_of(headers)
            answer = partial(self._scheduled, bearer)
            status, told = await self._service.answered(self._path, bearer, body, answer, self._role)
        else:
            status, told = 415, _encode(refusal(NO_JSON))
        number = next((value for name, value in headers if name == b"x-request-id"), b"")
        await respond(send, status, told, number)
        return status

    def _scheduled(self, bearer: str, tenant: str, body: bytes) -> Awaitable[Any]:
        answer = partial(self._answered, bearer, tenant, body)
        return self._service.desk.scheduler.request(tenant, len(body), answer)

    async def _answered(self, bearer: str, tenant: str, body: bytes) -> Any:
        if len(body) < LARGE:
            given = self._read(body)
        else:
            given = await self._service.desk.scheduler.run(tenant, partial(self._read, body))
        if self._role == "approve":
            given = replace(given, by=holder_of(bearer, self._keys, given.by))
        return await self._answer(tenant, given)

    def _read(self, body: bytes) -> Any:
        given = self._decode(body)
        if twice := repeated_key(body):
            # The tool might use either of the two values.
            raise BadRequest(f"`{twice}` appears twice in one object")
        return given


async def _outcome(answering: Awaitable[T], failed: Callable[..., T]) -> T:
    """Return the outcome of one request in a batch. An error in one request does not affect the others."""
    try:
        return await answering
    except WRONG as error:
        return failed(error=failure(error)[1].error)


async def respond(send: Send, status: int, told: bytes, number: bytes = b"") -> None:
    headers = [(b"content-type", JSON.encode()), (b"content-length", str(len(told)).encode())]
    if number:
        headers.append((b"x-request-id", number))
    if status == 401:
        headers += [(name.lower().encode(), value.encode()) for name, value in _CHALLENGE.items()]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": told})


async def _body(receive: Receive, largest: int) -> bytes | None:
    """Read and return the body. If it is too large, stop reading and return None."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > largest:
            return None
        if not message.get("more_body"):
            return b"".join(parts)


async def _not_here(request: Request, error: Exception) -> Response:
    status = int(getattr(error, "status_code", 404))
    what = "page not found" if status == 404 else "this page does not accept this method"
    return Response(_encode(refusal(f"{what}; see /openapi.json")), status, None, JSON)
