"""What an audit's folder holds of one conversation, found by its id, by a finding's id, or by the start of either."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from bylaw.audit.finding import no_lines
from bylaw.errors import UsageError

_REPEATED = re.compile(r"~[2-9][0-9]*$|~1[0-9]+$")
_NAMED = 5
"""How many of several that are meant are named."""


class LineHead(Struct):
    """Which line it is."""

    trajectory: str
    step: int
    finding: str = ""


_heads = msgspec.json.Decoder(LineHead)


def find_conversation(out: Path, wanted: str) -> tuple[str, int | None]:
    """The conversation that is meant, and the step where a finding is; `UsageError` where it is none or several."""
    conversations: set[str] = set()
    findings: dict[str, tuple[str, int]] = {}
    for head in _every_head(out):
        if head.trajectory == wanted:
            return wanted, None
        if head.trajectory.startswith(wanted):
            conversations.add(head.trajectory)
        if head.finding and head.finding.startswith(wanted):
            findings[head.finding] = (head.trajectory, head.step)
    if wanted in findings:
        return findings[wanted]
    found = sorted(conversations) + list(findings)
    if len(found) == 1:
        return findings[found[0]] if findings else (found[0], None)
    if not found:
        hint = f"`bylaw explain {out}` lists the findings"
        raise UsageError(f"no judged conversation and no finding begins with `{wanted}`", place=str(out), hint=hint)
    more = f" and {len(found) - _NAMED:,} more" if len(found) > _NAMED else ""
    raise UsageError(f"several ids begin with `{wanted}`", place=str(out), hint=f"{', '.join(found[:_NAMED])}{more}")


def explainable_lines(out: Path, trajectory: str) -> dict[int, dict[str, Any]]:
    """What can be explained of a conversation, by step: its judged calls, and the steps that only broke a rule."""
    found: dict[int, dict[str, Any]] = {line["step"]: line for line in _records(out / "calls.jsonl", trajectory)}
    calls = {*found}
    for rule in _records(out / "findings.jsonl", trajectory):
        step: int = rule["step"]
        # What is beyond a limit is known only once the lines of all calls are written.
        if step not in calls or "limit" in rule:
            line = found.setdefault(step, {"trajectory": trajectory, "step": step, "policies": [], "rules": []})
            line["rules"].append(rule)
    return dict(sorted(found.items()))


def kept_events(out: Path, trajectory: str) -> list[dict[str, Any]]:
    """The events of a conversation that the audit kept; none where it kept nothing of it."""
    for kept in _records(out / "conversations.jsonl", trajectory):
        events: list[dict[str, Any]] = kept["events"]
        return events
    return []


def place_of(out: Path, trajectory: str) -> str:
    """Where a conversation stands in the logs, where its id alone does not tell, as another has it too."""
    if not _REPEATED.search(trajectory):
        return ""
    kept = next(_records(out / "conversations.jsonl", trajectory), None)
    return f"{kept['file']}#{kept['position']}" if kept is not None else ""


def _every_head(out: Path) -> Iterator[LineHead]:
    if not (out / "calls.jsonl").is_file():
        raise no_lines(out)
    for name in ("calls.jsonl", "findings.jsonl"):
        if (out / name).is_file():
            with (out / name).open("rb") as lines:
                yield from map(_heads.decode, lines)


def _records(path: Path, trajectory: str) -> Iterator[dict[str, Any]]:
    if not path.is_file():
        return
    needle = json.dumps(trajectory, ensure_ascii=False).encode()
    with path.open("rb") as lines:
        for raw in lines:
            if needle in raw and (record := json.loads(raw))["trajectory"] == trajectory:
                yield record
