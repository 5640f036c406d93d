"""Serves the pages as an ASGI application: routes, sign-in and error pages. Start at `application`."""
# pyright: basic, reportMissingImports=false

from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any
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

Mark = Callable[[Any], Any]
FOREVER = {"cache-control": "public, max-age=31536000, immutable"}


class Pages:
    """A group of pages. Each page is a method whose decorator contains the page's address."""

    section = ""
    """The entry in the navigation bar that the group belongs to."""

    @property
    def layout(self) -> dict[str, Any]:
        """The template values for the layout that all pages share."""
        return {}

    def routes(self) -> Iterator[Route]:
        for name, method in vars(type(self)).items():
            for path, verb, endpoint in getattr(method, "addresses", ()):
                yield Route(path, partial(endpoint, getattr(self, name)), methods=[verb])

    def _page(self, template: str, asked: Asked, status: int = 200, **values: Any) -> Response:
        given = {**self.layout, "asked": asked, "section": self.section, "written": None, **values}
        return page(template, status, asked.headers, **given)


def shown(path: str, *, is_open: bool = False) -> Mark:
    """Return a decorator that serves a method as a page for GET. If `is_open` is set, visitors need not sign in."""
    return _at(path, "GET", partial(_respond, is_open=is_open))


def changed(path: str, *, is_open: bool = False) -> Mark:
    """Return a decorator that serves a method as a form for POST.

    The session's token protects the form. If `is_open` is set, visitors need not sign in.
    """
    return _at(path, "POST", partial(_respond, is_open=is_open))


def streamed(path: str) -> Mark:
    """Return a decorator that serves a method as a stream of events, for a page that is open in a browser."""
    return _at(path, "GET", _stream)


def _at(path: str, verb: str, endpoint: Callable[..., Awaitable[Response]]) -> Mark:
    def mark(answer: Any) -> Any:
        answer.addresses = [*getattr(answer, "addresses", ()), (path, verb, endpoint)]
        return answer

    return mark


async def _stream(answer: Callable[[Request, Visitor], Awaitable[Response]], request: Request) -> Response:
    if (visitor := request.app.state.find(request)) is None:
        raise Refused("sign in first", status=401)
    return await answer(request, visitor)


async def _respond(answer: Callable[[Asked], Response], request: Request, *, is_open: bool) -> Response:
    """Return the response with a page. Pages run in a thread because they may wait for a disk."""
    is_change = request.method == "POST"
    form = await read_form(request) if is_change else {}
    visitor = request.app.state.find(request)
    if visitor is None and not is_open:
        return _to_sign_in(request)
    asked = Asked(request, visitor or Visitor(), form)
    if is_change and not is_open and asked.visitor.mark != request.scope["state"]["made_for"]:
        raise Refused(
            f"nothing was written: you are now signed in as {asked.visitor.name}, but you loaded the page under"
            " another name",
            status=409,
            hint="reload the page",
        )
    try:
        await run_in_threadpool(request.app.state.refresh)
    except (BylawError, OSError) as error:
        why = f"The audit cannot be read at the moment. It is still being written or has been moved. ({error})"
        if is_change:
            return page("wrong.html", 503, error=f"Nothing was written. {why}", heading="Nothing was saved.")
        return page("preparing.html", 503, {"refresh": "2"}, what=why)
    return await run_in_threadpool(answer, asked)


def _to_sign_in(request: Request) -> Response:
    if request.method == "POST" or request.headers.get("hx-request") == "true":
        raise Refused("you are not signed in", status=401)
    asked = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    usual = asked in ("/", "/inbox")
    return RedirectResponse("/sign-in" if usual else f"/sign-in?{urlencode({'next': asked})}", 303)


async def _wrong(request: Request, error: BylawError) -> Response:
    """Show an error that the visitor can fix, as a whole page or as part of a page."""
    status = error.status if isinstance(error, Refused) else 422
    if request.headers.get("hx-request") != "true":
        is_read = request.method in ("GET", "HEAD")
        heading = "This page cannot be shown." if is_read else "Nothing was saved."
        return page("wrong.html", status, error=str(error), heading="Page not found." if status == 404 else heading)
    # Show the error next to the form and keep the input. A new token lets the visitor send the form again.
    headers = {"hx-retarget": "#told", "hx-reswap": "innerHTML", "hx-reselect": ".told"}
    token = error.token if isinstance(error, TooOld) else ""
    values = {"error": str(error), "token": token, "needs_key": status == 401}
    return page("refused.html", 200 if status == 422 else status, headers, **values)


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in STATIC or request.url.path != static_address(name):
        raise Refused("file not found", status=404)
    return Response(static_file(name), media_type=STATIC[name], headers=FOREVER)


async def _lost(request: Request, _: Exception) -> Response:
    return await _wrong(request, Refused("page not found", status=404))


async def _not_a_form(request: Request, _: Exception) -> Response:
    return await _wrong(request, Refused("this page does not accept this method", status=405))


def application(
    routes: Sequence[Route],
    *,
    find: Callable[[Request], Visitor | None] = visitor_of,
    refresh: Callable[[], object] = lambda: None,
    hosts: tuple[str, ...] = (),
    secret: bytes | None = None,
) -> ASGIApp:
    """Return an ASGI application that serves the pages and checks access.

    `find` returns the visitor, or None if the visitor must sign in. `refresh` is called before each page.
    """
    handlers: dict[Any, Any] = {404: _lost, 405: _not_a_form, BylawError: _wrong}
    pages = Starlette(routes=[Route("/static/{digest}/{name}", _static), *routes], exception_handlers=handlers)
    pages.state.find, pages.state.refresh = find, refresh
    # Do not redirect addresses such as `/findings/`, because the redirect would contain the client's `Host` header.
    pages.router.redirect_slashes = False
    return Door(pages, hosts=hosts, secret=secret)
