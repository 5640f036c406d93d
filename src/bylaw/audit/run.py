"""The audit: files of recorded conversations in, verdicts and rates out. Start at `audit`."""

import gc
import json
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from msgspec import Struct

from bylaw.audit.examine import Examined, Examiner
from bylaw.audit.line import finding_id, named, writable
from bylaw.audit.output import written_aside
from bylaw.audit.redaction import Pseudonyms, redact_summary
from bylaw.audit.request import Request, examined_in, open_examiner
from bylaw.audit.summary import policies_record, summarise
from bylaw.engine.pack import Criterion
from bylaw.errors import RecordError
from bylaw.trace import Identities

Progress = Callable[[int], None]


class Report(Struct, frozen=True):
    """An audit that ran: its summary, and where its files lie."""

    summary: dict[str, Any]
    out: Path
    skipped: tuple[RecordError, ...]
    names: Identities
    """The conversations that were read, as the files name them."""

    @property
    def criterion(self) -> Criterion:
        """What the audit goes by."""
        return self.summary["criterion"]

    @property
    def violations(self) -> int:
        """Executed calls that are violations."""
        return int(self.summary["verdicts"][self.criterion].get("violation", 0))

    @property
    def near_misses(self) -> int:
        """Executed calls that are near-misses."""
        return int(self.summary["verdicts"][self.criterion].get("near_miss", 0))


def audit(request: Request, out: Path, *, progress: Progress | None = None) -> Report:
    """Audit every conversation of the files and write `summary.json`, `calls.jsonl`, `conversations.jsonl`."""
    return audit_with(open_examiner(request), request, out, progress=progress)


def audit_with(examiner: Examiner, request: Request, out: Path, *, progress: Progress | None = None) -> Report:
    """The same, with the pack loaded and the world opened."""
    with written_aside(out) as aside:
        with _rarely_collecting():
            identities, skipped = _examine(examiner, request, aside, progress)
        summary, skipped = _summarised(examiner, request, skipped)
        _dump(aside / "policies.json", policies_record(examiner.shelf.packs, examiner.tally))
        _dump(aside / "summary.json", summary)
        if examiner.faults:
            lines = "".join(json.dumps(fault) + "\n" for fault in examiner.faults)
            (aside / "faults.jsonl").write_text(lines, encoding="utf-8", errors="backslashreplace")
    return Report(summary, out, tuple(skipped), identities)


def _summarised(
    examiner: Examiner, request: Request, skipped: list[RecordError]
) -> tuple[dict[str, Any], list[RecordError]]:
    mode = "snapshot" if request.world is not None else request.mode
    criterion = request.criterion or examiner.shelf.packs[-1].criterion
    pseudonyms = Pseudonyms(request.key) if request.key is not None else None
    if pseudonyms is None:
        return summarise(examiner.shelf, examiner, mode, criterion, skipped), skipped
    skipped = [pseudonyms.fault(fault) for fault in skipped]
    return redact_summary(summarise(examiner.shelf, examiner, mode, criterion, skipped), pseudonyms), skipped


def _examine(
    examiner: Examiner, request: Request, out: Path, progress: Progress | None
) -> tuple[Identities, list[RecordError]]:
    """Examine every conversation and write the lines about it, in order."""
    skipped: list[RecordError] = []
    if request.jobs > 1:
        from bylaw.audit.parallel import examine_in_parts

        parts = examine_in_parts(request, examiner)
    else:
        parts = examined_in(request, examiner)
    identities = Identities()
    with (
        (out / "calls.jsonl").open("wb") as calls,
        (out / "conversations.jsonl").open("wb") as conversations,
        (out / "findings.jsonl").open("wb") as findings,
    ):
        for number, part in enumerate(parts):
            if isinstance(part, RecordError):
                skipped.append(part)
            else:
                _write(part, identities, calls, conversations, findings)
            if progress is not None:
                progress(number)
    return identities, skipped


@contextmanager
def _rarely_collecting() -> Generator[None]:
    """The pack and the world stay: looking through them again and again for garbage costs a tenth of an audit."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(20_000, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _write(
    part: Examined, identities: Identities, calls: IO[bytes], conversations: IO[bytes], findings: IO[bytes]
) -> None:
    name = identities.unique(writable(part.id))
    if not (part.calls or part.findings):
        return
    made: Counter[str] = Counter()
    for _, tool, flagged, line in part.calls:
        made[tool] += 1
        calls.write(named(line, name, finding_id(name, tool, made[tool]) if flagged else None))
    if part.conversation is not None:
        conversations.write(named(part.conversation, name))
    for rule, line in part.findings:
        made["rule " + rule] += 1
        findings.write(named(line, name, finding_id(name, "rule " + rule, made["rule " + rule])))


def _dump(path: Path, record: Any) -> None:
    # A file's name need not be text: what is not stays an escape, which JSON reads back.
    text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


def read_calls(out: Path) -> Iterator[dict[str, Any]]:
    """The lines of `calls.jsonl`."""
    with (out / "calls.jsonl").open("rb") as lines:
        for line in lines:
            yield json.loads(line)
