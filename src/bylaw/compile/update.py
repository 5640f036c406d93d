"""A pack whose document changed: what it was made of, what people have edited since, and what an update alters."""

import ast
import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bylaw.compile.check import Check
from bylaw.compile.guards import functions_of
from bylaw.compile.naming import function_name, used_in
from bylaw.compile.pipeline import Work
from bylaw.compile.span import Draft, first_place
from bylaw.errors import UsageError
from bylaw.pack.review import COMPILED, Sides, read_signatures, sides_of, standings
from bylaw.policy.document import Document
from bylaw.policy.folder import PackFolder, own_record, read_folder
from bylaw.policy.python import parse_python
from bylaw.policy.yaml import read_yaml_file
from bylaw.scan.written import dump
from bylaw.trace import Call, Trajectory

MADE_OF = "made-of.yaml"
WORK = "work.json"
Change = Literal["new", "gone", "sentences", "check", "both"]


class MadeOf(Struct, frozen=True, forbid_unknown_fields=True):
    """What a pack was compiled from; paths are relative to its folder where they can be."""

    documents: tuple[str, ...]
    tools: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()
    name: str = ""
    now: str = ""
    labels: str = ""
    refine: int = 0
    embedder: str = ""
    written: dict[str, str] = {}
    """Digests of the files as they were made, by path: a file with another one has been edited since."""


class Difference(Struct, frozen=True):
    """What an update alters in one policy."""

    policy: str
    change: Change
    was_signed: bool
    """Whether somebody had accepted or rejected what has changed, so that this word lapses."""
    lines: tuple[str, ...]
    """Its definition, quotes and check, before and after."""


def records(made_of: MadeOf, work: Work) -> dict[str, str]:
    """The files that an update needs."""
    whole = msgspec.json.format(msgspec.json.encode(work), indent=1) + b"\n"
    return {MADE_OF: dump(msgspec.to_builtins(made_of)), WORK: whole.decode()}


def read_made_of(root: Path) -> MadeOf:
    """What the pack in a folder was compiled from."""
    if not (root / MADE_OF).is_file():
        hint = "compile it again with --document and --tools"
        raise UsageError(f"`{MADE_OF}` is missing, so the pack's sources are unknown", place=str(root), hint=hint)
    try:
        return msgspec.convert(read_yaml_file(root / MADE_OF).data, MadeOf)
    except msgspec.ValidationError as error:
        raise UsageError(str(error), place=str(root / MADE_OF), hint="compile it again") from None


def read_work(root: Path) -> Work:
    """What the last compile made of it, with what people have edited since."""
    try:
        work = msgspec.json.decode((root / WORK).read_bytes(), type=Work)
    except (OSError, msgspec.DecodeError) as error:
        raise UsageError(f"`{WORK}` cannot be read: {error}", place=str(root), hint="compile it again") from None
    return edited(work, read_folder(root))


def edited(work: Work, folder: PackFolder) -> Work:
    """The work with guards, rules and cases as they stand in the pack's folder now."""
    functions = _functions(folder)
    policies = {function_name(name) for name in work.checks}
    rules = folder.parts["rules"].data if "rules" in folder.parts else {}
    cases = list(_listed(folder))
    made: dict[str, Check] = {}
    for name, check in work.checks.items():
        code, own = _with_shared(function_name(name), functions, policies), _rules_of(name, rules)
        if check.code and code is not None and ast.dump(parse_python(code)) != ast.dump(parse_python(check.code)):
            check = replace(check, code=code)
        if check.rules is not None and own["rules"] and own != check.rules:
            check = replace(check, rules=own)
        if not check.failed and (check.code or check.rules):
            mine = {name, *(str(each["id"]) for each in own["rules"])}
            own_cases = tuple(each for each in cases if each.get("policy", each.get("rule")) in mine)
            check = replace(check, cases=own_cases, as_written=True)
        made[name] = check
    return replace(work, checks=made)


def accepted_unenforced(folder: PackFolder) -> dict[str, Any]:
    """By policy the word of whoever accepted that nothing enforces it."""
    policies = folder.parts["policies"].data.get("policies") if "policies" in folder.parts else None
    bodies = [cast(dict[str, Any], each) for each in cast(list[Any], policies or []) if isinstance(each, dict)]
    return {str(body["id"]): body["unenforced"] for body in bodies if body.get("unenforced")}


def with_words(policies: str, words: Mapping[str, Any], before: Mapping[str, Sides], after: Mapping[str, Sides]) -> str:
    """`policies.yaml` with such words where the policy reads as it did, and still has no check."""
    lines: list[str] = []
    for line in policies.split("\n"):
        lines.append(line)
        name = line.removeprefix("- id: ") if line.startswith("- id: ") else ""
        if name in words and name in before and before[name].sentence == after[name].sentence:
            lines.append(f"  unenforced: {msgspec.json.encode(words[name]).decode()}")
    return "\n".join(lines)


def differences(root: Path, before: PackFolder, after: PackFolder) -> list[Difference]:
    """What has changed between two states of a pack, policy by policy, in the order of the document."""
    old, new = sides_of(before), sides_of(after)
    signed = read_signatures(root)
    found: list[Difference] = []
    for name in (*new, *(each for each in old if each not in new)):
        change = _change(old.get(name), new.get(name))
        if change is not None:
            lines = difflib.unified_diff(_told(before, name), _told(after, name), lineterm="", n=1)
            found.append(Difference(name, change, name in signed, tuple(lines)[2:]))
    return found


