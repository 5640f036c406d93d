"""The sentences of a message, as people mean them: lines and bullets too, in lower case, with plain quotes."""

import re
from functools import lru_cache

from bylaw.facts.phrases import Phrases

LONGEST = 1_000
_SENTENCES = 400
"""Longer texts are cut, so that no text costs more than its length."""


_QUOTES = (("’", "'"), ("‘", "'"), ("“", '"'), ("”", '"'), ("—", "-"), ("–", "-"))
END = re.compile(r"(?<=[.!?;])[\"')*]*\s+|\n+")
_BREAK = re.compile(r"[.!?;\n](?:(?<=\n)\n*|(?<!\n)[\"')*]*\s+)")
"""The same, with the mark that ends the sentence; what begins with one of a few signs is found much sooner."""
_BULLET = re.compile(r"(?:[\s>#\-•+(]|\(?\d{1,2}[.)](?=\s))+(?=\S)")
_UNDERLINE = re.compile("__+")

_REPORTED = Phrases(
    (
        "\"|'&said|says|saying|wr|told|tells|typed|read|stat|ask|answer|repl|put it|quot",
        r"(?<!\bi )(?<!\bi'd )(?<!\bi'll )(?<!\bi would )(?<!\bi will )"
        r"\b(?:sa(?:id|ys|ying)|wr(?:ote|ites|itten)|t(?:old|ells)|reads?|stat(?:ed|es)|ask(?:ed|s)|answer(?:ed|s)|"
        r"repl(?:ied|ies)|typed|put it|quot(?:e|ed|es|ing))\b[^\"]{0,30}?(?:\"[^\"]*(?:\"|$)|(?<!\w)'[^']*(?:'|$))",
    )
)
"""What somebody else said, or what stands somewhere, in quotes: the user says nothing by it."""


@lru_cache(maxsize=2048)
def sentences(text: str) -> tuple[str, ...]:
    """The sentences and lines of a text, in lower case, with plain quotes and without bullets."""
    plain = lowered(text)
    if "__" in plain:
        plain = _UNDERLINE.sub("", plain)
    plain = plain.replace("*", "").replace("`", "").replace("~", "")
    pieces: list[str] = []
    start = 0
    for found in _BREAK.finditer(plain):
        here, after = found.span()
        pieces.append(plain[start : here if plain[here] == "\n" else here + 1])
        start = after
    pieces.append(plain[start:])
    if len(pieces) > _SENTENCES:
        pieces = pieces[: _SENTENCES // 2] + pieces[-_SENTENCES // 2 :]
    return tuple([part for piece in pieces if (part := _unlisted(piece[:LONGEST]))])


def lowered(text: str) -> str:
    """A text in lower case, with plain quotes and dashes."""
    if not text.isascii():
        for curled, mark in _QUOTES:
            text = text.replace(curled, mark)
    return text.lower()


def _unlisted(line: str) -> str:
    bullet = None if line[:1].isalpha() else _BULLET.match(line)
    return (line if bullet is None else line[bullet.end() :]).strip()


def without_quotes(text: str) -> str:
    """A text in lower case without what it reports of others in quotes."""
    return without_reports(lowered(text))


def without_reports(sentence: str) -> str:
    """The same of what is in lower case, with plain quotes, already."""
    return _REPORTED.without(sentence)
