"""Exports findings: SARIF 2.1.0 for code hosts and editors, and JUnit XML for build servers."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from bylaw import __version__
from bylaw.audit.baseline import Gate, Standings
from bylaw.audit.request import unique_names
from bylaw.audit.row import Charge, Finding
from bylaw.audit.store import CALLS, LogPlace, Store
from bylaw.text.visible import all_visible, visible
from bylaw.trace.source import LogFile, RemoteFile

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_BY_LINE = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
_SEVERE = {
    "violation": {"high": "error", "medium": "error", "low": "warning"},
    "near_miss": {"high": "warning", "medium": "warning", "low": "note"},
}


def write_sarif(out: Path, target: Path, *, files: Sequence[LogFile] = (), standings: Standings | None = None) -> Path:
    """Write the findings of the audit in `out` as SARIF.

    `files` are the paths of the logs, which the SARIF file links to.
    """
    store = Store(out)
    policies = store.policies
    rules = [_rule(name, policy) for name, policy in policies.items()]
    index = {name: number for number, name in enumerate(policies)}
    places = store.log_places()
    paths = _paths(files)
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("w", encoding="utf-8", newline="\n") as sarif:
        driver = {"name": "bylaw", "version": __version__, "semanticVersion": __version__, "rules": rules}
        head = f'{{"$schema": "{_SCHEMA}", "version": "2.1.0", "runs": [{{"tool": {{"driver": {_dump(driver)}}}'
        sarif.write(head + ', "columnKind": "unicodeCodePoints", "results": [')
        comma = "\n"
        for finding in store.findings():
            for result in _results(finding, index, places, paths, standings or Standings()):
                sarif.write(comma + _dump(result))
                comma = ",\n"
        sarif.write("\n]}]}\n")
    return target


def _rule(name: str, policy: Mapping[str, Any]) -> dict[str, Any]:
    sentences = [cite["text"] for cite in policy.get("citations", []) if cite.get("text")]
    definition = policy.get("definition") or name
    return {
        "id": name,
        "shortDescription": {"text": definition},
        "fullDescription": {"text": definition},
        "help": {"text": "\n\n".join(sentences) or definition},
        "defaultConfiguration": {"level": _SEVERE["violation"].get(policy.get("severity", "medium"), "error")},
        "properties": {"severity": policy.get("severity", "medium"), "tags": ["policy", policy.get("kind", "guard")]},
    }


def _results(
    finding: Finding,
    index: Mapping[str, int],
    places: Mapping[str, LogPlace],
    paths: Mapping[str, str],
    standings: Standings,
) -> Iterator[dict[str, Any]]:
    place = places.get(finding.trajectory, LogPlace(finding.trajectory))
    shared: dict[str, Any] = {
        "locations": [_location(finding, place, paths)],
        "partialFingerprints": {"bylawFinding/v1": finding.id},
    }
    if standings.compared:
        shared["baselineState"] = "unchanged" if finding.id in standings.known else "new"
    if waivers := standings.waived.get(finding.id):
        shared["suppressions"] = [
            {
                "kind": "external",
                "status": "accepted",
                "justification": f"{waiver.reason} ({waiver.owner}, until {waiver.expires.isoformat()})",
            }
            for waiver in waivers
        ]
    for charge in finding.charges:
        result: dict[str, Any] = {"ruleId": charge.policy, "level": level(finding, charge)}
        if charge.policy in index:
            result["ruleIndex"] = index[charge.policy]
        what = "rule" if finding.kind == "rule" else charge.verdict.replace("_", "-")
        why = f": {charge.because}" if charge.because else ""
        result["message"] = {"text": f"{what}: {finding.name} at step {finding.step} of {finding.trajectory}{why}"}
        result["properties"] = {
            "verdict": charge.verdict,
            "severity": charge.severity,
            "agent": finding.agent,
            "trajectory": finding.trajectory,
            "step": finding.step,
            "executed": finding.executed,
        }
        yield result | shared


def level(finding: Finding, charge: Charge) -> str:
    """Return the SARIF level of a finding. Refused calls, and calls that may be compliant, have the level `note`."""
    if finding.executed is False:
        return "note"
    return _SEVERE.get(charge.verdict, {}).get(charge.severity, "note")


def _location(finding: Finding, place: LogPlace, paths: Mapping[str, str]) -> dict[str, Any]:
    line = place.position if place.file.lower().endswith(_BY_LINE) else 1
    uri = paths.get(place.file) or quote(place.file) or "unknown"
    return {
        "physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": max(1, line)}},
        "logicalLocations": [
            {"name": finding.name, "fullyQualifiedName": f"{finding.trajectory}/{finding.step}/{finding.name}"}
        ],
    }


def _paths(files: Sequence[LogFile]) -> dict[str, str]:
    """Return the address of each log file, keyed by file name.

    If several files have the same name, the address is empty.
    """
    found: dict[str, str] = {}
    for file, name in unique_names(files).items():
        if isinstance(file, RemoteFile):
            found[name] = "" if name in found else file.url
            continue
        path = file
        if path.is_absolute():
            here = Path.cwd()
            path = path.relative_to(here) if path.is_relative_to(here) else path
        address = path.as_uri() if path.is_absolute() else quote(path.as_posix())
        found[name] = "" if name in found else address
    return found


def _dump(record: Any) -> str:
    return json.dumps(all_visible(record), ensure_ascii=False)


def write_junit(out: Path, target: Path, *, standings: Standings | None = None, gate: Gate | None = None) -> Path:
    """Write the calls and broken rules of the audit in `out` as JUnit XML.

    Findings that fail the gate are failed cases. Known, waived, refused and undecided findings are skipped cases, and
    so are calls without a guard.
    """
    store, standings, gate = Store(out), standings or Standings(), gate or Gate()
    calls = (store.call(line).as_finding(store.criterion) for line in store.raw(CALLS))
    root = Element("testsuites", name="bylaw audit")
    suites: dict[str, Element] = {}
    outcomes: dict[str, Counter[str]] = {}
    for finding in chain(calls, store.broken_rules()):
        suite = suites.get(finding.agent)
        if suite is None:
            suite = suites[finding.agent] = SubElement(root, "testsuite", name=visible(finding.agent or "(unnamed)"))
        outcome, message = _outcome(finding, standings, gate)
        outcomes.setdefault(finding.agent, Counter())[outcome] += 1
        _case(suite, finding, outcome, message)
    every = sum(outcomes.values(), Counter[str]())
    for element, counts in ((root, every), *((suites[agent], counts) for agent, counts in outcomes.items())):
        told = {"tests": counts.total(), "failures": counts["failure"], "errors": 0, "skipped": counts["skipped"]}
        element.attrib |= {name: str(count) for name, count in told.items()} | {"time": "0"}
    indent(root, "")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(tostring(root, encoding="UTF-8", xml_declaration=True) + b"\n")
    return target


def _case(suite: Element, finding: Finding, outcome: str, message: str) -> None:
    name = visible(f"{finding.trajectory} step {finding.step}")
    case = SubElement(suite, "testcase", classname=visible(finding.name), name=name, time="0")
    if outcome == "skipped":
        SubElement(case, outcome, message=visible(message))
    elif outcome == "failure":
        lines = [
            f"{charge.policy} ({charge.severity}): {charge.verdict.replace('_', '-')}: {charge.because}"
            for charge in finding.charges
        ]
        failure = SubElement(case, outcome, type=finding.verdict, message=visible(message))
        failure.text = visible("\n".join([*lines, f"finding {finding.id}"]))


def _outcome(finding: Finding, standings: Standings, gate: Gate) -> tuple[str, str]:
    if finding.verdict == "compliant":
        return ("passed", "") if finding.judged else ("skipped", "not judged: no guard applies to this tool")
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
            return "skipped", f"already in the baseline; {why}"
        case "new":
            return ("failure", why) if gate.stops(finding) else ("skipped", f"does not fail the run; {why}")
