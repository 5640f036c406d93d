"""Judged calls as JUnit XML, which every build server reads: one suite per agent, one case per write call."""

import html
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from msgspec import Struct

from bylaw.audit.baseline import Standings
from bylaw.audit.finding import Finding, Gate
from bylaw.audit.store import CALLS, Store
from bylaw.pack import Criterion

# What XML 1.0 cannot hold, whatever way it is written.
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Suite(Struct):
    """The cases of one agent: where they stand, and how many ended how."""

    calls: list[int]
    rules: list[Finding]
    failures: int = 0
    skipped: int = 0

    @property
    def tests(self) -> int:
        """How many cases there are."""
        return len(self.calls) + len(self.rules)

    def count(self, outcome: str) -> None:
        """Count one case."""
        self.failures += outcome == "failure"
        self.skipped += outcome == "skipped"


class _Judge(Struct, frozen=True):
    """What decides how a case ends."""

    criterion: Criterion
    standings: Standings
    gate: Gate


def write_junit(out: Path, target: Path, *, standings: Standings | None = None, gate: Gate | None = None) -> Path:
    """Write the calls and broken rules of the audit in `out`.

    A finding that the gate stops fails its case; one that was there before, is waived, was refused or is not settled
    is skipped, and so is a call that no guard binds.
    """
    store = Store(out)
    judge = _Judge(store.criterion, standings or Standings(), gate or Gate())
    suites: dict[str, Suite] = {}
    with store.file(CALLS).open("rb") as lines:
        place = 0
        for line in lines:
            call = store.call(line)
            suite = suites.setdefault(call.agent, Suite([], []))
            suite.calls.append(place)
            suite.count(_outcome(call.as_finding(judge.criterion), judge)[0])
            place += len(line)
        for finding in store.broken_rules():
            suite = suites.setdefault(finding.agent, Suite([], []))
            suite.rules.append(finding)
            suite.count(_outcome(finding, judge)[0])
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("w", encoding="utf-8", newline="\n") as junit:
            junit.write('<?xml version="1.0" encoding="UTF-8"?>\n')
            junit.write(f'<testsuites name="bylaw audit" {_counts(suites.values())}>\n')
            for agent, suite in suites.items():
                junit.write(f"<testsuite name={_attribute(agent or '(unnamed)')} {_counts([suite])}>\n")
                for finding in _findings(suite, lines, judge.criterion, store):
                    junit.write(_case(finding, judge))
                junit.write("</testsuite>\n")
            junit.write("</testsuites>\n")
    return target


def _counts(suites: Iterable[Suite]) -> str:
    """The counts of some suites as attributes."""
    parts = list(suites)
    tests, failures, skipped = (
        sum(part.tests for part in parts),
        sum(part.failures for part in parts),
        sum(part.skipped for part in parts),
    )
    return f'tests="{tests}" failures="{failures}" errors="0" skipped="{skipped}" time="0"'


def _findings(suite: Suite, lines: IO[bytes], criterion: Criterion, store: Store) -> Iterator[Finding]:
    for place in suite.calls:
        lines.seek(place)
        yield store.call(lines.readline()).as_finding(criterion)
    yield from suite.rules


def _case(finding: Finding, judge: _Judge) -> str:
    name = _attribute(f"{finding.trajectory} step {finding.step}")
    case = f"<testcase classname={_attribute(finding.name)} name={name} time="
    outcome, message = _outcome(finding, judge)
    if outcome == "passed":
        return case + '"0"/>\n'
    told = "\n".join(
        f"{charge.policy} ({charge.severity}): {charge.verdict.replace('_', '-')}: {charge.because}"
        for charge in finding.charges
    )
    if outcome == "skipped":
        return f'{case}"0"><skipped message={_attribute(message)}/></testcase>\n'
    body = html.escape(_clean(f"{told}\nfinding {finding.id}"))
    return f'{case}"0"><failure type="{finding.verdict}" message={_attribute(message)}>{body}</failure></testcase>\n'


def _outcome(finding: Finding, judge: _Judge) -> tuple[str, str]:
    """How a case ends, and what is said of it."""
    if finding.verdict == "compliant":
        return ("passed", "") if finding.judged else ("skipped", "not judged: no guard binds this tool")
    because = next((charge.because for charge in finding.charges if charge.because), finding.because)
    told = f"{finding.verdict.replace('_', '-')}: {because}" if because else finding.verdict.replace("_", "-")
    if finding.verdict not in ("violation", "near_miss"):
        return "skipped", told
    if finding.executed is False:
        return "skipped", f"refused; {told}"
    match judge.standings.of(finding.id):
        case "waived":
            waivers = judge.standings.waived[finding.id]
            said = "; ".join(f"{w.reason} ({w.owner}, until {w.expires.isoformat()})" for w in waivers)
            return "skipped", f"waived: {said}; {told}"
        case "still":
            return "skipped", f"known from the baseline; {told}"
        case "new":
            return ("failure", told) if judge.gate.stops(finding) else ("skipped", f"does not fail the run; {told}")


def _attribute(text: str) -> str:
    # Line breaks in an attribute would come back as spaces.
    escaped = html.escape(_clean(text))
    return '"' + escaped.replace("\n", "&#10;").replace("\r", "&#13;").replace("\t", "&#9;") + '"'


def _clean(text: str) -> str:
    return _UNPRINTABLE.sub("\ufffd", text)
