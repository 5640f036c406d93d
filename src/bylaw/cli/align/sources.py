"""Where the conversations to learn from come from, and which audit says what they are worth."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import click
from msgspec import Struct

from bylaw.align.prompt import pack_named
from bylaw.align.standing import Auditor, FreshAudit, KeptAudit
from bylaw.errors import BylawError, UsageError
from bylaw.trace.log_file import LogFile
from bylaw.trace.trajectory import Trajectory

Placed = tuple[LogFile, Trajectory | BylawError]

SomeLogs = Annotated[tuple[Path, ...], "[LOGS]..."]
SomePack = Annotated[
    str | None,
    "--pack PACK",
    "A pack's folder, or the name of one that comes with Bylaw; by default the audit's, or `clinic`.",
]
EarlierAudit = Annotated[
    Path | None,
    "--audit DIR",
    click.Path(path_type=Path, exists=True, file_okay=False),
    "The folder of an audit of the logs, instead of auditing them again.",
]


class Sources(Struct, frozen=True):
    """Logs, the pack they are held to, and the audit of them."""

    logs: tuple[Path, ...]
    pack: str
    auditor: Auditor
    agent: str | None = None
    expected: int | None = None
    """How many conversations the audit judged, where it was made before."""

    def checked(self, placed: Iterable[Placed]) -> Iterator[Placed]:
        """The conversations; an error at the end where they are not those of the audit."""
        count = 0
        for file, each in placed:
            count += isinstance(each, Trajectory)
            yield file, each
        if self.expected is not None and count != self.expected:
            hint = "give the logs that were audited, or audit them here with --world"
            raise UsageError(f"the audit judged {self.expected} conversations, and the logs hold {count}", hint=hint)


def command_line(name: str, logs: Sequence[Path], options: Mapping[str, Any]) -> str:
    """What was asked for, as it could be typed again."""
    given = ((flag, value) for flag, value in options.items() if value is not None and value is not False)
    said = [flag if value is True else f"{flag} {value}" for flag, value in given]
    return " ".join([f"bylaw align {name}", *map(str, logs), *said])


def sources(
    logs: Sequence[Path], pack: str | None, world: Path | None, audit: Path | None, document: Path | None
) -> Sources:
    """What the options name. An audit's folder brings its logs and its pack along."""
    if audit is None:
        name = pack or "clinic"
        return Sources(tuple(logs), name, FreshAudit(name, world=world, document=document))
    if world is not None:
        raise UsageError("--audit and --world cannot be combined", hint="give one of them")
    kept = KeptAudit(audit)
    audited = kept.audited
    if audited is None:
        hint = "audit them here with --world"
        raise UsageError("a redacted audit does not lead to its logs", place=str(audit), hint=hint)
    if kept.store.summary["skipped"] and kept.store.summary["repeated_ids"]:
        raise UsageError(
            "the audit skipped conversations while ids repeat, so its lines cannot be told apart",
            place=str(audit),
            hint="audit the logs here with --world",
        )
    name = pack or audited.pack
    if pack_named(name).digest not in kept.digests:
        hint = "audit the logs again"
        raise UsageError(f"the audit was made with another version of pack `{name}`", place=str(audit), hint=hint)
    found = tuple(logs) or tuple(map(Path, audited.logs))
    return Sources(found, name, kept, audited.agent, kept.conversations)
