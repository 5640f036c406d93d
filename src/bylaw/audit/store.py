"""Reads the findings of one audit from its folder, for all commands, pages and exports.

If an audit wrote only tables, `calls.jsonl`, `findings.jsonl` and `conversations.jsonl` are created from the tables on
demand.
"""

import json
import re
import tempfile
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct

from bylaw.audit.output import has_tables
from bylaw.audit.row import FLAGGED, CallRow, Finding, JsonRecord, RuleRow
from bylaw.errors import UsageError
from bylaw.pack import Criterion

_EMPTY: JsonRecord = {
    "pack": {},
    "criterion": "determined",
    "finding_ids": 1,
    "verdicts": {"strict": {}, "determined": {}},
    "open": {"calls": 0, "rules": {}},
    **dict.fromkeys(("date", "world", "citations"), ""),
    **dict.fromkeys(("period", "redacted")),
    **dict.fromkeys(("repeated_ids", "untimed", "clockless", "contradicted"), 0),
    **{
        name: {}
        for name in ("counts", "by_tool", "by_lookup", "by_policy", "by_reason", "by_rule", "answered", "settled")
    },
    **{name: {} for name in ("failed_guards", "worlds", "outcome_from", "unknown_tools", "unmapped_fields")},
    **dict.fromkeys(("agents", "files", "limits", "evidence", "clock", "skipped", "unanswered", "unguarded_tools"), ()),
    **dict.fromkeys(("changed_policy", "stale_policies", "unreviewed_policies", "unenforced_policies"), ()),
    "other_documents": (),
    "not_in_world": (),
}
"""Keys that the summaries of earlier versions do not have, with empty values."""
CALLS, RULES, CONVERSATIONS = "calls.jsonl", "findings.jsonl", "conversations.jsonl"
_REPEATED = re.compile(r"~[2-9][0-9]*$|~1[0-9]+$")
_NAMED = 5
"""The maximum number of ids to list if a prefix is ambiguous."""


class _Id(Struct):
    trajectory: str
    step: int
    finding: str = ""


class LogPlace(Struct):
    """Locates a conversation in the logs."""

    trajectory: str
    file: str = ""
    position: int = 0


_calls = msgspec.json.Decoder(CallRow)
_rules = msgspec.json.Decoder(RuleRow)
_places = msgspec.json.Decoder(LogPlace)
_ids = msgspec.json.Decoder(_Id)


