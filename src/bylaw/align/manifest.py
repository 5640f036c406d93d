"""`data.json` beside the sets: the pack they were made with, and what each file held when it was written."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from bylaw.errors import UsageError
from bylaw.pack import Pack

NAME = "data.json"
SCHEMA = "bylaw.align.data/1"


class SetFile(Struct, frozen=True):
    """One file of rows."""

    rows: int
    sha256: str


class Manifest(Struct, frozen=True):
    """What a folder of sets was made with."""

    schema: str
    pack: str
    """As the command named it."""
    pack_version: str
    pack_digest: str
    command: str
    sets: dict[str, SetFile]


def write_manifest(out: Path, name: str, pack: Pack, command: str, sets: Iterable[str]) -> Manifest:
    """Write it for the sets that lie there."""
    files = {each: _file(out / f"{each}.jsonl") for each in sets}
    found = Manifest(SCHEMA, name, pack.version, pack.digest, command, files)
    (out / NAME).write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    return found


def find_manifest(data: Path) -> Manifest | None:
    """The manifest of a folder of sets, or of the folder that a file of rows lies in; None where there is none."""
    path = (data if data.is_dir() else data.parent) / NAME
    if not path.is_file():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=Manifest)
    except msgspec.DecodeError as error:
        raise UsageError(f"not a manifest: {error}", place=str(path), hint="`bylaw align data` writes it") from None


def digest_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _file(path: Path) -> SetFile:
    return SetFile(len(path.read_bytes().splitlines()), digest_of(path))
