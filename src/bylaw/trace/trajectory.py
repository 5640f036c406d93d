"""One recorded conversation, whatever format it came in."""

import hashlib
import re
from array import array
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field

from bylaw.trace.event import Event

_SCHEMA_NAMES = ("parameters", "input_schema", "inputSchema", "args_schema")


def tool_definitions(recorded: Iterable[Any] | None) -> Sequence[dict[str, Any]]:
    """The definitions in a known shape, with MCP's annotations (`readOnlyHint`, ...)."""
    if not recorded:
        return ()
    return tuple(filter(None, map(_definition, recorded)))


def _definition(recorded: Any) -> dict[str, Any] | None:
    match recorded:
        case {"function": {"name": str()} as function, **outer}:
            body: dict[str, Any] = {**outer, **function}  # pyright: ignore[reportUnknownVariableType]
        case {"name": str()}:
            body = recorded  # pyright: ignore[reportUnknownVariableType]
        case _:
            return None
    definition: dict[str, Any] = {"name": body["name"]}
    if isinstance(body.get("description"), str):
        definition["description"] = body["description"]
    for name in _SCHEMA_NAMES:
        if isinstance(body.get(name), dict):
            definition["parameters"] = body[name]
            break
    if isinstance(body.get("annotations"), dict):
        definition["annotations"] = body["annotations"]
    return definition


class TaskOutcome(Struct, frozen=True):
    """Whether the conversation reached its goal, as its source judged it."""

    good: bool
    source: str
    """The field it was read from, e.g. `reward` or `reward_info.db_check.db_match`."""


class Trajectory(Struct, frozen=True):
    """A conversation: who acted, what happened, and how it ended if that is known."""

    id: str
    events: Sequence[Event]
    agent: str = ""
    """The name its results are reported under, e.g. a model's name."""
    outcome: TaskOutcome | None = None
    instructions: str = ""
    """The system prompt, if it was recorded."""
    file: str = ""
    position: int = 0
    """Line (JSONL) or 0-based index (one document) in `file`."""
    format: str = ""
    details: dict[str, Any] = field(default_factory=dict[str, Any])
    """Other recorded data that a pack may use: task id, trial, other outcomes."""
    context: dict[str, Any] = field(default_factory=dict[str, Any])
    """Recorded facts that the host vouched for, such as who was signed in."""
    tools: Sequence[dict[str, Any]] = ()
    """Tool definitions recorded with the conversation, in JSON-schema form."""

    @property
    def bears_times(self) -> bool:
        """Whether any event has a time."""
        return any(event.time is not None for event in self.events)


_EXTENSIONS = (".gz", ".bz2", ".zst", ".parquet", ".json", ".jsonl", ".ndjson", ".eval", ".log", ".txt")
_DATE = re.compile(r"-\d{4}-\d{2}-\d{2}$")
_PART = re.compile(r"\.\d+$")


class Identities:
    """Gives every trajectory of one audit an id of its own: a repeated one gets `~2`, `~3`, ...

    Pass trajectories in the order of files and conversations; the result depends on nothing else. Ids are kept as
    64-bit digests of about 16 bytes each. If two ids share a digest (for a million ids the odds are one in thirty
    million), the later one gets an unnecessary suffix.
    """

    def __init__(self) -> None:
        self._given = _Digests()
        self._counts: dict[int, int] = {}
        """The last suffix given to each id that was repeated."""

    def unique(self, id: str) -> str:
        """`id`, or `id~N` if it was used before."""
        digest = _digest(id)
        if self._given.add(digest):
            return id
        count = self._counts.get(digest, 1) + 1
        while not self._given.add(_digest(candidate := f"{id}~{count}")):
            count += 1
        self._counts[digest] = count
        return candidate

    def __contains__(self, name: str) -> bool:
        return _digest(name) in self._given

    def own(self, trajectory: Trajectory) -> Trajectory:
        """`trajectory` with a unique id."""
        id = self.unique(trajectory.id)
        return trajectory if id == trajectory.id else msgspec.structs.replace(trajectory, id=id)


class _Digests:
    """A set of non-zero 64-bit numbers in one flat table with linear probing."""

    def __init__(self) -> None:
        self._table = array("Q", bytes(8 << 10))
        self._mask = len(self._table) - 1
        self._count = 0

    def __contains__(self, digest: int) -> bool:
        return self._table[self._place(digest)] == digest

    def add(self, digest: int) -> bool:
        """Whether it is new."""
        place = self._place(digest)
        if self._table[place]:
            return False
        self._table[place] = digest
        self._count += 1
        if self._count * 2 > len(self._table):
            self._grow()
        return True

    def _place(self, digest: int) -> int:
        table, mask = self._table, self._mask
        place = digest & mask
        while (here := table[place]) and here != digest:
            place = place + 1 & mask
        return place

    def _grow(self) -> None:
        kept = self._table
        self._table = array("Q", bytes(8 * 2 * len(kept)))
        self._mask = len(self._table) - 1
        for digest in kept:
            if digest:
                self._table[self._place(digest)] = digest


def _digest(id: str) -> int:
    digest = hashlib.blake2b(id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") or 1


def agent_of_file(name: str) -> str:
    """The file's name without extensions and a trailing `.N`."""
    while name.lower().endswith(_EXTENSIONS):
        name = name[: name.rindex(".")]
    return _PART.sub("", name)


def agent_of_model(model: str) -> str:
    """A model's name without its provider; a fine-tuned model is `ft-` and its base model."""
    name = model.rsplit("/", 1)[-1]
    if name.startswith("ft:"):
        base = name.split(":")[1]
        return f"ft-{_DATE.sub('', base)}"
    return name
