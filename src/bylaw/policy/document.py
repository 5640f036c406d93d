"""The policy document: its text, its sentences, and the positions of quotes.

The document may consist of several files.
"""

import hashlib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import cached_property
from os.path import isdir
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from bylaw.text.day import days

HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*$")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+")
_RULE = re.compile(r"\s*(?:[-*_]\s*){3,}$|\s*\|?\s*:?-{2,}")
_END = re.compile(r"[.!?][\"')\]*_]*(?=\s)")
_QUOTED = re.compile(r'(?<![^\s(\[])"(?=\S)[^"]{0,500}"(?!\w)|\u201c[^\u201c\u201d]{0,500}\u201d')
"""Matches quoted text. A full stop inside quoted text does not end the sentence."""
_ABBREVIATION = re.compile(
    r"\b(?:e\.g|i\.e|etc|vs|cf|no|nr|dr|mr|mrs|ms|st|approx|hrs|min|max|p\.m|a\.m|[A-Z])\.$", re.I
)
_CLAUSE = re.compile(r"(?:§+\s*)?(?:\d+(?:\.\d+)+[.)]?|\d+[.)]|\((?:\d+|[a-z]{1,3})\)|[a-z]\))\s+", re.I)
"""Matches a clause number such as `4.3`, `(a)` or `2)`. It is not part of the clause's text."""


class Sentence(Struct, frozen=True):
    """A sentence of the document, as a range of characters."""

    start: int
    end: int
    line: int
    """The number of the line on which the sentence starts, counted from 1."""
    index: int
    """The position of the sentence among those that start on its line, counted from 1."""
    heading: str
    text: str
    """The text of the sentence, with each run of white space reduced to one space."""

    @property
    def digest(self) -> str:
        """Twelve hex digits that identify the sentence, for use where its text must not appear."""
        return digest_of(self.text)

    @property
    def bare(self) -> str:
        return self.text[number_of(self.text) :]


def number_of(text: str, at: int = 0) -> int:
    """Return the length of the clause number at a position, including the space after it."""
    found = _CLAUSE.match(text, at)
    return found.end() - at if found else 0


def digest_of(text: str) -> str:
    """Return the digest of a sentence. Line breaks do not change it."""
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:12]


def sentences_of(text: str) -> Iterator[Sentence]:
    """Yield every sentence, list item and table row. Headings and labels such as `Payment:` are left out."""
    seen_on: dict[int, int] = {}
    line, counted = 1, 0
    for start, end, heading in _blocks(text):
        for first, last in _split(text, start, end):
            words = " ".join(text[first:last].split())
            if words.endswith(":") and len(words.split()) <= 4:
                continue
            line += text.count("\n", counted, first)
            counted = first
            seen_on[line] = seen_on.get(line, 0) + 1
            yield Sentence(first, last, line, seen_on[line], heading, words)


