"""Judged calls as JUnit XML, which every build server reads: one suite per agent, one case per write call."""

import re
from collections import Counter
from itertools import chain
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, tostring

from msgspec import Struct

from bylaw.audit.baseline import Standings
from bylaw.audit.finding import Finding, Gate
from bylaw.audit.store import CALLS, Store

# What XML 1.0 cannot hold, whatever way it is written.
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class _Suite(Struct):
    """The cases of one agent, written, and how many there are by outcome."""

    cases: list[str]
    outcomes: Counter[str]


def write_junit(out: Path, target: Path, *, standings: Standings | None = None, gate: Gate | None = None) -> Path:
    """Write the calls and broken rules of the audit in `out`.

    A finding that the gate stops fails its case; one that was there before, is waived, was refused or is undecided
    is skipped, and so is a call that no guard binds.
    """
    store, standings, gate = Store(out), standings or Standings(), gate or Gate()
    calls = (store.call(line).as_finding(store.criterion) for line in store.raw(CALLS))
    suites: dict[str, _Suite] = {}
    for finding in chain(calls, store.broken_rules()):
        suite = suites.setdefault(finding.agent, _Suite([], Counter()))
        outcome, message = _outcome(finding, standings, gate)
        suite.outcomes[outcome] += 1
        suite.cases.append(_case(finding, outcome, message))
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("w", encoding="utf-8", newline="\n") as junit:
        total = sum((suite.outcomes for suite in suites.values()), Counter[str]())
        junit.write('<?xml version="1.0" encoding="UTF-8"?>\n')
        junit.write(_opening("testsuites", "bylaw audit", total))
        for agent, suite in suites.items():
            junit.write(_opening("testsuite", agent or "(unnamed)", suite.outcomes))
            junit.writelines(suite.cases)
            junit.write("</testsuite>\n")
        junit.write("</testsuites>\n")
    return target


def _opening(tag: str, name: str, outcomes: Counter[str]) -> str:
    counts = {"tests": outcomes.total(), "failures": outcomes["failure"], "errors": 0, "skipped": outcomes["skipped"]}
    element = Element(tag, {"name": _clean(name)} | {each: str(n) for each, n in counts.items()} | {"time": "0"})
    return tostring(element, encoding="unicode").removesuffix(" />") + ">\n"


def _case(finding: Finding, outcome: str, message: str) -> str:
    """A case, written: calls are many, and their elements would take more room."""
    name = _clean(f"{finding.trajectory} step {finding.step}")
    case = Element("testcase", {"classname": _clean(finding.name), "name": name, "time": "0"})
    if outcome == "skipped":
        SubElement(case, outcome, {"message": _clean(message)})
    elif outcome == "failure":
        lines = [
            f"{charge.policy} ({charge.severity}): {charge.verdict.replace('_', '-')}: {charge.because}"
            for charge in finding.charges
        ]
        failure = SubElement(case, outcome, {"type": finding.verdict, "message": _clean(message)})
        failure.text = _clean("\n".join([*lines, f"finding {finding.id}"]))
    return tostring(case, encoding="unicode") + "\n"


def _outcome(finding: Finding, standings: Standings, gate: Gate) -> tuple[str, str]:
    """How a case ends, and why."""
    if finding.verdict == "compliant":
        return ("passed", "") if finding.judged else ("skipped", "not judged: no guard binds this tool")
    because = next((charge.because for charge in finding.charges if charge.because), finding.because)
    why = ": ".join(filter(None, (finding.verdict.replace("_", "-"), because)))
    if finding.verdict not in ("violation", "near_miss"):
        return "skipped", why
    if finding.executed is False:
        return "skipped", f"refused; {why}"
    match standings.of(finding.id):
        case "waived":
            waivers = "; ".join(f"{w.reason} ({w.owner}, until {w.expires})" for w in standings.waived[finding.id])
            return "skipped", f"waived: {waivers}; {why}"
        case "still":
            return "skipped", f"known from the baseline; {why}"
        case "new":
            return ("failure", why) if gate.stops(finding) else ("skipped", f"does not fail the run; {why}")


def _clean(text: str) -> str:
    return _UNPRINTABLE.sub("\ufffd", text)
