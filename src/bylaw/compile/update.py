"""Updates a pack after its document has changed, and keeps the owner's edits.

Either all files are replaced or none are. All files are first written to a staging folder, and are moved into the pack
once they are complete. If the compile is killed while writing, the pack is unchanged. If it is killed while moving, the
next compile first completes the moves.
"""

import difflib
import hashlib
import os
import shutil
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bylaw.compile.assemble import assembled, compile_record
from bylaw.compile.card import Card
from bylaw.compile.check import Question
from bylaw.compile.guards import functions_of
from bylaw.compile.items import Items, Key, Merge, edited, merge, read_items
from bylaw.compile.naming import function_name, used_in
from bylaw.compile.pipeline import Owner, Source, Work
from bylaw.compile.reading import FOLDER
from bylaw.compile.schema import listed, record, section
from bylaw.compile.span import Draft, first_place
from bylaw.compile.things import Things, entities_file, tools_file
from bylaw.errors import BylawError, PackError, UsageError
from bylaw.pack import build_pack
from bylaw.pack.review import COMPILED, Sides, read_signatures, sides_of, standings
from bylaw.policy.document import TEXTS, Document
from bylaw.policy.folder import NothingEnforces, PackFolder, own_record, read_folder
from bylaw.policy.statement import StatementError
from bylaw.policy.yaml import read_yaml_file
from bylaw.review.case import CaseResult, run_cases
from bylaw.review.check import loaded
from bylaw.scan.written import dump
from bylaw.trace import Call, Trajectory

_RECORDS = frozenset(("policy.md", "compiled.yaml"))
"""The compiler's own files: copies of documents, and notes that are not meant to be edited."""


def digest(text: str) -> str:
    """Return the digest of a file. The `unenforced` entries that `bylaw review` adds are ignored."""
    lines = [line for line in text.split("\n") if not line.startswith("  unenforced: ")]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def is_copy(path: str) -> bool:
    """Whether a file belongs to the compiler: a copy of a document, or notes that are not meant to be edited."""
    return path in _RECORDS or path.startswith(f"{FOLDER}/")


def others(root: Path, made: Container[str]) -> list[str]:
    """Return the pack's remaining files of the kinds that the compiler writes."""
    paths = [each for folder in ("guards", "cases", "lookups") for each in sorted((root / folder).glob("*"))]
    paths = [path for path in paths if path.is_file() and path.suffix in (".py", ".yaml")]
    paths += [root / f"{name}.yaml" for name in ("pack", "tools", "entities", "policies", "rules", "weights")]
    paths += [path for path in sorted((root / FOLDER).rglob("*")) if path.suffix in TEXTS]
    names = (path.relative_to(root).as_posix() for path in paths if path.is_file())
    return [name for name in names if name not in made]


_ASIDE = ".writing"
_WHOLE = "whole.json"
"""The file that marks the staged files as complete and lists the files to remove."""


def stage(root: Path, files: Mapping[str, str]) -> Path:
    """Write files to a staging folder, so that it contains a complete pack."""
    aside = root / _ASIDE
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    for path, text in files.items():
        (aside / path).parent.mkdir(parents=True, exist_ok=True)
        (aside / path).write_text(text, encoding="utf-8")
    return aside


def place(root: Path, files: Mapping[str, str], removed: Sequence[str] = ()) -> None:
    stage(root, files)
    commit(root, removed)


def faults_of(root: Path) -> list[BylawError]:
    """Return why a staged pack does not load. Missing acceptances of unenforced policies are ignored."""
    try:
        build_pack(read_folder(root))
    except PackError as error:
        return [fault for fault in error.faults if not isinstance(fault, NothingEnforces)]
    return []


def commit(root: Path, removed: Sequence[str] = ()) -> None:
    """Move staged files into place and delete the files in `removed`."""
    part = root / _ASIDE / f"{_WHOLE}.part"
    part.write_bytes(msgspec.json.encode(list(removed)))
    os.replace(part, root / _ASIDE / _WHOLE)
    recover(root)


