"""Splits SQL text into tokens and removes comments. Rejects any text that two databases would interpret differently.

SQL can hide a write by ending a string, name or comment where only some databases see the end. So a string, quoted name
or comment is accepted only if its end is certain, either for the named dialect or for all dialects. Quotes and
backslashes inside strings are removed, so that the parser cannot misread the strings either.
"""

import re
from typing import Literal

from msgspec import Struct

from bylaw.reading.unreadable import Unreadable

MAX_CHARACTERS = 100_000
MAX_DEPTH = 24
"""The maximum nesting depth of brackets. Deeper nesting makes the parser much slower."""

Kind = Literal["word", "name", "string", "number", "sign"]


class Token(Struct, frozen=True):
    """A word, quoted name, string, number or sign. The parser receives its `text`."""

    kind: Kind
    text: str
    word: str = ""
    """The word or quoted name in lower case. Empty for any other token."""
    spaced: bool = False
    """Whether white space or a comment directly precedes the token."""


class Lexis(Struct, frozen=True):
    """The syntax of strings, names and comments in a dialect. If a value is None, the text must mean the same with both
    values.
    """

    backslash_escapes: bool | None = None
    hash_comments: bool | None = None
    dash_needs_space: bool | None = None
    dollar_quotes: bool | None = None
    bracket_names: bool | None = None
    triple_quotes: bool | None = None
    executable_comments: bool | None = None


_ANY = Lexis()
_LEXES: dict[str | None, Lexis] = {
    None: _ANY,
    "postgres": Lexis(False, False, False, True, False, False, False),
    "mysql": Lexis(True, True, True, False, False, False, None),
    "sqlite": Lexis(False, False, False, False, True, False, False),
    "tsql": Lexis(False, False, False, False, True, False, False),
}
DIALECTS = tuple(name for name in _LEXES if name is not None)
"""The supported dialects, by the names that `sqlglot` uses.

Other databases have further ways to name a table, which no parser here supports.
"""

_SPACE = re.compile(r"(?:[ \t\n]|\r\n)+")
_WORD = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|(?:[0-9][0-9_]*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_PARAMETER = re.compile(r"\$[0-9]+")
_DOLLAR_TAG = re.compile(r"\$(?:[A-Za-z_][A-Za-z0-9_]*)?\$")
_SIGNS = frozenset("+-*/%<>=!~&|^@#?:.,()[];")
_PLAIN_NAME = re.compile(r"[\w .$@#:/&%+-]+")
_HARMLESS_INDEX = re.compile(r"(?:[\w\s,.:+*?$]|-(?!-)|'[\w\s,.:%-]*')*")
_BAD = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff]")
_LOST = str.maketrans(dict.fromkeys("'\"`\\"))
_RAW_PREFIXES = frozenset({"q", "nq", "r", "rb", "br"})


def read_tokens(text: str, dialect: str | None) -> list[Token]:
    """Return the tokens without comments. Raises `Unreadable` if the end of a token is uncertain."""
    if dialect not in _LEXES:
        raise ValueError(f"`{dialect}` is not a dialect; the dialects are {', '.join(DIALECTS)}")
    if len(text) > MAX_CHARACTERS:
        raise Unreadable(f"the text has more than {MAX_CHARACTERS:,} characters")
    if bad := _BAD.search(text):
        raise Unreadable(
            f"the text contains the control character U+{ord(bad.group()):04X}", line=_line(text, bad.start())
        )
    if (lone := re.search(r"\r(?!\n)", text)) is not None:
        raise Unreadable("the text contains a carriage return without a line feed", line=_line(text, lone.start()))
    return _Scanner(text, _LEXES[dialect]).tokens()


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


