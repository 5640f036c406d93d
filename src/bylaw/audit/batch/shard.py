"""Splits log files into shards.

No conversation is split. The same file and size always give the same shards, so a run can be resumed. If a file cannot
be split safely, the whole file is one shard. Each shard's output has its own folder, which is complete once its entry
file exists.
"""

import hashlib
import io
import json
import os
import pickle
import re
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bylaw.audit.batch.tables import WRITTEN, Rows, arrow
from bylaw.audit.request import Request
from bylaw.audit.run import Examiner
from bylaw.errors import BylawError, RecordError
from bylaw.trace.document import count_records
from bylaw.trace.reader import Look, look
from bylaw.trace.source import CHUNK, LogFile, Source, Span, stamp_of

SIZE = 16 << 20
"""The default size of a shard in bytes."""
CUT = frozenset(("openai", "tau1"))
"""Formats in which each record is an independent conversation, so files can be cut between records."""
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}]|"', re.DOTALL)


class Shard(Struct, frozen=True):
    """A file or part of a file, and the key of its result."""

    number: int
    """The index of the shard."""
    file: int
    key: str
    """A key that depends only on the file and the shard's span."""
    size: int
    """The size in bytes, for the progress bar."""
    look: Look | None = None
    span: Span | None = None
    """The span of the file to read, or None for the whole file."""

    def place(self, file: LogFile) -> str:
        """Describe the file and the span of the shard, for messages."""
        if self.span is None:
            return str(file)
        unit = "row groups" if self.look is not None and self.look.format == "parquet" else "bytes"
        return f"{file} ({unit} {self.span.start:,} to {self.span.end:,})"


