"""Signs visitors in to a service's pages with a personal key, which a signed cookie replaces for one day.

Alternatively, a proxy signs visitors in and names them in a header.
"""
# pyright: basic, reportMissingImports=false

import hashlib
import hmac
import time
from collections.abc import Callable
from urllib.parse import urlsplit

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from bylaw.console.app import Pages, changed, shown
from bylaw.console.door import Asked, Visitor

COOKIE = "bylaw_key"
DAY = 24 * 3600
"""How long a sign-in lasts, in seconds. If the visitor's key is removed from the key file, the sign-in ends
immediately.
"""


class Proxy(Struct, frozen=True):
    """A trusted proxy, which names the visitor of each request in a header."""

    header: str
    address: str
    whose: Callable[[str], Visitor | None]

    def visitor(self, request: Request) -> Visitor | None:
        """Return the visitor that the proxy names.

        Return None if no visitor is named, or if the request did not come from the proxy.
        """
        names = request.headers.getlist(self.header)
        # If the header occurs twice, only one of the two can come from the proxy, so trust neither.
        if len(names) != 1 or request.client is None or request.client.host != self.address:
            return None
        return self.whose(names[0].strip())


class SignIn(Pages):
    """Identifies visitors by their keys."""

    def __init__(
        self,
        whose: Callable[[str], Visitor | None],
        hash_of: Callable[[str], str],
        *,
        secret: bytes,
        is_secure: bool = False,
        proxy: Proxy | None = None,
    ) -> None:
        """`whose` returns the visitor who owns a current key, given the key's hash.

        Set `is_secure` if browsers use HTTPS.
        """
        self._proxy = proxy
        self._whose = whose
        self._hash_of = hash_of
        self._secret = secret
        self._ends = "; Path=/; HttpOnly; SameSite=Lax" + ("; Secure" if is_secure else "")

    def visitor(self, request: Request) -> Visitor | None:
        if self._proxy is not None and (vouched := self._proxy.visitor(request)) is not None:
            return vouched
        name, _, rest = request.cookies.get(COOKIE, "").partition(".")
        until, _, mac = rest.partition(".")
        signed = hmac.compare_digest(mac.encode("utf-8", "replace"), self._mac(name, until).encode())
        if not signed or not until.isdigit() or int(until) < time.time():
            return None
        return self._whose(name)

    @shown("/sign-in", is_open=True)
    def form(self, asked: Asked) -> Response:
        return self._page("sign_in.html", asked, error="", after=_own(asked.query.get("next", "")))

    @changed("/sign-in", is_open=True)
    def take(self, asked: Asked) -> Response:
        name = self._hash_of(asked.form.get("key", "").strip())
        if self._whose(name) is None:
            wrong = "This key does not give access to these pages."
            return self._page("sign_in.html", asked, 401, error=wrong, after=_own(asked.form.get("next", "")))
        until = str(int(time.time()) + DAY)
        cookie = f"{COOKIE}={name}.{until}.{self._mac(name, until)}; Max-Age={DAY}{self._ends}"
        return RedirectResponse(_own(asked.form.get("next", "")) or "/inbox", 303, {"set-cookie": cookie})

    @changed("/sign-out", is_open=True)
    def leave(self, asked: Asked) -> Response:
        return RedirectResponse("/sign-in", 303, {"set-cookie": f"{COOKIE}=; Max-Age=0{self._ends}"})

    def _mac(self, name: str, until: str) -> str:
        return hmac.new(self._secret, f"sign-in {name} {until}".encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def _own(address: str) -> str:
    """Return the address if it is on this server. Otherwise, return an empty string."""
    parts = urlsplit(address)
    is_ours = address.startswith("/") and not address.startswith(("//", "/\\")) and not parts.netloc
    return address if is_ours and address.isascii() and address.isprintable() and len(address) < 2000 else ""
