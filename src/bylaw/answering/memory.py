"""Long-term memory: plans that worked, found again by similarity (ShieldAgent, 3.3).

The short-term memory of a conversation is the list of its questions: `Answerer` keeps the answers and repeats none.
"""

import threading
from pathlib import Path

import msgspec
from msgspec import Struct

from bylaw.answering.operation import Plan
from bylaw.rule.embedding import Embedder, HashedNgrams, Vector, similarity

FILE = "plans.jsonl"
ALIKE = 0.3
"""Minimum similarity for a plan to be shown as an example."""
SAME = 0.9
"""Minimum similarity for a plan, for a call of the same tool, to be reused without asking."""
EXAMPLES = 2


class Outcome(Struct, frozen=True):
    """A plan that was run, its topic, and whether it gave an answer."""

    about: str
    tool: str
    """The tool called: a plan may name its arguments, so it is reused for no other tool."""
    plan: Plan
    settled: bool


class Remembered(Struct):
    """A plan and its record so far."""

    about: str
    tool: str
    plan: Plan
    vector: Vector
    settled: int = 0
    tried: int = 0

    @property
    def works(self) -> bool:
        """Whether it has given an answer more often than not."""
        return 2 * self.settled > self.tried


class Plans:
    """Plans by topic, in a file that several processes may append to; without a folder, in memory only."""

    def __init__(self, folder: Path | None = None, *, embed: Embedder | None = None) -> None:
        self._file = folder / FILE if folder is not None else None
        self._embed = embed or HashedNgrams()
        self._known: dict[tuple[str, bytes], Remembered] = {}
        self._lock = threading.Lock()
        if self._file is not None and self._file.is_file():
            read = msgspec.json.Decoder(Outcome).decode
            for line in self._file.read_bytes().splitlines():
                if line.strip():
                    self._count(read(line))

    def __len__(self) -> int:
        return len(self._known)

    def keep(self, outcome: Outcome) -> None:
        with self._lock:
            self._count(outcome)
            if self._file is not None:
                self._file.parent.mkdir(parents=True, exist_ok=True)
                with self._file.open("ab") as out:
                    out.write(msgspec.json.encode(outcome) + b"\n")

    def like(self, about: str) -> list[tuple[float, Remembered]]:
        """Working plans for similar topics, the most similar first."""
        (vector,) = self._embed([about])
        with self._lock:
            found = [(similarity(vector, each.vector), each) for each in self._known.values() if each.works]
        alike = [(share, each) for share, each in found if share >= ALIKE]
        return sorted(alike, key=lambda pair: (-pair[0], -pair[1].settled, pair[1].about))

    def _count(self, outcome: Outcome) -> None:
        key = (outcome.about, msgspec.json.encode(outcome.plan))
        if key not in self._known:
            (vector,) = self._embed([outcome.about])
            self._known[key] = Remembered(outcome.about, outcome.tool, outcome.plan, vector)
        self._known[key].tried += 1
        self._known[key].settled += outcome.settled
