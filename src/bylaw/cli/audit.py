"""`bylaw audit`: recorded conversations in, violations and near-misses out."""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click
from msgspec.structs import replace

from bylaw.audit.audited import write_audited
from bylaw.audit.baseline import compare_audits, read_baseline, write_comparison
from bylaw.audit.examine import Examiner, open_examiner
from bylaw.audit.finding import Finding, Gate
from bylaw.audit.request import Request
from bylaw.audit.run import Report, audit
from bylaw.audit.store import Store
from bylaw.audit.waiver import read_waivers
from bylaw.cli.answers import ModelOptions, open_answers
from bylaw.cli.batch import Batch
from bylaw.cli.command import command
from bylaw.cli.console import open_console
from bylaw.cli.given import Count, DocumentOption, File, Folder, Name, PackOption, Word
from bylaw.cli.logs import GivenLogs, Logs, count_lines, open_logs
from bylaw.cli.tables import print_summary
from bylaw.errors import RecordError, UsageError
from bylaw.pack import Criterion
from bylaw.text.visible import visible
from bylaw.trace.log_file import LogFile

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
            from bylaw.cli.comparison import print_comparison

            print_comparison(comparison, open_console())
            print(f"Wrote {write_comparison(comparison, out)}")
        standings = comparison.standings() if comparison is not None else None
        if sarif is not None:
            from bylaw.audit.sarif import write_sarif

            print(f"Wrote {write_sarif(out, sarif, files=opened.files, standings=standings)}")
    if junit is not None:
        from bylaw.audit.junit import write_junit

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
