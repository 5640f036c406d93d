"""Judges one shard into part files and an entry that completes them: either all exist or none."""

import json
import os
import pickle
import secrets
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from msgspec import Struct

from bylaw.audit.batch.shard import Shard
from bylaw.audit.batch.tables import Rows, arrow
from bylaw.audit.request import Request
from bylaw.audit.run import open_examiner
from bylaw.errors import RecordError

HELD = 2000
"""Conversations in memory before their rows are written; this bounds the memory of a worker."""
ENTRY = "entry.json"
COUNTS = "counts"
EXAMINED = "examined.pickle"
"""The conversations for files of lines, which the driver writes as the small audit does."""


class Job(Struct, frozen=True):
    """The input of every worker."""

    request: Request
    parts: Path
    """The folder for the parts."""
    has_lines: bool = False
    """Whether files of lines are written, too."""

    def part(self, shard: Shard) -> Path:
        """The folder of a shard's part."""
        return self.parts / shard.key


class Judge:
    """Judges one shard after another, with the pack and the world loaded once."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._examiner = open_examiner(job.request)
        packs = self._examiner.shelf.packs
        self._severities = {policy.id: policy.severity for pack in packs for policy in pack.policies.values()}

    def judge(self, shard: Shard) -> int:
        """Judge a shard and leave its part; the number of conversations in it.

        A failure before the last rename leaves nothing that a later run would take for a part.
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
                # Another worker, perhaps of a killed driver, was first; its part is the same.
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
        """The counts of the shard; for nightly runs, the examiner counts one conversation at a time."""
        faults: list[RecordError] = []
        counted: list[tuple[int, dict[str, Any]]] = []
        rows, count = Rows(self._severities), 0
        with ExitStack() as opened:
            writers: dict[str, Any] = {}
            lines = opened.enter_context((folder / EXAMINED).open("wb")) if self._job.has_lines else None

            def write() -> None:
                tables = [*rows.take(), *([(COUNTS, counts_table(counted))] if counted else [])]
                for name, table in tables:
                    if name not in writers:
                        make = arrow("parquet").ParquetWriter
                        file = folder / f"{name}.parquet"
                        writers[name] = opened.enter_context(make(file, table.schema, compression="zstd"))
                    writers[name].write_table(table)
                counted.clear()

            if request.adds:
                examiner.begin()
            for part in examiner.examine_source(request.source(request.files[shard.file], shard.span), shard.look):
                if isinstance(part, RecordError):
                    faults.append(part)
                    continue
                rows.add(part, count)
                if lines is not None:
                    pickle.dump(part, lines)
                if request.adds:
                    counted.append((count, examiner.counts.record()))
                    whole.add(counted[-1][1])
                    examiner.begin()
                count += 1
                if len(rows) >= HELD:
                    write()
            if request.adds:
                # Counts without a conversation, such as our own faults, are added to the last one.
                counted.append((max(count - 1, 0), examiner.counts.record()))
                whole.add(counted[-1][1])
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


def counts_table(counts: list[tuple[int, dict[str, Any]]]) -> Any:
    """Counts of conversations as an Arrow table."""
    pa = arrow()
    rows = [
        {
            "ordinal": ordinal,
            "counts": json.dumps(record | {"times": []}, separators=(",", ":")),
            "earliest": min(record["times"], default=None),
            "latest": max(record["times"], default=None),
        }
        for ordinal, record in counts
    ]
    return pa.Table.from_pylist(rows, schema=counts_schema())


def counts_schema() -> Any:
    """The columns of the counts. Times are apart from the rest, so that counts of like conversations are alike."""
    pa = arrow()
    times = [("earliest", pa.float64()), ("latest", pa.float64())]
    return pa.schema([("ordinal", pa.int64()), ("counts", pa.string()), *times])


def read_entry(folder: Path) -> dict[str, Any] | None:
    """The entry of a part; None if there is no complete part."""
    try:
        return json.loads((folder / ENTRY).read_bytes())
    except (OSError, ValueError):
        return None


def sync(*paths: Path) -> None:
    """Flush files and folders to disk."""
    for each in paths:
        handle = os.open(each, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
