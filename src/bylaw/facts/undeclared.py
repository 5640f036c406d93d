"""A call of which nobody says what it changes: what it may have changed, told from its arguments alone."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from bylaw.facts.entity import Key
from bylaw.facts.value import key_of, loose, loose_key, near, near_key
from bylaw.trace.event import Call


class UndeclaredCall:
    """What a call names. A write without declared changes may touch it; so may a tool without declaration."""

    __slots__ = ("_text",)

    def __init__(self, call: Call) -> None:
        # Arguments that were not captured may have named anything.
        self._text = None if call.fault else "\n".join(_texts(call.arguments))

    def may_touch(self, key: Key) -> bool:
        """Whether every part of the key stands somewhere in the arguments; what has no key is never named."""
        text = self._text
        return bool(key) and (text is None or any(self._names(text, each) for each in {loose_key(key), near_key(key)}))

    def _names(self, text: str, key: Key) -> bool:
        return all(_stands(part, text) for part in key)


_BREAKS = re.compile(r"[\s,;:()]+")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, item in cast("Mapping[str, Any]", value).items():
            yield loose(name)
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in cast("Sequence[Any]", value):
            yield from _texts(item)
    elif value is not None:
        (text,) = key_of((value,))
        yield loose(text)
        # Word by word too: in a sentence or a query blanks keep names apart.
        words = _BREAKS.split(text)
        yield " ".join(map(loose, words))
        yield " ".join(map(near, words))


def _stands(part: str, text: str) -> bool:
    return part in text and _alone(part).search(text) is not None


@lru_cache(maxsize=1024)
def _alone(part: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(part)}(?!\w)")
