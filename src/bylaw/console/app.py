"""The pages as an ASGI application: routes, sign-in and error pages. Start at `application`."""
# pyright: basic, reportMissingImports=false

import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from bylaw.console.door import Asked, Door, Refused, TooOld, Visitor, read_form, visitor_of
from bylaw.console.page import STATIC, page, static_address, static_file
from bylaw.errors import BylawError

T = TypeVar("T")
Page = Callable[[Asked], Response]
"""Answers a request. Each handler runs in a thread because it may wait for a disk."""
Marked = Callable[[Any], Any]
FOREVER = {"cache-control": "public, max-age=31536000, immutable"}
WAIT = 0.1
"""How long a page waits, in seconds, before it says that work is in progress."""


class Preparing(Exception):
    """The page cannot be shown yet. `what` describes the work in progress."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(what)


class Prepared(Generic[T]):
    """Runs a slow function in its own thread and keeps the result."""

    def __init__(self, what: str, make: Callable[[], T]) -> None:
        self._what = what
        self._made: Future[T] = Future()
        threading.Thread(target=self._run, args=(make,), daemon=True, name="console-preparing").start()

    def _run(self, make: Callable[[], T]) -> None:
        try:
            self._made.set_result(make())
        except BaseException as error:  # `get` raises the error again.
            self._made.set_exception(error)

    @property
    def failed(self) -> bool:
        return self._made.done() and self._made.exception() is not None

    def get(self) -> T:
        """Return the result or raise the function's error. While the function is running, raise Preparing."""
        try:
            return self._made.result(WAIT)
        except TimeoutError:
            if self._made.done():
                raise
            raise Preparing(self._what) from None


class Pages:
    """A group of pages. Each page is a method with an address in its decorator."""

    section = ""
    """The navigation entry of the group."""

    @property
    def layout(self) -> dict[str, Any]:
        """The template values for the page's frame."""
        return {}

    def routes(self) -> list[Route]:
        made = [(make, getattr(self, name)) for name, each in vars(type(self)).items() for make in _makers(each)]
        return [make(answer) for make, answer in made]

    def _page(self, template: str, asked: Asked, status: int = 200, **values: Any) -> Response:
        given = {**self.layout, "asked": asked, "section": self.section, "written": None, **values}
        return page(template, status, asked.headers, **given)


def _makers(method: Any) -> list[Callable[[Any], Route]]:
    return getattr(method, "bylaw_routes", [])


def _under(path: str, method: str, run: Callable[[Any, Request], Awaitable[Response]]) -> Marked:
    def mark(answer: Any) -> Any:
        answer.bylaw_routes = [*_makers(answer), lambda bound: Route(path, partial(run, bound), methods=[method])]
        return answer

    return mark


def shown(path: str, *, is_open: bool = False) -> Marked:
    """Declare a page for GET. If `is_open` is set, no sign-in is needed."""

    async def look(answer: Page, request: Request) -> Response:
        return await _answered(request, answer, {}, is_open)

    return _under(path, "GET", look)


def changed(path: str, *, is_open: bool = False) -> Marked:
    """Declare a form for POST. The session's token protects the form. If `is_open` is set, no sign-in is needed."""

    async def change(answer: Page, request: Request) -> Response:
        try:
            given = await read_form(request)
        except Refused as error:
            return _wrong(request, error)
        return await _answered(request, answer, given, is_open)

    return _under(path, "POST", change)


def streamed(path: str) -> Marked:
    """Declare a stream of events for an open page."""

    async def stream(answer: Callable[[Request, Visitor], Awaitable[Response]], request: Request) -> Response:
        if (visitor := request.app.state.find(request)) is None:
            return _wrong(request, Refused("sign in first", status=401))
        return await answer(request, visitor)

    return _under(path, "GET", stream)


