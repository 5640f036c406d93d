"""The command `bylaw audit` finds violations and near-misses in recorded conversations."""

import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click
from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

from bylaw.audit.attestation import ATTESTATIONS, Attestation, every_attestation, file_beside
from bylaw.audit.baseline import Comparison, Gate, compare_audits, read_baseline, write_comparison
from bylaw.audit.request import Request, write_audited
from bylaw.audit.row import Finding
from bylaw.audit.run import Examiner, Report, audit
from bylaw.audit.store import Store
from bylaw.audit.waiver import Waiver, read_waivers
from bylaw.cli.answers import ModelOptions, open_answers
from bylaw.cli.command import Count, DocumentOption, File, Folder, Name, PackOption, Word, command
from bylaw.cli.console import open_console
from bylaw.cli.explain import finding_lines
from bylaw.cli.logs import GivenLogs, Logs, open_logs, progress_bar
from bylaw.cli.tables import print_summary
from bylaw.errors import RecordError, UsageError
from bylaw.pack import Criterion
from bylaw.text.number import counted
from bylaw.text.visible import clean, visible
from bylaw.trace.source import Columns, LogFile

if TYPE_CHECKING:
    from bylaw.answering import Answerer

_SHOWN = 10
_FAULTS = 20
"""The maximum number of log errors to print. All of them are in `summary.json`."""
_STYLES = {"new": "red", "fixed": "green"}
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_SMALLEST = 1 << 10
_INTERVAL = 60.0
"""The number of seconds between progress lines if stderr is not a terminal."""


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print counts, findings that changed, and waivers that are unused or expired."""
    counts = [f"{len(comparison.new):,} new", f"{len(comparison.waived):,} waived"]
    if comparison.baseline is not None:
        counts[1:1] = [f"{len(comparison.still):,} unchanged", f"{len(comparison.fixed):,} fixed"]
        counts.append(f"{len(comparison.gone):,} gone")
    if comparison.refused:
        counts.append(f"{len(comparison.refused):,} on refused calls")
    against = f" against {comparison.baseline}" if comparison.baseline is not None else ""
    console.print(Text(f"Findings{against}: {', '.join(counts)}", style="bold"))
    if comparison.baseline is not None:
        _list("new", comparison.new, console)
        _list("fixed", comparison.fixed, console)
    _waived(comparison, console)
    for line in _idle_waivers(comparison):
        console.print(Text(line, style="yellow"))


def _list(word: str, findings: Sequence[Finding], console: Console) -> None:
    for finding in sorted(findings, key=lambda each: each.gravity)[:_SHOWN]:
        for line in finding_lines(finding, Text(f"  {word:<7}", style=_STYLES[word])):
            console.print(line)
    if len(findings) > _SHOWN:
        console.print(f"  {'':<7}and {len(findings) - _SHOWN:,} more, see comparison.json", markup=False)


def _waived(comparison: Comparison, console: Console) -> None:
    counts = Counter(waiver for _, waivers in comparison.waived for waiver in waivers)
    for waiver, count in counts.items():
        line = Text(f"  {'waived':<7}", style="magenta").append(f"{count:,} by {waiver.place}, {_what(waiver)}")
        console.print(line)
        why = f"{clean(waiver.owner, 60)} until {waiver.expires.isoformat()}: {clean(waiver.reason, 200)}"
        console.print(Text(f"{'':9}{why}", style="dim"))


def _idle_waivers(comparison: Comparison) -> Iterator[str]:
    for waiver in comparison.expired:
        when = waiver.expires.isoformat()
        yield f"{waiver.place} expired on {when} and has no effect: {_what(waiver)} ({clean(waiver.owner, 60)})"
    found = {each.id: each for each in (*comparison.new, *comparison.still, *comparison.refused)}
    for waiver in comparison.unused:
        if finding := found.get(waiver.finding):
            verdicts = ", ".join(f"{clean(each.policy, 60)}: {each.verdict}" for each in finding.charges)
            what = f"{waiver.place} has no effect, because it does not waive every verdict of {_what(waiver)}"
            yield f"{what}; to waive the finding, write `verdicts: {{{verdicts}}}`"
        else:
            yield f"{waiver.place} has no effect: {_what(waiver)} was not found"


def _what(waiver: Waiver) -> str:
    return f"finding `{clean(waiver.finding, 60)}`" if waiver.finding else f"policy `{clean(waiver.policy, 60)}`"


class ByteSize(click.ParamType[int]):
    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = re.fullmatch(r"(\d+)\s*([KMG]?)i?B?", str(value).strip(), re.IGNORECASE)
        size = int(match[1]) * _UNITS[match[2].upper()] if match else 0
        if size < _SMALLEST:
            self.fail(f"`{value}` is not a size of at least 1K, such as 64M", param, ctx)
        return size


class Batch(Struct, frozen=True, kw_only=True):
    format: Annotated[
        Literal["jsonl", "parquet", "both"],
        "JSON lines, or typed tables in OUT/tables for `bylaw sql` and pandas.",
    ] = "jsonl"
    engine: Annotated[
        Literal["local", "ray"] | None,
        "Audit in shards, so that a killed run can resume, with --jobs local processes or on a Ray cluster.",
        {"show_default": "local for parquet, else none"},
    ] = None
    address: Annotated[
        str | None, "--address HOST:PORT", "For --engine ray: cluster address (default: this machine)."
    ] = None
    update: Annotated[
        bool,
        "Update the tables in OUT from new and changed logs; a repeated conversation replaces its earlier version.",
    ] = False
    keep_days: Annotated[
        Count | None, "For --update: remove conversations that began more than this many days ago."
    ] = None
    shard_size: Annotated[
        int,
        "--shard-size SIZE",
        ByteSize(),
        "For --engine: bytes of log per shard. Does not affect the results.",
        {"default": "16M"},
    ]
    messages_column: Annotated[Name, "For Parquet logs: the column with the messages (a list or JSON text)."] = ""
    id_column: Annotated[Name, "For Parquet logs: the column with the conversation id."] = ""
    agent_column: Annotated[Name, "For Parquet logs: the column with the agent name."] = ""

    @property
    def columns(self) -> Columns:
        return Columns(self.messages_column, self.id_column, self.agent_column)

    @property
    def written(self) -> Literal["jsonl", "parquet", "both"]:
        """The output format. With `--update`, `jsonl` becomes `parquet`, because only tables can be updated."""
        return "parquet" if self.update and self.format == "jsonl" else self.format

    @property
    def in_shards(self) -> bool:
        return self.written != "jsonl" or self.engine is not None

    @property
    def has_lines(self) -> bool:
        return self.written != "parquet"

    def check(self, wanted: dict[str, Any]) -> None:
        """Raise UsageError for options that exclude each other. `wanted` contains the other options by name."""
        given = [name for name, value in wanted.items() if value]
        if self.update and self.has_lines:
            raise UsageError(
                "`--update` adds to tables", hint="add --format parquet; `bylaw report OUT` reads these tables"
            )
        if self.update and given:
            raise UsageError(f"`{given[0]}` does not work with --update", hint="run `bylaw report OUT` on the tables")
        if self.keep_days is not None and not self.update:
            raise UsageError("`--keep-days` is for nightly runs", hint="add --update")
        if self.address is not None and self.engine != "ray":
            raise UsageError("`--address` requires a Ray cluster", hint="add --engine ray")

    def check_logs(self, *, has_pipe: bool, is_keyless: bool) -> None:
        """Raise UsageError for logs and pseudonyms that a later `--update` could not recognise."""
        if self.update and has_pipe:
            raise UsageError("`--update` cannot read a pipe", hint="write the piped data to a file first")
        if self.update and is_keyless:
            raise UsageError("`--update` with `--redact` requires stable pseudonyms", hint="add --redact-key")

    def run(self, request: Request, out: Path) -> Report:
        from bylaw.audit.batch.run import LocalEngine, RayEngine, audit_in_shards

        engine = RayEngine(request.jobs, self.address) if self.engine == "ray" else LocalEngine(request.jobs)
        if self.update:
            return self._add(request, out, engine)
        formats: Any = ("jsonl", "parquet") if self.written == "both" else (self.written,)
        return audit_in_shards(request, out, engine, formats=formats, size=self.shard_size, progress=_Progress())

    def _add(self, request: Request, out: Path, engine: Any) -> Report:
        from bylaw.audit.batch.update import update

        added = update(request, out, engine, size=self.shard_size, progress=_Progress(), keep_days=self.keep_days)
        logs = f"Read {added.read:,} new or changed logs ({added.known:,} were already known)"
        removed = f", {added.removed:,} no longer in any log" if added.removed else ""
        removed += f", {added.expired:,} older than {self.keep_days:,} days" if added.expired else ""
        counts = f"{added.conversations:,} conversations, {added.replaced:,} replaced{removed}; {added.held:,} in total"
        print(f"{logs}: {counts}")
        return added.report


class _Progress:
    """Prints progress to stderr: a line that is updated on a terminal, otherwise a new line every minute."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._printed = self._start
        self._is_terminal = sys.stderr.isatty()

    def __call__(self, advance: Any) -> None:
        now = time.monotonic()
        if not self._is_terminal and now - self._printed < _INTERVAL:
            return
        self._printed = now
        text = describe_advance(advance, now - self._start)
        sys.stderr.write(f"\r{text:78}" if self._is_terminal else f"bylaw: {text}\n")
        sys.stderr.flush()


