"""The current state of a pack's folder, its cases, and findings saved as cases.

A finding is saved as a case only if the case gives the same result as the audit. The case lists the facts that the
agent had seen. If the check also depends on messages or earlier calls, the case lists the events instead.
"""

import json
import os
import threading
from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from bylaw.audit.store import JsonRecord
from bylaw.console.records import COMMENTS, Written, add_records, written
from bylaw.errors import BylawError, UsageError
from bylaw.pack import Pack, load_pack
from bylaw.pack.review import REVIEW, Sides, is_compiled, sides_of
from bylaw.policy.case import WrittenCase, read_case_file
from bylaw.policy.folder import PackFolder, read_folder
from bylaw.policy.yaml import read_yaml, read_yaml_file
from bylaw.review.case import CaseResult, run_case, run_cases
from bylaw.review.check import Covered, Noted, covered_sentences, loaded, noted_of

_PARTS = frozenset((".yaml", ".md", ".py", ".txt", ".json"))
_APART = frozenset((REVIEW, COMMENTS))
"""Files with signatures and comments. They are not part of the pack, so they are read each time."""


class PackState(Struct, frozen=True):
    """A pack, and data about it that is computed only once."""

    folder: PackFolder
    pack: Pack
    sides: dict[str, Sides]
    noted: dict[str, Noted]
    covered: list[Covered]
    is_compiled: bool

    def results(self, policy: str) -> list[CaseResult | BylawError]:
        return list(run_cases(self.pack, of=case_names(self.pack, policy)))


class PackStates:
    """Caches the state of a pack's folder until one of its files changes."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._stamp: object = None
        self._state: PackState | None = None
        self._lock = threading.Lock()

    def now(self) -> PackState:
        with self._lock:
            try:
                stamp = [(entry.path, entry.stat().st_mtime_ns) for entry in _files(self._root)]
            except OSError as error:
                why = f"the pack folder cannot be read: {error.strerror or error}"
                raise UsageError(why, place=str(self._root), hint="restore it, or start again with --pack") from None
            if self._state is None or stamp != self._stamp:
                self._state, self._stamp = _read_state(self._root), stamp
            return self._state


def _read_state(root: Path) -> PackState:
    folder = read_folder(root)
    pack = loaded(folder)
    return PackState(folder, pack, sides_of(folder), noted_of(root), covered_sentences(pack), is_compiled(root))


def _files(root: Path) -> Iterator[os.DirEntry[str]]:
    for entry in os.scandir(root):
        if entry.is_dir() and not entry.name.startswith((".", "__")):
            yield from _files(Path(entry.path))
        elif os.path.splitext(entry.name)[1] in _PARTS and entry.name not in _APART and entry.name[0] != ".":
            yield entry


def case_names(pack: Pack, policy: str) -> set[str]:
    """Return the names by which cases refer to a policy: its own name and the names of its rules."""
    return {policy, *(rule.name for rule in pack.book.rules if rule.policy == policy)}


def cases_of(pack: Pack, names: Container[str]) -> Iterator[Any]:
    """Yield a policy's cases in order. `names` is the result of `case_names` for the policy."""
    for read in pack.cases.values():
        for case in read.record.written_out:
            if str(case.rule or case.policy) in names:
                yield case


def parts_of(case: Any) -> tuple[tuple[str, str], ...]:
    """Return the inputs of a case, each with a title."""
    parts = [
        ("now", case.now), ("context", case.context), ("done", case.done), ("call", case.called),
        ("facts", case.facts), ("world", case.world), ("events", [_event(each) for each in case.events or ()]),
    ]  # fmt: skip
    return tuple((title, _told(value)) for title, value in parts if value)


def _event(event: Any) -> str:
    for side in ("user", "agent"):
        if (said := getattr(event, side)) is not None:
            return f"{side}: {said}"
    return f"{event.call}({json.dumps(event.args, ensure_ascii=False, default=str)})"


