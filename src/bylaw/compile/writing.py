"""Replaces a pack's files, all or none.

Files are first written to a staging folder and moved when complete. A compile that is killed while writing leaves the
pack unchanged. A compile that is killed while moving leaves a list of remaining moves, which the next compile finishes
first.
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
"""The compiler's own files: copies and notes that nobody edits."""


def digest(text: str) -> str:
    """Return a file's digest, ignoring the `unenforced` entries that `bylaw review` adds."""
    lines = [line for line in text.split("\n") if not line.startswith("  unenforced: ")]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def is_copy(path: str) -> bool:
    """Whether a file is the compiler's own: a copy of a document, or a note that nobody edits."""
    return path in _RECORDS or path.startswith(f"{FOLDER}/")


def others(root: Path, made: Container[str]) -> list[str]:
    """Return other files of the compiler's kinds."""
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
"""Marks the staged files as complete and lists the files to remove."""


def stage(root: Path, files: Mapping[str, str]) -> Path:
    """Write files to a staging folder, which is a complete pack."""
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
    """Return why a staged pack would not load, ignoring missing acceptances."""
    try:
        build_pack(read_folder(root))
    except PackError as error:
        return [fault for fault in error.faults if not isinstance(fault, NothingEnforces)]
    return []


def commit(root: Path, removed: Sequence[str] = ()) -> None:
    """Move staged files into place and remove files that no longer exist."""
    part = root / _ASIDE / f"{_WHOLE}.part"
    part.write_bytes(msgspec.json.encode(list(removed)))
    os.replace(part, root / _ASIDE / _WHOLE)
    recover(root)


def recover(root: Path) -> None:
    """Finish a complete staging and discard an incomplete one."""
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
