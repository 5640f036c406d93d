"""Reads the airline's database from tau-bench and tau2-bench. Records are decoded on access."""

import gzip
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Raw, Struct

from bylaw.errors import WorldError

Generation = Literal["tau1", "tau2"]
Record = dict[str, Any]
T = TypeVar("T")

TAU1_PARTS = ("users", "reservations", "flights")
NESTED = {
    "tau1": ("", "tau1", "tau_bench/envs/airline/data", "envs/airline/data", "data"),
    "tau2": ("", "tau2", "data/tau2/domains/airline", "tau2/domains/airline", "domains/airline"),
}
"""Subfolders of each generation's files: Bylaw's own layout first, then a checkout's."""
SHAPE = "pass the database's folder, a checkout of the benchmark, or a file like the `db.json` of tau2-bench"


class Tables(Struct):
    """The three tables with undecoded records."""

    users: dict[str, Raw]
    reservations: dict[str, Raw]
    flights: dict[str, Raw]


class User(Struct):
    """Required fields of a user."""

    payment_methods: Raw
    reservations: Raw


class Reservation(Struct):
    """Required fields of a reservation."""

    user_id: Raw
    flights: Raw


class Flight(Struct):
    """Required fields of a flight."""

    dates: Raw


class Table(Mapping[str, Record]):
    """One table, whose records are decoded on first access. Callers must not change them."""

    def __init__(self, raw: dict[str, Raw]) -> None:
        self.raw = raw
        self.decoded: dict[str, Record] = {}

    def __getitem__(self, key: str) -> Record:
        record = self.decoded.get(key)
        if record is None:
            record = self.decoded[key] = msgspec.json.decode(self.raw[key])
        return record

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the record, or `default`. Any value may be the key."""
        return self[key] if isinstance(key, str) and key in self.raw else default

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key in self.raw

    def __iter__(self) -> Iterator[str]:
        return iter(self.raw)

    def __len__(self) -> int:
        return len(self.raw)


class Database:
    """The initial state of every conversation."""

    def __init__(self, generation: Generation, users: dict[str, Raw], reservations: Table, flights: Table) -> None:
        self.generation: Generation = generation
        self.users = Table(users)
        self.reservations = reservations
        self.flights = flights

    def with_users(self, users: dict[str, Raw]) -> "Database":
        return Database(self.generation, users, self.reservations, self.flights)


def open_database(path: Path, generation: Generation) -> dict[str, Database]:
    """Return one generation's databases below `path`, by the name of their users file. The default comes first."""
    for nested in NESTED[generation]:
        folder = path / nested if nested else path
        if generation == "tau2" and (file := find(folder, "db.json")) is not None:
            return {"db.json": open_file(file)}
        if generation == "tau1":
            parts = {part: find(folder, f"{part}.json") for part in TAU1_PARTS}
            if all(parts.values()):
                return open_parts(folder, {part: file for part, file in parts.items() if file is not None})
    raise WorldError(f"no {generation} airline database in `{path}`", hint=SHAPE)


def open_file(file: Path) -> Database:
    """Open a database in one file, as in tau2-bench."""
    tables = decode(file, Tables)
    for rows, kind in ((tables.users, User), (tables.reservations, Reservation), (tables.flights, Flight)):
        for row in list(rows.values())[:1]:
            try:
                msgspec.json.decode(row, type=kind)
            except msgspec.MsgspecError as fault:
                raise WorldError(f"not an airline database: {fault}", place=str(file), hint=SHAPE) from fault
    return Database("tau2", tables.users, Table(tables.reservations), Table(tables.flights))


def open_parts(folder: Path, parts: Mapping[str, Path]) -> dict[str, Database]:
    """Open a folder with one file per table. There may be other users files next to `users.json`."""
    table = dict[str, Raw]
    first = Database(
        "tau1",
        decode(parts["users"], table),
        Table(decode(parts["reservations"], table)),
        Table(decode(parts["flights"], table)),
    )
    found = {"users.json": first}
    for file in sorted(folder.glob("users*.json*")):
        name = file.name.removesuffix(".gz")
        if name.endswith(".json") and name not in found:
            found[name] = first.with_users(decode(file, table))
    return found


def generations(path: Path) -> list[Generation]:
    """Return the generations of the database at `path`."""
    found: list[Generation] = []
    for nested in NESTED["tau1"]:
        if all(find(path / nested, f"{part}.json") for part in TAU1_PARTS):
            found.append("tau1")
            break
    if any(find(path / nested, "db.json") for nested in NESTED["tau2"]):
        found.append("tau2")
    return found


def find(folder: Path, name: str) -> Path | None:
    """Return the file with this name in `folder`, plain or gzip."""
    for file in (folder / name, folder / f"{name}.gz"):
        if file.is_file():
            return file
    return None


def decode(file: Path, kind: type[T]) -> T:
    """Decode a JSON file, plain or gzip."""
    try:
        return msgspec.json.decode(content(file), type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as fault:
        raise WorldError(f"not an airline database: {fault}", place=str(file), hint=SHAPE) from fault


def content(file: Path) -> bytes:
    """Return a file's content, unpacked if it is gzip."""
    try:
        data = file.read_bytes()
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except (OSError, EOFError, zlib.error) as fault:
        why = fault.strerror if isinstance(fault, OSError) and fault.strerror else str(fault)
        raise WorldError(f"cannot be read: {why}", place=str(file)) from fault
