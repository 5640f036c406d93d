"""A pack's folder as it is now, read again when a file of it has changed; and its cases for a reader."""

import json
import os
import threading
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from bylaw.console.records import COMMENTS
from bylaw.errors import BylawError, UsageError
from bylaw.pack import Pack
from bylaw.pack.review import REVIEW, Sides, is_compiled, sides_of
from bylaw.policy.folder import PackFolder, read_folder
from bylaw.review.case import CaseResult, run_cases
from bylaw.review.check import Covered, covered_sentences
from bylaw.review.noted import Noted, noted_of
from bylaw.review.reading import loaded

_PARTS = frozenset((".yaml", ".md", ".py", ".txt", ".json"))
_APART = frozenset((REVIEW, COMMENTS))
"""Signatures and comments are not part of a pack, and are read each time."""


class PackState(Struct, frozen=True):
    """A pack with data that is computed once."""

    folder: PackFolder
    pack: Pack
    sides: dict[str, Sides]
    noted: dict[str, Noted]
    covered: list[Covered]
    is_compiled: bool

    def results(self, policy: str) -> list[CaseResult | BylawError]:
        """The results of the cases of one policy, in their order."""
        return list(run_cases(self.pack, of=case_names(self.pack, policy)))


class PackStates:
    """The state of one folder, kept until a file of it changes."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._stamp: object = None
        self._state: PackState | None = None
        self._lock = threading.Lock()

    def now(self) -> PackState:
        """The folder as it is."""
        with self._lock:
            try:
                stamp = [(entry.path, entry.stat().st_mtime_ns) for entry in _files(self._root)]
            except OSError as error:
                why = f"the folder of the pack cannot be read: {error.strerror or error}"
                raise UsageError(why, place=str(self._root), hint="restore it, or start again with --pack") from None
            if self._state is None or stamp != self._stamp:
                self._state, self._stamp = _read_state(self._root), stamp
            return self._state


def has_changed_since(root: Path, file: Path) -> bool:
    """Whether a file of a pack is newer than another file; its text may be the same."""
    try:
        then = file.stat().st_mtime_ns
        return any(entry.stat().st_mtime_ns > then for entry in _files(root))
    except OSError:
        return False


def _read_state(root: Path) -> PackState:
    folder = read_folder(root)
    pack = loaded(folder)
    return PackState(folder, pack, sides_of(folder), noted_of(root), covered_sentences(pack), is_compiled(root))


def _files(root: Path) -> Iterator[os.DirEntry[str]]:
    """The files of a pack."""
    for entry in os.scandir(root):
        if entry.is_dir() and not entry.name.startswith((".", "__")):
            yield from _files(Path(entry.path))
        elif os.path.splitext(entry.name)[1] in _PARTS and entry.name not in _APART and entry.name[0] != ".":
            yield entry


def case_names(pack: Pack, policy: str) -> set[str]:
    """The names of a policy in cases: its own and those of its rules."""
    return {policy, *(rule.name for rule in pack.book.rules if rule.policy == policy)}


def cases_of(pack: Pack, names: Container[str]) -> Iterator[Any]:
    """The cases of a policy, in their order; `names` are its own and those of its rules."""
    for read in pack.cases.values():
        for case in read.record.written_out:
            if str(case.rule or case.policy) in names:
                yield case


def parts_of(case: Any) -> tuple[tuple[str, str], ...]:
    """The inputs of a case, each with its title."""
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
