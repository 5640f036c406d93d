"""The input of an audit: logs, ground-truth database, options and packs.

One pack judges each conversation. `audited.json` records the input, so that conversations without findings can be
shown too.
"""

import importlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bylaw.audit.attestation import Attestation
from bylaw.audit.row import JsonRecord, conversation_row, record_of, writable
from bylaw.engine.conversation import OpenAnswers
from bylaw.engine.session import Mode
from bylaw.errors import BylawError, FormatError, PackError, UsageError, WorldError
from bylaw.facts.database import open_snapshot
from bylaw.facts.world import Snapshot, World
from bylaw.pack import Criterion, Pack, build_pack, load_pack
from bylaw.policy.document import Document
from bylaw.policy.folder import find_folder, read_folder
from bylaw.trace import Identities, Trajectory, read
from bylaw.trace.source import Columns, LogFile, RemoteFile, Source, Span

if TYPE_CHECKING:
    from bylaw.audit.redaction import Pseudonyms


_TEXTS = 256
"""The maximum number of system instructions to cache. Most conversations repeat the same few."""
_OURS = "bylaw.packs."
"""The prefix of built-in packs. Only these packs may run code for a ground-truth database."""


class Shelf:
    """A pack or its variants, with their ground-truth databases."""

    def __init__(self, name: str, *, world: Path | None = None, document: Path | None = None) -> None:
        root = find_folder(name)
        folder = read_folder(root, cases=False)
        manifest = folder.manifest
        variants = manifest.variants
        if variants and folder.faults:
            raise PackError(folder.faults, place=root.name)
        self.name = str(manifest.name or name)
        if variants:
            self.packs = _load_variants([root / str(variant.name) for variant in variants], document)
        else:
            self.packs = [build_pack(folder, document=document)]
        self._when: list[dict[str, Any]] = [variant.when for variant in variants] or [{}]
        """For each pack, the properties that a conversation must have to be judged by it."""
        self._about = manifest.about
        self._world_path = world
        self.opened: Any = None if world is None else _open(self.packs[0], world)
        self._worlds: dict[tuple[str, str], tuple[str, World | None]] = {}
        self._changed: dict[tuple[str, str], tuple[str, ...]] = {}

    @property
    def not_in_world(self) -> list[str]:
        """Return the entities that have a look-up but are not in the ground-truth database."""
        if not isinstance(self.opened, Snapshot):
            return []
        looked_up = (each for each in self.packs[0].schema.entities.values() if each.key and each.read is not None)
        return [each.name for each in looked_up if self.opened.members(each.name, {}) is None]

    def pack_for(self, trajectory: Trajectory) -> Pack:
        """Return the first variant that fits the trajectory.

        Raise FormatError if no variant fits, and WorldError if the ground-truth database is for another variant.
        """
        for name, ours in self._about.items():
            theirs = trajectory.details.get(name)
            if theirs is not None and not fnmatchcase(str(theirs), str(ours)):
                raise FormatError(
                    f"these conversations have {name} `{theirs}`, but pack `{self.name}` is for `{ours}`",
                    hint="to audit them anyway, name a variant of the pack" if self.packs[1:] else "",
                )
        fitting = (
            pack
            for when, pack in zip(self._when, self.packs, strict=True)
            if all(getattr(trajectory, name, None) == value for name, value in when.items())
        )
        pack = next(fitting, self.packs[-1])
        if self.opened is not None and pack.world:
            self.opened.check(pack.name)
        return pack

    def world_for(self, pack: Pack, file: LogFile) -> tuple[str, World | None]:
        """Return the ground-truth database for a file of runs, and its file name in this folder."""
        if self._world_path is None:
            return "", None
        if pack.world and isinstance(file, RemoteFile):
            raise WorldError(
                "Bylaw can find the database for these runs only if the logs are local files", hint="audit a local copy"
            )
        key = (pack.name, str(file))
        if key not in self._worlds:
            self._worlds[key] = ("", self.opened) if not pack.world else self.opened.for_runs(file, pack.name)
        return self._worlds[key]

    def changed_policies(self, pack: Pack, trajectory: Trajectory) -> tuple[str, ...]:
        """Return the policies whose sentences are not in the recorded instructions.

        Return an empty tuple if there are no instructions, or if they contain no sentence from the document.
        """
        text = trajectory.instructions
        if not text or not pack.digests:
            return ()
        key = (pack.digest, text)
        if key not in self._changed:
            if len(self._changed) >= _TEXTS:
                self._changed.clear()
            self._changed[key] = pack.changed_in(Document(text))
        return self._changed[key]


def _load_variants(roots: list[Path], document: Path | None) -> list[Pack]:
    """Load the variants of a pack. A given document replaces the document of the variants that match it best."""
    packs = [load_pack(root, document=document, cases=False) for root in roots]
    if document is None or not packs:
        return packs
    best = min(len(pack.stale) for pack in packs)
    return [
        pack if len(pack.stale) == best else load_pack(root, cases=False)
        for root, pack in zip(roots, packs, strict=True)
    ]


def open_tasks(shelf: Shelf, path: Path) -> Any:
    """Open the tasks of a benchmark. A task's gold actions define a good outcome."""
    for pack in shelf.packs:
        if pack.world and hasattr(_module(pack), "open_tasks"):
            if shelf.opened is None:
                raise UsageError("--tasks requires a database for replaying the gold actions", hint="add --world")
            return _module(pack).open_tasks(path, shelf.opened)
    raise UsageError(f"pack `{shelf.name}` does not use tasks", hint="remove --tasks")


def _open(pack: Pack, world: Path) -> Any:
    """Open a ground-truth database. It is opened before any log is read, so that errors appear early."""
    return _module(pack).open_world(world) if pack.world else open_snapshot(world, pack.schema)