def describe_advance(advance: Any, seconds: float) -> str:
    """Return the completed fraction, the rate and the remaining time. The rate does not include earlier runs."""
    share = advance.done / advance.total if advance.total else 1.0
    text = f"{advance.conversations:,} conversations, {share:.0%}"
    if advance.own and seconds > 0:
        left = (advance.total - advance.done) * seconds / advance.own
        text += f", {advance.conversations / seconds:,.0f} a second, {_duration(left)} left"
    return text


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@command("audit")
def audit_command(
    logs: GivenLogs,
    *,
    pack: PackOption,
    world: Annotated[
        File, "The database as it was before the conversations: SQLite, JSON, or a format that the pack defines."
    ] = None,
    without_world: Annotated[
        Literal["hindsight", "none"],
        "Ground truth without a database: what the whole conversation shows, or none.",
    ] = "hindsight",
    out: Annotated[Path, "--out DIR", "Output folder."] = Path("out"),
    document: DocumentOption = None,
    tasks: Annotated[File, "tau2-bench tasks: outcomes come from their gold actions, replayed on --world."] = None,
    agent: Annotated[Name | None, "Use this agent name for every conversation."] = None,
    jobs: Annotated[Count, "Worker processes. Does not affect the results."] = 1,
    report: Annotated[bool, "Also write report.html."] = False,
    whole: Annotated[bool, "--all", "List every broken policy instead of the first 8."] = False,
    criterion: Annotated[
        Criterion | None,
        "determined: the facts seen must suffice to evaluate the policy. strict: the agent must have seen every fact"
        " that the policy reads.",
        {"show_default": "the pack's"},
    ] = None,
    fail_on: Annotated[
        tuple[str, ...],
        Word(("violation", "near_miss", "rule")),
        "Exit with status 1 on a finding of this kind; near_miss includes violations. May be repeated.",
    ] = (),
    min_severity: Annotated[
        str, click.Choice(("high", "medium", "low")), "With --fail-on: ignore policies below this severity."
    ] = "low",
    baseline: Annotated[Folder, "An earlier audit. Only new findings count for --fail-on."] = None,
    waivers: Annotated[File, "Accepted findings, each with an owner, a reason and an expiry date."] = None,
    attestations: Annotated[
        File, "People's answers about undecided calls, as `bylaw view` writes them.", {"show_default": "next to --out"}
    ] = None,
    sarif: Annotated[File, "Also write the findings as SARIF 2.1.0."] = None,
    junit: Annotated[File, "Also write the calls as JUnit XML."] = None,
    redact: Annotated[bool, "Leave out log text, and replace ids with pseudonyms."] = False,
    redact_key: Annotated[
        str | None,
        "--redact-key TEXT",
        "A key that keeps pseudonyms the same in every run.",
        {"envvar": "BYLAW_REDACT_KEY", "show_envvar": True},
    ] = None,
    asking: ModelOptions,
    budget: Annotated[Count, "For --llm: the maximum number of requests."] = 1000,
    batch: Batch,
) -> int:
    """Audit recorded conversations against a policy pack."""
    needing = {"--report": report, "--sarif": sarif, "--junit": junit, "--baseline": baseline, "--waivers": waivers}
    batch.check(needing | {"--attestations": attestations})
    key = mark = pseudonyms = None
    if redact:
        from bylaw.audit.redaction import Pseudonyms, redaction_key

        key = redaction_key(redact_key)
        pseudonyms = Pseudonyms(key)
        mark = pseudonyms.mark
    before = read_baseline(baseline, redacted=mark) if baseline is not None else None
    waived = read_waivers(waivers) if waivers is not None else None
    if waived is not None and pseudonyms is not None:
        waived = waived.without_words(pseudonyms.of)
    if attestations is None and not batch.update:
        attestations = file_beside(out, ATTESTATIONS)
    elif attestations is not None and not attestations.is_file():
        raise UsageError("no such file", place=str(attestations))
    attested = _attested(attestations) if attestations is not None else []
    with open_logs(logs, without=out) as opened, open_answers(asking, budget=budget) as models:
        answers = models.answers
        if answers is not None and jobs > 1:
            raise UsageError("`--llm` works only with a single process", hint="remove --jobs")
        _refuse_overwriting((*opened.files, world, document, tasks, waivers), {"--sarif": sarif, "--junit": junit})
        request = Request(opened.files, pack, world, without_world, document, tasks, agent, jobs, key, criterion)
        request = replace(request, answers=answers, attested=tuple(attested), columns=batch.columns)
        if answers is not None and asking.llm is not None:
            _ask_ahead(request, answers, asking.llm, budget, only_print=batch.update)
        batch.check_logs(has_pipe=bool(opened.kept), is_keyless=redact and redact_key is None)
        if batch.in_shards:
            found = batch.run(request, out)
        else:
            with progress_bar() as show:
                found = audit(request, out, progress=show)
        # Write all files before printing, because the pipe may be closed early, for example by `head`.
        if key is None and not opened.kept and not batch.update:
            write_audited(request, out)
        comparison, written = None, list[Path]()
        if before is not None or waived is not None:
            comparison = compare_audits(out, found.names, baseline=before, waivers=waived)
            written.append(write_comparison(comparison, out))
        standings = comparison.standings() if comparison is not None else None
        if sarif is not None:
            from bylaw.audit.export import write_sarif

            written.append(write_sarif(out, sarif, files=opened.files, standings=standings))
        if junit is not None:
            from bylaw.audit.export import write_junit

            named = Gate.named(fail_on, min_severity) if fail_on else Gate(severity=min_severity)
            written.append(write_junit(out, junit, standings=standings, gate=named))
        if report:
            from bylaw.audit.report import write_report

            written.append(write_report(out))
        _print_result(found, opened, whole=whole)
        if key is not None:
            scope = (
                "derived from the given key"
                if redact_key is not None
                else "valid for this run only; to compare runs, add --redact-key"
            )
            print(f"Redacted: pseudonyms {scope}")
        if comparison is not None:
            print_comparison(comparison, open_console())
        for path in written:
            print(f"Wrote {path}")
    counted = comparison.new if comparison is not None else Store(out).findings()
    gate = Gate.named(fail_on, min_severity)
    # Calls that exceed a limit have no rows in the tables, because limits are counted across all shards.
    is_over = batch.in_shards and any(map(gate.stops_limit, found.summary["limits"]))
    return 1 if is_over else _status(found, counted, gate)


