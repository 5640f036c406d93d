"""Pages as an ASGI application: how each is reached, and how what goes wrong is told. Start at `application`."""
# pyright: basic, reportMissingImports=false

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from bylaw.console.door import Door, Refused, TooOld, read_form
from bylaw.console.page import STATIC, page, static_address, static_file
from bylaw.console.preparing import Preparing
from bylaw.console.visitor import Asked, Visitor, visitor_of
from bylaw.errors import BylawError

Page = Callable[[Asked], Response]
"""What answers a request; it may wait for a disk, so it runs in a thread."""
Marked = Callable[[Any], Any]
TITLES = {True: "This page cannot be shown.", False: "That was not done."}
"""Over an error, by whether something was only to be looked at."""
FOREVER = {"cache-control": "public, max-age=31536000, immutable"}


class Pages:
    """Pages that have something to show in common: each method that answers says its address above itself."""

    section = ""
    """Where they stand in the frame."""

    def __init__(self, layout: dict[str, Any]) -> None:
        """`layout` is what the frame around them shows."""
        self._layout = layout

    def routes(self) -> list[Route]:
        """What they are found under."""
        made = [(make, getattr(self, name)) for name, each in vars(type(self)).items() for make in _makers(each)]
        return [make(answer) for make, answer in made]

    def _page(self, template: str, asked: Asked, status: int = 200, **values: Any) -> Response:
        given = {**self._layout, "asked": asked, "section": self.section, "written": None, **values}
        return page(template, status, asked.headers, **given)


def _makers(method: Any) -> list[Callable[[Any], Route]]:
    return getattr(method, "bylaw_routes", [])


def _under(path: str, method: str, run: Callable[[Any, Request], Awaitable[Response]]) -> Marked:
    def mark(answer: Any) -> Any:
        answer.bylaw_routes = [*_makers(answer), lambda bound: Route(path, partial(run, bound), methods=[method])]
        return answer

    return mark


def shown(path: str, *, is_open: bool = False) -> Marked:
    """A page to look at; `is_open` to anybody, signed in or not."""

    async def look(answer: Page, request: Request) -> Response:
        return await _answered(request, answer, {}, is_open)

    return _under(path, "GET", look)


def changed(path: str, *, is_open: bool = False) -> Marked:
    """A form to send: no page of this kind is reached without the token of its session."""

    async def change(answer: Page, request: Request) -> Response:
        try:
            given = await read_form(request)
        except Refused as error:
            return _wrong(request, error)
        return await _answered(request, answer, given, is_open)

    return _under(path, "POST", change)


def streamed(path: str) -> Marked:
    """Events for a page that is open."""

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
        words = f"nothing was written: the page was made for somebody else, and {asked.visitor.name} is signed in now"
        return _wrong(request, Refused(words, status=409, hint="load the page again"))
    try:
        return await run_in_threadpool(answer, asked)
    except Preparing as error:
        if asked.is_part:
            # The whole page is loaded, which then asks again by itself.
            return Response(headers={"hx-redirect": str(request.url.replace(scheme="", netloc=""))})
        return page("preparing.html", headers={"refresh": "1"}, what=error.what)
    except BylawError as error:
        return _wrong(request, error)


def _to_sign_in(request: Request) -> Response:
    """Who is not signed in is led to where that is done; a form, or a part of a page, is refused."""
    if request.method == "GET" and request.headers.get("hx-request") != "true":
        asked = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        usual = asked in ("/", "/inbox")
        return RedirectResponse("/sign-in" if usual else f"/sign-in?{urlencode({'next': asked})}", 303)
    return _wrong(request, Refused("you are not signed in, or not any more", status=401))


def _wrong(request: Request, error: BylawError) -> Response:
    """An error that somebody can do something about, as a page or as a part of one."""
    status = error.status if isinstance(error, Refused) else 422
    if request.headers.get("hx-request") != "true":
        heading = "Not found." if status == 404 else TITLES[request.method in ("GET", "HEAD")]
        return page("wrong.html", status, error=str(error), heading=heading)
    # What it says goes beside the form, which keeps all that was typed; with a new token it can be sent again.
    headers = {"hx-retarget": "#told", "hx-reswap": "innerHTML", "hx-reselect": ".told"}
    token = error.token if isinstance(error, TooOld) else ""
    values = {"error": str(error), "token": token, "needs_key": status == 401}
    return page("refused.html", 200 if status == 422 else status, headers, **values)


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in STATIC or request.url.path != static_address(name):
        return _wrong(request, Refused("there is no such file", status=404))
    return Response(static_file(name), media_type=STATIC[name], headers=FOREVER)


def _lost(status: int, why: str) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def answer(request: Request, error: Exception) -> Response:
        return _wrong(request, Refused(why, status=status))

    return answer


def application(
    routes: Sequence[Route],
    *,
    find: Callable[[Request], Visitor | None] = visitor_of,
    hosts: tuple[str, ...] = (),
    secret: bytes | None = None,
) -> ASGIApp:
    """Pages behind their door; `find` tells who looks at them, None where somebody has to sign in."""
    handlers = {404: _lost(404, "there is no such page"), 405: _lost(405, "this page does not take such a request")}
    pages = Starlette(routes=[Route("/static/{digest}/{name}", _static), *routes], exception_handlers=handlers)
    pages.state.find = find
    # `/findings/` is no page: it would be led to an address that the client's own `Host` names.
    pages.router.redirect_slashes = False
    return Door(pages, hosts=hosts, secret=secret)
