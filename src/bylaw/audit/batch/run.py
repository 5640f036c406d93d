"""An audit in shards: cut the logs, have an engine judge them, put the parts together. Start at `audit_in_shards`.

The same command resumes a run that was killed: existing parts are reused.
"""

import hashlib
import json
import os
import pickle
import shutil
from collections.abc import Callable, Collection, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

import bylaw
from bylaw.audit.batch.engine import Engine
from bylaw.audit.batch.shard import EXAMINED, SIZE, Job, Shard, cut, read_entry
from bylaw.audit.batch.tables import TABLES, arrow, place_parts, write_schema, write_table
from bylaw.audit.output import TABLES as FOLDER
from bylaw.audit.output import TABLES_SCHEMA, LineFiles, alone_in, check_ours, put_in_place, spare_earlier
from bylaw.audit.request import Request
from bylaw.audit.run import Examiner, Report, check_tools, write_summary
from bylaw.errors import RecordError, UsageError
from bylaw.trace import Identities
from bylaw.trace.source import size_of, stamp_of

Format = Literal["jsonl", "parquet"]
WORK = ".run"
"""The folder in the output for the parts of an unfinished run."""


class Advance(Struct, frozen=True):
    """The progress of a run."""

    conversations: int
    """Judged in this run."""
    done: int
    """Bytes of the logs that are judged, by this run or before."""
    own: int
    """Of these, by this run."""
    total: int


def audit_in_shards(
    request: Request,
    out: Path,
    engine: Engine,
    *,
    formats: Collection[Format] = ("parquet",),
    size: int = SIZE,
    progress: Callable[[Advance], None] | None = None,
) -> Report:
    """Audit every conversation of the files and write tables or lines, `summary.json` and `policies.json`."""
    arrow()
    if request.answers is not None:
        raise UsageError("a model can be asked in one process only", hint="leave out --llm, or --format parquet")
    examiner = Examiner(request)
    out.mkdir(parents=True, exist_ok=True)
    with alone_in(out):
        check_ours(out, tables="parquet" in formats)
        work = out / WORK
        job = Job(request, (work / "parts").resolve(), has_lines="jsonl" in formats)
        begin(work, job, examiner)
        shards, aside = judged(job, engine, size, progress)
        report = _put_together(examiner, job, shards, aside, out, formats)
        if not aside:
            shutil.rmtree(work, ignore_errors=True)
        return report


def begin(work: Path, job: Job, examiner: Examiner) -> None:
    """Resume the run in this folder, or start again if its pack, world, code or options were different."""
    mark = _mark(job, examiner)
    note = work / "run.json"
    try:
        is_same = json.loads(note.read_bytes())["mark"] == mark
    except (OSError, ValueError, KeyError, TypeError):
        is_same = False
    if not is_same:
        shutil.rmtree(work, ignore_errors=True)
    (work / "parts").mkdir(parents=True, exist_ok=True)
    for left in (work / "parts").glob(".*"):
        shutil.rmtree(left, ignore_errors=True)
    written = note.with_suffix(".new")
    written.write_text(json.dumps({"mark": mark, "bylaw": bylaw.__version__}), encoding="utf-8")
    os.replace(written, note)


def _mark(job: Job, examiner: Examiner) -> str:
    """Identifies everything that parts must share to be combined; the key of each shard identifies its log."""
    request = job.request
    held = [request.world, request.document, request.tasks]
    record = [
        own_code(),
        TABLES_SCHEMA,
        TABLES,
        [[pack.name, pack.digest] for pack in examiner.shelf.packs],
        [stamp_of(path) if path is not None else None for path in held],
        request.mode,
        request.agent,
        request.adds,
        job.has_lines,
        msgspec.to_builtins(request.columns),
        pseudonyms.mark if (pseudonyms := request.pseudonyms) is not None else None,
        msgspec.to_builtins(request.attested),
    ]
    return hashlib.blake2b(json.dumps(record).encode(), digest_size=16).hexdigest()


@cache
def own_code() -> str:
    """The digest of the running code, read once: later edits do not run."""
    return code_digest(Path(bylaw.__file__).parent)


def code_digest(package: Path) -> str:
    """The digest of a package's code, which may differ between checkouts of one version."""
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(package.rglob("*.py")):
        digest.update(f"{path.relative_to(package).as_posix()} {path.stat().st_size}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def judged(
    job: Job, engine: Engine, size: int, progress: Callable[[Advance], None] | None
) -> tuple[list[Shard], dict[str, str]]:
    """All shards in order, and the reasons of those that were set aside."""
    request = job.request
    names = request.names()
    sources = [request.source(file) for file in request.files]
    shards: list[Shard] = []
    aside: dict[str, str] = {}
    total = sum(map(size_of, request.files))
    done = own = conversations = 0

    def tell() -> None:
        if progress is not None:
            progress(Advance(conversations, done, own, total))

    def pending() -> Iterator[Shard]:
        nonlocal done
        for shard in cut(sources, size, list(names.values())):
            shards.append(shard)
            if read_entry(job.part(shard)) is None:
                yield shard
            else:
                done += shard.size
                tell()

    for outcome in engine.run(job, pending()):
        if outcome.why:
            aside[outcome.shard.key] = outcome.why
        conversations += outcome.conversations
        done += outcome.shard.size
        own += outcome.shard.size
        tell()
    return shards, aside


def read_parts(
    job: Job, shards: list[Shard], aside: dict[str, str]
) -> Iterator[tuple[Shard, dict[str, Any] | None, list[RecordError]]]:
    """Each shard with the entry of its part, None if there is none, and the faults of its logs.

    Faults of skipped records are redacted by the worker.
    """
    pseudonyms = job.request.pseudonyms
    for shard in shards:
        entry = read_entry(job.part(shard))
        if entry is not None:
            yield (
                shard,
                entry,
                [RecordError(message, place=place, hint=hint) for message, place, hint in entry["faults"]],
            )
            continue
        why = aside.get(shard.key, "its output is missing")
        fault = RecordError(f"set aside: {why}", place=shard.place(job.request.files[shard.file]))
        yield shard, None, [fault if pseudonyms is None else pseudonyms.fault(fault)]


def _put_together(
    examiner: Examiner, job: Job, shards: list[Shard], aside: dict[str, str], out: Path, formats: Collection[Format]
) -> Report:
    skipped: list[RecordError] = []
    folders: list[Path] = []
    counts: list[int] = []
    for shard, entry, faults in read_parts(job, shards, aside):
        skipped += faults
        if entry is not None:
            examiner.counts.add(entry["counts"])
            folders.append(job.part(shard))
            counts.append(entry["conversations"])
    if skipped and not sum(counts):
        spare_earlier(out, skipped)
    check_tools(examiner)
    names = Identities()
    parts = list(place_parts(folders, counts, names))
    made = job.parts.parent / "made"
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir()
    repeated = sum(len(part.renamed) for part in parts)
    summary = write_summary(made, examiner, job.request, skipped, repeated)
    if "parquet" in formats:
        for table in TABLES:
            write_table(table, parts, made / FOLDER / table)
        write_schema(made / FOLDER, summary["criterion"])
    if "jsonl" in formats:
        with LineFiles(made) as lines:
            for folder in folders:
                with (folder / EXAMINED).open("rb") as stored:
                    while stored.peek(1):
                        lines.write(pickle.load(stored))
    put_in_place(made, out)
    return Report(summary, out, tuple(skipped), names)
