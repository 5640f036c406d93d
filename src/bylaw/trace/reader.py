"""Trajectories out of a file, whatever format it is in."""

import importlib
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from bylaw.errors import RecordError
from bylaw.trace.format import Format, Look, look
from bylaw.trace.log_file import RemoteFile, log_file
from bylaw.trace.source import Columns, Source
from bylaw.trace.trajectory import Trajectory

BY_RECORD = frozenset(("openai", "tau1", "tau2"))
"""Formats in which one record is one conversation: what is not wanted of them is not decoded."""
READERS: dict[Format, str] = {
    "openai": "openai",
    "tau1": "tau",
    "tau2": "tau",
    "agentdojo": "agentdojo",
    "langchain": "frameworks",
    "pydantic-ai": "frameworks",
    "adk": "frameworks",
    "llama-index": "frameworks",
    "agent-framework": "frameworks",
    "claude": "frameworks",
    "claude-code": "transcripts",
    "otlp": "otel",
    "langfuse": "langfuse",
    "langsmith": "langsmith",
    "inspect": "inspect",
    "parquet": "parquet",
}
"""The module in `readers` whose `read` reads each format."""


def read(
    path: str | PathLike[str] | RemoteFile,
    *,
    agent: str | None = None,
    share: tuple[int, int] = (0, 1),
    columns: Columns | None = None,
) -> Iterator[Trajectory | RecordError]:
    """The trajectories of a file, in order, and in its place an error for each record that cannot be read.

    Raises `FormatError` where nothing can be read at all. `agent` overrides the agent the file names.
    Ids are the source's own or `file#position`; `Identities` makes them unique over several files.
    `share` is `(k, n)`: of all these only every n-th is wanted, from the k-th on.
    """
    return read_source(Source(log_file(path), agent, share, columns=columns or Columns()))


def read_source(source: Source, found: Look | None = None) -> Iterator[Trajectory | RecordError]:
    """The trajectories of a file or of a part of it; `found` where its format is known, which a part may not show."""
    found = found or look(source)
    every = _open(source, found)
    return every if found.format in BY_RECORD and not found.single else source.wanted(every)


def sniff(path: str | PathLike[str]) -> Format:
    """The name of the format a file is in."""
    return look(Source(Path(path))).format


def _open(source: Source, found: Look) -> Iterator[Trajectory | RecordError]:
    """Each reader is imported when a file needs it: a start-up pays for one format."""
    reader: Any = importlib.import_module(f"bylaw.trace.readers.{READERS[found.format]}")
    return reader.read(source, found)
