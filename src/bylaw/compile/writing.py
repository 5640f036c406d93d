"""Writing a pack over the one before: what a person wrote into it since stays."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

_RECORDS = frozenset(("policy.md", "compiled.yaml", "sources.yaml"))
"""The compiler's own: copies and notes that nobody edits."""


def digests(made: Mapping[str, str]) -> dict[str, str]:
    """By path what the compiler made, so that an edit can be told later."""
    return {path: digest(text) for path, text in made.items()}


def digest(text: str) -> str:
    """Of a file's text; words that nothing enforces a policy, which `bylaw review` adds, are not counted."""
    lines = [line for line in text.split("\n") if not line.startswith("  unenforced: ")]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def write_files(root: Path, made: Mapping[str, str], written: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Write a pack's files, save those that a person edited; which were left as they are, and lines that say so.

    `written` has the digests of what was made the last time; where it is empty, all is written. Where an edited file
    would now be made otherwise, the new one is put beside it.
    """
    kept: list[str] = []
    told: list[str] = []
    for path, text in made.items():
        place = root / path
        found = place.read_text(encoding="utf-8") if place.is_file() else None
        if found == text:
            continue
        if found is None or path in _RECORDS or not written or _is_contained(found, text, written.get(path)):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
            continue
        kept.append(path)
        if digest(text) == written.get(path):
            told.append(f"{path} was edited by hand and is kept")
        else:
            place.with_name(f"{place.name}.new").write_text(text, encoding="utf-8")
            told.append(f"{path} was edited by hand and is kept; what it would be now is in {path}.new: merge them")
    for path in _others(root, made):
        text = (root / path).read_text(encoding="utf-8")
        if not written or digest(text) == written.get(path):
            (root / path).unlink()
        else:
            told.append(f"{path} was written by hand and is kept")
    return kept, told


def _is_contained(found: str, text: str, before: str | None) -> bool:
    """Whether nothing is lost where the text takes the place of what is found."""
    lines = {line.strip() for line in text.split("\n")}
    return digest(found) == before or all(line.strip() in lines for line in found.split("\n"))


def _others(root: Path, made: Mapping[str, str]) -> list[str]:
    """Files of the kinds that the compiler writes, which it now does not write."""
    folders = [each for folder in ("guards", "cases", "lookups") for each in sorted((root / folder).glob("*"))]
    paths = [path for path in (*folders, root / "rules.yaml") if path.is_file() and path.suffix in (".py", ".yaml")]
    return [name for path in paths if (name := path.relative_to(root).as_posix()) not in made]
