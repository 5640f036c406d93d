"""What a person decides on a finding, written where it would have been written by hand: waivers.yaml and cases/."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any, cast

from bylaw.audit.report.folder import JsonRecord
from bylaw.audit.waiver import Waiver, read_waivers
from bylaw.console.record_file import Written, add_record, take_out
from bylaw.console.standing import FALSE_ALARM
from bylaw.errors import BylawError, UsageError
from bylaw.pack import load_pack
from bylaw.policy.case import read_case_file
from bylaw.policy.yaml import read_yaml_file
from bylaw.review.case import CaseResult, run_cases

CASES = "cases/from-audits.yaml"
WAIVERS_HEAD = "# Findings that somebody answers for, each until a day: see `bylaw audit --waivers`.\nwaivers:\n"
CASES_HEAD = "# Calls that audits flagged, kept as cases of this pack.\n"
LONGEST = 500
"""Characters of a reason or a name at most."""


def waive(path: Path, *, owner: str, reason: str, expires: str, finding: str = "", policy: str = "") -> Written:
    """Waive one finding, or all that a policy finds, until a day."""
    _needed(owner, "who answers for it")
    _needed(reason, "why")
    try:
        last = date.fromisoformat(expires)
    except ValueError:
        raise UsageError(f"`{expires}` is not a day", hint="write it like 2026-12-31") from None
    if last < date.today():
        raise UsageError(f"`{expires}` is over already", hint="a waiver holds until a day to come")
    what = {"finding": finding} if finding else {"policy": policy}
    record = what | {"owner": _line(owner), "reason": _line(reason), "expires": last.isoformat()}
    lines = add_record(path, record, head=WAIVERS_HEAD, count=_count_waivers)
    return Written(path, lines)


def false_alarm(path: Path, *, finding: str, owner: str, reason: str, expires: str) -> Written:
    """Say that a finding is none: a waiver whose reason begins so."""
    _needed(reason, "why it is none")
    return waive(path, owner=owner, reason=FALSE_ALARM + reason, expires=expires, finding=finding)


def unwaive(path: Path, waiver: Waiver, *, by: str) -> Written:
    """Take a waiver of one finding back."""
    _needed(by, "who takes it back")
    if not waiver.finding:
        raise UsageError("this waiver covers more than one finding", place=waiver.place, hint="edit the file")
    line = waiver.place.rpartition(":")[2]
    if not line.isdigit():
        raise UsageError("where the waiver stands is not known", place=waiver.place, hint="edit the file")
    lines = take_out(path, int(line), count=_count_waivers)
    return Written(path, lines, "taken out; the finding counts again.")


def _count_waivers(path: Path) -> int:
    read_waivers(path)
    data = read_yaml_file(path, file=str(path)).data
    return len(cast("list[Any]", data.get("waivers") or data.get("") or []))


def keep_case(root: Path, record: JsonRecord, by: str) -> Written:
    """Add a case to a pack, and say how it ends now."""
    _needed(by, "who keeps it")
    if not root.is_dir():
        raise UsageError("the folder of the pack is not there any more", place=str(root), hint="put it back")
    path = root / CASES
    lines = add_record(path, record, head=CASES_HEAD, count=_count_cases)
    return Written(path, lines, _ending(root, str(record["note"])))


def case_of_call(finding: JsonRecord, policy: JsonRecord, arguments: JsonRecord, want: str, note: str) -> JsonRecord:
    """A flagged call as a case: its arguments, the facts that had been seen, and what the policy should say."""
    facts: dict[str, dict[str, Any]] = {}
    for fact in policy["seen"]:
        if "value" in fact and fact["field"]:
            key = ", ".join(map(str, fact["key"] or ()))
            facts.setdefault(f"{fact['entity']}[{key}]", {})[fact["field"]] = fact["value"]
    return {
        "note": _line(note),
        "policy": policy["id"],
        "call": {finding["tool"]: arguments},
        "facts": facts or None,
        "want": want,
    }


def case_of_rule(rule: str, events: Sequence[JsonRecord], step: int, want: str, note: str) -> JsonRecord:
    """A broken rule as a case: what happened up to the step that broke it."""
    told: list[JsonRecord] = []
    places: dict[int, JsonRecord] = {}
    for number, event in enumerate(events):
        match event["type"]:
            case "message" if number <= step:
                told.append({"user" if event.get("by") == "user" else "agent": event["text"]})
            case "call" if number <= step:
                places[number] = {"call": event["tool"], "args": event["arguments"]}
                told.append(places[number])
            case "result" if (made := places.get(event.get("call", -1))) is not None:
                made["result"] = event["text"]
                if event.get("error"):
                    made["error"] = True
            case _:
                pass
    return {"note": _line(note), "rule": rule, "events": told, "want": want}


def _count_cases(path: Path) -> int:
    read = read_case_file(read_yaml_file(path, file=path.name))
    if read.faults:
        raise read.faults[0]
    return len(read.record.cases)


def _ending(root: Path, note: str) -> str:
    try:
        pack = load_pack(str(root))
        results = [each for each in run_cases(pack) if isinstance(each, CaseResult) and each.note == note]
    except BylawError as error:
        return f"the pack cannot be loaded now: {error}"
    if not results:
        return "it cannot be run as it is: see `bylaw check`"
    last = results[-1]
    return "it passes" if last.passed else f"it wants {last.want} and gets {last.got}: the check has to change"


def _needed(text: str, what: str) -> None:
    if not text.strip():
        raise UsageError(f"say {what}")
    if len(text) > LONGEST:
        raise UsageError(f"more than {LONGEST} characters to say {what}")


def _line(text: str) -> str:
    """One line: what is written must not break out of its place in the file."""
    return " ".join(text.split())