def _blocks(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the range of each paragraph, list item and table row, with the heading above it."""
    heading, begin, stop, offset, fenced = "", -1, -1, 0, False
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        fence = bare.startswith("```")
        title = HEADING.match(bare)
        item = _ITEM.match(line)
        row = bare.startswith("|")
        breaks = not bare or fence or fenced or title is not None or item is not None or row or _RULE.match(bare)
        if breaks and begin >= 0:
            yield begin, stop, heading
            begin = -1
        if title and not fenced:
            heading = title[2]
        if fence:
            fenced = not fenced
        elif not fenced and not title and bare and not _RULE.match(bare):
            if begin < 0:
                begin = offset + (item.end() if item else len(line) - len(line.lstrip()))
            stop = offset + len(line.rstrip())
            if row:
                yield begin, stop, heading
                begin = -1
        offset += len(line)
    if begin >= 0:
        yield begin, stop, heading


def _split(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    first = start
    quoted = [match.span() for match in _QUOTED.finditer(text, start, end)]
    for match in _END.finditer(text, start, end):
        last = match.end()
        if any(begin < match.start() and last < stop for begin, stop in quoted):
            continue
        following = next((at for at in range(last, end) if not text[at].isspace()), end)
        if following == end or _ABBREVIATION.search(text[first : match.start() + 1]):
            continue
        if not (text[following].isupper() or text[following].isdigit() or text[following] in "\"'(*_["):
            continue
        yield first, last
        first = following
    if first < end:
        yield first, end


__all__ = ["LONGEST", "Document", "File", "Range", "Sentence", "digest_of"]

LONGEST = 2_000_000
"""The maximum length of a document in characters, about a thousand pages."""
_BETWEEN = "\n\n"
_RIVALS = 8
"""The number of sentences to compare with a quote letter by letter: those that share the most words with it."""

Range = tuple[int, int]
"""A range of characters in the text of the whole document."""


class File(Struct, frozen=True):
    """A file of a document, and the position of its first character in the whole text."""

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

    @classmethod
    def joined(cls, files: Sequence[tuple[str, str]], *, name: str) -> "Document":
        """Join several files, each given as its name and text. No quote extends over more than one file."""
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
        """All sentences, list items and table rows. Headings and labels such as `Payment:` are left out."""
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
        """Return the ranges in which a quote occurs.

        Line breaks and clause numbers are ignored. If the quote is a whole sentence, only whole sentences match.
        """
        words = " ".join(words.split())
        return tuple(self._by_text.get(words) or (self._flat.places(words) if words else ()))

    def find(self, quote: str) -> Range | None:
        """Return the first range in which a quote occurs, or None if it does not occur."""
        return next(iter(self.places(quote)), None)

    def starting_in(self, start: int, end: int) -> Sequence[Sentence]:
        return self.sentences[bisect_left(self._starts, start) : bisect_left(self._starts, end)]

    def within(self, start: int, end: int) -> Sequence[Sentence]:
        """Return the sentences that overlap a character range."""
        first = bisect_right(self._starts, start) - 1
        first += first < 0 or self.sentences[first].end <= start
        return self.sentences[first : bisect_left(self._starts, end)]

    def nearest(self, words: str) -> Sentence | None:
        """Return the sentence most similar to this text, or None if no sentence shares a word with the text."""
        from difflib import SequenceMatcher

        wanted = _words(words)
        shared = [
            (len(wanted & (own := _words(each.text))) / (len(wanted | own) or 1), each) for each in self.sentences
        ]
        rivals = sorted((each for each in shared if each[0]), key=lambda pair: -pair[0])[:_RIVALS]
        scored = [(SequenceMatcher(None, words, each.bare, autojunk=False).ratio(), each) for _, each in rivals]
        return max(scored, key=lambda pair: pair[0], default=(0.0, None))[1]

    def whole(self, start: int, end: int) -> str:
        """Return the whole sentences that overlap a range. If there are none, return the text in the range."""
        told = [each.text for each in self.within(start, end)]
        return " ".join(told) or " ".join(self.text[start:end].split())

    def file_at(self, offset: int) -> File:
        return self.files[bisect_right(self._file_starts, offset) - 1]

    def line_of(self, offset: int) -> int:
        """Return the line number of an offset, counted from 1 within the offset's file."""
        return self.text.count("\n", self.file_at(offset).start, offset) + 1

    def heading_at(self, offset: int) -> str:
        return next(reversed(self.headings_at(offset)), "")

    def headings_at(self, offset: int) -> tuple[str, ...]:
        """Return the headings above an offset, with the top level first."""
        starts, paths = self._headings
        return paths[bisect_right(starts, offset) - 1]


class _Flat:
    """The text with each run of white space reduced to one space, so that a search ignores line breaks."""

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
            # No quote contains this separator, so no quote extends over two files.
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


_WHICH = re.compile(r"\[([^\[\]\s][^\[\]]*)\]\s+(?=\S)")
_LINE = re.compile(r"(.+?):(\d+)$")


class Which(Struct, frozen=True):
    """Where in the document a quote is. If all fields are empty, all occurrences are meant."""

    document: str = ""
    headings: tuple[str, ...] = ()
    line: int = 0

    def holds(self, place: Range, document: Document) -> bool:
        start, end = place
        if self.document and not is_named(document.file_at(start).name, self.document):
            return False
        if self.line and not document.line_of(start) <= self.line <= document.line_of(end - 1):
            return False
        above = iter([_plain(each) for each in document.headings_at(start)])
        # The headings must occur in this order, but other headings may come between them.
        return all(_plain(heading) in above for heading in self.headings)

    def __str__(self) -> str:
        file = f"{self.document}:{self.line}" if self.line else self.document
        return " > ".join(filter(None, (file, *self.headings)))


EVERYWHERE = Which()


class Quote(Struct, frozen=True):
    words: str
    which: Which = EVERYWHERE

    def places(self, document: Document) -> tuple[Range, ...]:
        """Return the ranges to which the quote refers. Empty if the quote does not occur in the given location."""
        found = document.places(self.words)
        return found if self.which == EVERYWHERE else tuple(each for each in found if self.which.holds(each, document))


def read_quote(written: str, document: Document | None = None) -> Quote:
    """Parse a quote and the location in brackets before it.

    If the document contains the brackets too, they belong to the quote.
    """
    match = _WHICH.match(written)
    if match is None or (document is not None and document.places(written)):
        return Quote(written)
    parts = [part.strip() for part in match[1].split(" > ")]
    words = written[match.end() :]
    file, line = parts[0], 0
    if numbered := _LINE.match(parts[0]):
        file, line = numbered[1], int(numbered[2])
    if line or _is_file(file, document):
        return Quote(words, Which(file, tuple(parts[1:]), line))
    return Quote(words, Which(headings=tuple(parts)))


def places_of(written: str, document: Document) -> tuple[Range, ...]:
    """Return the ranges to which a written quote refers. Everything that computes coverage uses this function."""
    return read_quote(written, document).places(document)


def _is_file(name: str, document: Document | None) -> bool:
    if document is None:
        return bool(re.search(r"\.\w{1,5}$", name))
    return any(is_named(file.name, name) for file in document.files)


def is_named(file: str, name: str) -> bool:
    """Whether a name refers to a file: the name is the file's path or the end of the path."""
    return file == name or file.endswith(f"/{name}")


def _plain(heading: str) -> str:
    """Return a heading without numbering and end punctuation, and with normalised spacing and case."""
    words = " ".join(heading.replace("*", "").replace("`", "").split()).casefold().rstrip(":.")
    return re.sub(r"^(?:§\s*)?\d+(?:\.\d+)*[.)]?\s+(?=\S)", "", words)


TEXTS = (".md", ".markdown", ".txt")
"""The extensions of text files in a folder. A file that is named individually may have any extension."""
MOST = 5 * LONGEST
"""The maximum total length of all files, in characters."""
TOO_LONG = f"longer than {LONGEST:,} characters"
PARTED = "pass only the part that the pack needs"
_MISSING = "does not exist"

Reader = Callable[[str, Path], bytes]
"""A function that takes a file's name and path, and returns the file's bytes."""


class DocumentError(Exception):
    """Raised if a document cannot be read. The caller adds the context to the message."""

    def __init__(self, name: str, path: Path, why: str, hint: str = "") -> None:
        super().__init__(why)
        self.name, self.path, self.why, self.hint = name, path, why, hint

    @property
    def is_missing(self) -> bool:
        return self.why == _MISSING


def find_files(name: str, root: Path) -> list[tuple[str, Path]]:
    """Return the named file, or the text files in a folder in order. Empty if the path does not exist or has none."""
    path = root / name
    try:
        if path.is_dir() and not path.samefile(root):
            found = sorted(each for each in path.rglob("*") if _is_text(each, path))
            return [((Path(name) / each.relative_to(path)).as_posix(), each) for each in found]
        return [(name, path)] if path.is_file() else []
    except (OSError, ValueError):
        return []


def read_files(names: Sequence[str], root: Path, read: Reader) -> Document:
    """Read a document from files and folders. Their names are relative to `root`."""
    texts: dict[str, str] = {}
    for name in names:
        files = find_files(name, root)
        if not files:
            raise DocumentError(name, root / name, *_why_none(root / name, root))
        texts |= {each: _text(each, file, read) for each, file in files}
        if sum(map(len, texts.values())) > MOST:
            raise DocumentError(
                name, root / name, f"and the other files together are longer than {MOST:,} characters", PARTED
            )
    if len(texts) == 1:
        ((only, text),) = texts.items()
        return Document(text, name=only)
    title = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
    return Document.joined(list(texts.items()), name=title)


def read_given(path: Path) -> Document:
    """Read a document from a file or folder, wherever it is."""
    if path.is_dir():
        return read_files([path.name], path.parent, lambda _, file: file.read_bytes())
    return Document(_text(path.name, path, lambda _, file: file.read_bytes()), name=path.name)


def _text(name: str, path: Path, read: Reader) -> str:
    try:
        # Check the size before reading. A character takes at most four bytes.
        text = read(name, path).decode() if path.stat().st_size <= 4 * LONGEST else None
    except UnicodeDecodeError:
        raise DocumentError(name, path, "is not UTF-8 text") from None
    except OSError as error:
        raise DocumentError(name, path, f"cannot be read: {(error.strerror or str(error)).lower()}") from None
    if text is None or len(text) > LONGEST:
        raise DocumentError(name, path, f"is {TOO_LONG}", PARTED)
    return text


def _why_none(path: Path, root: Path) -> tuple[str, str]:
    if not isdir(path):
        return _MISSING, ""
    if path.samefile(root):
        return "is the pack's own folder", "name a file or a folder in it"
    return "is a folder without text files", f"the name of a text file must end in {', '.join(TEXTS)}"


def _is_text(path: Path, folder: Path) -> bool:
    hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    return path.suffix.lower() in TEXTS and not hidden and path.is_file()


_IS = r"(?:\s+is(?: now| currently)?|\s*[:=])"
_MOMENT = r"(?:date and time|date|time|day)"
_SAYS_NOW = re.compile(
    rf"(?:\btoday(?:['\u2019]s date)?(?:{_IS}|,)|\bcurrent {_MOMENT}{_IS}|\bit is (?:now|currently)|\bnow is"
    rf"|\bas of today,?|^\W*(?:it(?: is|['\u2019]s)|(?:the )?{_MOMENT}(?: now| today)?{_IS}))"
    r"[\s*_]*(?:\w+day,?\s+)?(?:the\s+)?(?P<when>.{6,60})",
    re.IGNORECASE,
)
_ONLY_AS_OF = re.compile(r"^\W*as of\s+(?:\w+day,?\s+)?(?P<when>\d{4}-\d\d-\d\d|[\w ,.]{4,24}\d{4})\W*$", re.IGNORECASE)
"""Matches a sentence that ends after the date. If it continues, it states an effective date, not the current time."""
_HOUR = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?\s*(am|pm|a\.m\.|p\.m\.)?", re.IGNORECASE)


class Clock(Struct, frozen=True):
    """The current time that a document states, and the sentence that states it."""

    now: str
    sentence: str

    @property
    def by_day(self) -> str:
        """The time. If the document states only a date, this is 10:00 on that date, which is in working hours."""
        return self.now.replace("T00:00:00", "T10:00:00")


def stated_clock(document: Document) -> Clock | None:
    """Return the current time that a document states. If it states only a date, return the start of that day."""
    for sentence in document.sentences:
        said = _SAYS_NOW.search(sentence.text) or _ONLY_AS_OF.search(sentence.text)
        time = _time_in(said["when"]) if said else None
        if time is not None:
            return Clock(time.isoformat(), sentence.text)
    return None


def _time_in(text: str) -> datetime | None:
    """Return the time with which a text starts.

    The text must start with a full, unambiguous date. Otherwise, return None.
    """
    found = [each for each in days(text.lower()) if each.start == 0 and each.year]
    if len(found) != 1:
        return None
    (day,) = found
    clock = _HOUR.search(text[day.end : day.end + 20])
    hour, minute, second = (int(part or 0) for part in clock.group(1, 2, 3)) if clock else (0, 0, 0)
    if clock and clock[4]:
        hour = hour % 12 + (12 if clock[4].lower().startswith("p") else 0)
    try:
        return datetime(day.year, day.month, day.day, hour, minute, second)
    except ValueError:
        return None
