"""Who looks at a page, and what is asked."""
# pyright: basic, reportMissingImports=false

import hashlib
from typing import Literal
from urllib.parse import quote, unquote

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request

from bylaw.console.door import cookie_of
from bylaw.errors import UsageError
from bylaw.record.entry import DEFAULT_TENANT

NAME = "bylaw_name"
LONGEST = 80
UNVERIFIED = " (unverified)"
"""Stands behind a name that somebody gave and nobody checked."""


Role = Literal["approve", "review", "view"]
"""What somebody may do on a service's pages: answer what waits and stop agents; leave notes; or only look."""


class Visitor(Struct, frozen=True):
    """Somebody at a browser."""

    name: str = ""
    is_verified: bool = False
    """Whether the name is that of a key, and not one that somebody gave."""
    tenant: str = DEFAULT_TENANT
    role: Role = "approve"
    is_signed_in: bool = False
    """By a key of their own, which they may put away again."""

    @property
    def may_answer(self) -> bool:
        """Whether they may answer what waits, and stop and lift."""
        return self.role == "approve"

    @property
    def may_note(self) -> bool:
        """Whether they may leave their word where it decides nothing."""
        return self.role in ("approve", "review")

    @property
    def mark(self) -> str:
        """What tells a page that was made for them from one that was made for somebody else."""
        told = f"{self.tenant}\0{self.name}".encode("utf-8", "replace")
        return hashlib.blake2b(told, digest_size=8).hexdigest() if self.is_verified else ""

    @property
    def signature(self) -> str:
        """The name under which a change is kept."""
        return self.name if self.is_verified else self.name + UNVERIFIED


def visitor_of(request: Request) -> Visitor:
    """As the visitor's cookie says, which is a name that nobody checked."""
    return Visitor(given_name(request))


def given_name(request: Request) -> str:
    """The name that a visitor once gave; empty where none was."""
    return clean_name(unquote(cookie_of(request, NAME), errors="replace"))


class Asked:
    """A request, who makes it, and the fields of its form."""

    def __init__(self, request: Request, visitor: Visitor, form: dict[str, str]) -> None:
        self.request = request
        self.form = form
        self.visitor = visitor
        self.headers: dict[str, str] = {}
        """For the answer."""
        name = clean_name(form.get("by", ""))
        if name and not visitor.is_verified and name != visitor.name:
            self.visitor = replace(visitor, name=name)
            kept = f"{NAME}={quote(name)}; Path=/; HttpOnly; SameSite=Lax; Max-Age=31536000"
            self.headers["set-cookie"] = kept

    @property
    def token(self) -> str:
        """What the forms of the page bear."""
        return self.request.scope["state"]["token"] + self.visitor.mark

    @property
    def is_part(self) -> bool:
        """Whether only a part of a page is wanted."""
        return self.request.headers.get("hx-request") == "true"

    def signed(self) -> str:
        """The name for a change; it must have one."""
        if not self.visitor.name:
            raise UsageError("a change needs a name", hint="say who you are")
        return self.visitor.signature


def clean_name(name: str) -> str:
    """A name as it is kept and shown."""
    return " ".join("".join(each for each in name if each.isprintable()).split())[:LONGEST]