def cut(sources: Sequence[Source], size: int, names: Sequence[str]) -> Iterator[Shard]:
    """Yield the shards of all files in order. `names` maps each file to its name in the output."""
    number = 0
    for place, source in enumerate(sources):
        stamp = (*stamp_of(source.path), names[place])
        for found, span, bytes_in in _parts(source, stamp[1], size):
            start = -1 if span is None else span.start
            name = "\0".join(map(str, (*stamp, start, -1 if span is None else span.end)))
            key = hashlib.blake2b(name.encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()
            yield Shard(number, place, key, bytes_in, found, span)
            number += 1


def _parts(source: Source, total: int, size: int) -> Iterator[tuple[Look | None, Span | None, int]]:
    try:
        found = look(source)
    except BylawError:
        # The worker that reads the file reports this error.
        yield None, None, total
        return
    if found.format == "parquet":
        from bylaw.trace.readers.parquet import row_groups

        try:
            groups = row_groups(source)
        except BylawError:
            groups = []
        yield from ((found, *part) for part in _row_groups(groups, size))
        if not groups:
            yield found, None, total
        return
    spans: list[Span] | Iterator[Span] | None = None
    if total > size and found.format in CUT and not found.single and not source.is_packed:
        spans = _lines(source, size) if found.layout == "lines" else _members(source, size)
    if spans is None:
        yield found, None, total
        return
    yield from ((found, span, span.end - span.start) for span in spans)


def _row_groups(groups: list[tuple[int, int]], size: int) -> Iterator[tuple[Span, int]]:
    first = index = rows = held = 0
    for number, (count, weight) in enumerate(groups):
        if held and held + weight > size:
            yield Span(first, number, index=index), held
            first, index, rows, held = number, index + rows, 0, 0
        rows, held = rows + count, held + weight
    if groups:
        yield Span(first, len(groups), index=index), held


def _lines(source: Source, size: int) -> Iterator[Span]:
    """Yield spans of whole lines. Each span except the last has at least `size` bytes."""
    start, line, index = 0, 1, 0
    with source.open() as stream:
        end = stream.seek(0, 2)
        while start < end:
            stop = _line_end(stream, min(start + size, end), end) if start + size < end else end
            yield Span(start, stop, line, index)
            if stop == end:
                return
            # Count records as the log parser does: skip blank lines, and allow several records on one line.
            lines, records = count_records(replace(source, span=Span(start, stop, line, index)))
            start, line, index = stop, line + lines, index + records


def _line_end(stream: "io.BufferedReader[Any]", at: int, end: int) -> int:
    stream.seek(at - 1)
    while piece := stream.readline(CHUNK):
        if piece.endswith(b"\n"):
            return stream.tell()
    return end


class _NotAList(Exception):
    """Raised if a file is not a valid JSON list, so that it cannot be split."""


def _members(source: Source, size: int) -> list[Span] | None:
    """Return spans of whole list members, or None if the file is not a valid JSON list."""
    found: list[Span] = []
    start = index = count = 0
    stop = -1
    try:
        for begin, end in _member_ends(source):
            if stop < 0:
                start = begin
            elif end - start > size:
                found.append(Span(start, stop, index=index))
                start, index, count = begin, index + count, 0
            stop, count = end, count + 1
    except _NotAList:
        return None
    if stop >= 0:
        found.append(Span(start, stop, index=index))
    return found or None


def _member_ends(source: Source) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each member of a JSON list."""
    depth = begin = base = 0
    rest = b""
    for chunk in source.chunks():
        if isinstance(chunk, str):
            raise _NotAList
        data = rest + chunk
        free = 0
        for token in _TOKEN.finditer(data):
            mark = token[0]
            if mark == b'"':
                # The string continues in the next chunk.
                break
            if depth < 2 and not _is_space(data[free : token.start()], is_start=base + free == 0):
                raise _NotAList
            if mark in (b"[", b"{"):
                if depth == 1:
                    begin = base + token.start()
                elif depth == 0 and (mark == b"{" or begin):
                    raise _NotAList
                depth += 1
            elif mark in (b"]", b"}"):
                depth -= 1
                if depth < 0 or (depth == 0 and mark == b"}"):
                    raise _NotAList
                if depth == 1:
                    yield begin, base + token.end()
            elif depth < 2:
                raise _NotAList
            free = token.end()
        # Inside a member, only strings and brackets affect where the member ends.
        tail = data.find(b'"', free)
        kept = free if depth < 2 else tail if tail >= 0 else len(data)
        base, rest = base + kept, data[kept:]
    if depth or not _is_space(rest, is_start=False):
        raise _NotAList


def _is_space(data: bytes, *, is_start: bool) -> bool:
    return not (data.removeprefix(b"\xef\xbb\xbf") if is_start else data).strip(b" \t\r\n,")


HELD = 2000
"""The maximum number of conversations in memory before their rows are written."""
ENTRY = "entry.json"
EXAMINED = "examined.pickle"
"""The file in a shard's folder that contains the conversations to write as JSON lines."""


class Job(Struct, frozen=True):
    """The data given to every worker."""

    request: Request
    parts: Path
    """The folder that contains the output of all shards."""
    has_lines: bool = False
    """Whether to write JSON lines as well as tables."""

    def part(self, shard: Shard) -> Path:
        return self.parts / shard.key


class Judge:
    """Judges shards one after another. The pack and the ground-truth database are loaded only once."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._examiner = Examiner(job.request)
        packs = self._examiner.shelf.packs
        self._severities = {policy.id: policy.severity for pack in packs for policy in pack.policies.values()}

    def judge(self, shard: Shard) -> int:
        """Judge a shard, write its output, and return the number of conversations.

        The output is written to a temporary folder, which is renamed when it is complete, so no run uses an incomplete
        shard.
        """
        target = self._job.part(shard)
        aside = target.with_name(f".{target.name}-{secrets.token_hex(4)}")
        aside.mkdir(parents=True)
        try:
            count = self._write(shard, aside)
            sync(*aside.iterdir(), aside)
            try:
                os.rename(aside, target)
            except OSError:
                # Another worker has already written the same shard.
                if not (target / ENTRY).is_file():
                    raise
            sync(target.parent)
            return count
        finally:
            shutil.rmtree(aside, ignore_errors=True)

    def _write(self, shard: Shard, folder: Path) -> int:
        examiner, request = self._examiner, self._job.request
        examiner.begin()
        whole = examiner.counts
        """The counts of the whole shard. Nightly runs count each conversation separately."""
        faults: list[RecordError] = []
        rows, count, day = Rows(self._severities), 0, None
        with ExitStack() as opened:
            writers: dict[str, Any] = {}
            lines = opened.enter_context((folder / EXAMINED).open("wb")) if self._job.has_lines else None

            def write() -> None:
                for name, table in rows.take():
                    if name not in writers:
                        make = arrow("parquet").ParquetWriter
                        file = folder / f"{name}.parquet"
                        writers[name] = opened.enter_context(make(file, table.schema, **WRITTEN))
                    writers[name].write_table(table)

            def count_apart() -> None:
                counted = examiner.counts.record()
                rows.add_counts(max(count - 1, 0), day, counted)
                whole.add(counted)
                examiner.begin()

            if request.adds:
                examiner.begin()
            for part in examiner.examine_source(request.source(request.files[shard.file], shard.span), shard.look):
                if isinstance(part, RecordError):
                    faults.append(part)
                    continue
                day = rows.add(part, count)
                count += 1
                if lines is not None:
                    pickle.dump(part, lines)
                if request.adds:
                    count_apart()
                if len(rows) >= HELD:
                    write()
            if request.adds:
                # Some counts, such as errors in Bylaw's own code, belong to no conversation. Add them to the last
                # conversation.
                count_apart()
            write()
        if (pseudonyms := request.pseudonyms) is not None:
            faults = [pseudonyms.fault(fault) for fault in faults]
        entry = {
            "conversations": count,
            "faults": [[fault.message, fault.place, fault.hint] for fault in faults],
            "counts": whole.record(),
        }
        (folder / ENTRY).write_text(json.dumps(entry), encoding="utf-8")
        return count


def read_entry(folder: Path) -> dict[str, Any] | None:
    """Return the entry of a shard, or None if the shard's output is incomplete."""
    try:
        return json.loads((folder / ENTRY).read_bytes())
    except (OSError, ValueError):
        return None


def sync(*paths: Path) -> None:
    for each in paths:
        handle = os.open(each, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
