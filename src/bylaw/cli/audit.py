"""`bylaw audit`: recorded conversations in, violations and near-misses out."""

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

from bylaw.audit.audited import write_audited
from bylaw.audit.baseline import Comparison, compare_audits, read_baseline, write_comparison
from bylaw.audit.examine import Examiner, open_examiner
from bylaw.audit.finding import Finding, Gate
from bylaw.audit.request import Request
from bylaw.audit.run import Report, audit
from bylaw.audit.store import Store
from bylaw.audit.waiver import Waiver, read_waivers
from bylaw.cli.answers import ModelOptions, open_answers
from bylaw.cli.command import Count, DocumentOption, File, Folder, Name, PackOption, Word, command
from bylaw.cli.console import open_console
from bylaw.cli.explain import finding_lines, gravity
from bylaw.cli.logs import GivenLogs, Logs, count_lines, open_logs
from bylaw.cli.tables import print_summary
from bylaw.errors import RecordError, UsageError
from bylaw.pack import Criterion
from bylaw.text.visible import clean, visible
from bylaw.trace.log_file import LogFile
from bylaw.trace.source import Columns

_SHOWN = 10
_STYLES = {"new": "red", "fixed": "green"}


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Counts, the findings that changed, and what is to be said of waivers."""
    counts = [f"{len(comparison.new):,} new", f"{len(comparison.waived):,} waived"]
    if comparison.baseline is not None:
        counts[1:1] = [f"{len(comparison.still):,} still there", f"{len(comparison.fixed):,} fixed"]
        counts.append(f"{len(comparison.gone):,} gone")
    if comparison.refused:
        counts.append(f"{len(comparison.refused):,} of refused calls")
    against = f" against {comparison.baseline}" if comparison.baseline is not None else ""
    console.print(Text(f"Findings{against}: {', '.join(counts)}", style="bold"))
    if comparison.baseline is not None:
        _list("new", comparison.new, console)
        _list("fixed", comparison.fixed, console)
    if comparison.is_former:
        console.print(
            Text(
                "The baseline was written by an earlier version, whose ids say nothing of a call's arguments: "
                "one of its findings may stand for another call. Audit it again.",
                style="yellow",
            )
        )
    _waived(comparison, console)
    for line in _of_waivers(comparison):
        console.print(Text(line, style="yellow"))


def _list(word: str, findings: Sequence[Finding], console: Console) -> None:
    for finding in sorted(findings, key=gravity)[:_SHOWN]:
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


def _of_waivers(comparison: Comparison) -> Iterator[str]:
    for waiver in comparison.expired:
        when = waiver.expires.isoformat()
        yield f"{waiver.place}: expired on {when} and waives nothing: {_what(waiver)} ({clean(waiver.owner, 60)})"
    for waiver in comparison.unused:
        if now := comparison.renamed.get(waiver.finding):
            now_named = (
                f"a finding's id now says what was called with what. If you mean the call of today, write `{now}`"
            )
            yield f"{waiver.place}: waives nothing: {_what(waiver)} is an id of an earlier version; {now_named}"
            continue
        yield f"{waiver.place}: waives nothing: {_what(waiver)} was not found"


def _what(waiver: Waiver) -> str:
    return f"finding `{clean(waiver.finding, 60)}`" if waiver.finding else f"policy `{clean(waiver.policy, 60)}`"


_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_SMALLEST = 1 << 10
_SAID_EVERY = 60.0
"""Seconds between lines where nobody watches."""


class ByteSize(click.ParamType[int]):
    """A number of bytes, as `64M`."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = re.fullmatch(r"(\d+)\s*([KMG]?)i?B?", str(value).strip(), re.IGNORECASE)
        size = int(match[1]) * _UNITS[match[2].upper()] if match else 0
        if size < _SMALLEST:
            self.fail(f"`{value}` is not a size of at least 1K, such as 64M", param, ctx)
        return size


