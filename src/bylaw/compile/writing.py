"""Writing a pack over the one before: all files are put in place, or none.

They are written aside first, and moved once all are there. A compile that is killed while it writes leaves the pack as
it was; one that is killed while it moves leaves a list of what is left to do, and whoever compiles into that folder
next does it first.
"""

import hashlib
import os
import shutil
from collections.abc import Container, Mapping, Sequence
from pathlib import Path

import msgspec

from bylaw.compile.reading import FOLDER
from bylaw.errors import BylawError, PackError
from bylaw.pack import build_pack
from bylaw.policy.document import TEXTS
from bylaw.policy.folder import NothingEnforces, read_folder

_RECORDS = frozenset(("policy.md", "compiled.yaml", "sources.yaml"))
"""The compiler's own: copies and notes that nobody edits."""


def digest(text: str) -> str:
    """Of a file's text; words that nothing enforces a policy, which `bylaw review` adds, are not counted."""
    lines = [line for line in text.split("\n") if not line.startswith("  unenforced: ")]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def is_copy(path: str) -> bool:
    """Whether a file is the compiler's own: a copy of a document, or a note that nobody edits."""
    return path in _RECORDS or path.startswith(f"{FOLDER}/")


def others(root: Path, made: Container[str]) -> list[str]:
    """Files of the kinds that the compiler writes, which are not among those made."""
    paths = [each for folder in ("guards", "cases", "lookups") for each in sorted((root / folder).glob("*"))]
    paths = [path for path in paths if path.is_file() and path.suffix in (".py", ".yaml")]
    paths += [
        root / f"{name}.yaml" for name in ("pack", "tools", "entities", "policies", "rules", "weights", "sources")
    ]
    paths += [path for path in sorted((root / FOLDER).rglob("*")) if path.suffix in TEXTS]
    names = (path.relative_to(root).as_posix() for path in paths if path.is_file())
    return [name for name in names if name not in made]


_ASIDE = ".writing"
_WHOLE = "whole.json"
"""Stands among the files once all are there, and names those to remove."""


def stage(root: Path, files: Mapping[str, str]) -> Path:
    """Write files aside; the folder that holds them, which is a pack of its own."""
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
