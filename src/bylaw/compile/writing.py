"""Writing a pack over the one before: what a person wrote into it since stays, and all files are put in place or none.

They are written aside first, and moved once all are there. A compile that is killed while it writes leaves the pack as
it was; one that is killed while it moves leaves a list of what is left to do, and whoever compiles into that folder
next does it first.
"""

import difflib
import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from bylaw.compile.reading import FOLDER
from bylaw.errors import BylawError, PackError
from bylaw.pack import build_pack
from bylaw.policy.document import TEXTS
from bylaw.policy.folder import NothingEnforces, read_folder

_RECORDS = frozenset(("policy.md", "compiled.yaml", "sources.yaml"))
"""The compiler's own: copies and notes that nobody edits."""


class Plan(Struct, frozen=True):
    """What becomes of a pack's files."""

    files: dict[str, str]
    """The pack as it will lie: what was made, and in its place what a person edited."""
    beside: dict[str, str]
    """`entities.yaml.new` and the like: what would have been made of an edited file."""
    removed: tuple[str, ...]
    """Files that the last compile made and this one does not."""
    kept: tuple[str, ...]
    """Edited files that stay as they are."""
    notes: tuple[str, ...]
    """Lines that say what a person edited."""


def digests(made: Mapping[str, str]) -> dict[str, str]:
    """By path what the compiler made, so that a later run recognises edits."""
    return {path: digest(text) for path, text in made.items()}


def digest(text: str) -> str:
    """Of a file's text; words that nothing enforces a policy, which `bylaw review` adds, are not counted."""
    lines = [line for line in text.split("\n") if not line.startswith("  unenforced: ")]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def planned(
    root: Path, made: Mapping[str, str], written: Mapping[str, str], bases: Mapping[str, str] | None = None
) -> Plan:
    """What to write where a pack may lie already: everything, save what a person edited.

    `written` has the digests of what was made the last time; where it is empty, all is written. `bases` are texts of
    that time: an edit that touches other lines than the compiler would now change is merged. Where it touches the same
    ones, the new text is put beside the edited file.
    """
    files: dict[str, str] = {}
    beside: dict[str, str] = {}
    kept: list[str] = []
    notes: list[str] = []
    for path, text in made.items():
        found = (root / path).read_text(encoding="utf-8") if (root / path).is_file() else None
        if found is None or _is_record(path) or not written or _is_contained(found, text, written.get(path)):
            files[path] = text
            continue
        base = (bases or {}).get(path, "")
        both = merged(base, found, text) if digest(base) == written.get(path) else None
        files[path] = both if both is not None else found
        if both is not None and both != found:
            notes.append(f"{path} was edited by hand; the edit is kept, and what changed is merged into it")
            continue
        kept.append(path)
        if digest(text) == written.get(path) or _is_contained(text, found, None):
            notes.append(f"{path} was edited by hand and is kept")
        else:
            beside[f"{path}.new"] = text
            notes.append(f"{path} was edited by hand and is kept; what it would be now is in {path}.new: merge them")
    removed = [new for path in made if (new := f"{path}.new") not in beside and (root / new).is_file()]
    for path in _others(root, made):
        text = (root / path).read_text(encoding="utf-8")
        if _is_record(path) or not written or digest(text) == written.get(path):
            removed.append(path)
        else:
            files[path] = text
            notes.append(f"{path} was written by hand and is kept")
    return Plan(files, beside, tuple(removed), tuple(kept), tuple(notes))


def _is_record(path: str) -> bool:
    """Whether a file is the compiler's own; copies of several documents are, too."""
    return path in _RECORDS or path.startswith(f"{FOLDER}/")


def merged(base: str, mine: str, theirs: str) -> str | None:
    """Both changes to a text, line by line; None where they touch the same or neighbouring lines."""
    lines = base.split("\n")
    changes = sorted({*_changes(lines, mine.split("\n")), *_changes(lines, theirs.split("\n"))})
    made: list[str] = []
    place = 0
    for start, end, instead in changes:
        if start < place or (start == place and made):
            return None
        made += [*lines[place:start], *instead]
        place = end
    return "\n".join([*made, *lines[place:]])


def _changes(old: list[str], new: list[str]) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """The ranges of the old lines that are others now, each with what stands there instead."""
    for kind, start, end, first, last in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            yield start, end, tuple(new[first:last])


def _is_contained(found: str, text: str, before: str | None) -> bool:
    """Whether nothing is lost where the text takes the place of what is found."""
    lines = {line.strip() for line in text.split("\n")}
    return digest(found) == before or all(line.strip() in lines for line in found.split("\n"))


def _others(root: Path, made: Mapping[str, str]) -> list[str]:
    """Files of the kinds that the compiler writes, which it now does not write."""
    folders = [each for folder in ("guards", "cases", "lookups") for each in sorted((root / folder).glob("*"))]
    paths = [path for path in (*folders, root / "rules.yaml") if path.is_file() and path.suffix in (".py", ".yaml")]
    paths += [path for path in sorted((root / FOLDER).rglob("*")) if path.is_file() and path.suffix in TEXTS]
    return [name for path in paths if (name := path.relative_to(root).as_posix()) not in made]


_ASIDE = ".writing"
_WHOLE = "whole.json"
"""Stands among the files once all are there, and names those to remove."""


def stage(root: Path, files: Mapping[str, str]) -> Path:
    """Write files aside; the folder that holds them, which is a pack of its own."""
    aside = root / _ASIDE
    shutil.rmtree(aside, ignore_errors=True)
    for path, text in files.items():
        (aside / path).parent.mkdir(parents=True, exist_ok=True)
        (aside / path).write_text(text, encoding="utf-8")
    return aside


def place(root: Path, files: Mapping[str, str], removed: Sequence[str] = ()) -> None:
    stage(root, files)
    commit(root, removed)


def faults_of(root: Path) -> list[BylawError]:
    """Why a staged pack would not load, what nobody has accepted yet apart."""
    try:
        build_pack(read_folder(root))
    except PackError as error:
        return [fault for fault in error.faults if not isinstance(fault, NothingEnforces)]
    return []


def commit(root: Path, removed: Sequence[str] = ()) -> None:
    """Move what was staged to its place, and remove files that are no more."""
    part = root / _ASIDE / f"{_WHOLE}.part"
    part.write_bytes(msgspec.json.encode(list(removed)))
    os.replace(part, root / _ASIDE / _WHOLE)
    recover(root)


def recover(root: Path) -> None:
    """Finish what was staged as a whole, and drop what was not."""
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
