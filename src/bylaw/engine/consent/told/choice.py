"""Whether a word of a list was told: `economy`, of the cabins; `withdraw`, of what may become of an application."""

import re
from collections.abc import Sequence
from functools import lru_cache

from bylaw.engine.consent.call.detail import Detail
from bylaw.engine.consent.told.hearing import Hearing
from bylaw.engine.consent.told.lack import Lack
from bylaw.engine.consent.told.naming import in_words

_LONG = 6
"""Letters of a word that is known by how it begins."""
_BEGIN = 5
"""So many letters of it must stand at least."""
_GAPS = re.compile(r"[\s_-]+")


def choice_lack(hearing: Hearing, detail: Detail) -> Lack | None:
    """What is wrong where a word was not told, or another of its list was."""
    others = tuple(word for word in detail.words if word != detail.value)
    word = str(detail.value)
    for each in hearing.now:
        own, other = names_word(each.loose, word, others)
        if own:
            if each.by == "user" and hearing.is_changed:
                put = [names_word(one.loose, word, others) for one in hearing.proposal]
                if any(told for _, told in put) and not any(told for told, _ in put):
                    return Lack(detail.name, "missing", "user_changed")
            is_mixed = other and each.by != "user" and any(_puts_word(each.loose, word) for word in others)
            return Lack(detail.name, "unclear", "another_beside") if is_mixed else None
        if other and each.by != "user":
            return Lack(detail.name, "unclear", "another_told")
    # Nobody spoke of any of the words: where the sum was told, the word is part of what was.
    has_sum = any(each.kind == "amount" for each in hearing.matters)
    if has_sum or hearing.said_before((word, others), lambda each: names_word(each.loose, word, others)[0]):
        return None
    return Lack(detail.name, "unclear", "never_told")


def names_word(text: str, own: str, others: Sequence[str]) -> tuple[bool, bool]:
    """Whether a text names a word of a list, and whether it names others of it.

    `economy` is not named where only `basic economy` is.
    """
    own = _loose(own)
    spoken = [other for word in others if (other := _loose(word)).split(" ")[0] in text]
    without_longer = text
    for other in spoken:
        if own in other:
            without_longer = in_words(other).sub(" ", without_longer)
    names_own = (own[:_BEGIN] in text or own == "now") and _names_own(without_longer, own, others)
    without_own = in_words(own).sub(" ", text) if any(other in own for other in spoken) else text
    return names_own, any(in_words(other).search(without_own) for other in spoken)


def _puts_word(text: str, word: str) -> bool:
    """Whether a text says of a part that it will be so: `only the way out to business`, `(business class)`."""
    found = _loose(word)
    is_perhaps = found in text and ("only" in text or "just" in text or f"({found} class)" in text)
    return is_perhaps and _put(found).search(text) is not None


@lru_cache(maxsize=1024)
def _put(word: str) -> re.Pattern[str]:
    part = r"(?:only|just)\b[^.!?]{0,60}"
    return re.compile(rf"\b{part}\b(?:to|into|in) (?:the |a )?{re.escape(word)}\b|\({re.escape(word)} class\)")


def _names_own(text: str, own: str, others: Sequence[str]) -> bool:
    form = in_words(own) if " " in own else _inflected(own, tuple(map(_loose, others)))
    return form.search(text) is not None


@lru_cache(maxsize=1024)
def _loose(word: str) -> str:
    return " ".join(_GAPS.split(word.lower()))


@lru_cache(maxsize=1024)
def _inflected(word: str, others: tuple[str, ...]) -> re.Pattern[str]:
    """Matches a word and its other forms, `withdraw` of `withdrawn`, where no other word of the list begins so."""
    begin = word[: max(_BEGIN, len(word) * 7 // 10)]
    if len(word) < _LONG or any(other.startswith(begin) for other in others):
        return in_words(word)
    return re.compile(rf"\b{re.escape(begin)}\w*")
