"""The conversations to train on, and the audit that rates them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import click
from msgspec import Struct

from bylaw.align.prompt import pack_named
from bylaw.align.standing import Auditor, FreshAudit, KeptAudit
from bylaw.errors import BylawError, UsageError
from bylaw.trace.source import LogFile
from bylaw.trace.trajectory import Trajectory

Placed = tuple[LogFile, Trajectory | BylawError]

SomeLogs = Annotated[tuple[Path, ...], "[LOGS]..."]
SomePack = Annotated[
    str | None,
    "--pack PACK",
    "The folder of a pack, or the name of a built-in one; by default that of the audit, or `clinic`.",
]
EarlierAudit = Annotated[
    Path | None,
    "--audit DIR",
    click.Path(path_type=Path, exists=True, file_okay=False),
    "An audit of the logs, instead of auditing them again.",
]


class Sources(Struct, frozen=True):
    """Logs, their pack and their audit."""

    logs: tuple[Path, ...]
    pack: str
    auditor: Auditor
    agent: str | None = None
    expected: int | None = None
    """How many conversations an earlier audit judged; None without one."""

    def checked(self, placed: Iterable[Placed]) -> Iterator[Placed]:
        """The conversations. Raises UsageError at the end if the audit judged another number."""
        count = 0
        for file, each in placed:
            count += isinstance(each, Trajectory)
            yield file, each
        if self.expected is not None and count != self.expected:
            hint = "give the logs that were audited, or audit them here with --world"
            raise UsageError(f"the audit judged {self.expected} conversations, but the logs have {count}", hint=hint)


def command_line(name: str, logs: Sequence[Path], options: Mapping[str, Any]) -> str:
    """The command, to type again."""
    given = ((flag, value) for flag, value in options.items() if value is not None and value is not False)
    typed = [flag if value is True else f"{flag} {value}" for flag, value in given]
    return " ".join([f"bylaw align {name}", *map(str, logs), *typed])


def sources(
    logs: Sequence[Path], pack: str | None, world: Path | None, audit: Path | None, document: Path | None
) -> Sources:
    """The sources that the options name. An audit names its logs and its pack."""
    if audit is None:
        name = pack or "clinic"
        return Sources(tuple(logs), name, FreshAudit(name, world=world, document=document))
    if world is not None:
        raise UsageError("--audit and --world cannot be combined", hint="give one of them")
    kept = KeptAudit(audit)
    audited = kept.audited
    if audited is None:
        hint = "audit them here with --world"
        raise UsageError("a redacted audit does not name its logs", place=str(audit), hint=hint)
    if kept.store.summary["skipped"] and kept.store.summary["repeated_ids"]:
        raise UsageError(
            "the audit skipped conversations and ids repeat, so its lines cannot be matched to the logs",
            place=str(audit),
            hint="audit the logs here with --world",
        )
    name = pack or audited.pack
    if pack_named(name).digest not in kept.digests:
        hint = "audit the logs again"
        raise UsageError(f"the audit was made with another version of pack `{name}`", place=str(audit), hint=hint)
    found = tuple(logs) or tuple(map(Path, audited.logs))
    return Sources(found, name, kept, audited.agent, kept.conversations)