def _attested(path: Path) -> list[Attestation]:
    """Read the reviewers' answers. Print how many answers have no digest."""
    given = every_attestation(path)
    if count := sum(not each.seen for each in given):
        does = "does" if count == 1 else "do"
        why = "because the file does not record what the person saw"
        told = f"{counted(count, 'answer')} without `seen` {does} not count, {why}"
        print(visible(f"bylaw: {path}: {told}. Answer again in `bylaw view`."), file=sys.stderr)
    return given


def _ask_ahead(request: Request, answers: "Answerer", llm: str, budget: int, *, only_print: bool) -> None:
    """Send all questions to the model at once, or only print the number of questions.

    A dry run of the audit collects them.
    """
    from bylaw.answering import Answerer
    from bylaw.answering.answerer import Estimate
    from bylaw.llm.source import at_hand

    if llm == "recorded" or (llm.startswith("batch:") and only_print):
        return
    estimate = Estimate(at_hand(answers.chat), budget)
    counting = Answerer(estimate, plans=answers.plans, operations=answers.operations.values())
    for _ in Examiner(replace(request, answers=counting)).examine_all(request):
        pass
    if estimate.requests:
        print(estimate.words(llm))
    if not only_print:
        answers.ask_ahead(estimate.asked)


def _refuse_overwriting(inputs: Iterable[LogFile | None], outputs: dict[str, Path | None]) -> None:
    read = {path.resolve() for path in inputs if isinstance(path, Path)}
    for option, path in outputs.items():
        if path is not None and path.resolve() in read:
            raise UsageError(f"{option} would overwrite an input file", place=str(path))


