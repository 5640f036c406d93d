"""Texts made alike, so that words can be looked for in them: case, underscores and white space make no difference."""

import re

_RUN = re.compile(r"[^\W\d_]+|\d+")
_FOREIGN_LETTER = re.compile(
    "[^\\x00-\\x7f\xa0-\xb4\xb6-\xbf\xd7\xf7\u2000-\u20cf\u2190-\u23ff\u2500-\u2bff\ufe0f\U0001f300-\U0001faff]"
)
"""Anything but letters without marks, and signs that have no case: quotes, dashes, arrows, currencies, emoji."""


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
