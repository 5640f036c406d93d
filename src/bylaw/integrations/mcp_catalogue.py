"""Compares a server's current tool descriptions with the accepted ones.

A server may change a description after review (a "rug pull"), and the agent's model reads the changed text. The
descriptions in the first listing are accepted, unless a file contains the accepted ones. The agent always sees the
accepted description. If a tool's description has changed, its calls need approval until a reviewer accepts the change.
Descriptions are identified by digest.
"""

import hashlib
import os
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from bylaw.errors import UsageError
from bylaw.text.visible import clean, own_log

FIRST = "the first listing"
INSTRUCTIONS = "(server instructions)"
"""The name for the server's instructions in the list of tools. Tool names contain no spaces."""
MOST = 10_000
"""The maximum number of tools in the list for the agent."""
WAITING = 10
"""The maximum number of descriptions of one tool that may wait for review.

Additional descriptions are dropped, but the tool still needs approval.
"""
NAME = 200
"""The maximum length of a tool's name in messages."""
_SAID = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
"""The fields of an MCP tool's description that agents and hosts use."""
log = own_log()


class Told(Struct, frozen=True):
    digest: str
    tool: dict[str, Any]
    at: float
    by: str = ""


class Known(Struct, frozen=True):
    accepted: tuple[Told, ...] = ()
    """The accepted descriptions. The agent sees the most recent one."""
    waiting: tuple[Told, ...] = ()


class Book(Struct, frozen=True):
    tools: dict[str, Known] = field(default_factory=dict[str, Known])


class Catalogue:
    """The accepted tools of one server. Without a file, they are lost when the process ends."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._stamp: Any = None
        self._book = Book()
        self._is_open = True
        """Whether new tools are accepted."""
        self.doubts: dict[str, str] = {}
        """The reasons why tools need approval, by tool."""
        self.refresh()

    def refresh(self) -> None:
        """Read new acceptances from the file."""
        if self._file is None or (stamp := _stamp(self._file)) == self._stamp:
            return
        with self._lock:
            self._read(self._file, stamp)

    def _read(self, file: Path, stamp: Any) -> None:
        if stamp is not None:
            self._book, self._is_open = read_book(file), False
        self._stamp = stamp
        self._doubt()

    def take(self, listed: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the tool list for the agent, with the accepted descriptions."""
        with self._changing() as tools:
            shown: dict[str, dict[str, Any]] = {}
            for each in listed:
                name = str(each["name"])
                if name not in tools and len(tools) >= MOST:
                    log.warning("the server lists more than %d tools; the rest are hidden", MOST)
                    break
                known = tools[name] = self._told(name, tools.get(name, Known()), each, is_open=self._is_open)
                if known.accepted:
                    # Fields other than those of the description may come from the current listing.
                    is_accepted = digest_of(each) in {old.digest for old in known.accepted}
                    shown.setdefault(name, dict(each) if is_accepted else known.accepted[-1].tool)
            self._is_open &= not listed
            return list(shown.values())

    def instructions(self, text: str) -> str:
        """Return the server instructions for the agent: the first, or the most recently accepted."""
        with self._changing() as tools:
            said = {"name": INSTRUCTIONS, "description": text}
            known = self._told(INSTRUCTIONS, tools.get(INSTRUCTIONS, Known()), said, is_open=True)
            tools[INSTRUCTIONS] = known
            return str(known.accepted[-1].tool["description"])

    @contextmanager
    def _changing(self) -> Generator[dict[str, Known]]:
        """A context manager that yields the tools by name, and saves changes afterwards."""
        with self._lock:
            if self._file is not None and (stamp := _stamp(self._file)) != self._stamp:
                self._read(self._file, stamp)
            tools = dict(self._book.tools)
            yield tools
            if tools != self._book.tools:
                self._keep(Book(tools))
            self._doubt()

    def _told(self, name: str, known: Known, said: Mapping[str, Any], *, is_open: bool) -> Known:
        """Record a tool's description. With `is_open`, the first description is accepted."""
        told = Told(digest_of(said), dict(said), time.time())
        if told.digest in {old.digest for old in (*known.accepted, *known.waiting)}:
            return known
        if not known.accepted and is_open:
            return Known((replace(told, by=FIRST),))
        what = (
            "describes it differently from the accepted version"
            if known.accepted
            else "has a new tool that has not been accepted"
        )
        log.warning("tool `%s`: the server %s (%s); %s", clean(name, NAME), what, told.digest, self._way)
        return known if len(known.waiting) >= WAITING else replace(known, waiting=(*known.waiting, told))

    @property
    def _way(self) -> str:
        if self._file is None:
            return "a reviewer must approve each call; with `--tools FILE`, somebody can accept the tool"
        return f"a reviewer must approve each call until somebody accepts the tool: bylaw tools {self._file}"

    def _doubt(self) -> None:
        found: dict[str, str] = {}
        for name, known in self._book.tools.items():
            if known.waiting and name != INSTRUCTIONS:
                was = f"{known.accepted[-1].digest} was accepted" if known.accepted else "none was accepted"
                found[name] = (
                    f"the server's description of this tool has not been accepted ({known.waiting[-1].digest}, {was})"
                )
        # Update first and delete afterwards, because other threads read these reasons.
        self.doubts.update(found)
        for name in [name for name in self.doubts if name not in found]:
            del self.doubts[name]

    def _keep(self, book: Book) -> None:
        self._book = book
        if self._file is not None:
            try:
                write_book(self._file, book)
            except OSError as error:
                # Waiting descriptions stay in memory, so a failed write loses only acceptances.
                log.error("%s: the file of accepted tools cannot be written: %s", self._file, error)
            self._stamp = _stamp(self._file)


def digest_of(tool: Mapping[str, Any]) -> str:
    """Return the digest of the fields that agents use. The order of keys does not matter."""
    said = {part: tool.get(part) for part in _SAID if tool.get(part) is not None}
    return hashlib.sha256(msgspec.json.encode(said, order="sorted")).hexdigest()[:16]


def read_book(file: Path) -> Book:
    try:
        return msgspec.json.decode(file.read_bytes(), type=Book)
    except (OSError, msgspec.DecodeError) as error:
        hint = "`bylaw proxy --tools` writes this file"
        raise UsageError(f"not a file of accepted tools: {error}", place=str(file), hint=hint) from None


def write_book(file: Path, book: Book) -> None:
    text = msgspec.json.format(msgspec.json.encode(book, order="sorted"), indent=1)
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        fresh.write_bytes(text + b"\n")
        fresh.replace(file)
    finally:
        with suppress(OSError):
            fresh.unlink()


def accept(file: Path, digests: Sequence[str], by: str) -> list[str]:
    """Accept waiting descriptions by digest. Return the names of their tools."""
    book = read_book(file)
    tools, found = dict(book.tools), dict[str, str]()
    for name, known in book.tools.items():
        if said := [each for each in known.waiting if each.digest in digests]:
            found |= {each.digest: name for each in said}
            left = tuple(each for each in known.waiting if each.digest not in digests)
            seen = (replace(each, by=by, at=time.time()) for each in said)
            tools[name] = Known((*known.accepted, *seen), left)
    if strange := [each for each in digests if each not in found]:
        raise UsageError(f"no description `{clean(strange[0], NAME)}` is waiting for review", place=str(file))
    if found:
        write_book(file, Book(tools))
    return sorted(set(found.values()))


def _stamp(file: Path) -> Any:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
