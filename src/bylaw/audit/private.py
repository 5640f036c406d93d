"""Finds private values in a conversation and removes them, however they are spelled.

For example, digits may be grouped differently, a date may be written in words, and a letter may be escaped for JSON,
HTML or a URL.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date
from functools import lru_cache
from html import escape
from html.entities import codepoint2name
from typing import Any, cast
from unicodedata import decomposition, normalize
from urllib.parse import quote

from bylaw.facts.echoes import letters_of
from bylaw.facts.entity import UNSEEN, Field, Key, NoValue
from bylaw.facts.observation import NOTHING, sightings
from bylaw.facts.world import World, WorldRecord
from bylaw.pack import Pack
from bylaw.policy.pattern import compile_pattern
from bylaw.text.day import days
from bylaw.trace.event import Call, Event, Message

_DIGITS = 5
"""The minimum number of digits to search for. Shorter numbers may match by chance."""
_NO_DIGITS = re.compile(r"\D+")
_ASCII_NO_DIGITS = bytes(code for code in range(128) if not chr(code).isdigit())
_LONGEST = 40
_CODE = 3
"""The maximum number of digits in a country code. People often leave the code out."""
_BETWEEN = r"[ \u00a0().,/\-]{0,3}"


class Private:
    def __init__(self, pack: Pack) -> None:
        self._schema = pack.schema
        self.fields: dict[str, dict[str, Field]] = {
            entity.name: marked
            for entity in pack.schema.entities.values()
            if (marked := {name: field for name, field in entity.fields.items() if field.private})
        }
        self._names = {name: f"{entity}.{name}" for entity, marked in self.fields.items() for name in marked}
        said = [
            (f"{entity}.{field.name}", saying)
            for entity, marked in self.fields.items()
            for field in marked.values()
            for saying in field.sayings
        ]
        self._said = [(label, compile_pattern(saying.says)) for label, saying in said if saying.says]
        self._given = [(label, saying.argument) for label, saying in said if saying.argument]
        self._open_names = {
            tool: {
                name for kind in kinds.values() for o in kind for name, f in o.entity.fields.items() if not f.private
            }
            for tool, kinds in pack.schema.shows.items()
        }
        """For each tool, the names of public fields. A field name may be private in one entity and public in another.
        """
        self.by_text = {
            tool
            for tool, kinds in pack.schema.shows.items()
            for o in kinds.values()
            if any(x.text is not None for x in o)
        }
        """Tools whose results may contain private values in free text."""

    def __bool__(self) -> bool:
        return bool(self.fields)

    def in_result(self, tool: str, arguments: Mapping[str, Any], value: Any, text: str | None) -> "Iterator[Found]":
        """Yield the private values in a result. The pack's observations and the field names identify them."""
        shows = self._schema.shows.get(tool, {})
        for entity, marked in self.fields.items():
            for observation in shows.get(entity, ()):
                for sighting in sightings(observation, arguments, value, text, True):
                    for name in marked:
                        mapped = name in observation.fields or observation.text is not None
                        yield f"{entity}.{name}", sighting.show(name), name, mapped
                    for part, name in zip(sighting.key, observation.entity.key, strict=False):
                        if name in marked:
                            yield f"{entity}.{name}", part, name, True
        yield from self._by_name(value, self._open_names.get(tool, _NO_NAMES))

    def in_arguments(self, arguments: Mapping[str, Any]) -> "Iterator[Found]":
        yield from self._by_name(arguments, _NO_NAMES)
        for label, argument in self._given:
            if argument in arguments:
                yield label, arguments[argument], argument, False

    def in_words(self, text: str) -> "Iterator[Found]":
        """Yield the private values in a user's message that match the pack's patterns."""
        for label, pattern in self._said:
            for match in pattern.finditer(text):
                yield label, match[match.lastindex or 0], "", False

    def in_record(self, entity: str, key: Key, record: WorldRecord) -> "Iterator[Found]":
        marked = self.fields.get(entity, {})
        for name in marked:
            if (value := record.get(name, NOTHING)) is not UNSEEN:
                yield f"{entity}.{name}", value, name, False
        for part, name in zip(key, self._schema.entities[entity].key, strict=False):
            if name in marked:
                yield f"{entity}.{name}", part, name, False

    def _by_name(self, value: Any, open_names: AbstractSet[str]) -> "Iterator[Found]":
        waiting = [value]
        while waiting:
            here = waiting.pop()
            if isinstance(here, dict):
                for name, item in cast("dict[Any, Any]", here).items():
                    if name in self._names and name not in open_names:
                        yield self._names[name], item, name, False
                    else:
                        waiting.append(item)
            elif isinstance(here, list):
                waiting.extend(cast("Sequence[Any]", here))


