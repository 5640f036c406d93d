"""Normalises text for searching, so that case, underscores and white space make no difference."""

import re
from functools import lru_cache

_RUN = re.compile(r"[^\W\d_]+|\d+")
_FOREIGN_LETTER = re.compile(
    "[^\\x00-\\x7f\xa0-\xb4\xb6-\xbf\xd7\xf7\u2000-\u20cf\u2190-\u23ff\u2500-\u2bff\ufe0f\U0001f300-\U0001faff]"
)
"""Matches letters that are not ASCII. Symbols such as quotes, arrows, currency signs and emoji are not letters."""

_BEFORE, _BEFORE_FIGURES = re.compile(r"\w[-@.+&#~'\u2019]?\Z|(?<!/)[/\\]\Z"), re.compile(r"\d[,:]\Z")
_AFTER, _AFTER_FIGURES = re.compile(r"['\u2019](?!s\b)\w|[-/\\@.:+&#~]*\w"), re.compile(r",\d")
"""Matches characters after which a word, number, address, path or id continues."""


def occurs(value: str, text: str, start: int = 0) -> int:
    """Return the position at which `value` occurs in `text` as a whole word. -1 if it does not."""
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


def stands_whole(value: str, text: str) -> bool:
    """Whether `value` occurs in `text` without being part of a longer word, number, address, path or id.

    For example, `hart@x.com` does not occur in `jo.hart@x.com`, `AC-22` not in `AC-22-7`, and `50` not in `12.50`.
    """
    here = text.find(value) if value else -1
    while here >= 0:
        end, near = here + len(value), max(0, here - 2)
        is_led = _may_go_on(value[0]) and (
            _BEFORE.search(text, near, here) or (value[0].isdigit() and _BEFORE_FIGURES.search(text, near, here))
        )
        if not is_led and not (
            _may_go_on(value[-1])
            and (_AFTER.match(text, end) or (value[-1].isdigit() and _AFTER_FIGURES.match(text, end)))
        ):
            return True
        here = text.find(value, here + 1)
    return False


def _may_go_on(end: str) -> bool:
    return end.isalnum() or end in "_-/\\@.+&#~"


def runs_of(text: str) -> tuple[str, ...]:
    """Return the runs of letters and the runs of digits in normalised text. A text can contain a value only if it has
    the value's runs.
    """
    return tuple(_RUN.findall(text))


def fold(text: str) -> str:
    return " ".join(lowered(text).replace("_", " ").split())


_RUN_ON = re.compile(r"((?:www\.|://|@)\S*\w\.)(?=[A-Z][a-z]*\s)")
"""Matches a link or address that the next sentence follows without a space, as in `x.com.They sent`."""


def fold_said(text: str) -> str:
    """Normalise a message. Underscores are kept, because they join the parts of a name."""
    return lowered(_RUN_ON.sub(r"\1 ", text) if "." in text else text)


def lowered(text: str) -> str:
    if not text.isascii() and _FOREIGN_LETTER.search(text) is None:
        # Normalising letter by letter would be far slower, and a single dash or quote would require it.
        folded = text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")
    else:
        folded = text.casefold()
    return " ".join(folded.split())


_IRREGULAR = {
    "paid": "pay",
    "sent": "send",
    "made": "make",
    "cancellation": "cancel",
    "cancellations": "cancel",
    "modification": "modify",
    "modifications": "modify",
    "deletion": "delete",
    "verification": "verify",
}
_WORD = re.compile(r"[a-z]{4,}")
"""Matches words with at least four letters. Shorter words are too common to be useful."""
_ENDINGS = ("ments", "ment", "ings", "ing", "ied", "ies", "ed", "es", "als", "al", "s")


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """Return the stem that all forms of a word share, such as "mov" for moved, moving and move."""
    word = _IRREGULAR.get(word, word)
    ending = next((each for each in _ENDINGS if word.endswith(each) and len(word) - len(each) >= 3), "")
    word = word.removesuffix(ending)
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiou":
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word[-1] in "ey" else word


def stems(text: str) -> list[str]:
    """Return the stems of all words with four or more letters."""
    return [stem(word) for word in _WORD.findall(text.lower())]
