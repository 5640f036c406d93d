"""One shard judged: a function from a shard to part files and an entry that says so, both there or neither."""

import json
import os
import secrets
import shutil
from pathlib import Path
from typing import Any

from msgspec import Struct

from bylaw.audit.batch.counts import counts_record
from bylaw.audit.batch.rows import Rows
from bylaw.audit.batch.schema import arrow, arrow_schema
from bylaw.audit.batch.shard import Shard
from bylaw.audit.examine import Examiner, open_examiner
from bylaw.audit.line import writable
from bylaw.audit.redaction import Pseudonyms
from bylaw.audit.request import Request, told_apart
from bylaw.errors import RecordError
from bylaw.trace.source import Source

HELD = 2000
"""Conversations held before their rows are written: what bounds the memory of a worker, whatever its shard."""
ENTRY = "entry.json"


class Job(Struct, frozen=True):
    """What every worker needs to know, once."""

    request: Request
    parts: Path
    """Where the parts go."""

    def part(self, shard: Shard) -> Path:
        """The folder of a shard's part."""
        return self.parts / shard.key


class Judge:
    """Judges one shard after another, with the pack and the world loaded once."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._examiner = open_examiner(job.request, heads=True)
        self._examiner.name_files(told_apart(job.request.files))

    def judge(self, shard: Shard) -> int:
        """Judge a shard and leave its part; the number of conversations in it.

        Whatever happens before the last rename leaves nothing that a later run would take for a part.
        """
        target = self._job.part(shard)
        aside = target.with_name(f".{target.name}-{secrets.token_hex(4)}")
        aside.mkdir(parents=True)
        try:
            count = self._write(shard, aside)
            _sync(*aside.iterdir(), aside)
            try:
                os.rename(aside, target)
            except OSError:
                # Another worker, perhaps of a driver that is gone, was first; its part says the same.
                if not (target / ENTRY).is_file():
                    raise
            _sync(target.parent)
            return count
        finally:
            shutil.rmtree(aside, ignore_errors=True)

    def _write(self, shard: Shard, folder: Path) -> int:
        examiner, request = self._examiner, self._job.request
        examiner.begin()
        file = request.files[shard.file]
        source = Source(file, request.agent, span=shard.span, columns=request.columns)
        faults: list[RecordError] = []
        count = 0
        with PartFiles(folder, _severities(examiner)) as files:
            for part in examiner.examine_source(source, shard.look):
                if isinstance(part, RecordError):
                    faults.append(part)
                    continue
                files.rows.add(part, writable(part.id), count)
                count += 1
                if len(files.rows) >= HELD:
                    files.flush()
        if request.key is not None:
            pseudonyms = Pseudonyms(request.key)
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

    def __init__(self, folder: Path, severities: dict[str, str]) -> None:
        self._folder = folder
        self.rows = Rows(severities)
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
        writer = arrow("parquet").ParquetWriter
        for name, gathered in self.rows.tables.items():
            if not len(gathered):
                continue
            if name not in self._writers:
                schema = arrow_schema(name, internal=True)
                self._writers[name] = writer(part_file(self._folder, name), schema, compression="zstd")
            self._writers[name].write_table(gathered.arrow())
        self.rows.clear()


def part_file(folder: Path, table: str) -> Path:
    """The file of a table in a part; there is none where the shard has no rows for it."""
    return folder / f"{table}.parquet"


def read_entry(folder: Path) -> dict[str, Any] | None:
    """What a part says of itself; None where there is no part, or none that is whole."""
    try:
        return json.loads((folder / ENTRY).read_bytes())
    except (OSError, ValueError):
        return None


def _severities(examiner: Examiner) -> dict[str, str]:
    return {policy.id: policy.severity for pack in examiner.shelf.packs for policy in pack.policies.values()}


def _sync(*paths: Path) -> None:
    """Have files and folders on the disk, not only in memory."""
    for each in paths:
        handle = os.open(each, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