def _print_result(report: Report, logs: Logs, *, whole: bool) -> None:
    faults = list(_by_file(report.skipped))
    for fault, others in faults[:_FAULTS]:
        more = f" (and {others:,} similar errors in this file)" if others else ""
        print(visible(f"bylaw: {fault.code} {logs.named(str(fault))}{more}"), file=sys.stderr)
    if len(faults) > _FAULTS:
        left = sum(others + 1 for _, others in faults[_FAULTS:])
        print(f"bylaw: and {left:,} more, see summary.json", file=sys.stderr)
    if report.summary["agents"]:
        print_summary(report.summary, open_console(), report.out, whole=whole)


def _by_file(faults: Sequence[RecordError]) -> Iterator[tuple[RecordError, int]]:
    """Yield the first error of each kind in each file, and the number of further errors of that kind in the file."""
    alike: dict[tuple[str, str], list[RecordError]] = {}
    for fault in faults:
        file, _, line = fault.place.rpartition(":")
        name = file if line.isdigit() else fault.place
        alike.setdefault((name, re.sub(r"\d+", "#", fault.message)), []).append(fault)
    yield from ((found[0], len(found) - 1) for found in alike.values())


def _status(report: Report, findings: Iterable[Finding], gate: Gate) -> int:
    if gate.verdicts and any(map(gate.stops, findings)):
        return 1
    if report.skipped and not report.summary["agents"]:
        return 2
    return 3 if report.skipped or report.summary["unanswered"] else 0
