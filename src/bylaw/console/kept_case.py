"""A finding as a case of its pack. It is written only if running the case gives the audit's result.

A case of a flagged call lists the facts that were seen. If they do not reproduce the result, because the check also
reads messages or earlier calls, it lists the events instead. If both fail, the page says so.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from bylaw.audit.store import JsonRecord
from bylaw.console.pack_state import cases_of, parts_of
from bylaw.console.records import Written, add_record, written
from bylaw.errors import BylawError, UsageError
from bylaw.pack import Pack, load_pack
from bylaw.policy.case import WrittenCase, read_case_file
from bylaw.policy.yaml import read_yaml, read_yaml_file
from bylaw.review.case import run_case

CASES = "cases/from-audits.yaml"
_NO_CASE = "nothing was written: the finding cannot be written as a case of the current pack"
HEAD = "# Calls that audits flagged, kept as cases of this pack.\n"


def judged_by(line: JsonRecord, policy: str) -> JsonRecord | None:
    """The verdict of a policy on a flagged call."""
    return next((each for each in line.get("policies") or () if each["id"] == policy), None)


def keep_call_case(
    root: Path, policy: JsonRecord, events: Sequence[JsonRecord], step: int, want: str, note: str
) -> Written:
    """Save a flagged call as a case with the evidence before it and the wanted result."""
    evidence, made = str(policy["evidence"]), events[step]
    if want == "deny" and evidence == "undetermined" and policy["world"] == "deny":
        unseen = ", ".join(_fact(each) for each in policy["missing"])
        why = f"the call was wrong because of facts that nobody looked up and the audit does not contain ({unseen})"
        hint = "keep it as `undetermined`, or write the case by hand with these facts under `world`"
        raise UsageError(f"nothing was written: {why}", hint=hint)
    pack = _loaded(root)
    head: JsonRecord = {
        "note": " ".join(note.split()),
        "policy": policy["id"],
        "call": {made["tool"]: made.get("arguments") or {}},
    }
    fault = ""
    ways: list[JsonRecord] = [{"facts": _facts(policy)}, {"events": list(_happened(events[:step]))}]
    for seen in ways:
        for reason in _reasons(policy):
            fault = _fault(pack, head | seen | {"want": {"evidence": evidence} | reason})
            if not fault:
                return _kept(root, pack, head | seen | {"want": want})
    said = f"{evidence}{': ' + policy['because'] if policy['because'] else ''}"
    raise UsageError(f"{_NO_CASE}: the audit said {said}; {fault}")


def keep_rule_case(root: Path, rule: str, events: Sequence[JsonRecord], step: int, want: str, note: str) -> Written:
    """Save a broken rule as a case with the events up to that step."""
    pack = _loaded(root)
    record = {"note": " ".join(note.split()), "rule": rule, "events": list(_happened(events, step))}
    if fault := _fault(pack, record | {"want": "broken"}):
        raise UsageError(f"{_NO_CASE}; {fault}")
    return _kept(root, pack, record | {"want": want})


def _kept(root: Path, pack: Pack, record: JsonRecord) -> Written:
    """Write a case, unless the pack has it with another result, and report whether it passes now."""
    body = _read(record)
    name = str(body.rule or body.policy)
    for other in cases_of(pack, {name}):
        if (str(other.rule or other.policy), parts_of(other)) == (name, parts_of(body)) and other.wanted != body.wanted:
            raise UsageError(f"nothing was written: the pack has this case with {other.wanted}: {other.note}")
    ended = run_case(pack, body, CASES)
    done = add_record(root / CASES, record, head=HEAD, count=_count)
    if isinstance(ended, BylawError):
        return replace(done, told=str(ended))
    failed = f"it expects {ended.want} and gets {ended.got}: change the check"
    return replace(done, told="it passes" if ended.passed else failed)


def _loaded(root: Path) -> Pack:
    if not root.is_dir():
        raise UsageError("the folder of the pack does not exist any more", place=str(root), hint="put it back")
    return load_pack(str(root))


def _fault(pack: Pack, record: JsonRecord) -> str:
    """The reason why a case does not pass; empty if it does."""
    try:
        ended = run_case(pack, _read(record), CASES)
    except BylawError as error:
        return str(error)
    if isinstance(ended, BylawError):
        return str(ended)
    return "" if ended.passed else f"it gives {ended.got}"


def _read(record: JsonRecord) -> WrittenCase:
    """A record as it would be read from its file."""
    read = read_case_file(read_yaml(written(record), file=CASES))
    if read.faults:
        raise read.faults[0]
    return read.record.cases[0]


def _count(path: Path) -> int:
    read = read_case_file(read_yaml_file(path, file=path.name))
    if read.faults:
        raise read.faults[0]
    return len(read.record.cases)


def _reasons(policy: JsonRecord) -> Iterator[JsonRecord]:
    """Possible reasons of the result: the words of a denial, else the first missing facts.

    An audit with a world may list more missing facts than the evidence alone shows.
    """
    if policy["evidence"] == "deny":
        yield {"because": policy["because"]}
        return
    lacking = [_fact(each) for each in policy["missing"]]
    for count in range(1 if lacking and policy["evidence"] == "undetermined" else 0, len(lacking) + 1):
        yield {"missing": lacking[:count]}


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
    """The events, or those up to a step, in the format of cases: each call with its result, even if that came later."""
    results = {event.get("call"): event for event in events if event["type"] == "result"}
    for number, event in enumerate(events if step is None else events[: step + 1]):
        if event["type"] == "message":
            yield {"user" if event.get("by") == "user" else "agent": event["text"]}
        elif event["type"] == "call":
            result = results.get(number)
            shown = {} if result is None else {"result": result["text"]}
            failed = {"error": True} if result is not None and result.get("error") else {}
            yield {"call": event["tool"], "args": event["arguments"], **shown, **failed}
