"""What `bylaw audit` takes for large logs: tables, engines, shards; and how far it says it is."""

import re
import sys
import time
from pathlib import Path
from typing import Annotated, Any, Literal

import click
from msgspec import Struct

from bylaw.audit.request import Request
from bylaw.audit.run import Report
from bylaw.cli.given import Name
from bylaw.errors import UsageError
from bylaw.trace.source import Columns

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_SMALLEST = 1 << 10
_SAID_EVERY = 60.0
"""Seconds between lines where nobody watches."""


class ByteSize(click.ParamType[int]):
    """A number of bytes, as `64M`."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = re.fullmatch(r"(\d+)\s*([KMG]?)i?B?", str(value).strip(), re.IGNORECASE)
        size = int(match[1]) * _UNITS[match[2].upper()] if match else 0
        if size < _SMALLEST:
            self.fail(f"`{value}` is not a size of at least 1K, such as 64M", param, ctx)
        return size


class Batch(Struct, frozen=True, kw_only=True):
    format: Annotated[
        Literal["jsonl", "parquet", "both"], "Lines, or typed tables in OUT/tables for `bylaw sql`, pandas, Spark."
    ] = "jsonl"
    engine: Annotated[
        Literal["local", "ray"] | None,
        "Judge in shards that a killed run is taken up from: --jobs processes here, or of a Ray cluster.",
        {"show_default": "local for parquet, else none"},
    ] = None
    address: Annotated[str | None, "--address HOST:PORT", "For --engine ray: the cluster; by default this machine."] = (
        None
    )
    update: Annotated[
        bool,
        "Add to the tables in OUT: read only logs that are new or changed; a conversation that comes again takes the"
        " place of the earlier one.",
    ] = False
    shard_size: Annotated[
        int,
        "--shard-size SIZE",
        ByteSize(),
        "For --engine: bytes of a log that are judged at a time; the results do not depend on it.",
        {"default": "16M"},
    ]
    messages_column: Annotated[
        Name, "For Parquet logs: the messages, a list or JSON text; by default `messages` or the like."
    ] = ""
    id_column: Annotated[Name, "For Parquet logs: the id."] = ""
    agent_column: Annotated[Name, "For Parquet logs: the agent."] = ""

    @property
    def columns(self) -> Columns:
        """What Parquet logs call what they hold."""
        return Columns(self.messages_column, self.id_column, self.agent_column)

    @property
    def written(self) -> Literal["jsonl", "parquet", "both"]:
        """What is written. What is added to is tables: nobody said lines, which are the default."""
        return "parquet" if self.update and self.format == "jsonl" else self.format

    @property
    def in_shards(self) -> bool:
        """Whether the small audit will not do."""
        return self.written != "jsonl" or self.engine is not None

    @property
    def has_lines(self) -> bool:
        return self.written != "parquet"

    def check(self, wanted: dict[str, Any]) -> None:
        """Refuse what cannot be had together; `wanted` are other options, by name."""
        given = [name for name, value in wanted.items() if value]
        if self.in_shards and "--search" in given:
            raise UsageError("`--search` works in one process only", hint="leave out --format and --engine")
        if self.update and self.has_lines:
            raise UsageError("`--update` adds to tables", hint="give --format parquet; `bylaw report OUT` reads them")
        if self.update and given:
            raise UsageError(f"`{given[0]}` does not work with --update", hint="`bylaw report OUT` reads its tables")
        if self.address is not None and self.engine != "ray":
            raise UsageError("`--address` is that of a Ray cluster", hint="give --engine ray")

    def check_logs(self, *, has_pipe: bool, is_keyless: bool) -> None:
        """Refuse what the next night could not know again."""
        if self.update and has_pipe:
            raise UsageError("`--update` needs logs that lie somewhere", hint="write the pipe to a file first")
        if self.update and is_keyless:
            raise UsageError("pseudonyms of one night would not be those of the next", hint="give --redact-key")

    def run(self, request: Request, out: Path) -> Report:
        from bylaw.audit.batch.local import LocalEngine
        from bylaw.audit.batch.on_ray import RayEngine
        from bylaw.audit.batch.run import audit_in_shards

        engine = RayEngine(request.jobs, self.address) if self.engine == "ray" else LocalEngine(request.jobs)
        if self.update:
            return self._add(request, out, engine)
        formats: Any = ("jsonl", "parquet") if self.written == "both" else (self.written,)
        return audit_in_shards(request, out, engine, formats=formats, size=self.shard_size, progress=_Speedometer())

    def _add(self, request: Request, out: Path, engine: Any) -> Report:
        from bylaw.audit.batch.update import update

        added = update(request, out, engine, size=self.shard_size, progress=_Speedometer())
        logs = f"Read {added.read:,} new or changed logs ({added.known:,} were known)"
        removed = f", {added.removed:,} in no log any more" if added.removed else ""
        told = f"{added.conversations:,} conversations, {added.replaced:,} replaced{removed}; {added.held:,} in all"
        print(f"{logs}: {told}")
        return added.report


class _Speedometer:
    """Says how far a run is: over itself on a screen, else a line a minute."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._said = self._start
        self._is_watched = sys.stderr.isatty()

    def __call__(self, advance: Any) -> None:
        now = time.monotonic()
        if not self._is_watched and now - self._said < _SAID_EVERY:
            return
        self._said = now
        text = told_advance(advance, now - self._start)
        sys.stderr.write(f"\r{text:78}" if self._is_watched else f"bylaw: {text}\n")
        sys.stderr.flush()


def told_advance(advance: Any, seconds: float) -> str:
    """How far, how fast, how long still; the rate is that of this run, not of what an earlier one had done."""
    share = advance.done / advance.total if advance.total else 1.0
    told = f"{advance.conversations:,} conversations, {share:.0%}"
    if advance.own and seconds > 0:
        left = (advance.total - advance.done) * seconds / advance.own
        told += f", {advance.conversations / seconds:,.0f} a second, {_duration(left)} left"
    return told


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
