"""Where an argument's value came from: the reverse of asking what an agent has seen.

Nothing is indexed beforehand. A question costs a text search over the events before the call, and a
result is decoded only where the value stands in it and it matters whether as a field or in free text.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import product
from typing import Any, Literal, cast

import msgspec
import yaml
from msgspec import Raw, Struct

from bylaw.trace.event import Event, Message, Result

OriginKind = Literal["user", "host", "record", "text", "nowhere"]

_LEAVES = 20_000
_PARSED = 200_000
_VALUE = 200
_OCCURRENCES = 50
_LISTING_WORDS = 10
_PROSE_WORDS = 6
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_NUMBERS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SPOKEN = 10_000
"""Numbers up to here may be written out."""
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[T ]\d\d:\d\d(?::\d\d)?\S*)?")
_BREAK = re.compile(r"[\s<>\\\"'(),;]+|:(?!//)")
_RUN = re.compile(r"[^\W\d_]+|\d+")
_DIGITS = re.compile(r"[0-9]+")
_TRIM = ".,;:!?'\"()"
_FOREIGN_LETTER = re.compile(
    "[^\\x00-\\x7f\xa0-\xb4\xb6-\xbf\xd7\xf7\u2000-\u20cf\u2190-\u23ff\u2500-\u2bff\ufe0f\U0001f300-\U0001faff]"
)
"""Anything but letters without marks, and signs that have no case: quotes, dashes, arrows, currencies, emoji."""

_Loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class ValueOrigin(Struct, frozen=True):
    """The best-founded place a value came from: the user's words, the host, a record, free text, or none."""

    kind: OriginKind
    step: int | None = None
    """The message or result that showed it first; None for the host and for nowhere."""
    tool: str = ""
    """The tool whose result showed it."""


NOWHERE = ValueOrigin("nowhere")


class Provenance:
    """Answers, for one conversation, where values came from. `events` may grow while it is in use."""

    def __init__(
        self, events: Sequence[Event], *, instructions: str = "", context: Mapping[str, Any] | None = None
    ) -> None:
        self._events = events
        self._host = _fold_long(" \n ".join([instructions, *(str(value) for value in (context or {}).values())]))
        self._texts: dict[int, str] = {}
        self._folded: dict[int, str] = {}
        self._users: list[int] = []
        self._results: list[int] = []
        self._indexed = 0

    def origin(self, value: Any, *, before: int) -> ValueOrigin:
        """Where `value` came from, as of the events before step `before`."""
        spelling = spell(value)
        if spelling is None:
            return NOWHERE
        self._index()
        for step in self._users:
            if step >= before:
                break
            if spelling.said_in(self._words(step)):
                return ValueOrigin("user", step)
        if _says(self._host, value):
            return ValueOrigin("host")
        return self._shown(spelling, before)

    def text(self, step: int) -> str:
        """What the result at `step` holds, as text."""
        text = self._texts.get(step)
        if text is None:
            event = self._events[step]
            assert isinstance(event, Result)
            text = self._texts[step] = result_text(event)
        return text

    def _index(self) -> None:
        for step in range(self._indexed, len(self._events)):
            event = self._events[step]
            if isinstance(event, Result):
                if event.captured:
                    self._results.append(step)
            elif isinstance(event, Message) and event.by == "user":
                self._users.append(step)
        self._indexed = len(self._events)

    def _words(self, step: int) -> str:
        words = self._folded.get(step)
        if words is None:
            event = self._events[step]
            assert isinstance(event, Message)
            words = self._folded[step] = fold(event.text)
        return words

    def _shown(self, spelling: "Spelling", before: int) -> ValueOrigin:
        loose: ValueOrigin | None = None
        for step in self._results:
            if step >= before:
                break
            text = self.text(step)
            if not spelling.stands_in(text):
                continue
            if spelling.is_field_of(text):
                return ValueOrigin("record", step, self._tool(step))
            loose = loose or ValueOrigin("text", step, self._tool(step))
        return loose or NOWHERE

    def _tool(self, step: int) -> str:
        result = self._events[step]
        assert isinstance(result, Result)
        call = None if result.call is None else self._events[result.call]
        return result.tool or str(getattr(call, "tool", ""))