_NO_NAMES: frozenset[str] = frozenset()

Found = tuple[str, Any, str, bool]
"""A private value: its field, the value, the name to search for, and whether an observation extracts it."""


class WatchedWorld:
    """Records which entities with private fields were read from the ground-truth database."""

    def __init__(self, world: World, private: Private) -> None:
        self._world = world
        self._private = private
        self.read: dict[tuple[str, Key], WorldRecord] = {}

    def fork(self) -> "WatchedWorld":
        return WatchedWorld(self._world.fork(), self._private)

    def record(self, entity: str, key: Key) -> WorldRecord | NoValue:
        found = self._world.record(entity, key)
        if entity in self._private.fields and not isinstance(found, NoValue):
            self.read[entity, key] = found
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world, name)


def collect(
    private: Private, events: Sequence[Event], read: Mapping[tuple[str, Key], WorldRecord]
) -> list[tuple[Found, int | None]]:
    """Return the private values in a conversation and in database records, each with the steps of its results."""
    found: list[tuple[Found, int | None]] = []
    for step, event in enumerate(events):
        if isinstance(event, Call):
            found += [(each, None) for each in private.in_arguments(event.arguments)]
        elif isinstance(event, Message):
            found += [(each, None) for each in private.in_words(event.text) if event.by == "user"]
        elif event.captured:
            text = event.text
            call = events[event.call] if event.call is not None else None
            tool, arguments = (call.tool, call.arguments) if isinstance(call, Call) else (event.tool, {})
            value = event.value()
            as_text = text if isinstance(value, str) else None
            found += [(each, step) for each in private.in_result(tool, arguments, value, as_text)]
            if as_text is None and tool in private.by_text:
                # A result with data, such as an error, may also be read as text.
                found += [(each, step) for each in private.in_result(tool, arguments, value, text)]
    for (entity, key), record in read.items():
        found += [(each, None) for each in private.in_record(entity, key, record)]
    return found


def leaves(value: Any, name: str) -> Iterator[tuple[Any, str]]:
    """Yield the strings, numbers and booleans inside a value, each with the name of its field."""
    if value is NOTHING or value is None:
        return
    if value.__class__ is str:
        yield value, name
    elif isinstance(value, dict | Mapping):
        for key, item in cast("Mapping[Any, Any]", value).items():
            yield from leaves(item, str(key))
    elif isinstance(value, list | tuple):
        for item in cast("Sequence[Any]", value):
            yield from leaves(item, name)
    else:
        yield value, name


def respelled(found: Iterable[tuple[Found, int | None]], events: Sequence[Event]) -> Iterator[tuple[Found, int | None]]:
    """Yield, for each private value, its other spellings that occur in the conversation."""
    numbers: dict[str, str] = {}
    dates: dict[date, str] = {}
    rounded: set[str] = set()
    read: set[str] = set()
    for (label, value, name, _), _ in found:
        if value.__class__ is str:
            # Read each value only once, because most values are repeated many times.
            if value in read:
                continue
            read.add(value)
        for leaf, _ in leaves(value, name):
            text = str(int(leaf)) if isinstance(leaf, float) and leaf.is_integer() else str(leaf).strip()
            if len(text) > _LONGEST or sum(map(str.isdigit, text)) < _DIGITS:
                continue
            numbers.setdefault(text, label)
            if isinstance(leaf, float):
                rounded.add(text)
            if (day := _day(text[:10])) is not None:
                dates.setdefault(day, label)
    if not numbers:
        return
    # Put line breaks between the strings. A number cannot contain a line break, so no match can span two strings.
    texts = [*_texts(events)]
    whole = "\n".join(texts)
    digits = _digits_of(whole)
    for number, label in numbers.items():
        # Most numbers have only one spelling. Skip them, because compiling a pattern is the slowest step.
        as_found = 0 if number in rounded else whole.count(number)
        if digits.count(_digits_of(number)[-_DIGITS:]) > as_found:
            yield from (((label, each[0], "", False), None) for each in _grouped(number).finditer(whole))
    years = {str(day.year) for day in dates}
    for text in texts:
        lower = text.lower()
        if len(lower) == len(text) and any(year in text for year in years):
            for each in days(lower):
                for day, label in dates.items():
                    if (each.year, each.month, each.day) == (day.year, day.month, day.day):
                        yield (label, text[each.start : each.end], "", False), None


