"""A word of a shell command, without its quotes. It is either exact or unknown until the command runs."""

import re
from typing import Literal

from msgspec import Struct

from bylaw.reading.unreadable import Unreadable

Kind = Literal["exact", "one", "many"]


class Word(Struct, frozen=True):
    """A word. If `kind` is `exact`, `text` is its value. Otherwise, it is the text as written.

    `one` is one word that contains `~` or a quoted expansion. `many` is any number of words: a pattern of file names,
    braces or an expansion.
    """

    text: str
    kind: Kind = "exact"

    @property
    def is_exact(self) -> bool:
        return self.kind == "exact"

    @property
    def may_be_option(self) -> bool:
        """Whether the word may begin with a hyphen."""
        if self.is_exact:
            return self.text.startswith("-")
        return self.kind == "many" or self.text.lstrip("\"'")[:1] in ("$", "`", "-", "\\", "")


_ENDS_WORD = frozenset(" \t\n;|&()<>")
_EXPANDS = re.compile(r"\$[A-Za-z_0-9{(\[@*#?!$-]")
_ANSI = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))", re.DOTALL)
_ANSI_LETTERS = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", '"': '"', "?": "?",
}  # fmt: skip


def read_word(written: str, residue: str, *, expands_outside: bool = False, expands_inside: bool = False) -> Word:
    """Return the meaning of the word in `written`.

    The flags say whether the grammar found an expansion outside or inside double quotes. `residue` is the word with
    each expansion replaced by a letter. An expansion that the grammar missed is `Unreadable`.
    """
    word = _Unquoting(residue).word()
    if expands_outside:
        return Word(written, "many")
    return Word(written, "one") if expands_inside else word


class _Unquoting:
    def __init__(self, written: str) -> None:
        self.written = written
        self.at = 0
        self.parts: list[str] = []
        self.is_pattern = False
        self.has_home = written.startswith("~")

    def word(self) -> Word:
        written = self.written
        while self.at < len(written):
            here = written[self.at]
            if here == "'":
                self._take(self._end("'", self.at + 1), 1)
            elif here == '"':
                self._double()
            elif here == "\\":
                self._escape()
            elif written.startswith("$'", self.at):
                self._ansi()
            elif here == "`" or _EXPANDS.match(written, self.at) or written.startswith('$"', self.at):
                raise Unreadable(f"an expansion in `{written[:60]}`")
            elif here in _ENDS_WORD:
                raise Unreadable(f"`{written[:60]}` is not one word")
            else:
                self._plain(here)
        text = "".join(self.parts)
        if self.is_pattern:
            return Word(written, "many")
        return Word(written, "one") if self.has_home else Word(text)

    def _plain(self, here: str) -> None:
        self.is_pattern = self.is_pattern or here in "*?["
        rest = self.written[self.at :]
        self.is_pattern = self.is_pattern or (here == "{" and ("," in rest or ".." in rest))
        self.parts.append(here)
        self.at += 1

    def _end(self, quote: str, start: int) -> int:
        end = self.written.find(quote, start)
        if end < 0:
            raise Unreadable("a quote is never closed")
        return end

    def _take(self, end: int, skip: int) -> None:
        self.parts.append(self.written[self.at + skip : end])
        self.at = end + 1

    def _escape(self) -> None:
        if self.at + 1 >= len(self.written):
            raise Unreadable("a backslash at the end")
        after = self.written[self.at + 1]
        self.parts.append("" if after == "\n" else after)
        self.at += 2

    def _double(self) -> None:
        at = self.at + 1
        while at < len(self.written) and self.written[at] != '"':
            here = self.written[at]
            if here == "`" or _EXPANDS.match(self.written, at):
                raise Unreadable(f"an expansion in `{self.written[:60]}`")
            after = self.written[at + 1 : at + 2]
            if here == "\\" and after and after in '$`"\\\n':
                self.parts.append("" if after == "\n" else after)
                at += 2
            else:
                self.parts.append(here)
                at += 1
        if at >= len(self.written):
            raise Unreadable("a quote is never closed")
        self.at = at + 1

    def _ansi(self) -> None:
        found = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL).match(self.written, self.at)
        if found is None:
            raise Unreadable("a quote is never closed")
        if "\\'" in found[1]:
            raise Unreadable("a `$'...'` that ends elsewhere for some shells")
        self.parts.append(_ANSI.sub(_ansi_character, found[1]))
        self.at = found.end()


def _ansi_character(found: re.Match[str]) -> str:
    hexadecimal = found[1] or found[2] or found[3]
    if found[5] is not None:
        if found[5] not in _ANSI_LETTERS:
            raise Unreadable(f"`{found[0]}` in a `$'...'`")
        return _ANSI_LETTERS[found[5]]
    code = int(hexadecimal, 16) if hexadecimal else int(found[4], 8)
    if not 0 < code < 0x110000 or (not found[2] and not found[3] and code > 0x7F):
        raise Unreadable(f"`{found[0]}` in a `$'...'`")
    return chr(code)
