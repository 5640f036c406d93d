"""What a person decides on a finding, written where it would have been written by hand: in waivers.yaml."""

from datetime import date
from pathlib import Path
from typing import Any, cast

from bylaw.audit.waiver import Waiver, read_waivers
from bylaw.console.record_file import Written, add_record, one_line, take_out
from bylaw.console.standing import FALSE_ALARM
from bylaw.errors import UsageError
from bylaw.policy.yaml import read_yaml_file

WAIVERS_HEAD = "# Findings that somebody answers for, each until a day: see `bylaw audit --waivers`.\nwaivers:\n"
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
    record = what | {"owner": one_line(owner), "reason": one_line(reason), "expires": last.isoformat()}
    return add_record(path, record, head=WAIVERS_HEAD, count=_count_waivers)


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


def _needed(text: str, what: str) -> None:
    if not text.strip():
        raise UsageError(f"say {what}")
    if len(text) > LONGEST:
        raise UsageError(f"more than {LONGEST} characters to say {what}")