def _digits_of(text: str) -> str:
    if text.isascii():
        return text.encode().translate(None, _ASCII_NO_DIGITS).decode()
    return _NO_DIGITS.sub("", text)


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _texts(events: Iterable[Event]) -> Iterator[str]:
    for event in events:
        if isinstance(event, Call):
            yield from (leaf for leaf, _ in leaves(event.arguments, "") if isinstance(leaf, str))
        elif event.captured:
            yield event.text


@lru_cache(maxsize=1024)
def _grouped(number: str) -> re.Pattern[str]:
    letters = [re.escape(letter) for letter in letters_of(number)]
    size = _CODE if number.startswith("+") else 0
    # A national number has a leading 0 instead of the country code. An international number may begin with `00`
    # instead of the plus sign.
    zero = f"(?:0{_BETWEEN})?" if size else ""
    code = "".join(f"{zero}(?:{letter}{_BETWEEN})?" for letter in letters[:size]) + zero
    rest = _BETWEEN.join(letters[size:])
    return re.compile(rf"(?<![^\W_])(?:\+|00{_BETWEEN})?{code}{rest}(?![^\W_])", re.IGNORECASE)


ANYWHERE = 6
"""The minimum length of values that are also removed inside a word. Shorter values are removed only as whole words."""
SAYS_LITTLE = 2
"""The maximum length of ambiguous values. These values and booleans are removed only next to their field's name."""

_FIELD = r"""((?:\\*["']){name}(\\*["'])\s*:\s*)(?:\\*["'])?{value}(?:\\*["'])?(?=\s*(?:[,}}\]]|$))"""

_RUN = re.compile(r"[A-Za-z0-9]+")
_SPACE = (
    r"(?:\s|\\+[nrtf]|%20|%0[9a-d]|\+|&nbsp;"
    r"|\\+u(?:00(?:0[9a-d]|1[c-f]|20|85|a0)|1680|20(?:0[0-9a]|2[89f]|5f)|3000))+"
)


class Scrub:
    """Replaces each private value in one conversation with the name of its field."""

    def __init__(self, found: Iterable[tuple[Found, int | None]]) -> None:
        labels: dict[str, str] = {}
        self._fields: dict[tuple[str, str], str] = {}
        self._weak: dict[str, str] = {}
        self._here: dict[int, dict[str, str]] = {}
        for (label, value, name, mapped), step in found:
            if value.__class__ is str and value in labels:
                # Handle each value only once, because most values are repeated many times.
                continue
            for leaf, under in leaves(value, name):
                text = normalize("NFC", _spelled(leaf).strip())
                if is_strong := len(text) > SAYS_LITTLE and not isinstance(leaf, bool):
                    labels.setdefault(text, _tag(label))
                if text and under and not (is_strong and isinstance(leaf, str)):
                    # A number in JSON has no quotes, but the name that replaces it needs them.
                    self._fields.setdefault((under, text), _tag(label))
                if text and not is_strong:
                    self._weak.setdefault(text, _tag(label))
                    if mapped and step is not None:
                        self._here.setdefault(step, {})[text] = _tag(label)
        self._texts = tuple(labels)
        self._labels = {text.lower(): tag for text, tag in labels.items()}
        self._runs = tuple(dict.fromkeys(map(_run, labels)))
        """For each value, a substring that all its spellings share. Text without any of these is not private."""
        self._strong: re.Pattern[str] | None = None
        self.is_empty = not (self._texts or self._fields or self._weak)

    def text(self, text: str, step: int | None = None) -> str:
        """Return the text without private values. With `step`, also remove the short values in that step's result."""
        for (name, value), tag in self._fields.items() if self._fields else ():
            if name in text:
                text = _field(name, value).sub(lambda match, tag=tag: f"{match[1]}{match[2]}{tag}{match[2]}", text)
        if self._texts and self._may_hold(text):
            self._strong = self._strong or _any_of(self._texts)
            text = self._strong.sub(self._name, text)
        for value, tag in self._here.get(step, {}).items() if self._here and step is not None else ():
            text = _alone(value).sub(tag, text)
        return text

    def reason(self, text: str) -> str:
        """Return a verdict's reason without private values, even short ones."""
        text = self.text(text)
        for value, tag in self._weak.items():
            text = _alone(value).sub(tag, text)
        return text

    def data(self, value: Any, name: str = "") -> Any:
        """Return the data without private values. `name` is the field that contains the data."""
        if self.is_empty or value is None:
            return value
        if isinstance(value, Mapping):
            return {self.text(str(k)): self.data(v, str(k)) for k, v in cast("Mapping[Any, Any]", value).items()}
        if isinstance(value, list | tuple):
            return [self.data(item, name) for item in cast("Sequence[Any]", value)]
        text = _spelled(value)
        cleaned = self.text(text)
        if cleaned == text and name:
            pair = f'"{name}":"{text}"'
            tagged = self.text(pair)
            cleaned = text if tagged == pair else tagged[len(name) + 4 : -1]
        return value if cleaned == text else cleaned

    def _may_hold(self, text: str) -> bool:
        # Outside ASCII, changing the case may produce a different letter.
        if not text.isascii():
            return True
        lower = text.lower()
        for run in self._runs:  # noqa: SIM110 - this is the hottest line of writing, and any() is slower
            if run in lower:
                return True
        return False

    def _name(self, match: re.Match[str]) -> str:
        return self._labels.get(normalize("NFC", match[0]).lower(), "[private]")


