"""Regular expressions in packs.

RE2 searches a text in time proportional to its length. Patterns use Python syntax. RE2 has no look-around. Use
`but_not` instead: a text matches if it contains the pattern but does not contain `but_not`.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, Protocol, cast

import re2  # pyright: ignore[reportMissingTypeStubs]

from bylaw.errors import BylawError

LONGEST = 100_000
"""The maximum length of text to search, in characters."""
_RE2: Any = re2


class PatternError(BylawError):
    """Raised if a pattern in a pack cannot be compiled."""

    code = "BY409"


class Match(Protocol):
    """The methods of `re.Match` that Bylaw uses."""

    @property
    def lastindex(self) -> int | None: ...
    def __getitem__(self, group: int | str, /) -> str | None: ...
    def start(self) -> int: ...
    def end(self) -> int: ...
    def groupdict(self) -> dict[str, str | None]: ...


class Pattern:
    """A pattern, with a second pattern (`but_not`) that rules out a match."""

    __slots__ = ("_but_not", "_pattern")

    def __init__(self, text: str, but_not: str, *, ignore_case: bool) -> None:
        self._pattern = _compile(text, ignore_case)
        self._but_not = _compile(but_not, ignore_case) if but_not else None

    def search(self, text: str) -> Match | None:
        return next(self.finditer(text), None) if self.occurs(text) else None

    def occurs(self, text: str) -> bool:
        """Whether the pattern occurs in the text. The search uses bytes, which is faster."""
        given = _bytes(text)
        if self._pattern.search(given) is None:
            return False
        return self._but_not is None or self._but_not.search(given) is None

    def finditer(self, text: str) -> Iterator[Match]:
        given = _bytes(text)
        if self._but_not is not None and self._but_not.search(given) is not None:
            return iter(())
        return cast(Iterator[Match], self._pattern.finditer(given.decode()))


@lru_cache(maxsize=64)
def _bytes(text: str) -> bytes:
    """Encode a text for searching.

    The result is cached, because several patterns search the same text. Lone surrogates, which logs may contain,
    become question marks.
    """
    return text[:LONGEST].encode("utf-8", "replace")


def is_cut(text: str) -> bool:
    """Whether the text is too long, so that only part of it is searched."""
    return len(text) > LONGEST and not text[LONGEST:].isspace()


def any_of(patterns: Sequence[Pattern], texts: Sequence[str]) -> Callable[[str], bool]:
    """Return a function that reports whether at least one of the patterns occurs in a text."""
    # Combine only patterns without flags and named groups, because these could affect the other patterns.
    whole = None
    if len(texts) > 1 and not any(_MARKED.search(text) for text in texts):
        with suppress(PatternError):
            whole = compile_pattern("|".join(f"(?:{text})" for text in texts))
    return lambda text: (whole is None or whole.occurs(text)) and any(each.occurs(text) for each in patterns)


_MARKED = re.compile(r"\(\?(?!:)")


@lru_cache(maxsize=1024)
def compile_pattern(text: str, but_not: str = "", *, ignore_case: bool = True) -> Pattern:
    """Compile a pattern. Raises `PatternError`."""
    return Pattern(text, but_not, ignore_case=ignore_case)


def _compile(text: str, ignore_case: bool) -> Any:
    options = _RE2.Options()
    options.case_sensitive = not ignore_case
    options.log_errors = False
    if "\\b" in text and (letter := next((c for c in text if c.isalnum() and not c.isascii()), None)):
        hint = r"for a word's end write `(?:\P{L}|$)`, for its beginning `(?:^|\P{L})`"
        raise PatternError(rf"`{_short(text)}`: `\b` recognises only the letters a to z, not `{letter}`", hint=hint)
    try:
        return _RE2.compile(_translated(text), options)
    except _RE2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
        hint = next((cure for sign, cure in _CURES if sign.search(text)), "")
        raise PatternError(f"`{_short(text)}` is not a valid pattern: {reason}", hint=hint) from None


_CURES = (
    (
        re.compile(r"\(\?<?[=!]"),
        "look-ahead and look-behind are not supported; list text that must not match under `but_not`",
    ),
    (re.compile(r"\(\?[a-zA-Z]*x"), "write the pattern without spaces and comments, or as a list of patterns"),
    (re.compile(r"\\[1-9]|\(\?P="), "back references are not supported; write out the repeated text"),
    (re.compile(r"[*+?}]\+|\(\?>"), "leave out the second `+`, or `?>`"),
)
"""Python features that RE2 lacks, each with what to use instead."""

_PARTS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]|\\u[0-9a-fA-F]{4}|\\.|\{,(?=\d+\})|\$", re.DOTALL)
_IN_CLASS = re.compile(r"\\u[0-9a-fA-F]{4}|\\.", re.DOTALL)
_LETTERS = {r"\w": r"\p{L}\p{N}_", r"\d": r"\p{Nd}", r"\s": r"\s\x{85}\p{Z}"}


def _translated(text: str) -> str:
    """Return the pattern in RE2 syntax.

    As in Python, letters of any alphabet match, and `$` matches before a final line break.
    """
    end = "$" if re.search(r"\(\?[a-zA-Z]*m", text) else r"(?:\n?\z)"

    def translate(part: re.Match[str]) -> str:
        if part[0][0] == "[":
            return _IN_CLASS.sub(lambda each: _LETTERS.get(each[0]) or _escape(each[0]), part[0])
        if letters := _LETTERS.get(part[0].lower()):
            return f"[{letters}]" if part[0].islower() else f"[^{letters}]"
        return {"{,": "{0,", "$": end, r"\Z": r"\z"}.get(part[0]) or _escape(part[0])

    return _PARTS.sub(translate, text)


def _escape(text: str) -> str:
    return rf"\x{{{text[2:]}}}" if text[:2] == r"\u" and len(text) == 6 else text


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}..."