class Batch(Struct, frozen=True, kw_only=True):
    format: Annotated[
        Literal["jsonl", "parquet", "both"], "Lines, or typed tables in OUT/tables for `bylaw sql`, pandas, Spark."
    ] = "jsonl"
    engine: Annotated[
        Literal["local", "ray"] | None,
        "Judge in shards that a killed run is taken up from: --jobs processes here, or of a Ray cluster.",
        {"show_default": "local for parquet, else none"},
    ] = None
    address: Annotated[str | None, "--address HOST:PORT", "For --engine ray: the cluster; by default this machine."] = (
        None
    )
    update: Annotated[
        bool,
        "Add to the tables in OUT: read only logs that are new or changed; a conversation that comes again takes the"
        " place of the earlier one.",
    ] = False
    shard_size: Annotated[
        int,
        "--shard-size SIZE",
        ByteSize(),
        "For --engine: bytes of a log that are judged at a time; the results do not depend on it.",
        {"default": "16M"},
    ]
    messages_column: Annotated[
        Name, "For Parquet logs: the messages, a list or JSON text; by default `messages` or the like."
    ] = ""
    id_column: Annotated[Name, "For Parquet logs: the id."] = ""
    agent_column: Annotated[Name, "For Parquet logs: the agent."] = ""

    @property
    def columns(self) -> Columns:
        """What Parquet logs call what they hold."""
        return Columns(self.messages_column, self.id_column, self.agent_column)

    @property
    def written(self) -> Literal["jsonl", "parquet", "both"]:
        """What is written. What is added to is tables: nobody said lines, which are the default."""
        return "parquet" if self.update and self.format == "jsonl" else self.format

    @property
    def in_shards(self) -> bool:
        """Whether the small audit will not do."""
        return self.written != "jsonl" or self.engine is not None

    @property
    def has_lines(self) -> bool:
        return self.written != "parquet"

    def check(self, wanted: dict[str, Any]) -> None:
        """Refuse what cannot be had together; `wanted` are other options, by name."""
        given = [name for name, value in wanted.items() if value]
        if self.in_shards and "--search" in given:
            raise UsageError("`--search` works in one process only", hint="leave out --format and --engine")
        if self.update and self.has_lines:
            raise UsageError("`--update` adds to tables", hint="give --format parquet; `bylaw report OUT` reads them")
        if self.update and given:
            raise UsageError(f"`{given[0]}` does not work with --update", hint="`bylaw report OUT` reads its tables")
        if self.address is not None and self.engine != "ray":
            raise UsageError("`--address` is that of a Ray cluster", hint="give --engine ray")

    def check_logs(self, *, has_pipe: bool, is_keyless: bool) -> None:
        """Refuse what the next night could not know again."""
        if self.update and has_pipe:
            raise UsageError("`--update` needs logs that lie somewhere", hint="write the pipe to a file first")
        if self.update and is_keyless:
            raise UsageError("pseudonyms of one night would not be those of the next", hint="give --redact-key")

    def run(self, request: Request, out: Path) -> Report:
        from bylaw.audit.batch.engine import LocalEngine, RayEngine
        from bylaw.audit.batch.run import audit_in_shards

        engine = RayEngine(request.jobs, self.address) if self.engine == "ray" else LocalEngine(request.jobs)
        if self.update:
            return self._add(request, out, engine)
        formats: Any = ("jsonl", "parquet") if self.written == "both" else (self.written,)
        return audit_in_shards(request, out, engine, formats=formats, size=self.shard_size, progress=_Speedometer())

    def _add(self, request: Request, out: Path, engine: Any) -> Report:
        from bylaw.audit.batch.update import update

        added = update(request, out, engine, size=self.shard_size, progress=_Speedometer())
        logs = f"Read {added.read:,} new or changed logs ({added.known:,} were known)"
        removed = f", {added.removed:,} in no log any more" if added.removed else ""
        told = f"{added.conversations:,} conversations, {added.replaced:,} replaced{removed}; {added.held:,} in all"
        print(f"{logs}: {told}")
        return added.report


