"""Recorded answers about requests and calls. The files contain positions in the requests, but none of their words."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bylaw.answering.request import Meaning
from bylaw.engine.request import Allowance
from bylaw.errors import UsageError

_T = TypeVar("_T")


class KeptAllowance(Struct, frozen=True):
    """An allowance in a file. It contains positions in the request instead of words."""

    key: str
    allowance: Allowance


class KeptMeaning(Struct, frozen=True):
    """An answer from a model about one call, as stored in a file, by argument name."""

    key: str
    meant: dict[str, bool]


def read_allowances(file: Path) -> dict[str, Allowance]:
    """Read the allowances in a file, by question key."""
    return {kept.key: kept.allowance for kept in _kept(file, KeptAllowance, "an allowance")}


def read_meanings(file: Path) -> dict[str, Meaning]:
    """Read the answers about calls in a file, by question key."""
    return {kept.key: kept.meant for kept in _kept(file, KeptMeaning, "what was said of a call")}


def write_allowances(file: Path, allowances: Mapping[str, Allowance]) -> None:
    """Write allowances to a file, one per line, without words from the requests or from errors in answers."""
    _write(file, [KeptAllowance(key, replace(each, faults=())) for key, each in sorted(allowances.items())])


def write_meanings(file: Path, meanings: Mapping[str, Meaning]) -> None:
    _write(file, [KeptMeaning(key, dict(each)) for key, each in sorted(meanings.items())])


def _kept(file: Path, kind: type[_T], what: str) -> Iterator[_T]:
    decoder = msgspec.json.Decoder(kind)
    for number, line in enumerate(file.read_bytes().splitlines(), start=1):
        if line.strip():
            try:
                yield decoder.decode(line)
            except msgspec.DecodeError as error:
                raise UsageError(f"not {what}: {error}", place=f"{file}:{number}") from None


def _write(file: Path, kept: Sequence[Struct]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in kept))
