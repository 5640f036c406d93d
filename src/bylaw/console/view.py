"""What `bylaw view` shows: one audit's folder, the pack that judged it, and earlier audits beside it."""

import json
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

from bylaw.audit.report.folder import JsonRecord
from bylaw.console.index import Index, open_index
from bylaw.console.signing import is_installed
from bylaw.console.standing import Standings
from bylaw.errors import BylawError, UsageError
from bylaw.pack import Criterion
from bylaw.policy.folder import find_folder

BASES = 4
"""Earlier audits that are kept ready to compare with."""
READ = 16
"""Conversations read from the logs again that are kept at most."""
_PARTS = frozenset((".yaml", ".md", ".py", ".txt", ".json"))
WAIVERS = "waivers.yaml"
ATTESTATIONS = "attestations.yaml"


T = TypeVar("T")


class View:
    """One audit, open for reading, and the files that triage writes to."""

    def __init__(self, out: Path, *, pack: str = "", waivers: Path | None = None, base: Path | None = None) -> None:
        self.out = out
        self._turn = threading.Lock()
        self._ready: OrderedDict[str, Standings] = OrderedDict()
        self._pack: tuple[object, object] | None = None
        self._read: OrderedDict[str, list[JsonRecord]] = OrderedDict()
        self.waivers = waivers or _beside(out, WAIVERS)
        self.attestations = self.waivers.with_name(ATTESTATIONS)
        self.index: Index = open_index(out)
        self.summary: JsonRecord = self.index.folder.document("summary.json")
        self.policies: JsonRecord = self.index.folder.document("policies.json")
        self.criterion: Criterion = "strict" if self.summary.get("criterion") == "strict" else "determined"
        self.root = _pack_of(out, self.summary, pack)
        """The folder of the pack; None where it is not known or not there any more."""
        self.bases = _bases(out, base)
        self.base = base.name if base is not None else ""
        self._ready[""] = Standings(self.index, waivers=self.waivers, attestations=self.attestations)

    @property
    def is_redacted(self) -> bool:
        """Whether the audit holds pseudonyms and no text."""
        return bool(self.summary.get("redacted"))

    @property
    def own_root(self) -> Path | None:
        """The pack's folder, where triage and review may write: none that an installation may replace."""
        if self.root is None:
            return None
        return None if is_installed(self.root) else self.root

    def standings(self, base: str = "") -> Standings:
        """Where the findings stand now, against an earlier audit of this name or against none."""
        name = base or self.base
        with self._turn:
            found = self._ready.get(name)
            if found is None:
                found = self._opened(name)
            if name:
                self._ready.move_to_end(name)
        found.refresh()
        return found

    def _opened(self, name: str) -> Standings:
        if name not in self.bases:
            known = ", ".join(sorted(self.bases)) or "none lies beside this one"
            raise UsageError(f"there is no earlier audit `{name}` here", hint=f"known: {known}")
        index, path = open_index(self.out), self.bases[name]
        made = Standings(index, waivers=self.waivers, attestations=self.attestations, base=path)
        self._ready[name] = made
        while len(self._ready) > BASES + 1:
            oldest = next(each for each in self._ready if each)
            del self._ready[oldest]
        return made

    def as_it_is(self, read: Callable[[Path], T]) -> T:
        """What `read` makes of the pack's folder; made again when a file of it has changed."""
        assert self.root is not None
        stamp = [(entry.path, entry.stat().st_mtime_ns) for entry in _files(self.root)]
        with self._turn:
            if self._pack is None or self._pack[0] != stamp:
                self._pack = (stamp, read(self.root))
            return cast("T", self._pack[1])

    def remembered(self, name: str, read: Callable[[], list[JsonRecord]]) -> list[JsonRecord]:
        """The events of a conversation that had to be looked for in the logs; the last few are kept."""
        with self._turn:
            if name in self._read:
                return self._read[name]
        events = read()
        with self._turn:
            self._read[name] = events
            while len(self._read) > READ:
                self._read.popitem(last=False)
        return events

    @property
    def title(self) -> str:
        """The pack's name and version."""
        pack: JsonRecord = self.summary.get("pack") or {}
        return f"{pack.get('name', '')} {pack.get('version', '')}".strip()


def _files(root: Path) -> Iterator[os.DirEntry[str]]:
    """What a pack is made of."""
    for entry in os.scandir(root):
        if entry.is_dir() and not entry.name.startswith((".", "__")):
            yield from _files(Path(entry.path))
        elif os.path.splitext(entry.name)[1] in _PARTS:
            yield entry


def _beside(out: Path, name: str) -> Path:
    """A file in the folder that the command was given in, as `bylaw audit --waivers` would be given it."""
    return Path(name) if Path(name).is_file() else out.resolve().parent / name


def _pack_of(out: Path, summary: JsonRecord, given: str) -> Path | None:
    """The pack's folder: as given, as the audit noted it, or the one of that name that comes with Bylaw."""
    if given:
        return find_folder(given)
    named: JsonRecord = summary.get("pack") or {}
    names: list[Any] = [_noted(out).get("pack"), named.get("name")]
    for name in names:
        if isinstance(name, str) and name:
            try:
                return find_folder(name)
            except (BylawError, OSError):
                continue
    return None


def _noted(out: Path) -> dict[str, Any]:
    try:
        return json.loads((out / "audited.json").read_bytes())
    except (OSError, ValueError):
        return {}


def _bases(out: Path, given: Path | None) -> dict[str, Path]:
    """Other audits by name: those that lie beside this one, under a pack of the same name, and the one given."""
    own = (_pack_name(out), out.resolve())
    found: dict[str, Path] = {}
    for path in sorted(out.resolve().parent.glob("*/summary.json"))[:200]:
        if path.parent != own[1] and _pack_name(path.parent) == own[0]:
            found[path.parent.name] = path.parent
    if given is not None:
        found[given.name] = given
    return found


def read_summary(out: Path) -> JsonRecord:
    """The summary of an audit; empty where it cannot be read."""
    try:
        record: Any = json.loads((out / "summary.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return cast("JsonRecord", record) if isinstance(record, dict) else {}


def _pack_name(out: Path) -> str:
    pack: Any = read_summary(out).get("pack")
    return str(cast("JsonRecord", pack).get("name", "")) if isinstance(pack, dict) else ""
