"""Removes the private values of one conversation from everything that is written, in any spelling."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from html import escape
from typing import Any, cast
from unicodedata import decomposition, normalize
from urllib.parse import quote

from bylaw.audit.private import Found, leaves

ANYWHERE = 6
"""A value of this length is removed even inside a word; a shorter one only as a whole word."""
SAYS_LITTLE = 2
"""Shorter values and booleans are removed next to their field's name only: in prose they are ambiguous."""

_FIELD = r"""((?:\\*["']){name}(\\*["'])\s*:\s*)(?:\\*["'])?{value}(?:\\*["'])?(?=\s*(?:[,}}\]]|$))"""

_RUN = re.compile(r"[A-Za-z0-9]+")
_ESCAPES = ("\\", "%", "&")
"""Every other spelling of a letter contains one of these."""
_SPELLED_OTHERWISE = re.compile(r"[\s\"'\\/]")
"""Characters with other spellings that contain none of these."""
_SPACE = (
    r"(?:\s|\\+[nrtf]|%20|%0[9a-d]|\+|&nbsp;"
    r"|\\+u(?:00(?:0[9a-d]|1[c-f]|20|85|a0)|1680|20(?:0[0-9a]|2[89f]|5f)|3000))+"
)


class Scrub:
    """The private values of one conversation, each replaced by the name of its field."""

    def __init__(self, found: Iterable[tuple[Found, int | None]]) -> None:
        labels: dict[str, str] = {}
        self._fields: dict[tuple[str, str], str] = {}
        self._weak: dict[str, str] = {}
        self._here: dict[int, dict[str, str]] = {}
        for (label, value, name, mapped), step in found:
            if value.__class__ is str and value in labels:
                # Most values are shown again and again.
                continue
            for leaf, under in leaves(value, name):
                text = normalize("NFC", _spelled(leaf).strip())
                if is_strong := len(text) > SAYS_LITTLE and not isinstance(leaf, bool):
                    labels.setdefault(text, _tag(label))
                if text and under and not (is_strong and isinstance(leaf, str)):
                    # A number in JSON has no quotes, but its replacement needs them.
                    self._fields.setdefault((under, text), _tag(label))
                if text and not is_strong:
                    self._weak.setdefault(text, _tag(label))
                    if mapped and step is not None:
                        self._here.setdefault(step, {})[text] = _tag(label)
        self._texts = tuple(labels)
        self._labels = {text.lower(): tag for text, tag in labels.items()}
        self._runs = tuple(dict.fromkeys(map(_run, labels)))
        """Parts of the values that are the same in every spelling: a text without them contains no value."""
        self._encoded_runs = [run.encode() for run in self._runs]
        self._strong: re.Pattern[str] | None = None
        self._is_literal = all(map(_is_literal, labels))
        """Whether texts without escapes can contain the values in one spelling only."""
        self.is_empty = not (self._texts or self._fields or self._weak)
        """Whether there are no private values."""

    def may_stand_in(self, line: bytes) -> bool:
        """Whether an encoded record may contain a private value."""
        if self.is_empty:
            return False
        if self._fields or self._weak or not line.isascii():
            return True
        lower = line.lower()
        for run in self._encoded_runs:  # noqa: SIM110 - asked of every line and every call of a conversation
            if run in lower:
                return True
        return False

    def text(self, text: str, step: int | None = None) -> str:
        """A text without private values; at a result's step, also without short ones that it shows elsewhere."""
        for (name, value), tag in self._fields.items() if self._fields else ():
            if name in text:
                text = _field(name, value).sub(lambda match, tag=tag: f"{match[1]}{match[2]}{tag}{match[2]}", text)
        if self._texts and self._may_hold(text):
            text = self._without_strong(text)
        for value, tag in self._here.get(step, {}).items() if self._here and step is not None else ():
            text = _alone(value).sub(tag, text)
        return text

    def reason(self, text: str) -> str:
        """A verdict's reason without private values, short ones included."""
        text = self.text(text)
        for value, tag in self._weak.items():
            text = _alone(value).sub(tag, text)
        return text

    def data(self, value: Any, name: str = "") -> Any:
        """Data without private values; `name` is its field name."""
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
        # Beyond ASCII there are letters that count as others in another case.
        if not text.isascii():
            return True
        lower = text.lower()
        for run in self._runs:  # noqa: SIM110 - this is the hottest line of writing, and any() is slower
            if run in lower:
                return True
        return False

    def _without_strong(self, text: str) -> str:
        if self._is_literal and text.isascii() and not any(sign in text for sign in _ESCAPES):
            return self._without_literal(text)
        if self._strong is None:
            self._strong = _any_of(self._texts)
        return self._strong.sub(self._name, text)

    def _without_literal(self, text: str) -> str:
        """The same if no other spelling is possible: compiling a pattern would add 20 % to an audit."""
        lower = text.lower()
        found: list[tuple[int, bool, int, str]] = []
        for value, tag in self._labels.items():
            size, at = len(value), lower.find(value)
            is_short = size < ANYWHERE
            while at >= 0:
                if not (is_short and (_is_word(lower[at - 1 : at]) or _is_word(lower[at + size : at + size + 1]))):
                    found.append((at, is_short, -size, tag))
                at = lower.find(value, at + 1)
        found.sort()
        parts: list[str] = []
        done = 0
        for at, _, size, tag in found:
            if at >= done:
                parts += (text[done:at], tag)
                done = at - size
        return "".join([*parts, text[done:]])

    def _name(self, match: re.Match[str]) -> str:
        return self._labels.get(normalize("NFC", match[0]).lower(), "[private]")


@lru_cache(maxsize=4096)
def _run(text: str) -> str:
    return max(_RUN.findall(text), key=len, default="").lower()


@lru_cache(maxsize=4096)
def _is_literal(text: str) -> bool:
    return text.isascii() and not _SPELLED_OTHERWISE.search(text)


def _is_word(letter: str) -> bool:
    return letter.isalnum() or letter == "_"


def _spelled(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


@lru_cache(maxsize=1024)
def _tag(label: str) -> str:
    return f"[{re.sub(r'[^A-Za-z0-9_.-]', '_', label)}]"


def _any_of(texts: Iterable[str]) -> re.Pattern[str]:
    """Any of the texts, the longest that fits; as a tree of letters, so that a list of thousands stays cheap."""
    long: _Tree = {}
    short: _Tree = {}
    for text in texts:
        node = long if len(text) >= ANYWHERE else short
        for letter in text:
            node = node.setdefault(" " if letter.isspace() else letter.lower() if letter.isascii() else letter, {})
        node[""] = {}
    parts = [_branches(long)] if long else []
    if short:
        # In JSON inside a text, a line break is the two characters `\n`: this n is not part of a word.
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
    """A pattern for `text` as it is, and as JSON inside JSON, HTML and addresses spell it."""
    return "".join(map(_letter, text))


@lru_cache(maxsize=4096)
def _letter(letter: str) -> str:
    if letter.isascii() and letter.isalnum():
        return letter
    if letter.isspace():
        return _SPACE
    # Escapes hide the case of a letter from the pattern.
    forms = {form for each in {letter, letter.lower(), letter.upper()} for form in _escapes(each)}
    for each in {letter, letter.lower(), letter.upper()}:
        # A letter and its marks may be separate characters, as macOS, PDF and some forms write them.
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
    yield "".join(rf"&\#x0*{ord(letter):x};" for letter in text)
