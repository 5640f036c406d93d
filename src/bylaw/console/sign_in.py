"""People sign in to a service's pages with a key of their own; a signed cookie then stands for it, for a day."""
# pyright: basic, reportMissingImports=false

import hashlib
import hmac
import time
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from bylaw.console.app import changed, shown
from bylaw.console.door import Refused, cookie_of
from bylaw.console.page import page
from bylaw.console.visitor import Asked, Visitor

COOKIE = "bylaw_key"
DAY = 24 * 3600
"""Seconds that a sign-in holds; a key that is taken out of the file ends it at once."""


class SignIn:
    """Knows visitors by their keys."""

    def __init__(
        self,
        whose: Callable[[str], Visitor | None],
        hash_of: Callable[[str], str],
        *,
        secret: bytes,
        is_secure: bool = False,
    ) -> None:
        """`whose` finds a visitor by a key's hash, as keys are now. `is_secure` where browsers come by HTTPS."""
        self._whose = whose
        self._hash_of = hash_of
        self._secret = secret
        self._ends = "; Path=/; HttpOnly; SameSite=Lax" + ("; Secure" if is_secure else "")

    def visitor(self, request: Request) -> Visitor | None:
        """Who is signed in; None for nobody."""
        name, _, rest = cookie_of(request, COOKIE).partition(".")
        until, _, mac = rest.partition(".")
        if not hmac.compare_digest(mac, self._mac(name, until)) or not until.isdigit() or int(until) < time.time():
            return None
        return self._whose(name)

    def routes(self) -> list[Route]:
        """The page to sign in on, and the way out."""
        return [
            shown("/sign-in", self._form, is_open=True),
            changed("/sign-in", self._take, is_open=True),
            changed("/sign-out", self._leave, is_open=True),
        ]

    def _form(self, asked: Asked) -> Response:
        return page("sign_in.html", asked=asked, error="")

    def _take(self, asked: Asked) -> Response:
        name = self._hash_of(asked.form.get("key", "").strip())
        if self._whose(name) is None:
            return page("sign_in.html", 401, asked=asked, error="This is not the key of a person who may look here.")
        until = str(int(time.time()) + DAY)
        cookie = f"{COOKIE}={name}.{until}.{self._mac(name, until)}; Max-Age={DAY}{self._ends}"
        return RedirectResponse("/inbox", 303, {"set-cookie": cookie})

    def _leave(self, asked: Asked) -> Response:
        return RedirectResponse("/sign-in", 303, {"set-cookie": f"{COOKIE}=; Max-Age=0{self._ends}"})

    def _mac(self, name: str, until: str) -> str:
        return hmac.new(self._secret, f"sign-in {name} {until}".encode(), hashlib.sha256).hexdigest()


def needs_answering(visitor: Visitor) -> None:
    """Refuse who may look but not answer."""
    if not visitor.may_answer:
        raise Refused("your key lets you look, not answer")
