"""The input of an audit."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from msgspec import Struct

from bylaw.audit.attestation import Attestation
from bylaw.engine.conversation import OpenAnswers
from bylaw.engine.session import Mode
from bylaw.pack import Criterion
from bylaw.trace.log_file import LogFile
from bylaw.trace.source import Columns, Source, Span

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