def _module(pack: Pack) -> Any:
    if not pack.world.startswith(_OURS):
        raise UsageError(
            f"pack `{pack.name}` must not contain code for its database", hint="use an SQLite or JSON file"
        )
    try:
        return importlib.import_module(pack.world)
    except ImportError:
        hint = "use an SQLite or JSON file, and remove `world:` from pack.yaml"
        raise UsageError(
            f"pack `{pack.name}` names a world module `{pack.world}` that does not exist", hint=hint
        ) from None


class Request(Struct, frozen=True):
    files: tuple[LogFile, ...]
    pack: str
    world: Path | None = None
    mode: Mode = "hindsight"
    """How facts are judged without a ground-truth database: `hindsight` or `none`."""
    document: Path | None = None
    tasks: Path | None = None
    agent: str | None = None
    jobs: int = 1
    key: bytes | None = None
    """If set, the output is redacted, and pseudonyms are derived from this key."""
    criterion: Criterion | None = None
    """The criterion of the tables, the findings and the report. If None, the pack's criterion is used."""
    answers: OpenAnswers | None = None
    """Answers predicates that code cannot settle. It is not sent to other processes."""
    attested: tuple[Attestation, ...] = ()
    """Reviewers' answers about undecided calls."""
    columns: Columns = Columns()
    """The columns of Parquet files."""
    adds: bool = False
    """Whether to add to an earlier output. If so, files are named by their full paths, which stay unique."""

    @property
    def pseudonyms(self) -> "Pseudonyms | None":
        """The pseudonyms for ids, agents and files, or None if the audit is not redacted."""
        if self.key is None:
            return None
        from bylaw.audit.redaction import Pseudonyms

        return Pseudonyms(self.key)

    def names(self) -> dict[LogFile, str]:
        return {file: str(file) for file in self.files} if self.adds else unique_names(self.files)

    def source(self, file: LogFile, span: Span | None = None) -> Source:
        """Return a source that reads a file of the request or a part of it."""
        called = str(file) if self.adds else ""
        return Source(file, self.agent, span=span, columns=self.columns, called=called)


def unique_names(files: Sequence[LogFile]) -> dict[LogFile, str]:
    """Return a name for each file: the shortest unique ending of its path."""
    named: dict[LogFile, str] = {}
    pending, length = list(dict.fromkeys(files)), 1
    while pending:
        tails = {file: PurePosixPath(*file.parts[-length:]).as_posix() for file in pending}
        counts = Counter(tails.values())
        named |= tails
        pending = [file for file in pending if counts[tails[file]] > 1 and length < len(file.parts)]
        length += 1
    return named


class Audited(Struct, frozen=True, omit_defaults=True):
    """The files and the pack of an audit, as given on the command line."""

    logs: list[str]
    pack: str
    world: str | None = None
    document: str | None = None
    agent: str | None = None
    folder: str = ""
    """The folder in which the command ran. Relative paths start there."""

    def found(self) -> "Audited":
        """Return the record with paths that exist.

        Relative paths are also tried from the folder in which the audit ran.
        """
        paths = {name: self._path(value) for name in ("pack", "world", "document") if (value := getattr(self, name))}
        return replace(self, logs=[self._path(log) for log in self.logs], **paths)

    def _path(self, name: str) -> str:
        there = os.path.join(self.folder, name)
        return there if self.folder and not os.path.exists(name) and os.path.exists(there) else name


def write_audited(request: Request, out: Path) -> None:
    """Write `audited.json`. Do not call this for a redacted audit, because the paths in the file lead to the logs."""
    record = Audited(
        [str(file) for file in request.files],
        request.pack,
        world=str(request.world) if request.world is not None else None,
        document=str(request.document) if request.document is not None else None,
        agent=request.agent,
        folder=os.getcwd(),
    )
    # Unlike msgspec, `json` reads and writes file names that are not valid text.
    (out / "audited.json").write_text(json.dumps(msgspec.to_builtins(record), indent=1) + "\n", encoding="utf-8")


def read_audited(out: Path) -> Audited | None:
    """Return the recorded input of the audit in a folder, or None if it was not recorded."""
    try:
        return msgspec.convert(json.loads((out / "audited.json").read_bytes()), Audited).found()
    except (OSError, ValueError, RecursionError):
        return None


def events_in_logs(out: Path, trajectory: str) -> list[JsonRecord]:
    """Read the events of a conversation again from the logs.

    Return an empty list if the logs or the pack no longer exist.
    """
    found = next(conversations_in_logs(out, only=trajectory), None)
    return found["events"] if found is not None else []


def conversations_in_logs(out: Path, only: str = "") -> Iterator[JsonRecord]:
    """Yield the conversations in the logs, or only one of them, as lines of `conversations.jsonl` without private
    values.

    Stop if the logs or the pack cannot be read.
    """
    audited = read_audited(out)
    if audited is None:
        return
    from bylaw.audit.redaction import Redaction

    try:
        shelf = Shelf(audited.pack, document=Path(audited.document) if audited.document else None)
        redactions: dict[str, Redaction] = {}
        for each in _named(audited):
            if only and each.id != only:
                continue
            pack = shelf.pack_for(each)
            redaction = redactions.setdefault(pack.digest, Redaction(pack))
            row = conversation_row(each, each.agent, each.outcome)
            row.trajectory = each.id
            yield record_of(redaction.cover(each.events, None, ()).conversation(row) if redaction else row)
    except (BylawError, OSError):
        return


def _named(audited: Audited) -> Iterator[Trajectory]:
    identities = Identities()
    for file in audited.logs:
        for each in read(file, agent=audited.agent):
            if isinstance(each, Trajectory):
                yield replace(each, id=identities.unique(writable(each.id)))