class Spelling:
    """The ways one value may be written in words, and in data."""

    def __init__(self, value: str | float) -> None:
        self._is_number = not isinstance(value, str)
        plain = value if isinstance(value, str) else _canonical(value)
        self._folded = fold(plain)
        self._written: tuple[str, ...] = (plain,)
        if not plain.isascii() or '"' in plain or "\\" in plain or not plain.isprintable():
            self._written = tuple(dict.fromkeys((plain, *(_escaped(plain, ascii=flag) for flag in (False, True)))))
        # Of a number how its whole part is said, and its fraction.
        self._fraction, self._day = "", None
        if isinstance(value, str):
            self._parts, self._day = _date(plain)
        else:
            self._parts, self._fraction = _number(value)
        self.mark = max(_DIGITS.findall(plain), key=len, default="") if not self._parts else ""
        """Figures that stand in whatever says it, in upper case or lower; empty where it has none, or may be said
        without."""

    @cached_property
    def runs(self) -> tuple[tuple[str, ...], ...]:
        """By the ways it may be said, the runs of letters and digits that folded words must hold, all of one way."""
        if self._is_number:
            return tuple(runs_of(part.lstrip("-")) for part in self._parts)
        found = _DATE.fullmatch(self._written[0]) if self._parts else None
        # A year and a day may stand within longer numbers where all three are written with dashes; a month cannot.
        other = ((str(int(found[3])),), (found[3],), (found[2],)) if found is not None else ()
        return (runs_of(self._folded), *other)

    def said_in(self, words: str) -> bool:
        """Whether folded `words` say the value, in any usual form of dates, amounts and small numbers."""
        if not self._is_number and occurs(self._folded, words) >= 0:
            return True
        return self._matches(words)

    def stands_in(self, text: str) -> bool:
        """Whether the value stands in a result's text at all."""
        if self._is_number:
            return self._matches(text)
        return any(occurs(written, text) >= 0 for written in self._written)

    def is_field_of(self, text: str) -> bool:
        """Whether the value is a whole field (or key, or list member) of the data in `text`."""
        if not self._is_number and text[:1] in ("{", "[") and any(f'"{form}"' in text for form in self._written):
            return _is_json(text) or self._folded in fields_of(text)
        return (self._is_number or self._opens_a_field(text)) and self._folded in fields_of(text)

    def _opens_a_field(self, text: str) -> bool:
        """Whether the value ever stands where a field could begin; if not, the text need not be parsed."""
        for written in self._written:
            here = occurs(written, text)
            for _ in range(_OCCURRENCES):
                if here < 0:
                    break
                if text[max(0, here - 12) : here].rstrip(" \"'\\")[-1:] in ("", "\n", ":", "-", "[", "{", ",", "\t"):
                    return True
                here = occurs(written, text, here + len(written))
            else:
                return True
        return False

    def _matches(self, text: str) -> bool:
        for part in self._parts:
            if part in text:
                if self._day is not None:
                    return self._is_day_in(text)
                if _is_said(part, self._fraction, text):
                    return True
        return False

    def _is_day_in(self, text: str) -> bool:
        assert self._day is not None
        year, month, day = self._day
        if f"{year}-{month:02}-{day:02}" in text or _is_day_named(month, day, text):
            return True
        if not any(figures in text for figures in self._parts[1:]):
            return False
        told = _days_in_figures(text)
        return (month, day) in told or (year, month, day) in told or (year[2:], month, day) in told


