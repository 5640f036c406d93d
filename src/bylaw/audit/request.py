"""The input of an audit.

`audited.json` records it, so that conversations without findings can be shown too.
"""

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bylaw.audit.attestation import Attestation
from bylaw.audit.row import JsonRecord, conversation_row, record_of, writable
from bylaw.audit.shelf import Shelf
from bylaw.engine.conversation import OpenAnswers
from bylaw.engine.session import Mode
from bylaw.errors import BylawError
from bylaw.pack import Criterion
from bylaw.trace import Identities, Trajectory, read
from bylaw.trace.source import Columns, LogFile, Source, Span

if TYPE_CHECKING:
    from bylaw.audit.redaction import Pseudonyms


class Request(Struct, frozen=True):
    """The logs, the pack, the world and the options of an audit."""

    files: tuple[LogFile, ...]
    pack: str
    world: Path | None = None
    mode: Mode = "hindsight"
    """The replacement if no world is given: `hindsight` or `none`."""
    document: Path | None = None
    tasks: Path | None = None
    agent: str | None = None
    jobs: int = 1
    key: bytes | None = None
    """Redact the output, with pseudonyms from this key."""
    criterion: Criterion | None = None
    """What tables, findings and the report go by; None for what the pack names, which is `determined` unless it says
    otherwise."""
    answers: OpenAnswers | None = None
    """Answers for predicates that code cannot settle; only in this process."""
    attested: tuple[Attestation, ...] = ()
    """People's answers on undecided calls."""
    columns: Columns = Columns()
    """Where Parquet files keep their messages."""
    adds: bool = False
    """Whether to add to an earlier output. Files are then named by their whole path, which is unique over time."""

    @property
    def pseudonyms(self) -> "Pseudonyms | None":
        """Pseudonyms for ids, agents and files; None unless the audit is redacted."""
        if self.key is None:
            return None
        from bylaw.audit.redaction import Pseudonyms

        return Pseudonyms(self.key)

    def names(self) -> dict[LogFile, str]:
        """The name of each file in the output."""
        return {file: str(file) for file in self.files} if self.adds else told_apart(self.files)

    def source(self, file: LogFile, span: Span | None = None) -> Source:
        """The source for a file of the request, or for a part of it."""
        called = str(file) if self.adds else ""
        return Source(file, self.agent, span=span, columns=self.columns, called=called)


def told_apart(files: Sequence[LogFile]) -> dict[LogFile, str]:
    """The name of each file: as much of the end of its path as makes it unique."""
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
    """The files and the pack of an audit, as the command named them."""

    logs: list[str]
    pack: str
    world: str | None = None
    document: str | None = None
    agent: str | None = None
    folder: str = ""
    """The folder of the command; relative paths start there."""

    def found(self) -> "Audited":
        """The same with paths that are valid here: as given, else relative to the folder of the command."""
        paths = {name: self._path(value) for name in ("pack", "world", "document") if (value := getattr(self, name))}
        return replace(self, logs=[self._path(log) for log in self.logs], **paths)

    def _path(self, name: str) -> str:
        there = os.path.join(self.folder, name)
        return there if self.folder and not os.path.exists(name) and os.path.exists(there) else name


def write_audited(request: Request, out: Path) -> None:
    """Write `audited.json`. Do not call it for a redacted audit, which must not lead to the logs."""
    record = Audited(
        [str(file) for file in request.files],
        request.pack,
        world=str(request.world) if request.world is not None else None,
        document=str(request.document) if request.document is not None else None,
        agent=request.agent,
        folder=os.getcwd(),
    )
    # `json`, not msgspec, here and below: it also writes and reads file names that are not valid text.
    (out / "audited.json").write_text(json.dumps(msgspec.to_builtins(record), indent=1) + "\n", encoding="utf-8")


def read_audited(out: Path) -> Audited | None:
    """The input of the audit in a folder; None if it is not recorded."""
    try:
        return msgspec.convert(json.loads((out / "audited.json").read_bytes()), Audited).found()
    except (OSError, ValueError, RecursionError):
        return None


def events_in_logs(out: Path, trajectory: str) -> list[JsonRecord]:
    """The events of a conversation, read from the logs again; none if they, or the pack, are gone."""
    found = next(conversations_in_logs(out, only=trajectory), None)
    return found["events"] if found is not None else []


def conversations_in_logs(out: Path, only: str = "") -> Iterator[JsonRecord]:
    """Every conversation of the logs, or one, as a line of `conversations.jsonl`, with private values covered.

    Yields nothing more once the logs or the pack cannot be read.
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
    """The conversations of the logs, under the names that the audit gave them."""
    identities = Identities()
    for file in audited.logs:
        for each in read(file, agent=audited.agent):
            if isinstance(each, Trajectory):
                yield replace(each, id=identities.unique(writable(each.id)))
