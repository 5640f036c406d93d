"""Words without their endings, so that `payment`, `payments` and `paying` need no list."""

import re
from functools import lru_cache

WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
_ENDINGS = ("ings", "ing", "ies", "ied", "ions", "ion", "ys", "es", "ed", "s", "e", "y", "d")
_PLAIN = frozenset(
    WORD.findall(
        "a an and are as at be by for from has have he her him his i in is it its me my not of on one or our she so "
        "that the their them they this to was we were will with you your"
    )
)
"""Words that stand in any sentence."""


def stem(word: str) -> str:
    """A word without its ending; short words stay."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


def stems(text: str) -> frozenset[str]:
    """The words of a text without their endings."""
    return frozenset(stem(word) for word in WORD.findall(text.lower()))


@lru_cache(maxsize=1024)
def telling_stems(text: str) -> frozenset[str]:
    """The same, of the words that tell what it is about."""
    return frozenset(stem(word) for word in WORD.findall(text.lower()) if word not in _PLAIN)
