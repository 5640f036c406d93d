"""The policy document: its text, its sentences, and where words of it stand. It may be several files."""

import hashlib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from bylaw.policy.sentence import HEADING, Sentence, digest_of, number_of, sentences_of

__all__ = ["LONGEST", "Document", "File", "Range", "Sentence", "digest_of"]

LONGEST = 2_000_000
"""Characters of a document that is read: some thousand pages."""
_BETWEEN = "\n\n"
"""What stands between two files in the whole text."""
_RIVALS = 8
"""Sentences that share most words with a quote, and are compared with it letter by letter."""

Range = tuple[int, int]
"""Characters of the whole text, from and up to."""


class File(Struct, frozen=True):
    """One file of a document, and where it begins in the whole text."""

    name: str
    start: int
    text: str

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class Document:
    """A policy document in Markdown or plain text."""

    def __init__(self, text: str, *, name: str = "policy.md") -> None:
        self.files: tuple[File, ...] = (File(name, 0, text),)
        self.text = text
        self.name = name
        self._whole: dict[Range, str] = {}

    @classmethod
    def joined(cls, files: Sequence[tuple[str, str]], *, name: str) -> "Document":
        """One document of several files, each a name and a text; a quote never goes from one to the next."""
        made = cls(_BETWEEN.join(text for _, text in files), name=name)
        start, found = 0, list[File]()
        for each, text in files:
            found.append(File(each, start, text))
            start += len(text) + len(_BETWEEN)
        made.files = tuple(found)
        return made

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    @cached_property
    def sentences(self) -> tuple[Sentence, ...]:
        """Every sentence, list item and table row; headings and bare labels such as `Payment:` are not sentences."""
        if len(self.files) == 1:
            return tuple(sentences_of(self.text))
        return tuple(
            replace(each, start=each.start + file.start, end=each.end + file.start)
            for file in self.files
            for each in sentences_of(file.text)
        )

    @cached_property
    def _starts(self) -> list[int]:
        return [each.start for each in self.sentences]

    @cached_property
    def _file_starts(self) -> list[int]:
        return [file.start for file in self.files]

    @cached_property
    def _by_digest(self) -> dict[str, list[Sentence]]:
        found: dict[str, list[Sentence]] = {}
        for sentence in self.sentences:
            found.setdefault(sentence.digest, []).append(sentence)
        return found

    @cached_property
    def _by_text(self) -> dict[str, list[Range]]:
        """Where each sentence stands, under its words with and without the number of its clause."""
        found: dict[str, list[Range]] = {}
        for each in self.sentences:
            number = number_of(self.text, each.start)
            found.setdefault(each.text, []).append((each.start, each.end))
            if number and each.start + number < each.end:
                found.setdefault(each.bare, []).append((each.start + number, each.end))
        return found

    @cached_property
    def _flat(self) -> "_Flat":
        return _Flat(self.files)

    @cached_property
    def _headings(self) -> tuple[list[int], list[tuple[str, ...]]]:
        """Where each heading begins to hold, and the headings above it and itself, outermost first."""
        starts, paths = list[int](), list[tuple[str, ...]]()
        for file in self.files:
            above: dict[int, str] = {}
            starts.append(file.start)
            paths.append(())
            offset, fenced = file.start, False
            for line in file.text.splitlines(keepends=True):
                bare = line.strip()
                if bare.startswith("```"):
                    fenced = not fenced
                elif not fenced and (match := HEADING.match(bare)):
                    depth = len(match[1])
                    above = {each: text for each, text in above.items() if each < depth} | {depth: match[2]}
                    starts.append(offset)
                    paths.append(tuple(above.values()))
                offset += len(line)
        return starts, paths

    def all_by_digest(self, digest: str) -> Sequence[Sentence]:
        return self._by_digest.get(digest, ())

    def places(self, words: str) -> tuple[Range, ...]:
        """Everywhere that words stand, however their lines are wrapped.

        Where they are a sentence of their own, numbers of clauses aside, those places count alone.
        """
        words = " ".join(words.split())
        return tuple(self._by_text.get(words) or (self._flat.places(words) if words else ()))

    def find(self, quote: str) -> Range | None:
        """The first place of a quote; None where it does not stand."""
        return next(iter(self.places(quote)), None)

    def starting_in(self, start: int, end: int) -> Sequence[Sentence]:
        """The sentences that start in a range of the text."""
        return self.sentences[bisect_left(self._starts, start) : bisect_left(self._starts, end)]

    def within(self, start: int, end: int) -> Sequence[Sentence]:
        """The sentences that a range of the text is part of, or holds."""
        first = bisect_right(self._starts, start) - 1
        first += first < 0 or self.sentences[first].end <= start
        return self.sentences[first : bisect_left(self._starts, end)]

    def nearest(self, words: str) -> Sentence | None:
        """The sentence that reads most like these words; None where none shares a word with them."""
        from difflib import SequenceMatcher

        wanted = _words(words)
        shared = [
            (len(wanted & (own := _words(each.text))) / (len(wanted | own) or 1), each) for each in self.sentences
        ]
        rivals = sorted((each for each in shared if each[0]), key=lambda pair: -pair[0])[:_RIVALS]
        scored = [(SequenceMatcher(None, words, each.bare, autojunk=False).ratio(), each) for _, each in rivals]
        return max(scored, key=lambda pair: pair[0], default=(0.0, None))[1]

    def whole(self, start: int, end: int) -> str:
        """The whole sentences that a range of the text is part of, as written; what is in none of them as it is."""
        found = self._whole.get((start, end))
        if found is None:
            told = [each.text for each in self.within(start, end)]
            found = self._whole[start, end] = " ".join(told) or " ".join(self.text[start:end].split())
        return found

    def file_at(self, offset: int) -> File:
        """The file that a character offset is in."""
        return self.files[bisect_right(self._file_starts, offset) - 1]

    def line_of(self, offset: int) -> int:
        """1-based line of a character offset, in its file."""
        return self.text.count("\n", self.file_at(offset).start, offset) + 1

    def heading_at(self, offset: int) -> str:
        """The heading above a character offset."""
        return next(reversed(self.headings_at(offset)), "")

    def headings_at(self, offset: int) -> tuple[str, ...]:
        """The headings above a character offset, outermost first."""
        starts, paths = self._headings
        return paths[bisect_right(starts, offset) - 1]


class _Flat:
    """The text with single blanks for all that stands between words, so that one search finds any wrapping."""

    def __init__(self, files: Iterable[File]) -> None:
        self._here: list[int] = []
        self._there: list[int] = []
        parts: list[str] = []
        length = 0
        for file in files:
            for match in re.finditer(r"\S+", file.text):
                self._here.append(length)
                self._there.append(match.start() + file.start)
                parts.append(match[0])
                length += len(match[0]) + 1
            # No quote holds this, so none goes from one file to the next.
            parts.append("\0")
            length += 2
        self._text = " ".join(parts)

    def places(self, words: str) -> list[Range]:
        found: list[Range] = []
        at = self._text.find(words)
        while at >= 0:
            found.append((self._back(at), self._back(at + len(words) - 1) + 1))
            at = self._text.find(words, at + len(words))
        return found

    def _back(self, at: int) -> int:
        word = bisect_right(self._here, at) - 1
        return self._there[word] + at - self._here[word]


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.lower()))