def spell(value: Any) -> Spelling | None:
    """How `value` may be written; None for what leaves no trace in words (true, null, objects, empty text)."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)) or value == "":
        return None
    return _spelling(value)


@lru_cache(maxsize=4096, typed=True)
def _spelling(value: str | float) -> Spelling:
    return Spelling(value)


def leaf_values(arguments: Any) -> Iterator[tuple[str, str | int | float]]:
    """The traceable values inside a call's arguments, each with its path, e.g. `flights[].date`.

    Of running text only the identifiers in it (addresses, links, codes) are traced: the rest is composed.
    """
    pending: list[tuple[str, Any]] = [("", arguments)]
    left = _LEAVES
    while pending and left:
        path, value = pending.pop()
        left -= 1
        if isinstance(value, dict):
            items = cast("dict[Any, Any]", value).items()
            pending.extend((f"{path}.{name}" if path else str(name), part) for name, part in items)
        elif isinstance(value, list):
            pending.extend((f"{path}[]", part) for part in cast("list[Any]", value))
        elif isinstance(value, str) and is_prose(value):
            yield from ((path, token) for token in identifiers(value))
        elif isinstance(value, (str, int, float)) and not isinstance(value, bool) and value != "":
            yield path, value


def is_prose(text: str) -> bool:
    """Whether `text` is something composed rather than a value taken from somewhere."""
    return len(text) > 80 or text.count(" ") >= _PROSE_WORDS or "\n" in text


def identifiers(text: str) -> list[str]:
    """The addresses, links and codes inside running text, without repeats."""
    found = (token.strip(_TRIM) for token in _BREAK.split(text[:_PARSED]))
    return list(dict.fromkeys(token for token in found if is_identifier(token)))


@lru_cache(maxsize=4096)
def is_identifier(value: str) -> bool:
    """Whether `value` looks like the name of one thing: a code, an address or a link, not a word or a date."""
    if len(value) < 3 or len(value) > 200 or any(character.isspace() for character in value):
        return False
    if "://" in value or value.startswith("www.") or re.fullmatch(r"[^@]+@[^@]+\.[^@]+", value):
        return True
    if not any(character.isdigit() for character in value) or re.fullmatch(r"[\d.,:/-]+(?:T[\d.:Z+-]+)?", value):
        return value.isdigit() and len(value) >= 6
    return any(character.isalpha() for character in value)


def result_text(result: Result) -> str:
    """A result's content as text, whether or not it came as JSON."""
    content = result.content
    return bytes(content).decode("utf-8", "replace") if isinstance(content, Raw) else content


def occurs(value: str, text: str, start: int = 0) -> int:
    """Where `value` stands in `text` as a whole word, or -1."""
    if not value:
        return -1
    here = text.find(value, start)
    while here >= 0:
        end = here + len(value)
        if not (here and _joins(text[here - 1], value[0])) and not (end < len(text) and _joins(text[end], value[-1])):
            return here
        here = text.find(value, here + 1)
    return -1


def _joins(outer: str, inner: str) -> bool:
    return (outer.isalnum() or outer == "_") and (inner.isalnum() or inner == "_")


def runs_of(text: str) -> tuple[str, ...]:
    """The runs of letters and the runs of digits in a folded text. What `occurs` in it has all its own among them."""
    return tuple(_RUN.findall(text))


def fold(text: str) -> str:
    """`text` with case, underscores and runs of white space made alike, so that words can be compared."""
    if not text.isascii() and _FOREIGN_LETTER.search(text) is None:
        # To fold a text with a single dash or quote in it, letter by letter, costs tens of times as much.
        folded = text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")
    else:
        folded = text.casefold()
    return " ".join(folded.replace("_", " ").split())


fold_name = lru_cache(maxsize=8192)(fold)
"""The same for the short texts of records, which come up again and again."""

# Conversations of one log mostly share their instructions: folded once, asked once.
_fold_long = lru_cache(maxsize=16)(fold)


@lru_cache(maxsize=8192, typed=True)
def _says(host: str, value: str | float) -> bool:
    return bool(host) and _spelling(value).said_in(host)


def _escaped(text: str, *, ascii: bool) -> str:
    return json.dumps(text, ensure_ascii=ascii)[1:-1]