def recover(root: Path) -> None:
    """Complete an update whose files were all staged, or discard the staged files."""
    aside = root / _ASIDE
    if (aside / _WHOLE).is_file():
        removed = msgspec.json.decode((aside / _WHOLE).read_bytes(), type=list[str])
        for each in sorted(path for path in aside.rglob("*") if path.is_file() and path.name != _WHOLE):
            target = root / each.relative_to(aside)
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(each, target)
        for path in removed:
            (root / path).unlink(missing_ok=True)
    shutil.rmtree(aside, ignore_errors=True)


MADE_OF = "made-of.yaml"
WORK = "work.json"
Change = Literal["new", "gone", "sentences", "check", "both"]


class MadeOf(Struct, frozen=True, forbid_unknown_fields=True):
    """The inputs from which a pack was compiled. Paths are relative to the pack's folder if possible."""

    documents: tuple[str, ...]
    tools: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()
    name: str = ""
    now: str = ""
    labels: str = ""
    refine: int = 0
    embedder: str = ""
    written: dict[str, str] = {}
    """The digest of each file as compiled, keyed by path. A different digest means that the file was edited."""


class _Kept(Struct, frozen=True):
    """The result of the last compile, without the owner's edits. Stored in `work.json`."""

    work: Work
    items: list[tuple[Key, Any]]


class Before(Struct, frozen=True):
    """A compiled pack as it was before an update."""

    root: Path
    made_of: MadeOf
    work: Work
    base: Items
    """The items that the last compile wrote."""
    texts: dict[str, str]
    items: dict[str, Items]

    @property
    def ours(self) -> Items:
        return {key: value for found in self.items.values() for key, value in found.items()}


def read_before(root: Path) -> Before:
    """Read a pack with its owner's edits. If it does not load, raise an error that lists all reasons."""
    made_of = read_made_of(root)
    # If a copy of the document was edited, replace it. Its quotes are checked at the end.
    _require_loaded(root, [fault for fault in faults_of(root) if not isinstance(fault, StatementError)])
    texts = {path: (root / path).read_text(encoding="utf-8") for path in others(root, ())}
    items = {path: read_items(path, text) for path, text in texts.items() if not is_copy(path)}
    try:
        kept = msgspec.json.decode((root / WORK).read_bytes(), type=_Kept)
    except (OSError, msgspec.DecodeError) as error:
        raise UsageError(f"`{WORK}` cannot be read: {error}", place=str(root), hint="compile it again") from None
    return Before(root, made_of, kept.work, dict(kept.items), texts, items)


def read_made_of(root: Path) -> MadeOf:
    if not (root / MADE_OF).is_file():
        hint = "compile it again with --document and --tools"
        raise UsageError(f"`{MADE_OF}` is missing, so the pack's sources are unknown", place=str(root), hint=hint)
    try:
        return msgspec.convert(read_yaml_file(root / MADE_OF).data, MadeOf)
    except msgspec.ValidationError as error:
        raise UsageError(str(error), place=str(root / MADE_OF), hint="compile it again") from None


def owner_of(before: Before) -> Owner:
    """Return the owner's edits in the form that requests and trials need."""
    base, ours = before.base, before.ours

    def things(cards: Mapping[str, Card], described: Things) -> Things:
        texts = {"tools.yaml": tools_file(cards, described), "entities.yaml": entities_file(described)}
        old, mine = (
            {key: value for key, value in items.items() if key[0] in texts and len(key) == 3} for items in (base, ours)
        )
        if old == mine:
            return described
        theirs = {key: value for path, text in texts.items() for key, value in read_items(path, text).items()}
        found: dict[str, dict[str, Any]] = {"entities": {}, "observations": {}, "tools": {}}
        for key, value in merge(old, mine, theirs).items.items():
            for name in key[2].split(",") if key[1] in found else ():
                found[key[1]][name.strip()] = value
        found["entities"].pop("Request", None)
        tools = {
            name: {part: value for part, value in body.items() if part not in ("description", "parameters")}
            for name, body in found["tools"].items()
        }
        return replace(described, entities=found["entities"], observations=found["observations"], tools=tools)

    functions = {name: ("guards", function_name(name)) for name in before.work.checks}
    return Owner(things, frozenset(name for name, key in functions.items() if base.get(key) != ours.get(key)))


class Update(Struct, frozen=True):
    files: dict[str, str]
    notes: tuple[str, ...]
    """Descriptions of the edits that were kept."""


