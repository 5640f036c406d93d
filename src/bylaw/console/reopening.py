"""Pages of an audit that may be written again while they are open: they then show the new one."""
# pyright: basic, reportMissingImports=false

import secrets
from collections.abc import Callable

from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Receive, Scope, Send

from bylaw.console.door import Door
from bylaw.console.page import page
from bylaw.console.preparing import Prepared, Preparing
from bylaw.console.view import View
from bylaw.errors import BylawError

AGAIN = {"refresh": "2"}
"""A page that asks for itself again."""


class Reopening:
    """Answers for the audit as its folder is now; who had a page open keeps their session."""

    def __init__(self, view: View, made: Callable[[View, bytes], ASGIApp]) -> None:
        """`made` makes the pages of a view, whose forms are known by a secret."""
        self._view = view
        self._made = made
        self._secret = secrets.token_bytes(32)
        self._pages = made(view, self._secret)
        self._next: Prepared[View] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("path", "").startswith("/static/"):
            # They are of this version of Bylaw, whatever audit is read.
            await self._pages(scope, receive, send)
            return
        pages = await run_in_threadpool(self._now, scope.get("method", "GET"))
        await pages(scope, receive, send)

    def _now(self, method: str) -> ASGIApp:
        if self._next is None and not self._view.is_outdated():
            return self._pages
        if self._next is None or self._next.failed:
            self._next = Prepared("The audit was written again, and is being read.", self._view.reopened)
        try:
            self._view = self._next.get()
        except Preparing as error:
            return self._later(method, error.what)
        except (BylawError, OSError) as error:
            return self._later(
                method, f"The audit cannot be read now: it is being written, or has been moved. ({error})"
            )
        self._pages, self._next = self._made(self._view, self._secret), None
        return self._pages

    def _later(self, method: str, why: str) -> ASGIApp:
        """Says that there is nothing to show yet; a form that was sent is not taken, and says so."""
        if method in ("GET", "HEAD"):
            return Door(page("preparing.html", 503, AGAIN, what=why), secret=self._secret)
        return Door(
            page("wrong.html", 503, error=f"Nothing was written. {why}", heading="That was not done."),
            secret=self._secret,
        )
