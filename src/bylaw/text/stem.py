"""Removes word endings, so that all forms of a word compare equal."""

import re
from functools import lru_cache

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
"""Shorter words rarely distinguish texts."""
_ENDINGS = ("ments", "ment", "ings", "ing", "ied", "ies", "ed", "es", "als", "al", "s")


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """The stem of a word, the same for all forms of a verb or noun: moved, moving, move -> mov."""
    word = _IRREGULAR.get(word, word)
    ending = next((each for each in _ENDINGS if word.endswith(each) and len(word) - len(each) >= 3), "")
    word = word.removesuffix(ending)
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiou":
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word[-1] in "ey" else word


def stems(text: str) -> list[str]:
    """The stems of all words with four or more letters."""
    return [stem(word) for word in _WORD.findall(text.lower())]