def write_pack(root: Path, source: Source, work: Work, made_of: MadeOf, *, before: Before | None = None) -> Update:
    """Write a compiled pack to its folder, and keep the owner's edits since the last compile.

    If the pack would not load with these edits, write nothing and raise an error that lists the reasons.
    """
    made = assembled(source, work, name=made_of.name)
    theirs = {path: read_items(path, text) for path, text in made.files.items() if not is_copy(path)}
    base = {key: value for items in theirs.values() for key, value in items.items()}
    files, notes, merged = made.files, list[str](), Merge({}, base)
    if before is not None:
        accepted = [name for name, standing in standings(root).items() if standing == "accepted"]
        merged = merge(before.base, before.ours, base, redone=source.rejected, settled=accepted)
        files, notes = _with_edits(before, made.files, theirs, merged.items)
        for policy, question in _failing(root, files) if notes else ():
            merged.questions.setdefault(policy, []).append(question)
    files = {**files, COMPILED: compile_record(source, work, files, made.weighed, merged.questions, merged.notes)}
    removed = [path for path in others(root, files) if before is None or path in before.texts]
    digests = {path: digest(text) for path, text in made.files.items()}
    kept = msgspec.json.format(msgspec.json.encode(_Kept(work, list(merged.base.items()))), indent=1) + b"\n"
    records = {MADE_OF: dump(msgspec.to_builtins(replace(made_of, written=digests))), WORK: kept.decode()}
    place(root, {**files, **records}, removed)
    return Update(files, (*notes, *(f"your edit conflicts with an update: {each}" for each in merged.notes)))


def _with_edits(
    before: Before, made: Mapping[str, str], theirs: Mapping[str, Items], wanted: Items
) -> tuple[dict[str, str], list[str]]:
    """Return the files with the merged items, and notes on the merge. Items stay in the files that the owner chose."""
    homes = {key: path for found in (theirs, before.items) for path, items in found.items() for key in items}
    by_path: dict[str, Items] = {path: {} for path in (*theirs, *before.items)}
    for key, value in wanted.items():
        by_path[homes[key]][key] = value
    files = {path: text for path, text in made.items() if is_copy(path)}
    notes: list[str] = []
    for path, items in by_path.items():
        mine, fresh, written = before.texts.get(path), made.get(path, ""), before.made_of.written.get(path)
        is_fresh = items == theirs.get(path) and (mine is None or digest(mine) == written)
        if is_fresh:
            text = fresh
        elif mine is None:
            text = edited(path, fresh, fresh, items) if items else ""
        else:
            text = mine if items == before.items[path] else edited(path, mine, fresh, items)
        if text.strip() and (items or digest(text) != written):
            files[path] = text
        if mine is None and written is not None:
            notes.append(f"{path} was removed by hand and is not written again")
        elif mine is not None and written is None:
            notes.append(f"{path} was written by hand and is kept")
        elif mine is not None and digest(mine) != written:
            more = "; the edit is kept, and the changes are merged into it" if text != mine else " and is kept"
            notes.append(f"{path} was edited by hand{more}")
    return files, notes


def _failing(root: Path, files: Mapping[str, str]) -> Iterator[tuple[str, Question]]:
    """Yield a question for each case that fails with the owner's edits. Raises an error if the pack does not load."""
    aside = stage(root, files)
    _require_loaded(root, faults_of(aside))
    for result in run_cases(loaded(read_folder(aside))):
        if isinstance(result, CaseResult) and not result.passed:
            text = f"`{result.note}` expects {result.want}, but the check gives {result.got}; change one of them"
            yield result.policy, Question("a case that fails", text)


def _require_loaded(root: Path, faults: Sequence[BylawError]) -> None:
    if faults:
        recover(root)
        told = "".join(f"\n  {fault.code} {fault}" for fault in faults)
        message = f"the pack does not load with your edits, so it was not changed:{told}"
        raise UsageError(message, place=str(root), hint="correct them, then run the same command again")


class Difference(Struct, frozen=True):
    policy: str
    change: Change
    was_signed: bool
    """Whether the policy was signed or rejected. The change cancels that decision."""
    lines: tuple[str, ...]
    """The policy's definition, quotes and check, before and after the change."""


