"""A trace file as bytes: plain or gzip, by line or whole, with what can be saved of a broken one."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from msgspec import Struct

from bylaw.errors import FormatError, RecordError
from bylaw.trace.identity import agent_of_file

CHUNK = 1 << 20
_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"


class Source(Struct, frozen=True):
    """A file to read conversations from."""

    path: Path
    agent: str | None = None
    """Overrides whatever the file says."""

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def agent_by_name(self) -> str:
        """The agent where the records do not name one."""
        return agent_of_file(self.path.name)

    def fault(self, position: int, why: str, *, line: bool = False) -> RecordError:
        """What is wrong with the record on a line (counted from 1) or at a position (from 0)."""
        place = f"{self.path}:{position}" if line else f"{self.path}#{position}"
        return RecordError(why, place=place)

    def open(self) -> IO[bytes]:
        """The content, decompressed where it is gzip."""
        try:
            plain = self.path.open("rb")
            start = plain.read(2)
            plain.seek(0)
        except OSError as error:
            why = error.strerror or str(error)
            raise FormatError(f"cannot read: {why.lower()}", place=str(self.path)) from error
        return gzip.open(plain, "rb") if start == _GZIP else plain  # type: ignore[return-value]

    def chunks(self) -> Iterator[bytes | str]:
        """The content in pieces; a broken stream ends with the reason, as text."""
        with self.open() as stream:
            # Small first: looking at a file must not cost reading it.
            size = 1 << 16
            while True:
                try:
                    chunk = stream.read(size)
                except EOFError:
                    yield "truncated: the gzip stream ends before its end marker"
                    return
                except (OSError, zlib.error) as error:
                    yield f"damaged: {str(error).lower()}"
                    return
                if not chunk:
                    return
                yield chunk
                size = CHUNK

    def lines(self) -> Iterator[tuple[int, bytes] | RecordError]:
        """Every line that is not blank, numbered from 1; then the reason why the file ends early, if it does."""
        number = 0
        rest: list[bytes] = []
        for chunk in self.chunks():
            if isinstance(chunk, str):
                yield self.fault(number + 1, chunk, line=True)
                return
            if number == 0 and not rest and chunk.startswith(_BOM):
                chunk = chunk[len(_BOM) :]
            first, *others = chunk.split(b"\n")
            rest.append(first)
            if not others:
                continue
            others.insert(0, b"".join(rest))
            rest = [others.pop()]
            for line in others:
                number += 1
                if line and not line.isspace():
                    yield number, line
        last = b"".join(rest)
        if last and not last.isspace():
            yield number + 1, last

    def document(self) -> tuple[bytes, str]:
        """The whole content, and why it ends early if it does."""
        pieces: list[bytes] = []
        why = ""
        for chunk in self.chunks():
            if isinstance(chunk, str):
                why = chunk
            else:
                pieces.append(chunk)
        return b"".join(pieces).removeprefix(_BOM), why
