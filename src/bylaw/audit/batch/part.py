"""One shard judged: a function from a shard to part files and an entry that says so, both there or neither."""

import json
import os
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from bylaw.audit.batch.counts import Apart, counts_record
from bylaw.audit.batch.rows import Rows
from bylaw.audit.batch.schema import arrow
from bylaw.audit.batch.shard import Shard
from bylaw.audit.examine import Examiner, open_examiner
from bylaw.audit.line import writable
from bylaw.audit.request import Request
from bylaw.errors import RecordError

HELD = 2000
"""Conversations held before their rows are written: what bounds the memory of a worker, whatever its shard."""
ENTRY = "entry.json"
COUNTS = "counts"


class Job(Struct, frozen=True):
    """What every worker needs to know, once."""

    request: Request
    parts: Path
    """Where the parts go."""
    has_lines: bool = False
    """Whether files of lines are written, too."""

    def part(self, shard: Shard) -> Path:
        """The folder of a shard's part."""
        return self.parts / shard.key


class Judge:
    """Judges one shard after another, with the pack and the world loaded once."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._examiner = open_examiner(job.request, heads=True)
        self._examiner.name_files(job.request.names())

    def judge(self, shard: Shard) -> int:
        """Judge a shard and leave its part; the number of conversations in it.

        Whatever happens before the last rename leaves nothing that a later run would take for a part.
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
                # Another worker, perhaps of a driver that is gone, was first; its part says the same.
                if not (target / ENTRY).is_file():
                    raise
            sync(target.parent)
            return count
        finally:
            shutil.rmtree(aside, ignore_errors=True)

    def _write(self, shard: Shard, folder: Path) -> int:
        examiner, request = self._examiner, self._job.request
        examiner.begin()
        file = request.files[shard.file]
        source = request.source(file, shard.span)
        faults: list[RecordError] = []
        count = 0
        apart = Apart(examiner) if request.adds else None
        with PartFiles(folder, Rows(severities_of(examiner), has_lines=self._job.has_lines)) as files:
            for part in examiner.examine_source(source, shard.look):
                if isinstance(part, RecordError):
                    faults.append(part)
                    continue
                files.rows.add(part, writable(part.id), count)
                if apart is not None:
                    files.counts.append((count, apart.take()))
                count += 1
                if len(files.rows) >= HELD:
                    files.flush()
            if apart is not None:
                # What belongs to no conversation, such as a fault of ours, goes with the last.
                files.counts.append((max(count - 1, 0), apart.end()))
        if (pseudonyms := request.pseudonyms) is not None:
            faults = [pseudonyms.fault(fault) for fault in faults]
        entry = {
            "conversations": count,
            "faults": [[fault.message, fault.place, fault.hint] for fault in faults],
            "counts": counts_record(examiner),
        }
        (folder / ENTRY).write_text(json.dumps(entry), encoding="utf-8")
        return count


class PartFiles:
    """The part files of a shard, one a table, open for writing."""

    def __init__(self, folder: Path, rows: Rows) -> None:
        self._folder = folder
        self.rows = rows
        self.counts: list[tuple[int, str]] = []
        """Conversations, by their place in the part, with what was counted of them; kept where runs add up."""
        self._writers: dict[str, Any] = {}

    def __enter__(self) -> "PartFiles":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.flush()
        for writer in self._writers.values():
            writer.close()

    def flush(self) -> None:
        """Write what is held."""
        for name, gathered in self.rows.tables.items():
            if len(gathered):
                self._write(name, gathered.arrow())
        if self.counts:
            self._write(COUNTS, counts_table(self.counts))
        self.rows.clear()
        self.counts = []

    def _write(self, name: str, rows: Any) -> None:
        if name not in self._writers:
            make = arrow("parquet").ParquetWriter
            self._writers[name] = make(part_file(self._folder, name), rows.schema, compression="zstd")
        self._writers[name].write_table(rows)


def counts_table(counts: Sequence[tuple[int, str]]) -> Any:
    """Counts of conversations as an Arrow table."""
    pa = arrow()
    ordinals, records = zip(*counts, strict=True) if counts else ((), ())
    return pa.table({"ordinal": pa.array(ordinals, pa.int64()), "counts": pa.array(records, pa.string())})


def part_file(folder: Path, table: str) -> Path:
    """The file of a table in a part; there is none where the shard has no rows for it."""
    return folder / f"{table}.parquet"


def read_entry(folder: Path) -> dict[str, Any] | None:
    """What a part says of itself; None where there is no part, or none that is whole."""
    try:
        return json.loads((folder / ENTRY).read_bytes())
    except (OSError, ValueError):
        return None


def severities_of(examiner: Examiner) -> dict[str, str]:
    """The severity of every policy."""
    return {policy.id: policy.severity for pack in examiner.shelf.packs for policy in pack.policies.values()}


def sync(*paths: Path) -> None:
    """Have files and folders on the disk, not only in memory."""
    for each in paths:
        handle = os.open(each, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