def differences(root: Path, before: PackFolder, after: PackFolder) -> list[Difference]:
    """Return the changes between two states of a pack, by policy and in document order."""
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
    bodies = listed(folder.parts["policies"].data.get("policies"))
    body = next((record(each) for each in bodies if each.get("id") == name), None)
    if body is None:
        return []
    shown = {part: body[part] for part in ("definition", "kind", "tools", "spans") if part in body}
    return [*dump(shown).splitlines(), *_check_text(folder, name).splitlines()]


def _check_text(folder: PackFolder, name: str) -> str:
    """Return the text of a policy's guard or, without a guard, of its rules. Empty if it has neither."""
    functions = {each: code for text in folder.guards.values() for each, code in functions_of(text).items()}
    rules = folder.parts["rules"].data if "rules" in folder.parts else {}
    own = [each for each in listed(rules.get("rules")) if each.get("policy", each.get("id")) == name]
    predicates = used_in((each.get("formula") for each in own), section(rules, "predicates"))
    return functions.get(function_name(name)) or (dump({"predicates": predicates, "rules": own}) if own else "")


_NEIGHBOURS = 6
_LONGEST = 400
"""The maximum number of characters from a call in the text about a rejection."""


def rejections(
    before: Before, document: Document, trajectories: Sequence[Trajectory] = (), *, with_values: bool = False
) -> dict[str, str]:
    """Return, for each rejected policy, the text to add to its question: the note, the rejected check, the flagged
    calls and the neighbouring policies.

    A rejection is ignored if the policy or its check has changed since. Values from recorded calls are included only
    with `with_values`.
    """
    root, work, folder = before.root, before.work, read_folder(before.root)
    signed = read_signatures(root)
    names = [name for name, standing in standings(root).items() if standing == "rejected"]
    noted = section(own_record(root, COMPILED), "policies") if names else {}
    found: dict[str, str] = {}
    for draft in work.drafts:
        if draft.id not in names:
            continue
        parts = [
            f"{signed[draft.id].by} rejected an earlier check of this policy: {signed[draft.id].note or 'no note'}"
        ]
        if check := _check_text(folder, draft.id):
            parts.append(f"The rejected check was: {_line(check)}")
        flagged = section(section(noted, draft.id), "in_logs")
        parts += [f"It flagged in the logs: {each}" for each in _calls(flagged, trajectories, with_values)]
        parts += [f"Beside it stands {each.id}: {each.definition}" for each in _neighbours(draft, work, document)]
        found[draft.id] = "\n".join(parts)
    return found


def _calls(flagged: Mapping[str, Any], trajectories: Sequence[Trajectory], with_values: bool) -> list[str]:
    """Return the calls that a check flagged, with the verdicts. With `with_values`, add the reasons."""
    by_id = {trajectory.id: trajectory for trajectory in trajectories}
    lines: list[str] = []
    for verdict, body in flagged.items():
        for each in body["first"]:
            call = _call(by_id.get(str(each["conversation"])), int(each["step"]), with_values)
            lines.append(f"{call}: {verdict}" + (f", {_line(str(each['why']))}" if with_values else ""))
    return list(dict.fromkeys(lines))


def _call(trajectory: Trajectory | None, step: int, with_values: bool) -> str:
    events = trajectory.events if trajectory is not None else ()
    event = events[step] if step < len(events) else None
    if not isinstance(event, Call):
        return "a step"
    return f"{event.tool}({_line(str(event.arguments)) if with_values else ', '.join(event.arguments)})"


def _neighbours(draft: Draft, work: Work, document: Document) -> list[Draft]:
    """Return the policies just before and after a policy in the document, and policies that bind any of its tools."""
    order = sorted(work.drafts, key=lambda each: first_place(each.quotes, document))
    at = order.index(draft)
    tools = set(work.kinds[draft.id].tools) if draft.id in work.kinds else set[str]()
    beside = [*order[max(0, at - 1) : at], *order[at + 1 : at + 2]]
    sharing = [each for each in order if each.id in work.kinds and tools & set(work.kinds[each.id].tools)]
    return [each for each in dict.fromkeys([*beside, *sharing]) if each != draft][:_NEIGHBOURS]


def _line(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]} ..."
