"""Trajectories out of a file, whatever format it is in."""

from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from bylaw.errors import RecordError
from bylaw.trace.format import Format, Look, look
from bylaw.trace.source import Source
from bylaw.trace.trajectory import Trajectory

BY_RECORD = frozenset(("openai", "tau1", "tau2"))
"""Formats in which one record is one conversation: what is not wanted of them is not decoded."""


def read(
    path: str | PathLike[str], *, agent: str | None = None, share: tuple[int, int] = (0, 1)
) -> Iterator[Trajectory | RecordError]:
    """The trajectories of a file, in order, and in its place an error for each record that cannot be read.

    Raises `FormatError` where nothing can be read at all. `agent` overrides the agent the file names.
    Ids are the source's own or `file#position`; `Identities` makes them unique over several files.
    `share` is `(k, n)`: of all these only every n-th is wanted, from the k-th on.
    """
    source = Source(Path(path), agent, share)
    found = look(source)
    every = _open(source, found)
    return every if found.format in BY_RECORD and not found.single else source.wanted(every)


def sniff(path: str | PathLike[str]) -> Format:
    """The name of the format a file is in."""
    return look(Source(Path(path))).format


def _open(source: Source, found: Look) -> Iterator[Trajectory | RecordError]:
    """Each reader is imported when a file needs it: a start-up pays for one format."""
    match found.format:
        case "openai":
            from bylaw.trace.readers import openai

            return openai.read_single(source) if found.single else openai.read(source, found.layout)
        case "tau1":
            from bylaw.trace.readers import tau

            return tau.read_tau1(source, found.layout)
        case "tau2":
            from bylaw.trace.readers import tau

            return tau.read_tau2(source, found.layout)
        case "agentdojo":
            from bylaw.trace.readers import agentdojo

            return agentdojo.read(source, found.layout)
        case "langchain":
            from bylaw.trace.readers import langchain

            return langchain.read(source, found.layout, single=found.single)
        case "otlp":
            from bylaw.trace.readers import otel

            return otel.read(source, found.layout)
        case "langfuse":
            from bylaw.trace.readers import langfuse

            return langfuse.read(source, found.layout)
        case "langsmith":
            from bylaw.trace.readers import langsmith

            return langsmith.read(source, found.layout)
        case "pydantic-ai" | "adk" | "llama-index" | "claude":
            from bylaw.trace.readers import frameworks

            return frameworks.read(source, found.layout, found.format, single=found.single)
        case "claude-code":
            from bylaw.trace.readers import transcripts

            return transcripts.read(source, found.layout)
        case "inspect":
            from bylaw.trace.readers import inspect

            return inspect.read(source)