@lru_cache(maxsize=4096)
def _run(text: str) -> str:
    return max(_RUN.findall(text), key=len, default="").lower()


def _spelled(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


@lru_cache(maxsize=1024)
def _tag(label: str) -> str:
    return f"[{re.sub(r'[^A-Za-z0-9_.-]', '_', label)}]"


def _any_of(texts: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that matches any of the strings, preferring longer ones.

    A trie keeps it fast for thousands of strings.
    """
    long: _Tree = {}
    short: _Tree = {}
    for text in texts:
        node = long if len(text) >= ANYWHERE else short
        for letter in text:
            node = node.setdefault(" " if letter.isspace() else letter.lower() if letter.isascii() else letter, {})
        node[""] = {}
    parts = [_branches(long)] if long else []
    if short:
        # In JSON inside text, a line break is written as `\n`. The letter n in it does not belong to a word.
        parts.append(rf"(?:(?<!\w)|(?<=\\[nrtbf])){_branches(short)}(?!\w)")
    return re.compile("|".join(parts), re.IGNORECASE)


_Tree = dict[str, Any]


def _branches(node: _Tree) -> str:
    written = ""
    while len(node) == 1 and "" not in node:
        ((letter, node),) = node.items()
        written += _letter(letter)
    tails = [_letter(letter) + _branches(below) for letter, below in node.items() if letter]
    if not tails:
        return written
    return f"{written}(?:{'|'.join(tails)}){'?' if '' in node else ''}"


@lru_cache(maxsize=4096)
def _field(name: str, value: str) -> re.Pattern[str]:
    return re.compile(_FIELD.format(name=re.escape(name), value=_letters(value)), re.IGNORECASE)


@lru_cache(maxsize=4096)
def _alone(text: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){_letters(text)}(?!\w)", re.IGNORECASE)


def _letters(text: str) -> str:
    """Return a pattern that matches `text` as it is, or escaped for nested JSON, HTML or a URL."""
    return "".join(map(_letter, text))


@lru_cache(maxsize=4096)
def _letter(letter: str) -> str:
    if letter.isascii() and letter.isalnum():
        return letter
    if letter.isspace():
        return _SPACE
    # The case of letters inside an escape sequence matters.
    forms = {form for each in {letter, letter.lower(), letter.upper()} for form in _escapes(each)}
    for each in {letter, letter.lower(), letter.upper()}:
        # macOS, PDF and some forms store a letter and its accents as separate characters.
        last = decomposition(each) if len(each) == 1 else ""
        halves = "".join(chr(int(part, 16)) for part in last.split()) if last and last[0] != "<" else each
        forms.update("".join(map(_letter, apart)) for apart in {halves, normalize("NFD", each)} - {each})
    slashes = r"\\*" if letter in "\"'\\/" else ""
    return rf"(?:{slashes}(?:{'|'.join(sorted(forms, key=len, reverse=True))}))"


def _escapes(text: str) -> Iterator[str]:
    units = text.encode("utf-16-be", "surrogatepass").hex()
    yield re.escape(text)
    yield re.escape(escape(text))
    yield re.escape(quote(text, safe="", errors="surrogatepass"))
    yield "".join(rf"\\+u{units[at : at + 4]}" for at in range(0, len(units), 4))
    if text == "\b":
        yield r"\\+b"
    yield "".join(rf"&\#0*{ord(letter)};" for letter in text)
    if name := codepoint2name.get(ord(text)) if len(text) == 1 else None:
        yield f"&{name};"
    yield "".join(rf"&\#x0*{ord(letter):x};" for letter in text)
