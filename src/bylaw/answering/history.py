"""The conversation before an act, as numbered pieces for searching, showing and quoting. Also contains the memory of
plans.

The long-term memory finds plans that worked for similar topics (ShieldAgent, section 3.3). The short-term memory
consists of a conversation's questions: `Answerer` keeps the answers and does not repeat a question.
"""

import math
import re
import threading
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

import msgspec
from msgspec import Struct

from bylaw.answering.operation import Plan, Search
from bylaw.engine.predicate_values import AnswerQuote
from bylaw.pack.predicate import SPEAKERS, Speaker
from bylaw.rule.monitor import Act
from bylaw.rule.structure import Embedder, HashedNgrams, Vector, similarity
from bylaw.trace.event import Call, Event, Message

MOST = 8
"""The maximum number of pieces that a search returns. The latest pieces, if requested, are returned in addition."""
SHOWN = {"tool": 1200, "user": 12_000, "agent": 12_000}
"""The maximum number of characters to show from a piece. Quotes are checked against the full text.

A long message shows its beginning and its end, because questions come last.
"""
_WORD = re.compile(r"\w+")
_COMMON = frozenset(
    ("a", "an", "and", "are", "be", "for", "from", "has", "have", "i", "in", "is", "it", "my", "of", "on", "or")
) | {"that", "the", "this", "to", "was", "with", "you", "your"}


class Piece(Struct, frozen=True):
    step: int
    by: Speaker
    text: str
    note: str = ""
    """A placeholder for missing text, which cannot be quoted."""

    def shown(self) -> str:
        """Return the piece as it is shown to the model."""
        most, text = SHOWN[self.by], self.text or f"({self.note})"
        if len(text) > most:
            text = f"{text[:most]} [...]" if self.by == "tool" else f"{text[: most // 2]} [...] {text[-most // 2 :]}"
        return f"[{self.step}] {self.by}: {text}"


class History:
    """All pieces before an act, or only those from certain speakers. Other pieces are not shown and cannot be
    quoted.
    """

    def __init__(self, events: Sequence[Event], act: Act, by: Container[Speaker] = SPEAKERS) -> None:
        self.pieces = tuple(piece for piece in _pieces(events[: act.step]) if piece.by in by)

    @cached_property
    def _words(self) -> dict[int, Counter[str]]:
        return {piece.step: Counter(words(piece.text)) for piece in self.pieces}

    @cached_property
    def _texts(self) -> dict[int, str]:
        return {piece.step: _plain(piece.text) for piece in self.pieces}

    def search(self, wanted: Search, filled: str) -> tuple[Piece, ...]:
        """Return the pieces that share the rarest words with the query, the reply to each of these pieces, and the
        latest pieces. All are in conversation order.
        """
        mine = [piece for piece in self.pieces if wanted.by in ("anyone", piece.by)]
        terms = {*words(filled)} - _COMMON
        scores = {piece.step: self._score(piece.step, terms) for piece in mine}
        best = sorted((step for step in scores if scores[step] > 0), key=lambda step: (-scores[step], -step))[:MOST]
        latest = [piece.step for piece in mine[-wanted.last :]] if wanted.last > 0 else []
        chosen = {*best, *latest, *self._replies(best)}
        return tuple(piece for piece in self.pieces if piece.step in chosen)

    def holds(self, quote: AnswerQuote) -> bool:
        """Whether a quote occurs word for word at the step that the quote names. White space is ignored."""
        text = _plain(quote.text)
        return bool(text) and text in self._texts.get(quote.step, "")

    def _replies(self, steps: Iterable[int]) -> Iterator[int]:
        """Yield the steps of the replies to messages. The reply to a message is the next message from the other
        speaker.
        """
        speakers = {piece.step: piece.by for piece in self.pieces}
        for step in steps:
            later = (each for each, by in speakers.items() if each > step and {by, speakers[step]} == {"user", "agent"})
            if (reply := next(later, None)) is not None:
                yield reply

    def _score(self, step: int, terms: Iterable[str]) -> float:
        """Return how well a piece matches the query. Rare words score higher, and long pieces score lower."""
        inside, every = self._words[step], self._words.values()
        shared = (sum(word in other for other in every) for word in terms if word in inside)
        score = sum(math.log1p(len(every) / having) for having in shared)
        return score / math.sqrt(1 + sum(inside.values()) / 50)


def words(text: str) -> list[str]:
    """Return the words of the text, including numbers and ids."""
    return _WORD.findall(text.lower())


def call_text(tool: str, arguments: object) -> str:
    """Return a call as it is shown to the model."""
    return f"{tool}({msgspec.json.encode(arguments, order='sorted').decode()})"


def _pieces(events: Sequence[Event]) -> Iterator[Piece]:
    cards: dict[str, str] = {}
    for step, event in enumerate(events):
        if isinstance(event, Message):
            answer = event.confirmation
            if answer is not None:
                asked = " ".join(cards.get(answer.card, "").split())
                yield Piece(step, event.by, "", f"answers {'yes' if answer.yes else 'no'} on a card: {asked}")
            elif event.text or not event.captured:
                yield Piece(step, event.by, event.text if event.captured else "", "what was said was not recorded")
        elif isinstance(event, Call):
            if event.card is not None:
                cards[event.card.id] = event.card.text
            refused = " (refused before it ran)" if event.refused else ""
            yield Piece(step, "agent", f"calls {call_text(event.tool, event.arguments)}{refused}")
        elif event.captured:
            yield Piece(step, "tool", event.text, "nothing")
        else:
            yield Piece(step, "tool", "", "an answer that was not recorded")


def _plain(text: str) -> str:
    return " ".join(text.split())


FILE = "plans.jsonl"
ALIKE = 0.3
"""The minimum similarity of topics for a plan to be shown as an example."""
SAME = 0.9
"""The minimum similarity of topics for a plan for the same tool to be reused without asking a model."""
EXAMPLES = 2


class Outcome(Struct, frozen=True):
    """A plan that was run, with its topic and whether the plan produced an answer."""

    about: str
    tool: str
    """The called tool. The plan is reused only for this tool, because it may name arguments of the tool."""
    plan: Plan
    settled: bool


class Remembered(Struct):
    about: str
    tool: str
    plan: Plan
    vector: Vector
    settled: int = 0
    tried: int = 0

    @property
    def works(self) -> bool:
        """Whether the plan has produced an answer more often than not."""
        return 2 * self.settled > self.tried


class Plans:
    """Plans by topic, in a file to which several processes may append. Without a folder, the plans are only in
    memory.
    """

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
        """Return plans that worked for similar topics, most similar first."""
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