class _Scanner:
    def __init__(self, text: str, lexis: Lexis) -> None:
        self.text = text
        self.lexis = lexis
        self.at = 0
        self.found: list[Token] = []
        self.open: list[str] = []

    def tokens(self) -> list[Token]:
        while self.at < len(self.text):
            before = self.at
            self._skip()
            if self.at < len(self.text):
                self._read(spaced=self.at > before)
        if self.open:
            raise self._fault("a bracket is never closed")
        return self.found

    def _fault(self, reason: str) -> Unreadable:
        return Unreadable(reason, line=_line(self.text, self.at))

    def _add(self, kind: Kind, end: int, spaced: bool, *, text: str | None = None, word: str = "") -> None:
        self.found.append(Token(kind, self.text[self.at : end] if text is None else text, word, spaced))
        self.at = end

    def _skip(self) -> None:
        while True:
            here = self.at
            if space := _SPACE.match(self.text, here):
                self.at = space.end()
            elif self.text.startswith("--", here) and self._is_dash_comment():
                self._pass_line()
            elif self.text.startswith("/*", here):
                self._pass_block()
            elif self.text.startswith("#", here) and self._is_hash_comment():
                self._pass_line()
            else:
                return

    def _is_dash_comment(self) -> bool:
        after = self.text[self.at + 2 : self.at + 3]
        if self.lexis.dash_needs_space is False or after in ("", " ", "\t", "\n", "\r"):
            return True
        if self.lexis.dash_needs_space:
            return False
        raise self._fault("`--` without a space after it is a comment only in some databases")

    def _is_hash_comment(self) -> bool:
        if self.lexis.hash_comments is None:
            raise self._fault("`#` begins a comment only in some databases")
        return self.lexis.hash_comments

    def _pass_line(self) -> None:
        end = self.text.find("\n", self.at)
        self.at = len(self.text) if end < 0 else end + 1

    def _pass_block(self) -> None:
        end = self.text.find("*/", self.at + 2)
        if end < 0:
            raise self._fault("a comment is never closed")
        inside = self.text[self.at + 2 : end]
        # Include the final `*`, because `/*/ ... /*/` is nested too.
        if "/*" in f"{inside}*":
            raise self._fault("a nested comment, which ends elsewhere in some databases")
        if inside.startswith(("!", "M!", "+")) and self.lexis.executable_comments is not False:
            raise self._fault("a comment that some databases execute")
        self.at = end + 2

    def _read(self, *, spaced: bool) -> None:
        here = self.text[self.at]
        if here in "'\"":
            self._read_quoted(here, spaced)
        elif here == "`":
            self._read_name("`", spaced)
        elif here == "[":
            self._read_bracket(spaced)
        elif here == "$":
            self._read_dollar(spaced)
        elif word := _WORD.match(self.text, self.at):
            self._read_word(word.group(), word.end(), spaced)
        elif number := _NUMBER.match(self.text, self.at):
            if _WORD.match(self.text, number.end()):
                raise self._fault("a number runs into a word")
            self._add("number", number.end(), spaced)
        elif self.text.startswith("//", self.at):
            raise self._fault("`//` begins a comment in some databases")
        elif here in _SIGNS:
            self._bracket(here)
            self._add("sign", self.at + 1, spaced)
        else:
            raise self._fault(f"`{here}` outside a string")

    def _read_word(self, word: str, end: int, spaced: bool) -> None:
        after = self.text[end : end + 1]
        if after == "$" or (after == "&" and word.lower() == "u" and self.text[end + 1 : end + 2] in ("'", '"')):
            raise self._fault(f"`{word}{after}` is split differently by some databases")
        if after in ("'", '"') and (word.lower() in _RAW_PREFIXES or word.startswith("_")):
            raise self._fault(f"a string with the prefix `{word}`")
        if after == "'" and word.lower() in ("e", "b", "x", "n"):
            self.at = end
            self._read_quoted("'", spaced, escapes=True if word.lower() == "e" and self.lexis.dollar_quotes else None)
            return
        self._add("word", end, spaced, word=word.lower() if word.isascii() else word)

    def _read_quoted(self, quote: str, spaced: bool, *, escapes: bool | None = None) -> None:
        text, start = self.text, self.at
        if self.lexis.triple_quotes is None and text.startswith(quote * 3, start):
            raise self._fault("three quotes in a row begin a longer string in some databases")
        # PostgreSQL and related databases treat this string as a continuation of the previous one, which may have
        # contained escapes.
        goes_on = bool(self.lexis.dollar_quotes and self.found and self.found[-1].kind == "string")
        escapes = self.lexis.backslash_escapes if escapes is None and not goes_on else escapes
        plain, escaped = _end(text, start, quote, escapes=False), _end(text, start, quote, escapes=True)
        if escapes is None and plain != escaped:
            raise self._fault("a backslash before a quote ends the string only in some databases")
        end = escaped if escapes else plain
        if end < 0:
            raise self._fault("a string is never closed")
        inside = text[start + 1 : end - 1]
        content = inside.translate(_LOST)
        if quote == "'":
            self._add("string", end, spaced, text=f"'{content}'")
        elif not content or content != inside:
            raise self._fault("a quoted name or string with quotes in it")
        else:
            self._add("name", end, spaced, text=f'"{content}"', word=content.lower())

    def _read_name(self, quote: str, spaced: bool) -> None:
        end = self.text.find(quote, self.at + 1)
        content = self.text[self.at + 1 : end] if end > 0 else ""
        if not _PLAIN_NAME.fullmatch(content) or self.text.startswith(quote, end + 1):
            raise self._fault("a quoted name with characters other than letters, digits and spaces")
        self._add("name", end + 1, spaced, word=content.lower())

    def _read_bracket(self, spaced: bool) -> None:
        if self.lexis.bracket_names:
            end = self.text.find("]", self.at)
            content = self.text[self.at + 1 : end] if end > 0 else ""
            if not _PLAIN_NAME.fullmatch(content) or self.text.startswith("]", end + 1):
                raise self._fault("a quoted name with characters other than letters, digits and spaces")
            self._add("name", end + 1, spaced, word=content.lower())
            return
        if self.lexis.bracket_names is None:
            end = self.text.find("]", self.at)
            if end < 0 or not _HARMLESS_INDEX.fullmatch(self.text, self.at + 1, end):
                raise self._fault("square brackets quote a name only in some databases")
        self._bracket("[")
        self._add("sign", self.at + 1, spaced)

    def _read_dollar(self, spaced: bool) -> None:
        if parameter := _PARAMETER.match(self.text, self.at):
            self._add("number", parameter.end(), spaced, text="1")
            return
        tag = _DOLLAR_TAG.match(self.text, self.at)
        if tag is None or not self.lexis.dollar_quotes:
            raise self._fault("`$` begins a string only in some databases")
        end = self.text.find(tag.group(), tag.end())
        if end < 0:
            raise self._fault("a string is never closed")
        content = self.text[tag.end() : end].translate(_LOST)
        self._add("string", end + len(tag.group()), spaced, text=f"'{content}'")

    def _bracket(self, sign: str) -> None:
        if sign in "([":
            self.open.append(sign)
            if len(self.open) > MAX_DEPTH:
                raise self._fault(f"more than {MAX_DEPTH} nested brackets")
        elif sign in ")]" and (not self.open or self.open.pop() + sign not in ("()", "[]")):
            raise self._fault(f"`{sign}` closes nothing")


def _end(text: str, start: int, quote: str, *, escapes: bool) -> int:
    """Return the position after the string that starts at `start`, or -1 if the string does not end."""
    at = start + 1
    while at < len(text):
        here = text[at]
        if here == "\\" and escapes:
            at += 2
        elif here != quote:
            at += 1
        elif text.startswith(quote, at + 1):
            at += 2
        else:
            return at + 1
    return -1
