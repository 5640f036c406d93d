"""The audit: files of recorded conversations in, verdicts and rates out. Start at `audit`."""

import gc
import json
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

from bylaw.audit.examine import Examiner, open_examiner
from bylaw.audit.lines import LineFiles
from bylaw.audit.output import spare_earlier, written_aside
from bylaw.audit.redaction import Pseudonyms, redact_summary
from bylaw.audit.request import Request
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


def audit(request: Request, out: Path, *, progress: Progress | None = None, examiner: Examiner | None = None) -> Report:
    """Audit every conversation of the files and write `summary.json`, `calls.jsonl` and the rest.

    `examiner` is for who has loaded the pack and opened the world already.
    """
    examiner = examiner or open_examiner(request)
    skipped: list[RecordError] = []
    with written_aside(out) as aside:
        parts = examiner.examine_all(request)
        if request.jobs > 1:
            from bylaw.audit.parallel import examine_in_parts

            parts = examine_in_parts(request, examiner, aside)
        with LineFiles(aside) as lines, _rarely_collecting():
            for number, part in enumerate(parts):
                if isinstance(part, RecordError):
                    skipped.append(part)
                else:
                    lines.write(part)
                if progress is not None:
                    progress(number)
        if skipped and not lines.count:
            spare_earlier(out, skipped)
        summary, skipped = _summarised(examiner, request, skipped, lines.repeated)
        _dump(aside / "policies.json", policies_record(examiner.shelf.packs, examiner.tally))
        _dump(aside / "summary.json", summary)
        if faults := examiner.coverage.faults:
            text = "".join(json.dumps(fault) + "\n" for fault in faults)
            (aside / "faults.jsonl").write_text(text, encoding="utf-8", errors="backslashreplace")
    return Report(summary, out, tuple(skipped), lines.read)


def _summarised(
    examiner: Examiner, request: Request, skipped: list[RecordError], repeated: int
) -> tuple[dict[str, Any], list[RecordError]]:
    if request.key is None:
        return summarise(examiner, request, skipped, repeated), skipped
    pseudonyms = Pseudonyms(request.key)
    skipped = [pseudonyms.fault(fault) for fault in skipped]
    return redact_summary(summarise(examiner, request, skipped, repeated), pseudonyms), skipped


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


def _dump(path: Path, record: Any) -> None:
    # A file's name need not be text: what is not stays an escape, which JSON reads back.
    text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


def read_calls(out: Path) -> Iterator[dict[str, Any]]:
    """The lines of `calls.jsonl`."""
    with (out / "calls.jsonl").open("rb") as lines:
        for line in lines:
            yield json.loads(line)