async def _answered(request: Request, answer: Page, form: dict[str, str], is_open: bool) -> Response:
    visitor = request.app.state.find(request)
    if visitor is None and not is_open:
        return _to_sign_in(request)
    asked = Asked(request, visitor or Visitor(), form)
    if request.method == "POST" and not is_open and asked.visitor.mark != request.scope["state"]["made_for"]:
        words = (
            f"nothing was written: {asked.visitor.name} is signed in now, but you loaded the page under another name"
        )
        return _wrong(request, Refused(words, status=409, hint="reload the page"))
    try:
        await run_in_threadpool(request.app.state.refresh)
    except Preparing as error:
        return _later(request, error.what)
    except (BylawError, OSError) as error:
        told = f"The audit cannot be read at the moment. It is still being written or has been moved. ({error})"
        return _later(request, told)
    try:
        return await run_in_threadpool(answer, asked)
    except Preparing as error:
        if asked.is_part:
            # The browser loads the whole page, which then polls.
            return Response(headers={"hx-redirect": str(request.url.replace(scheme="", netloc=""))})
        return page("preparing.html", headers={"refresh": "1"}, what=error.what)
    except BylawError as error:
        return _wrong(request, error)


def _later(request: Request, why: str) -> Response:
    """Ask the browser to try again soon. Do not accept a submitted form."""
    if request.method in ("GET", "HEAD"):
        return page("preparing.html", 503, {"refresh": "2"}, what=why)
    return page("wrong.html", 503, error=f"Nothing was written. {why}", heading="Nothing was saved.")


def _to_sign_in(request: Request) -> Response:
    if request.method == "GET" and request.headers.get("hx-request") != "true":
        asked = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        usual = asked in ("/", "/inbox")
        return RedirectResponse("/sign-in" if usual else f"/sign-in?{urlencode({'next': asked})}", 303)
    return _wrong(request, Refused("you are not signed in", status=401))


def _wrong(request: Request, error: BylawError) -> Response:
    """Show an error that the visitor can fix, either as a whole page or as part of a page."""
    status = error.status if isinstance(error, Refused) else 422
    if request.headers.get("hx-request") != "true":
        is_read = request.method in ("GET", "HEAD")
        heading = (
            "Page not found." if status == 404 else "This page cannot be shown." if is_read else "Nothing was saved."
        )
        return page("wrong.html", status, error=str(error), heading=heading)
    # Show the error next to the form and keep the input. A new token lets the visitor send the form again.
    headers = {"hx-retarget": "#told", "hx-reswap": "innerHTML", "hx-reselect": ".told"}
    token = error.token if isinstance(error, TooOld) else ""
    values = {"error": str(error), "token": token, "needs_key": status == 401}
    return page("refused.html", 200 if status == 422 else status, headers, **values)


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in STATIC or request.url.path != static_address(name):
        return _wrong(request, Refused("file not found", status=404))
    return Response(static_file(name), media_type=STATIC[name], headers=FOREVER)


def _lost(status: int, why: str) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def answer(request: Request, error: Exception) -> Response:
        return _wrong(request, Refused(why, status=status))

    return answer


def application(
    routes: Sequence[Route],
    *,
    find: Callable[[Request], Visitor | None] = visitor_of,
    refresh: Callable[[], object] = lambda: None,
    hosts: tuple[str, ...] = (),
    secret: bytes | None = None,
) -> ASGIApp:
    """Return the pages with their access checks.

    `find` returns the visitor, or None if they must sign in. `refresh` runs before each page.
    """
    handlers = {404: _lost(404, "page not found"), 405: _lost(405, "this page does not accept this method")}
    pages = Starlette(routes=[Route("/static/{digest}/{name}", _static), *routes], exception_handlers=handlers)
    pages.state.find, pages.state.refresh = find, refresh
    # A redirect from `/findings/` would contain the client's `Host` header.
    pages.router.redirect_slashes = False
    return Door(pages, hosts=hosts, secret=secret)