def _change(old: Sides | None, new: Sides | None) -> Change | None:
    if old is None or new is None:
        return "new" if old is None else "gone"
    changed = (old.sentence != new.sentence, old.check != new.check)
    names: dict[tuple[bool, bool], Change] = {(True, True): "both", (True, False): "sentences", (False, True): "check"}
    return names.get(changed)


def _told(folder: PackFolder, name: str) -> list[str]:
    """A policy and its check, line by line."""
    listed = cast(list[Any], folder.parts["policies"].data.get("policies") or [])
    body = next((cast(dict[str, Any], each) for each in listed if each.get("id") == name), None)
    if body is None:
        return []
    shown = {part: body[part] for part in ("definition", "kind", "tools", "spans") if part in body}
    rules = folder.parts["rules"].data if "rules" in folder.parts else {}
    check = _functions(folder).get(function_name(name)) or (
        dump(own) if (own := _rules_of(name, rules))["rules"] else ""
    )
    return [*dump(shown).splitlines(), *check.splitlines()]


def _functions(folder: PackFolder) -> dict[str, str]:
    return {name: code for text in folder.guards.values() for name, code in functions_of(text).items()}


def _with_shared(name: str, functions: Mapping[str, str], policies: set[str]) -> str | None:
    """A guard as it stands now, and after it the functions that it calls and that are no guards."""
    if name not in functions:
        return None
    found, wanted = dict[str, str](), [name]
    while wanted:
        each = wanted.pop(0)
        if each in found:
            continue
        found[each] = functions[each]
        calls = [part.func for part in ast.walk(parse_python(functions[each])) if isinstance(part, ast.Call)]
        names = [called.id for called in calls if isinstance(called, ast.Name)]
        wanted += [called for called in names if called in functions and called not in policies]
    return "\n\n".join(found.values())


def _rules_of(name: str, rules: Mapping[str, Any]) -> dict[str, Any]:
    """A policy's rules, and the predicates that they mention, as `rules.yaml` has them."""
    own = [each for each in cast(list[Any], rules.get("rules") or []) if each.get("policy", each.get("id")) == name]
    predicates = cast(dict[str, Any], rules.get("predicates") or {})
    return {"predicates": used_in((each.get("formula") for each in own), predicates), "rules": own}


def _listed(folder: PackFolder) -> Iterator[dict[str, Any]]:
    for source in folder.cases.values():
        listed = cast(Sequence[Any], source.data.get("") or source.data.get("cases") or [])
        yield from (cast(dict[str, Any], each) for each in listed if isinstance(each, dict))


_NEIGHBOURS = 6
_LONGEST = 400
"""Letters of a call that are shown."""


def rejections(root: Path, work: Work, document: Document, trajectories: Sequence[Trajectory] = ()) -> dict[str, str]:
    """By policy what is told beside it: the note, the check as it was, the logged calls it flagged, its neighbours.

    A word that has lapsed, since the policy or its check is another by now, is no longer one on what there is.
    """
    signed = read_signatures(root)
    names = [name for name, standing in standings(root).items() if standing == "rejected"]
    noted = cast(dict[str, Any], own_record(root, COMPILED).get("policies") or {}) if names else {}
    found: dict[str, str] = {}
    for draft in work.drafts:
        if draft.id not in names:
            continue
        parts = [
            f"{signed[draft.id].by} rejected an earlier check of this policy: {signed[draft.id].note or 'no note'}"
        ]
        check = work.checks.get(draft.id)
        if check is not None and (check.code or check.rules):
            parts.append(f"The rejected check was: {_line(check.code or msgspec.json.encode(check.rules).decode())}")
        flagged = cast(dict[str, Any], cast(dict[str, Any], noted.get(draft.id) or {}).get("in_logs") or {})
        parts += [f"It flagged in the logs: {each}" for each in _calls(flagged, trajectories)]
        parts += [f"Beside it stands {each.id}: {each.definition}" for each in _neighbours(draft, work, document)]
        found[draft.id] = "\n".join(parts)
    return found


def _calls(flagged: Mapping[str, Any], trajectories: Sequence[Trajectory]) -> list[str]:
    """The calls that a check spoke against, each with its verdict and why."""
    by_id = {trajectory.id: trajectory for trajectory in trajectories}
    lines: list[str] = []
    for verdict, body in flagged.items():
        for each in body["first"]:
            call = _call(by_id.get(str(each["conversation"])), int(each["step"]))
            lines.append(f"{call}: {verdict}, {_line(str(each['why']))}")
    return lines


def _call(trajectory: Trajectory | None, step: int) -> str:
    events = trajectory.events if trajectory is not None else ()
    event = events[step] if step < len(events) else None
    return f"{event.tool}({_line(str(event.arguments))})" if isinstance(event, Call) else "a step"


def _neighbours(draft: Draft, work: Work, document: Document) -> list[Draft]:
    """The policies before and after it in the document, and those that bind one of its tools."""
    order = sorted(work.drafts, key=lambda each: first_place(each.quotes, document))
    at = order.index(draft)
    tools = set(work.kinds[draft.id].tools) if draft.id in work.kinds else set[str]()
    beside = [*order[max(0, at - 1) : at], *order[at + 1 : at + 2]]
    sharing = [each for each in order if each.id in work.kinds and tools & set(work.kinds[each.id].tools)]
    return [each for each in dict.fromkeys([*beside, *sharing]) if each != draft][:_NEIGHBOURS]


def _line(text: str) -> str:
    """Text in one line, however it was written, and not too much of it."""
    words = " ".join(text.split())
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]} ..."
