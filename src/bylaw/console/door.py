"""Checks the host, the token and the visitor of each request.

A page from another site can send requests, but it cannot read these pages, so it does not know the session's token.
Browsers also report which site a form was sent from.
"""
# pyright: basic, reportMissingImports=false

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from typing import Literal
from urllib.parse import parse_qsl, quote, unquote

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bylaw.errors import BylawError, UsageError
from bylaw.record.entry import DEFAULT_TENANT

SESSION = "bylaw_session"
NAME = "bylaw_name"
"""The cookie with the name that a visitor entered."""
LONGEST = 80
UNVERIFIED = " (unverified)"
"""Appended to the name of a visitor without a key."""
TOKEN = "token"
FIELDS = 1000
LARGEST = 256 << 10
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
"""The length of a session's token. The token of a form also contains the visitor's mark."""
Role = Literal["approve", "review", "view"]
"""What a visitor may do: approve calls and set stops, only leave notes, or only view."""


class Refused(BylawError):
    """Raised if a request is refused. `status` is the HTTP status."""

    code = "BY704"

    def __init__(self, message: str, *, status: int = 403, hint: str = "") -> None:
        self.status = status
        super().__init__(message, hint=hint)


class TooOld(Refused):
    """The form's token comes from another session, because the server was restarted or another site sent the form."""

    def __init__(self, token: str) -> None:
        """With the new `token`, the visitor can send the form again."""
        self.token = token
        super().__init__("nothing was written: the server restarted after you loaded the page. Send the form again")


class Visitor(Struct, frozen=True):
    name: str = ""
    is_verified: bool = False
    """Whether the visitor's name is that of the key's owner. Otherwise, the visitor typed the name."""
    tenant: str = DEFAULT_TENANT
    role: Role = "approve"
    is_signed_in: bool = False
    """Whether the visitor signed in with a key, and so can sign out."""

    @property
    def may_answer(self) -> bool:
        """Whether the visitor may answer requests and set stops."""
        return self.role == "approve"

    @property
    def may_note(self) -> bool:
        return self.role in ("approve", "review")

    @property
    def mark(self) -> str:
        """A digest that identifies the visitor whom a page was made for."""
        told = f"{self.tenant}\0{self.name}".encode("utf-8", "replace")
        return hashlib.blake2b(told, digest_size=8).hexdigest() if self.is_verified else ""

    @property
    def signature(self) -> str:
        """The name to record with the visitor's changes."""
        return self.name if self.is_verified else self.name + UNVERIFIED


class Asked:
    def __init__(self, request: Request, visitor: Visitor, form: dict[str, str]) -> None:
        self.request = request
        self.form = form
        self.visitor = visitor
        self.headers: dict[str, str] = {}
        """Headers for the response."""
        name = _clean_name(form.get("by", ""))
        if name and not visitor.is_verified and name != visitor.name:
            self.visitor = replace(visitor, name=name)
            kept = f"{NAME}={quote(name)}; Path=/; HttpOnly; SameSite=Lax; Max-Age=31536000"
            self.headers["set-cookie"] = kept

    @property
    def query(self) -> Mapping[str, str]:
        return self.request.query_params

    @property
    def path(self) -> dict[str, str]:
        return self.request.path_params

    @property
    def token(self) -> str:
        """The token to put in the forms on the page."""
        return self.request.scope["state"]["token"] + self.visitor.mark

    @property
    def is_part(self) -> bool:
        """Whether the browser requests only part of a page."""
        return self.request.headers.get("hx-request") == "true"

    def text(self, name: str, limit: int = 1000) -> str:
        """Return a form field as a single line of text."""
        return " ".join(self.form.get(name, "").split())[:limit]

    def signed(self) -> str:
        """Return the name to record with a change. Raise UsageError if the visitor has no name."""
        if not self.visitor.name:
            raise UsageError("a change needs a name", hint="enter your name to save")
        return self.visitor.signature

    def needs_answering(self) -> None:
        if not self.visitor.may_answer:
            raise Refused("you need the role `approve` to answer")

    def needs_noting(self) -> None:
        if not self.visitor.may_note:
            raise Refused("you need the role `approve` or `review` to save changes")


def visitor_of(request: Request) -> Visitor:
    """Return the visitor whose name is in the cookie. The name is unverified."""
    return Visitor(_clean_name(unquote(request.cookies.get(NAME, ""), errors="replace")))


def _clean_name(name: str) -> str:
    return " ".join("".join(each for each in name if each.isprintable()).split())[:LONGEST]


class Door:
    """Checks each request, and then passes it to the pages or refuses it."""

    def __init__(self, behind: ASGIApp, *, hosts: tuple[str, ...] = (), secret: bytes | None = None) -> None:
        """Allow `hosts` in addition to this machine's names. Workers that share a port must also share a `secret`."""
        self._behind = behind
        self._hosts = frozenset(host.lower() for host in hosts)
        self._secret = secret or secrets.token_bytes(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope)
        if why := self._wrong_place(request):
            await _answer(send, 403, why)
            return
        session = request.cookies.get(SESSION, "")
        is_new = not _SESSION.fullmatch(session)
        session = secrets.token_hex(16) if is_new else session
        token = hmac.new(self._secret, session.encode(), hashlib.sha256).hexdigest()
        scope["state"] = {"token": token, "has_session": not is_new}

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

    def _wrong_place(self, request: Request) -> str:
        """Return why a request's headers are refused, or an empty string if they are accepted."""
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or not (_LOOPBACK.fullmatch(hosts[0]) or hosts[0].lower() in self._hosts):
            return "unrecognised Host header"
        if request.method in ("GET", "HEAD"):
            return ""
        origin = request.headers.get("origin")
        is_ours = origin is None or origin.partition("://")[2].lower() == hosts[0].lower()
        if not is_ours or request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return "this server accepts changes only from its own pages"
        return ""


async def read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form. Raise Refused if the form's token is wrong."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Refused("send the change as a form", status=415)
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > LARGEST:
            raise Refused(f"the form is larger than {LARGEST:,} bytes", status=413)
    try:
        pairs = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=FIELDS)
    except ValueError:
        raise Refused(f"the form has more than {FIELDS:,} fields", status=413) from None
    given = dict(pairs)
    state: Mapping[str, object] = request.scope["state"]
    given_token = given.pop(TOKEN, "")
    token, request.scope["state"]["made_for"] = given_token[:_LENGTH], given_token[_LENGTH:]
    if not given_token.isascii():
        raise Refused("the token is malformed", status=400)
    if not state["has_session"]:
        raise Refused("the page is out of date; reload it")
    if not hmac.compare_digest(token, str(state["token"])):
        raise TooOld(f"{state['token']}{state['made_for']}")
    return {name: value.replace("\0", "").replace("\r\n", "\n") for name, value in given.items()}


async def _answer(send: Send, status: int, why: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store"), *_HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{why}\n".encode()})