class _Speedometer:
    """Says how far a run is: over itself on a screen, else a line a minute."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._said = self._start
        self._is_watched = sys.stderr.isatty()

    def __call__(self, advance: Any) -> None:
        now = time.monotonic()
        if not self._is_watched and now - self._said < _SAID_EVERY:
            return
        self._said = now
        text = told_advance(advance, now - self._start)
        sys.stderr.write(f"\r{text:78}" if self._is_watched else f"bylaw: {text}\n")
        sys.stderr.flush()


def told_advance(advance: Any, seconds: float) -> str:
    """How far, how fast, how long still; the rate is that of this run, not of what an earlier one had done."""
    share = advance.done / advance.total if advance.total else 1.0
    told = f"{advance.conversations:,} conversations, {share:.0%}"
    if advance.own and seconds > 0:
        left = (advance.total - advance.done) * seconds / advance.own
        told += f", {advance.conversations / seconds:,.0f} a second, {_duration(left)} left"
    return told


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


if TYPE_CHECKING:
    from bylaw.answering import Answerer

_TOLD = 20
"""So many faults of the logs are told; summary.json has all."""


@command("audit")
def audit_command(
    logs: GivenLogs,
    *,
    pack: PackOption,
    world: Annotated[
        File, "The database the conversations started from: SQLite or JSON, or what the pack reads."
    ] = None,
    without_world: Annotated[
        Literal["hindsight", "none"], "Without a database: judge by what the whole conversation shows, or by nothing."
    ] = "hindsight",
    out: Annotated[Path, "--out DIR", "Folder for summary.json, calls.jsonl and the rest."] = Path("out"),
    document: DocumentOption = None,
    tasks: Annotated[File, "Tasks of tau2-bench: their gold actions, replayed on --world, give outcomes."] = None,
    agent: Annotated[Name | None, "Count every conversation under this name."] = None,
    jobs: Annotated[Count, "Worker processes; the results do not depend on N."] = 1,
    report: Annotated[bool, "Also write report.html."] = False,
    criterion: Annotated[
        Criterion | None,
        "Whether what was seen must decide the policy, or (strict) every fact it looks at must have been seen.",
        {"show_default": "what the pack names, else determined"},
    ] = None,
    fail_on: Annotated[
        tuple[str, ...],
        Word(("violation", "near_miss", "rule")),
        "Exit with 1 if there is such a finding (near_miss: or a violation); may be repeated.",
    ] = (),
    min_severity: Annotated[
        str, click.Choice(("high", "medium", "low")), "For --fail-on: count only policies at least this severe."
    ] = "low",
    baseline: Annotated[Folder, "Folder of an earlier audit: only what is new counts for --fail-on."] = None,
    waivers: Annotated[File, "Findings that somebody answers for, each with a reason and an expiry date."] = None,
    sarif: Annotated[File, "Also write the findings as SARIF 2.1.0."] = None,
    junit: Annotated[File, "Also write the calls as JUnit XML."] = None,
    search: Annotated[
        str,
        "--search llm[:MODEL]",
        "Where no observation shows a fact, ask a model whether a result does; what it quotes must stand "
        "there. llm:batch:DIR writes the questions down.",
    ] = "",
    searched: Annotated[Folder, "Where answers to --search are kept; by default OUT-search."] = None,
    redact: Annotated[bool, "Leave out the text of the logs, and write pseudonyms for ids."] = False,
    redact_key: Annotated[
        str | None,
        "--redact-key TEXT",
        "Keeps pseudonyms the same from run to run; without it they are random.",
        {"envvar": "BYLAW_REDACT_KEY", "show_envvar": True},
    ] = None,
    asking: ModelOptions,
    budget: Annotated[Count, "For --llm: the most requests that are sent; what they cost is told before."] = 1000,
    batch: Batch,
) -> int:
    """Audit recorded conversations under a policy pack."""
    if re.match(r"[A-Za-z][\w+.-]*:/", str(out)):
        hint = "give a local folder, and copy it there"
        raise UsageError("an audit is written to a local folder, not to a URL", place=str(out), hint=hint)
    needing = {"--report": report, "--sarif": sarif, "--junit": junit, "--baseline": baseline, "--waivers": waivers}
    batch.check(needing | {"--search": search})
    key = mark = None
    if redact:
        from bylaw.audit.redaction import Pseudonyms, redaction_key

        key = redaction_key(redact_key)
        mark = Pseudonyms(key).mark
    before = read_baseline(baseline, redacted=mark) if baseline is not None else None
    waived = read_waivers(waivers) if waivers is not None else None
    with open_logs(logs, without=out) as opened, open_answers(asking, budget=budget) as models:
        answers = models.answers
        if answers is not None and jobs > 1:
            raise UsageError("`--llm` works in one process only", hint="leave --jobs out")
        _spare((*opened.files, world, document, tasks, waivers), {"--sarif": sarif, "--junit": junit})
        # What a model found is known here, and in no other process.
        jobs = 1 if search else jobs
        request = Request(opened.files, pack, world, without_world, document, tasks, agent, jobs, key, criterion)
        request = replace(request, answers=answers, columns=batch.columns)
        if answers is not None and asking.llm is not None:
            _ask_ahead(request, answers, asking.llm, budget, only_tells=batch.update)
        batch.check_logs(has_pipe=bool(opened.kept), is_keyless=redact and redact_key is None)
        examiner = searching(request, search, searched or out.with_name(f"{out.name}-search")) if search else None
        if batch.in_shards:
            found = batch.run(request, out)
        else:
            found = audit(request, out, progress=_progress(opened.files), examiner=examiner)
        _say(found, opened)
        if key is not None:
            kept = (
                "of the given key" if redact_key is not None else "made for this run only; give --redact-key to compare"
            )
            print(f"Redacted: pseudonyms {kept}")
        elif not opened.kept and not batch.update:
            write_audited(request, out)
        comparison = None
        if before is not None or waived is not None:
            comparison = compare_audits(out, found.names, baseline=before, waivers=waived)
            from bylaw.cli.audit import print_comparison

            print_comparison(comparison, open_console())
            print(f"Wrote {write_comparison(comparison, out)}")
        standings = comparison.standings() if comparison is not None else None
        if sarif is not None:
            from bylaw.audit.export import write_sarif

            print(f"Wrote {write_sarif(out, sarif, files=opened.files, standings=standings)}")
    if junit is not None:
        from bylaw.audit.export import write_junit

        gate = Gate.named(fail_on, min_severity) if fail_on else Gate(severity=min_severity)
        print(f"Wrote {write_junit(out, junit, standings=standings, gate=gate)}")
    if report:
        from bylaw.audit.report import write_report

        print(f"Wrote {write_report(out)}")
    counted = comparison.new if comparison is not None else Store(out).findings()
    gate = Gate.named(fail_on, min_severity)
    # Tables have no row for a call beyond a limit, which is known only once all of them are written.
    is_over = batch.in_shards and any(map(gate.stops_limit, found.summary["limits"]))
    return 1 if is_over else _status(found, counted, gate)


def _ask_ahead(request: Request, answers: "Answerer", llm: str, budget: int, *, only_tells: bool) -> None:
    """Ask what an audit that only counts requests would ask, all at once; what it costs is told before.

    Batches and recordings cost nothing here. Of logs that were audited before, nothing is asked ahead.
    """
    from bylaw.answering import Answerer
    from bylaw.answering.answerer import Estimate
    from bylaw.llm.source import at_hand

    is_batch = llm.startswith("batch:")
    if llm == "recorded" or (is_batch and only_tells):
        return
    estimate = Estimate(at_hand(answers.chat), budget)
    counting = Answerer(estimate, plans=answers.plans, operations=answers.operations.values())
    for _ in open_examiner(replace(request, answers=counting)).examine_all(request):
        pass
    if estimate.requests and not is_batch:
        print(estimate.words(llm))
    if not only_tells:
        answers.ask_ahead(estimate.asked)


def searching(request: Request, search: str, kept: Path) -> Examiner:
    """An examiner whose facts a model has looked for, too."""
    from bylaw.compile.search import searching_examiner
    from bylaw.llm.source import open_chat

    method, _, model = search.partition(":")
    if method != "llm":
        raise UsageError(f"`{search}` is not a way to search", hint="llm, llm:MODEL or llm:batch:DIR")
    return searching_examiner(request, open_chat(model, kept=kept), tell=print)


def _spare(inputs: Iterable[LogFile | None], outputs: dict[str, Path | None]) -> None:
    """Refuses to write over what is read here."""
    read = {path.resolve() for path in inputs if isinstance(path, Path)}
    for option, path in outputs.items():
        if path is not None and path.resolve() in read:
            raise UsageError(f"{option} would write over a file that is read here", place=str(path))


def _progress(files: Sequence[LogFile]) -> Any:
    if not sys.stderr.isatty():
        return None
    total = count_lines(files)
    of = f" of {total:,}" if total else ""

    def show(number: int) -> None:
        if number % 100 == 99:
            sys.stderr.write(f"\r{number + 1:,}{of} conversations")
            sys.stderr.flush()

    return show


def _say(report: Report, logs: Logs) -> None:
    if sys.stderr.isatty():
        sys.stderr.write("\r" + " " * 50 + "\r")
    told = list(_by_file(report.skipped))
    for fault, others in told[:_TOLD]:
        more = f" (and {others:,} more like it in this file)" if others else ""
        print(visible(f"bylaw: {fault.code} {logs.named(str(fault))}{more}"), file=sys.stderr)
    if len(told) > _TOLD:
        left = sum(others + 1 for _, others in told[_TOLD:])
        print(f"bylaw: and {left:,} more, see summary.json", file=sys.stderr)
    if report.summary["agents"]:
        print_summary(report.summary, open_console(), report.out)


def _by_file(faults: Sequence[RecordError]) -> Iterator[tuple[RecordError, int]]:
    """The first fault of each kind in each file, with how many are like it."""
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
