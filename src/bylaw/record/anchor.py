"""Anchors: the end of each chain at a point in time, stored outside the database.

Anyone who can write to the database can truncate a chain and reset its count, or delete a whole tenant, without leaving
a trace there. A copy elsewhere shows it: on another disk, in another account, on paper.
"""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from bylaw.errors import BylawError, UsageError
from bylaw.record.entry import Anchor
from bylaw.record.store import Store, open_store

OFTEN = 300.0
"""Seconds between two anchors."""
AGAIN = 10.0
"""Seconds until the next attempt if an anchor could not be written."""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Anchor).decode


def beside(where: str) -> Path:
    """The anchor file of a log: next to a log file, or in the current folder for a server's database."""
    if "://" in where:
        return Path(f"{Path(urlsplit(where).path).name or 'decisions'}.anchors")
    return Path(f"{Path(where).expanduser()}.anchors")


def read_anchors(path: Path) -> list[Anchor]:
    """The anchors in a file, in the order written."""
    found: list[Anchor] = []
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise UsageError(f"cannot be read: {(error.strerror or str(error)).lower()}", place=str(path)) from None
    for number, line in enumerate(lines, 1):
        try:
            found.append(_decode(line))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            # A crash may have truncated the last line; the next anchor starts a new line.
            if number < len(lines):
                hint = "restore the file, or delete the line if you know why it is broken"
                raise UsageError("is no anchor", place=f"{path}:{number}", hint=hint) from None
    return found


def write_anchors(store: Store, path: Path, known: dict[str, int]) -> list[Anchor]:
    """Write anchors for the chains that have grown; `known` holds the last anchored entry of each and is updated."""
    now = time.time()
    made = [
        Anchor(now, tenant, number, link.hex())
        for tenant, (number, link) in store.heads().items()
        if known.get(tenant) != number
    ]
    if not made and not os.access(path if path.exists() else path.parent, os.W_OK):
        # Report it before the first anchor is due.
        raise UsageError("cannot be written", place=str(path))
    if made:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with open(descriptor, "ab") as stream:
            # Start a new line after one that a crash truncated.
            stream.write(b"".join([b"\n" if _is_cut(path) else b"", *(_encode(each) + b"\n" for each in made)]))
            stream.flush()
            os.fsync(stream.fileno())
        known.update({each.tenant: each.number for each in made})
    return made


def _is_cut(path: Path) -> bool:
    with path.open("rb") as stream:
        stream.seek(0, os.SEEK_END)
        if not stream.tell():
            return False
        stream.seek(-1, os.SEEK_END)
        return stream.read(1) != b"\n"


class Anchoring:
    """Writes a log's anchors at intervals, in a separate thread, and once more at the end."""

    def __init__(
        self,
        where: str,
        path: Path,
        tell: Callable[[str], None],
        *,
        often: float = OFTEN,
        failing: Callable[[bool], None] = lambda is_failing: None,
    ) -> None:
        """`failing` is called after each attempt with whether it failed."""
        self._where, self._path, self._tell, self._often, self._failing = where, path, tell, often, failing
        self._known: dict[str, int] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="bylaw-anchors", daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def _work(self) -> None:
        is_last = is_failing = False
        while not is_last:
            is_last = self._ended.is_set()
            try:
                store = open_store(self._where)
                try:
                    made = write_anchors(store, self._path, self._known)
                finally:
                    store.close()
                for each in made:
                    self._tell(f"anchor {each.when}: {each.tenant} {each.number} {each.link}")
                is_failing = False
            except (BylawError, OSError) as error:
                if not is_failing or is_last:
                    self._tell(f"no anchor was written to {self._path}: {error}")
                is_failing = True
            self._failing(is_failing)
            if not is_last:
                self._ended.wait(min(self._often, AGAIN) if is_failing else self._often)
