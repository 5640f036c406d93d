"""Text of logs and packs in a page: escaped, isolated in its direction, with what cannot be seen made visible."""
# pyright: basic, reportMissingImports=false

import re
import unicodedata
from itertools import groupby
from typing import Any

from markupsafe import Markup, escape

_SPACES = ("Zs",)
_MARKED = re.compile(r"`([^`\n]+)`|\*\*([^*\n]+)\*\*")
"""What our own reasons put in backticks, and what documents in Markdown put in bold."""


def said(value: Any, limit: int = 300) -> Markup:
    """A text as part of a page: nothing in it is markup, turns what surrounds it round, or hides."""
    return Markup("<bdi>{}</bdi>").format(seen(_cut(value, limit)))


def marked(value: Any, limit: int = 300) -> Markup:
    """The same for reasons and sentences: a name in backticks is shown as code, bold in Markdown as bold."""
    shown = _cut(value, limit)
    parts: list[Markup] = []
    end = 0
    for found in _MARKED.finditer(shown):
        parts.append(seen(shown[end : found.start()]))
        name = "code" if found[1] else "strong"
        parts.append(Markup(f"<{name}>{{}}</{name}>").format(seen(found[1] or found[2])))
        end = found.end()
    return Markup("<bdi>{}</bdi>").format(Markup("").join([*parts, seen(shown[end:])]))


def seen(text: str) -> Markup:
    """The same without isolation, for where a whole element is one text."""
    if text.isprintable():
        return escape(text)
    parts: list[Markup] = []
    for is_seen, run in groupby(text, key=_is_seen):
        if is_seen:
            parts.append(escape("".join(run)))
        else:
            parts += [_shown(each, len(list(same))) for each, same in groupby(run)]
    return Markup("").join(parts)


def plain(value: Any, limit: int = 80) -> str:
    """The same where only a string can stand, as in an attribute or a title."""
    text = str(value)[: limit + 1]
    clean = "".join(each if _is_seen(each) else f"U+{ord(each):04X}" for each in text).replace("\n", " ")
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"


def _cut(value: Any, limit: int) -> str:
    whole = "" if value is None else str(value).replace("\r\n", "\n")
    return whole if len(whole) <= limit else whole[: limit - 1] + "…"


def _is_seen(character: str) -> bool:
    return character.isprintable() or character in "\n\t" or unicodedata.category(character) in _SPACES


def _shown(character: str, times: int) -> Markup:
    name = f"U+{ord(character):04X}" + (f"×{times}" if times > 1 else "")
    return Markup('<span class="unseen">{}</span>').format(name)
