"""Reads Inspect logs: `.json` documents, and `.eval` files, which are zip archives with one member per sample."""

import importlib
import zipfile
import zlib
from collections.abc import Iterator
from itertools import chain
from typing import Any, cast

import msgspec
from msgspec import Raw, Struct, field

from bylaw.errors import FormatError, RecordError
from bylaw.trace.document import (
    BROKEN,
    Malformed,
    Record,
    decode,
    documents,
    head_in,
    not_json,
    read_each,
    reason,
    salvaged,
    trajectory_of,
)
from bylaw.trace.event import TaskOutcome, Trajectory, agent_of_model
from bylaw.trace.reader import Look
from bylaw.trace.readers.chat import ChatMessage, Id, follow, text_id
from bylaw.trace.source import LONGEST_LINE, Source
from bylaw.trace.transcript import Transcript

FORMAT = "inspect"
_ZSTANDARD = 93
_ATTACHMENT = "attachment://"


class InspectEvaluation(Struct):
    """Fields of a log that are the same for all its samples."""

    model: str = ""
    task: str = ""


class InspectLog(Struct):
    eval: InspectEvaluation = field(default_factory=InspectEvaluation)
    samples: list[Raw] | None = None


class Sample(Struct):
    messages: list[ChatMessage]
    id: Id = None
    epoch: int = 1
    uuid: str | None = None
    scores: dict[str, dict[str, Any]] | None = None
    attachments: dict[str, str] | None = None
    error: Any = None


_LOG = msgspec.json.Decoder(InspectLog)
_SAMPLE = msgspec.json.Decoder(Sample)
_EVALUATION = msgspec.json.Decoder(InspectEvaluation)


def read(source: Source, _: Look) -> Iterator[Trajectory | RecordError]:
    with source.open() as stream:
        zipped = stream.read(4) == b"PK\x03\x04"
    evaluation, pieces = _members(source) if zipped else _document(source)
    return read_each(source, pieces, lambda record: _sample(source, record, evaluation))


def _document(source: Source) -> tuple[InspectEvaluation, Iterator[Record | RecordError]]:
    data, why = source.document()
    rest: list[RecordError] = []
    try:
        try:
            log = _LOG.decode(data)
        except BROKEN as error:
            why = why or not_json(error, data)
            first, *others = documents(source, data) or [b""]
            log = _LOG.decode(first if others and isinstance(first, bytes) else b"")
            rest = [each if isinstance(each, RecordError) else source.fault(0, "a second document") for each in others]
    except BROKEN:
        at = data.find(b'"samples": [', data.find(b'"stats"'))
        return head_in(data, b"eval", _EVALUATION, InspectEvaluation()), salvaged(source, data, at, why)
    return log.eval, chain((Record(raw, index) for index, raw in enumerate(log.samples or ())), rest)


def _members(source: Source) -> tuple[InspectEvaluation, Iterator[Record | RecordError]]:
    try:
        archive = zipfile.ZipFile(source.open())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise FormatError(f"cannot read the zip: {error}", place=str(source.path)) from error
    names = archive.namelist()
    header = next((name for name in ("header.json", "_journal/start.json") if name in names), None)
    try:
        evaluation = decode(_LOG, _member(source, archive, header)).eval if header else InspectEvaluation()
    except Malformed:
        # The samples can be read even if the header cannot.
        evaluation = InspectEvaluation()
    samples = sorted(name for name in names if name.startswith("samples/") and name.endswith(".json"))

    def pieces() -> Iterator[Record | RecordError]:
        for index, name in enumerate(samples):
            try:
                yield Record(_member(source, archive, name), index)
            except Malformed as error:
                yield source.fault(index, f"`{name}`: {error}")

    return evaluation, pieces()


def _member(source: Source, archive: zipfile.ZipFile, name: str) -> bytes:
    """Return a member's bytes.

    Recent logs are compressed with zstandard, which `zipfile` supports only since Python 3.14.
    """
    info = archive.getinfo(name)
    if info.file_size > LONGEST_LINE:
        raise Malformed(f"unpacks to {info.file_size >> 20:,} MiB, more than the limit for a sample")
    if info.compress_type != _ZSTANDARD:
        try:
            return archive.read(name)
        except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, RuntimeError) as error:
            raise Malformed(f"damaged: {reason(error)}") from error
    try:
        zstandard: Any = importlib.import_module("zstandard")
    except ImportError:
        hint = "install `zstandard`, or convert it with `inspect log convert --to json`"
        raise FormatError("this Inspect log is packed with zstandard", place=str(source.path), hint=hint) from None
    # `ZipFile.open` does not support this compression, so find the data after the member's header.
    stream = cast(Any, archive).fp
    stream.seek(info.header_offset)
    head = stream.read(30)
    stream.seek(info.header_offset + 30 + int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little"))
    packed: bytes = stream.read(info.compress_size)
    try:
        unpacked: bytes = zstandard.ZstdDecompressor().stream_reader(packed).read(LONGEST_LINE + 1)
    except zstandard.ZstdError as error:
        raise Malformed(f"damaged: {reason(error)}") from error
    if len(unpacked) > LONGEST_LINE:
        raise Malformed("unpacks to more than the limit for a sample")
    return unpacked


def _sample(source: Source, record: Record, evaluation: InspectEvaluation) -> Trajectory:
    sample = decode(_SAMPLE, record.raw)
    if sample.attachments:
        # Long strings are stored outside their messages.
        for message in sample.messages:
            if isinstance(message.content, str) and message.content.startswith(_ATTACHMENT):
                name = message.content.removeprefix(_ATTACHMENT)
                message.content = sample.attachments.get(name, message.content)
    transcript = Transcript()
    follow(sample.messages, transcript)
    scores = {name: score.get("value") for name, score in (sample.scores or {}).items()}
    return trajectory_of(
        source,
        record,
        transcript,
        FORMAT,
        id=sample.uuid or (f"{text_id(sample.id)}_epoch_{sample.epoch}" if sample.id is not None else ""),
        agent=agent_of_model(evaluation.model) if evaluation.model else "",
        outcome=_outcome(scores),
        details={
            "task": evaluation.task,
            "sample": text_id(sample.id),
            "epoch": sample.epoch,
            "scores": scores,
            "failed": sample.error is not None,
        },
    )


def _outcome(scores: dict[str, Any]) -> TaskOutcome | None:
    """Return the outcome from the first score that is right or wrong."""
    for name, value in scores.items():
        if value in ("C", "I"):
            return TaskOutcome(value == "C", f"scores.{name}")
        if isinstance(value, bool | int | float):
            return TaskOutcome(value >= 1, f"scores.{name}")
    return None