def _canonical(number: float) -> str:
    whole = math.isfinite(number) and abs(number) < 1e15 and number == int(number)
    return str(int(number)) if whole else str(number)


def _number(number: float) -> tuple[tuple[str, ...], str]:
    """How the whole part of a number may be said, and its fraction."""
    whole, _, part = _canonical(number).partition(".")
    spoken = [whole]
    if whole.lstrip("-").isdigit() and len(whole) < 20:
        spoken += [(grouped := f"{int(whole):,}"), grouped.replace(",", "'"), grouped.replace(",", "\u2019")]
    if not part and whole.isdigit() and int(whole) < _SPOKEN:
        spoken += _in_words(int(whole))
    return tuple(dict.fromkeys(spoken)), part


def _in_words(number: int) -> list[str]:
    """How a number is written out: `two hundred and fifty`, `two hundred fifty`."""
    if number < len(_NUMBERS):
        return [_NUMBERS[number]]
    if number < 100:
        ten, one = divmod(number, 10)
        return [f"{_TENS[ten]}{mark}{_NUMBERS[one]}" for mark in "- "] if one else [_TENS[ten]]
    word, size = ("thousand", 1_000) if number >= 1_000 else ("hundred", 100)
    head, rest = divmod(number, size)
    heads = [f"{each} {word}" for each in _in_words(head)] + [f"a {word}"] * (head == 1)
    if number >= 1_000 and not number % 100 and number < 10_000 and number % 1_000:
        heads_in_hundreds = [f"{each} hundred" for each in _in_words(number // 100)]
    else:
        heads_in_hundreds = []
    if not rest:
        return heads
    joined = [f"{one}{mark}{two}" for one in heads for mark in (" ", " and ") for two in _in_words(rest)]
    return [*joined, *heads_in_hundreds]


def _is_said(whole: str, part: str, text: str) -> bool:
    """Whether a number stands in a text, perhaps with noughts after its fraction, and not within another number."""
    here = text.find(whole)
    while here >= 0:
        end = here + len(whole)
        if _begins(text, here):
            fraction = f".{part}" if part else ".0"
            if text.startswith(f",{part:0<2}", end) and len(part) < 3:
                # "250,00": nobody groups two figures.
                end += 3
            elif text.startswith(fraction, end):
                end += len(fraction)
                while text[end : end + 1] == "0":
                    end += 1
            elif part:
                end = len(text) + 1
            after = text[end : end + 2]
            is_more = after[:1].isalnum() or after[:1] == "_" or (after[:1] in (".", ",") and after[1:].isdecimal())
            if end <= len(text) and not is_more:
                return True
        here = text.find(whole, here + 1)
    return False


def _begins(text: str, here: int) -> bool:
    """Whether no word and no number goes on at a place."""
    before = text[here - 1] if here else " "
    if before.isalnum() or before in "_-":
        return False
    return before not in ".," or not text[max(0, here - 2) : here - 1].isdecimal()


def _date(text: str) -> tuple[tuple[str, ...], tuple[str, int, int] | None]:
    """Of a date the parts of which a text must hold one for it to be said there, and its year, month and day."""
    match = _DATE.fullmatch(text)
    if match is None or not 1 <= int(match[2]) <= 12:
        return (), None
    month, day = int(match[2]), int(match[3])
    days, months = {str(day), match[3]}, {str(month), match[2]}
    figures = {f"{one}{mark}{two}" for mark in "/.-" for one, two in (*product(months, days), *product(days, months))}
    return (_MONTHS[month - 1][:3], *sorted(figures)), (match[1], month, day)


_FIGURES = r"(0?[1-9][0-9]?)"
_DAY_AFTER = re.compile(rf"(?:the )?{_FIGURES}(?!\d)")
_DAY_BEFORE = re.compile(rf"(?<!\d){_FIGURES}(?:st|nd|rd|th)? (?:of )?$")
_TWO_FIGURES = re.compile(rf"(?<!\d){_FIGURES}(?=[/.-]{_FIGURES}(?!\d))")
_THREE_FIGURES = re.compile(rf"(?<!\d){_FIGURES}(?=[/.-]{_FIGURES}[/.-]([0-9]{{4}}|[0-9]{{2}})(?!\d))")
_LEAD = 12
"""Letters before the name of a month among which its day may stand."""


def _is_day_named(month: int, day: int, words: str) -> bool:
    """Whether folded words name a day: `may 5`, `5th of may`."""
    name = _MONTHS[month - 1]
    here = words.find(name[:3])
    while here >= 0:
        for called in (name[:3], name[:4], name):
            end = here + len(called)
            end += len(called) < 5 and words.startswith(". ", end)
            if words.startswith(called, here) and words[end : end + 1] == " ":
                after = _DAY_AFTER.match(words, end + 1)
                if after is not None and int(after[1]) == day:
                    return True
        before = _DAY_BEFORE.search(words, max(0, here - _LEAD), here)
        if before is not None and int(before[1]) == day:
            return True
        here = words.find(name[:3], here + 1)
    return False


@lru_cache(maxsize=512)
def _days_in_figures(words: str) -> frozenset[tuple[int, int] | tuple[str, int, int]]:
    """The days that folded words tell in figures: by month and day, and with the year where the day stands first."""
    days = {(int(month), int(day)) for month, day in _TWO_FIGURES.findall(words)}
    dated = {(year, int(month), int(day)) for day, month, year in _THREE_FIGURES.findall(words)}
    return frozenset((*days, *dated))


@lru_cache(maxsize=256)
def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text, type=Raw)
    except msgspec.DecodeError:
        return False
    return True


@lru_cache(maxsize=256)
def fields_of(text: str) -> frozenset[str]:
    """Every whole value, key and list member of the data in `text`, folded; for plain text, the text itself.

    Data is JSON, what YAML reads as a mapping or a list, or a plain listing of short lines, perhaps under a label.
    """
    found: set[str] = {fold(text)} if len(text) <= _VALUE else set()
    data = _parse(text)
    if isinstance(data, str) or (isinstance(data, dict) and len(cast("dict[Any, Any]", data)) == 1):
        found.update(_listed(text))
    pending: list[Any] = [data]
    left = _LEAVES
    while pending and left:
        left -= 1
        value = pending.pop()
        if isinstance(value, dict):
            mapping = cast("dict[Any, Any]", value)
            found.update(fold(str(name)) for name in mapping)
            pending.extend(mapping.values())
        elif isinstance(value, list):
            pending.extend(cast("list[Any]", value))
        elif isinstance(value, str) and value is not text:
            if value[:1] in ("{", "["):
                pending.append(_decoded(value))
            elif len(value) <= _VALUE:
                found.update((fold(value), _as_number(value)))
        elif isinstance(value, (int, float)):
            found.add(_canonical(value))
    return frozenset(found)


def _as_number(text: str) -> str:
    try:
        return _canonical(float(text)) if len(text) < 20 else text
    except ValueError:
        return text


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def _parse(text: str) -> Any:
    """The data in a result's text: from JSON, else from YAML (which also reads Python's own notation)."""
    data = _decoded(text)
    if data is not None or len(text) > _PARSED or not (":" in text or text.lstrip()[:1] in ("-", "[", "{")):
        return text if data is None else data
    try:
        data = yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, RecursionError, ValueError):
        return text
    return cast("Any", data) if isinstance(data, dict | list) else text


def _listed(text: str) -> set[str]:
    """The members of a plain listing; nothing where any line reads like prose."""
    lines = [line.strip() for line in text[:_PARSED].splitlines() if line.strip()]
    if len(lines) < 2 or any(line.count(" ") >= _LISTING_WORDS for line in lines):
        return set()
    return {fold(part) for line in lines for part in (line, line.partition(":")[2].strip()) if part}