def _told(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        lines = cast("list[Any]", value)
        if all(isinstance(each, str) for each in lines):
            return "\n".join(lines)
    return json.dumps(value, ensure_ascii=False, default=str)


CASES = "cases/from-audits.yaml"
_NO_CASE = "nothing was written: the finding cannot be written as a case of the current pack"
HEAD = "# Calls that audits flagged, kept as cases of this pack.\n"


def judged_by(line: JsonRecord, policy: str) -> JsonRecord | None:
    return next((each for each in line.get("policies") or () if each["id"] == policy), None)


def keep_call_case(
    root: Path, policy: JsonRecord, events: Sequence[JsonRecord], step: int, want: str, note: str
) -> Written:
    """Save a flagged call as a case, with the evidence before the call and the expected result."""
    evidence, made = str(policy["evidence"]), events[step]
    if want == "deny" and evidence == "undetermined" and policy["world"] == "deny":
        unseen = ", ".join(_fact(each) for each in policy["missing"])
        why = f"the call was wrong because of facts that were not looked up and are not in the audit ({unseen})"
        hint = "save it as `undetermined`, or write the case by hand with these facts under `world`"
        raise UsageError(f"nothing was written: {why}", hint=hint)
    pack = _loaded(root)
    head: JsonRecord = {
        "note": " ".join(note.split()),
        "policy": policy["id"],
        "call": {made["tool"]: made.get("arguments") or {}},
    }
    because: JsonRecord = {"because": policy["because"]} if evidence == "deny" else {}
    fault = ""
    for seen in ({"facts": _facts(policy)}, {"events": list(_happened(events[:step]))}):
        fault = _fault(pack, head | seen | {"want": {"evidence": evidence} | because})
        if not fault:
            return _kept(root, pack, head | seen | {"want": want})
    said = f"{evidence}{': ' + policy['because'] if policy['because'] else ''}"
    raise UsageError(f"{_NO_CASE}: the audit said {said}; {fault}")


def keep_rule_case(root: Path, rule: str, events: Sequence[JsonRecord], step: int, want: str, note: str) -> Written:
    """Save a broken rule as a case, with the events up to the step at which the rule was broken."""
    pack = _loaded(root)
    record = {"note": " ".join(note.split()), "rule": rule, "events": list(_happened(events, step))}
    if fault := _fault(pack, record | {"want": "broken"}):
        raise UsageError(f"{_NO_CASE}; {fault}")
    return _kept(root, pack, record | {"want": want})


def _kept(root: Path, pack: Pack, record: JsonRecord) -> Written:
    """Write a case, and return whether it passes.

    Raise UsageError if a case with this input but another result exists.
    """
    body = _read(record)
    name = str(body.rule or body.policy)
    for other in cases_of(pack, {name}):
        if (str(other.rule or other.policy), parts_of(other)) == (name, parts_of(body)) and other.wanted != body.wanted:
            raise UsageError(
                f"nothing was written: the pack already has this case and expects {other.wanted}: {other.note}"
            )
    ended = run_case(pack, body, CASES)
    done = add_records(root / CASES, [record], head=HEAD, count=_count)
    if isinstance(ended, BylawError):
        return replace(done, told=str(ended))
    failed = f"the case expects {ended.want} but gets {ended.got}; change the check"
    return replace(done, told="the case passes" if ended.passed else failed)


def _loaded(root: Path) -> Pack:
    if not root.is_dir():
        raise UsageError("the pack folder no longer exists", place=str(root), hint="restore the folder")
    return load_pack(str(root))


def _fault(pack: Pack, record: JsonRecord) -> str:
    """Return why a case fails. Return an empty string if it passes."""
    try:
        ended = run_case(pack, _read(record), CASES)
    except BylawError as error:
        return str(error)
    if isinstance(ended, BylawError):
        return str(ended)
    return "" if ended.passed else f"the case gives {ended.got}"


def _read(record: JsonRecord) -> WrittenCase:
    """Return a record as if it had been read from a file."""
    read = read_case_file(read_yaml(written(record), file=CASES))
    if read.faults:
        raise read.faults[0]
    return read.record.cases[0]


def _count(path: Path) -> int:
    read = read_case_file(read_yaml_file(path, file=path.name))
    if read.faults:
        raise read.faults[0]
    return len(read.record.cases)


def _facts(policy: JsonRecord) -> JsonRecord | None:
    facts: dict[str, dict[str, Any]] = {}
    for fact in policy["seen"]:
        if "value" in fact and fact["field"]:
            facts.setdefault(_thing(fact), {})[fact["field"]] = fact["value"]
    return facts or None


def _thing(fact: JsonRecord) -> str:
    return f"{fact['entity']}[{', '.join(map(str, fact['key'] or ()))}]"


def _fact(fact: JsonRecord) -> str:
    return f"{_thing(fact)}.{fact['field']}"


def _happened(events: Sequence[JsonRecord], step: int | None = None) -> Iterator[JsonRecord]:
    """Yield the events up to a step in the format of cases.

    Each call contains its result, even a result that came later.
    """
    results = {event.get("call"): event for event in events if event["type"] == "result"}
    for number, event in enumerate(events if step is None else events[: step + 1]):
        if event["type"] == "message":
            yield {"user" if event.get("by") == "user" else "agent": event["text"]}
        elif event["type"] == "call":
            result = results.get(number)
            shown = {} if result is None else {"result": result["text"]}
            failed = {"error": True} if result is not None and result.get("error") else {}
            yield {"call": event["tool"], "args": event["arguments"], **shown, **failed}
