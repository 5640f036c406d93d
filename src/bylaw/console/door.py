"""What every request passes: who may ask under which name, tokens on every change, and what a browser may load.

A page that somebody has open elsewhere can send requests here, too. It cannot read our pages, so it does not know the
token of the session; and the browser says from where a change was sent.
"""
# pyright: basic, reportMissingImports=false

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bylaw.errors import BylawError

SESSION = "bylaw_session"
TOKEN = "token"
"""The field of a form that bears the token; with htmx it comes the same way."""
LARGEST = 256 << 10
"""Bytes in a form at most."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_LOOPBACK = re.compile(r"(localhost|127(\.\d+){3}|\[::1\])(:\d+)?", re.IGNORECASE)
_SESSION = re.compile(r"[0-9a-f]{32}")
_LENGTH = 64
"""Of a session's token; behind it stands whom the page was made for."""


class Refused(BylawError):
    """A request that may not be answered, with the status that says so."""

    code = "BY704"

    def __init__(self, message: str, *, status: int = 403, hint: str = "") -> None:
        self.status = status
        super().__init__(message, hint=hint)


class TooOld(Refused):
    """A form whose token is not that of its session: its page is from before the server was started, or not ours."""

    def __init__(self, token: str) -> None:
        """`token` is what it is to be sent again with."""
        self.token = token
        super().__init__(
            "nothing was written: the server was started again since the page was loaded; send it once more"
        )


class Door:
    """Lets a request in to the pages behind it, or answers in their place."""

    def __init__(self, behind: ASGIApp, *, hosts: tuple[str, ...] = (), secret: bytes | None = None) -> None:
        """`hosts` are names beside this machine's own; workers that share a port share a `secret`."""
        self._behind = behind
        self._hosts = frozenset(host.lower() for host in hosts)
        self._secret = secret or secrets.token_bytes(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check where it comes from, and see it through."""
        if scope["type"] != "http":
            return
        request = Request(scope)
        if why := self._wrong_place(request):
            await _answer(send, 403, why)
            return
        session = _cookie(request.headers.get("cookie", ""), SESSION)
        is_new = not _SESSION.fullmatch(session)
        session = secrets.token_hex(16) if is_new else session
        scope["state"] = {"token": self.token(session), "has_session": not is_new}

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [*message["headers"], *_HEADERS]
                if not any(name == b"cache-control" for name, _ in headers):
                    headers.append((b"cache-control", b"no-store"))
                if is_new and scope["method"] == "GET":
                    secure = "; Secure" if scope.get("scheme") == "https" else ""
                    cookie = f"{SESSION}={session}; Path=/; HttpOnly; SameSite=Lax{secure}"
                    headers.append((b"set-cookie", cookie.encode()))
                message = {**message, "headers": headers}
            await send(message)

        await self._behind(scope, receive, guarded)

    def token(self, session: str) -> str:
        """What the forms of a session bear."""
        return hmac.new(self._secret, session.encode(), hashlib.sha256).hexdigest()

    def _wrong_place(self, request: Request) -> str:
        """Why a request is not taken, from what its headers say of where it is from; empty where it is."""
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or not (_LOOPBACK.fullmatch(hosts[0]) or hosts[0].lower() in self._hosts):
            return "this is not the name of this server"
        if request.method in ("GET", "HEAD"):
            return ""
        origin = request.headers.get("origin")
        if origin is not None and origin.partition("://")[2].lower() != hosts[0].lower():
            return "a change must come from a page of this server"
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return "a change must come from a page of this server"
        return ""


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form that was sent from one of our pages; `Refused` where its token is not ours."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Refused("send a form", status=415)
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > LARGEST:
            raise Refused(f"the form is larger than {LARGEST:,} bytes", status=413)
    given = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=100))
    state: Mapping[str, object] = request.scope["state"]
    given_token = given.pop(TOKEN, "")
    token, request.scope["state"]["made_for"] = given_token[:_LENGTH], given_token[_LENGTH:]
    if not given_token.isascii():
        raise Refused("the token is malformed", status=400)
    if not state["has_session"]:
        raise Refused("the page is too old, or not ours: load it again")
    if not hmac.compare_digest(token, str(state["token"])):
        raise TooOld(f"{state['token']}{state['made_for']}")
    return {name: value.replace("\0", "").replace("\r\n", "\n") for name, value in given.items()}


def _cookie(header: str, name: str) -> str:
    try:
        found = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return found.value if found is not None else ""


def cookie_of(request: Request, name: str) -> str:
    """A cookie's value; empty where there is none."""
    return _cookie(request.headers.get("cookie", ""), name)


async def _answer(send: Send, status: int, why: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store"), *_HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{why}\n".encode()})
