"""The audit: files of recorded conversations in, verdicts and rates out. Start at `audit`."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from msgspec import Struct

from bylaw.audit.examine import Examiner, open_examiner, rarely_collecting
from bylaw.audit.output import LineFiles, dump, spare_earlier, written_aside
from bylaw.audit.request import Request
from bylaw.audit.store import read_calls as read_calls
from bylaw.audit.summary import policies_record, summarise
from bylaw.engine.limited import over_limits
from bylaw.errors import RecordError, UsageError
from bylaw.pack import Criterion
from bylaw.trace import Identities

Progress = Callable[[int], None]


class Report(Struct, frozen=True):
    """A completed audit: its summary and its output folder."""

    summary: dict[str, Any]
    out: Path
    skipped: tuple[RecordError, ...]
    names: Identities
    """The ids of the conversations that were read."""

    @property
    def criterion(self) -> Criterion:
        """The audit's criterion."""
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

    Pass `examiner` if the pack is loaded and the world is open already.
    """
    examiner = examiner or open_examiner(request)
    skipped: list[RecordError] = []
    with written_aside(out) as aside:
        parts = examiner.examine_all(request)
        if request.jobs > 1:
            from bylaw.audit.parallel import examine_in_parts

            parts = examine_in_parts(request, examiner, aside)
        with LineFiles(aside) as lines, rarely_collecting():
            for number, part in enumerate(parts):
                if isinstance(part, RecordError):
                    skipped.append(part)
                else:
                    lines.write(part)
                if progress is not None:
                    progress(number)
            lines.write_limits(over_limits(examiner.shelf.packs, examiner.counts.limited))
        if skipped and not lines.count:
            spare_earlier(out, skipped)
        check_tools(examiner)
        if (pseudonyms := request.pseudonyms) is not None:
            skipped = [pseudonyms.fault(fault) for fault in skipped]
        summary = write_summary(aside, examiner, request, skipped, lines.repeated)
    return Report(summary, out, tuple(skipped), lines.names)


def write_summary(
    folder: Path, examiner: Examiner, request: Request, skipped: list[RecordError], repeated: int
) -> dict[str, Any]:
    """Write `policies.json`, our own faults if any, and `summary.json`, and return the summary."""
    summary = summarise(examiner, request, skipped, repeated)
    if (pseudonyms := request.pseudonyms) is not None:
        summary = pseudonyms.summary(summary)
    dump(folder / "policies.json", policies_record(examiner.shelf.packs, examiner.counts))
    dump(folder / "summary.json", summary)
    if faults := examiner.counts.faults:
        text = "".join(json.dumps(fault) + "\n" for fault in faults)
        (folder / "faults.jsonl").write_text(text, encoding="utf-8", errors="backslashreplace")
    return summary


def check_tools(examiner: Examiner) -> None:
    """Refuse a pack that knows no tool of the logs: its zeros would look like a clean audit."""
    unknown = examiner.counts.under("unknown_tool")
    if examiner.counts.numbers[("known_calls",)] or not unknown:
        return
    name = examiner.shelf.name
    known = sorted({tool for pack in examiner.shelf.packs for tool in pack.schema.tools})
    hint = f"it knows {_some(known)}; give the pack for these logs, or list their tools in its tools.yaml"
    raise UsageError(f"pack `{name}` knows none of the tools that the logs call ({_some(unknown)})", hint=hint)


def _some(names: Iterable[str]) -> str:
    """The first names in alphabetical order, and the number of the others."""
    first = sorted(names)
    more = f" and {len(first) - 4} more" if len(first) > 4 else ""
    return ", ".join(f"`{name}`" for name in first[:4]) + more if first else "none"