class Store:
    """The files of one audit. Raises UsageError if the folder contains no audit."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._made: tempfile.TemporaryDirectory[str] | None = None
        if not (path / "summary.json").is_file():
            hint = f"use the output folder of an audit, or create one: `bylaw audit LOGS --pack PACK --out {path}`"
            raise UsageError("this folder has no summary.json", place=str(path), hint=hint)
        self.has_lines = (path / CALLS).is_file()
        if not self.has_lines and not has_tables(path):
            raise UsageError(
                "this folder has no calls.jsonl", place=str(path), hint="use the output folder of an audit"
            )

    @cached_property
    def summary(self) -> JsonRecord:
        """The content of `summary.json`. Keys that an earlier version did not write have empty values."""
        return _EMPTY | self.document("summary.json")

    @cached_property
    def policies(self) -> JsonRecord:
        return self.document("policies.json")

    @property
    def criterion(self) -> Criterion:
        """The criterion of the audit, or a default if an older audit did not record it."""
        return "strict" if self.summary["criterion"] == "strict" else "determined"

    def document(self, name: str) -> JsonRecord:
        """Read a JSON object from a file. Return an empty record if the file does not exist."""
        file = self.path / name
        return read_record(file.read_bytes(), file) if file.is_file() else {}

    def file(self, name: str) -> Path:
        """Return the path of a JSON-lines file. If the audit wrote only tables, create the file from the tables."""
        if self.has_lines:
            return self.path / name
        if self._made is None:
            self._made = tempfile.TemporaryDirectory(prefix="bylaw-lines-")
        made = Path(self._made.name) / name
        if not made.is_file():
            from bylaw.audit.batch.tables import write_lines_of

            write_lines_of(self.path, made)
        return made

    def raw(self, name: str) -> Iterator[bytes]:
        """Yield the lines of a file as bytes. Yield nothing if the file does not exist."""
        file = self.file(name)
        if file.is_file():
            with file.open("rb") as lines:
                yield from lines

    def places(self, name: str) -> Iterator[tuple[int, JsonRecord]]:
        file, place = self.file(name), 0
        for line in self.raw(name):
            yield place, read_record(line, file)
            place += len(line)

    def at(self, name: str, places: Iterator[int]) -> Iterator[JsonRecord]:
        file = self.file(name)
        if not file.is_file():
            return
        with file.open("rb") as lines:
            for place in places:
                lines.seek(place)
                yield read_record(lines.readline(), file)

    def findings(self, criterion: Criterion | None = None) -> Iterator[Finding]:
        """Yield every finding in order: flagged calls, including refused calls, then broken rules."""
        criterion = criterion or self.criterion
        if not self.has_lines:
            from bylaw.audit.batch.tables import table_findings

            yield from table_findings(self.path, criterion)
            return
        for line in self.raw(CALLS):
            # Only flagged calls have an id, whichever criterion is used.
            if b'"finding":"' in line and (call := self.call(line)).finding:
                finding = call.as_finding(criterion)
                if finding.verdict in FLAGGED:
                    yield finding
        yield from self.broken_rules()

    def call(self, line: bytes) -> CallRow:
        return _decoded(_calls, line, self.path)

    def inconclusive(self) -> Iterator[Finding]:
        """Yield the undecided calls, which are not findings, with their undecided policies."""
        criterion = self.criterion
        needle = f'"{criterion}":"inconclusive"'.encode()
        for line in self.raw(CALLS):
            if needle in line and getattr(call := self.call(line), criterion) == "inconclusive":
                yield call.as_finding(criterion, frozenset({"inconclusive"}))

    def broken_rules(self) -> Iterator[Finding]:
        for line in self.raw(RULES):
            rule = _decoded(_rules, line, self.path)
            if rule.finding:
                severity = self.policies.get(rule.policy, {}).get("severity", "medium")
                yield rule.as_finding(severity)

    def log_places(self) -> dict[str, LogPlace]:
        """Return the location in the logs of each conversation with findings."""
        return {place.trajectory: place for place in map(_places.decode, self.raw(CONVERSATIONS))}

    def find(self, wanted: str) -> tuple[str, int | None]:
        """Return the conversation with this id.

        For a finding's id, return the finding's conversation and step. A unique prefix of an id is enough. Raise
        UsageError if no id or more than one id matches.
        """
        conversations: set[str] = set()
        findings: dict[str, tuple[str, int]] = {}
        for head in (_ids.decode(line) for name in (CALLS, RULES) for line in self.raw(name)):
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
        place = str(self.path)
        if not found:
            hint = f"`bylaw explain {place}` lists the findings"
            raise UsageError(f"no judged conversation or finding starts with `{wanted}`", place=place, hint=hint)
        more = f" and {len(found) - _NAMED:,} more" if len(found) > _NAMED else ""
        raise UsageError(f"several ids start with `{wanted}`", place=place, hint=f"{', '.join(found[:_NAMED])}{more}")

    def explainable(self, trajectory: str) -> dict[int, JsonRecord]:
        """Return the judged calls in a conversation, keyed by step, and the other steps that broke a rule."""
        found: dict[int, JsonRecord] = {line["step"]: line for line in self._of(CALLS, trajectory)}
        calls = {*found}
        for rule in self._of(RULES, trajectory):
            step: int = rule["step"]
            # Calls that exceed a limit are known only after all calls have been written.
            if step not in calls or "limit" in rule:
                line = found.setdefault(step, {"trajectory": trajectory, "step": step, "policies": [], "rules": []})
                line["rules"].append(rule)
        return dict(sorted(found.items()))

    def events(self, trajectory: str) -> list[JsonRecord]:
        """Return the events of a conversation, or an empty list if it has no findings."""
        kept = next(self._of(CONVERSATIONS, trajectory), None)
        return kept["events"] if kept is not None else []

    def repeated_at(self, trajectory: str) -> str:
        """Return the location in the logs of a conversation whose id is repeated. Return "" if the id is unique."""
        if not _REPEATED.search(trajectory):
            return ""
        kept = next(self._of(CONVERSATIONS, trajectory), None)
        return f"{kept['file']}#{kept['position']}" if kept is not None else ""

    def _of(self, name: str, trajectory: str) -> Iterator[JsonRecord]:
        needle = json.dumps(trajectory, ensure_ascii=False).encode()
        file = self.file(name)
        for line in self.raw(name):
            if needle in line and (record := read_record(line, file))["trajectory"] == trajectory:
                yield record


def read_record(data: bytes, file: Path) -> JsonRecord:
    """Decode a record of an audit, keeping lone surrogates and invalid UTF-8."""
    try:
        found: Any = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        try:
            found = json.loads(data.decode("utf-8", "replace"))
        except (ValueError, RecursionError) as error:
            raise UsageError(f"a line cannot be read: {error}", place=str(file), hint="audit the logs again") from None
    if not isinstance(found, dict):
        raise UsageError("a line is not a JSON object", place=str(file), hint="audit the logs again")
    return cast(JsonRecord, found)


def _decoded(decoder: Any, line: bytes, out: Path) -> Any:
    try:
        return decoder.decode(line)
    except msgspec.DecodeError as error:
        raise UsageError(f"a line cannot be read: {error}", place=str(out), hint="audit the logs again") from None


def read_calls(out: Path) -> Iterator[JsonRecord]:
    return (record for _, record in Store(out).places(CALLS))
