"""Names of conversations and of the agents they are counted under."""

import hashlib
import re
from array import array

import msgspec

from bylaw.trace.trajectory import Trajectory

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
