"""What a search finds, kept in memory for as long as it is among the last few: a page asks for it several times."""

import sqlite3
from collections import Counter, OrderedDict
from itertools import compress, count
from operator import itemgetter

import msgspec

from bylaw.console.index.tally import tally_query

KEPT = 4
"""Searches that are kept ready."""
SHORT = 3
"""With fewer letters a word is sought as it is: as the beginning of others it would find nearly everything."""
_numbers = msgspec.json.Decoder(list[int]).decode


class Spread:
    """Spreads flags of cells, or of conversations, over the findings that are theirs."""

    def __init__(self, table: str, numbers: list[int]) -> None:
        self.table = table
        self.size = max(numbers) + 1
        # Many at once: one by one they would take three times as long.
        self._get = itemgetter(0, *numbers)

    def spread(self, flags: bytearray) -> bytes:
        """For each finding the flag of its number."""
        return bytes(self._get(flags)[1:])


class Searches:
    """The last searches over one index, each with the findings it found and their counts by cell."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._kept: OrderedDict[str, int] = OrderedDict()
        self._found: dict[int, bytes] = {}
        self._counted: set[int] = set()
        self._numbers = count(1)
        self._cells: list[int] = []
        self._places: list[Spread] = []
        database.create_function("is_found", 2, self._is_found, deterministic=True)

    def number(self, q: str) -> int:
        """The search for every word of `q`, as `is_found` in a query knows it; 0 where it asks for nothing."""
        pieces = {piece for each in q.split() if (piece := sought(each))}
        if not pieces:
            return 0
        # A long word is most likely a rare one, which leaves less to look at.
        ordered = sorted(pieces, key=lambda piece: (-len(piece), piece))
        key = " ".join(ordered)
        if (number := self._kept.get(key)) is None:
            number = self._kept[key] = next(self._numbers)
            self._make(number, ordered)
            while len(self._kept) > KEPT:
                self._drop(self._kept.popitem(last=False)[1])
        self._kept.move_to_end(key)
        return number

    def tally(self, q: str) -> str:
        """The table of counts of what `q` found; empty where it asks for nothing."""
        number = self.number(q)
        if number and number not in self._counted:
            self._database.execute(f"DROP TABLE IF EXISTS temp.tally{number}")
            self._database.execute(f"CREATE TEMP TABLE tally{number} AS {tally_query(number)}")
            self._counted.add(number)
        return f"temp.tally{number}" if number else ""

    def recount(self) -> None:
        """Findings stand otherwise than before."""
        self._counted.clear()

    def _is_found(self, search: int, finding: int) -> int:
        return self._found[search][finding]

    def load(self) -> None:
        """The cell and the conversation of each finding: what any search needs."""
        if self._places:
            return
        # Findings are numbered from one on, without a gap.
        every = "FROM (SELECT cell, conversation FROM findings ORDER BY number)"
        conversations = [0, *self._listed(f"SELECT group_concat(conversation) {every}")]
        self._cells = [0, *self._listed(f"SELECT group_concat(cell) {every}")]
        self._places = [Spread("cell_words", self._cells), Spread("talk", conversations)]

    def _make(self, number: int, pieces: list[str]) -> None:
        self.load()
        size = len(self._cells)
        found = every = int.from_bytes(b"\0" + b"\1" * (size - 1))
        for piece in pieces:
            holding = 0
            for place in self._places:
                flags = self._flags(place.table, piece, place.size)
                if 1 in flags:
                    holding |= int.from_bytes(place.spread(flags))
            if holding != every:
                holding |= int.from_bytes(self._flags("words", piece, size))
            found &= holding
        flags = self._found[number] = found.to_bytes(size)
        counts = Counter(compress(self._cells, flags))
        self._database.execute(f"CREATE TEMP TABLE cells{number} (cell INTEGER PRIMARY KEY, findings INTEGER NOT NULL)")
        self._database.executemany(f"INSERT INTO temp.cells{number} VALUES (?, ?)", counts.items())

    def _flags(self, table: str, piece: str, size: int) -> bytearray:
        """For each number up to `size` whether the text of that number holds the piece."""
        flags = bytearray(size)
        for row in self._listed(f"SELECT group_concat(rowid) FROM {table} WHERE {table} MATCH ?", piece):
            flags[row] = 1
        return flags

    def _listed(self, query: str, *values: str) -> list[int]:
        """Numbers in one text: fetched row by row they would take three times as long."""
        found: str | None = self._database.execute(query, values).fetchone()[0]
        return _numbers(f"[{found or ''}]")

    def _drop(self, number: int) -> None:
        self._counted.discard(number)
        del self._found[number]
        self._database.execute(f"DROP TABLE IF EXISTS temp.tally{number}")
        self._database.execute(f"DROP TABLE IF EXISTS temp.cells{number}")


def sought(text: str) -> str:
    """A text as the full-text search takes it: these letters in this order, the last word perhaps unfinished."""
    letters = clean(text).replace('"', " ").strip()
    if not any(each.isalnum() for each in letters):
        return ""
    return f'"{letters}"' + ("*" if len(letters) >= SHORT else "")


def clean(text: str) -> str:
    """A lone surrogate is no text to a database."""
    return text.encode("utf-8", "replace").decode()
