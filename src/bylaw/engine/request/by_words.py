"""What a request allows, without a model: from the words of the tool catalogue alone.

A tool is asked for where a sentence of the user holds the verb of its name and a thing of it, or a phrase that the
catalogue says people use. Its arguments may then be what the user said or what a trusted or named source shows.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from bylaw.engine.request.allowance import (
    Allowance,
    Deed,
    Delegation,
    Fill,
    Slot,
    Source,
    Span,
    fetches,
    is_deed,
    kinds_of,
    parameter_kind,
)
from bylaw.engine.request.bearing import WORD, stem, stems
from bylaw.engine.request.values import NUMBER
from bylaw.policy.tool import Tool
from bylaw.policy.verb import VERBS, words_of
from bylaw.text.day import without_days
from bylaw.text.folding import fold
from bylaw.text.number import numbers
from bylaw.text.sentence import lowered
from bylaw.text.turning import depends, may_take_back, may_turn, undenied

_SENTENCE = re.compile(
    r"(?<=[.!?;])\s+(?=[^\W\d_a-z]|\d+[.)]\s)|\n\s*\n|\n(?=\s*(?:[-*]|\d+[.)])\s)|(?<=[.!?])(?=[A-Z][a-z])"
)
_ASKS = re.compile(
    r"\W*(?:(?:so|and|or|but|then|hmm|well)\W+)*(?:(?:should|shall|must|do|does|may|can|could|would) (?:i|we)|did you|"
    r"have you|has it|is it|was it)\b"
)
"""How a question begins, also without its mark."""
_NUMBERED = re.compile(
    r"(?:\b(?:invoice|bill|order|ticket|case|account|customer|booking|reservation|reference|ref|flight|room|item|id|"
    r"number|no|nr|phone|mobile|tel|cell|line|code|pin|year)\b|#)(?:\W+(?:number|no|nr|id|is))*[\W_]*$"
)
"""After this stands the number of a thing, and no amount."""
_YEAR = re.compile(r"(?:19|20)\d\d(?![.,]\d)")
_FEW = 3
"""So few words only answer how much: "20 please"."""
_ASKS_TO = re.compile(r"\b(?:can|could|will|would) you\b|\bplease\b|\bkindly\b|\bwould you mind\b")
"""What makes a question a request."""
_QUOTED = re.compile(r"^[ \t]*>[^\n]*$|```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.MULTILINE | re.DOTALL)
"""Lines that a mail program quotes, and blocks of code."""
_REPORTS = re.compile(r"\b(?:says?|said|reads?|writes?|wrote|states?|stated|tells me|told me)\s*:")
"""After this come words of another, or of a text that is to be written."""
_WITHDRAWS = re.compile(
    r"\W*(?:no|nope|don't|do not|stop|wait|forget (?:it|that)|never ?mind)\b"
    r"(?:\W+(?:don't|do not|stop|it|that|thanks|please)){0,3}\W*$"
)
"""A last word that takes back what was asked for before."""
_DELEGATES = (
    ("do", "actions"),
    ("do", "tasks"),
    ("do", "things"),
    ("do", "whatever"),
    ("follow", "instructions"),
    ("work", "checklist"),
    ("work", "list"),
    ("do", "says"),
    ("carry", "out"),
)
"""How people hand the choice of deeds over to a text: a verb, and what is done."""


def allowed_by_words(request: str, tools: Mapping[str, Tool]) -> Allowance:
    """What a request allows as far as its words and those of the catalogue tell."""
    said = _said(request)
    if said and _WITHDRAWS.match(said[-1][1].lower()):
        return Allowance()
    writing = [tool for tool in tools.values() if is_deed(tool) and _writes_text(tool)]
    sentences = [(span, stems(_asking_part(undenied(text), writing))) for span, text in said if is_plain(text)]
    deeds: list[Deed] = []
    for tool in tools.values():
        if not is_deed(tool):
            continue
        asked = tuple(span for span, stems in sentences if fetches(tool) or _asks(tool, stems))
        if asked:
            deeds.append(Deed(tool.name, asked, tuple(slots_of(tool))))
    delegations = tuple(
        Delegation((span,), (Source(),))
        for span, stems in sentences
        if any(stem(verb) in stems and stem(thing) in stems for verb, thing in _DELEGATES)
    )
    return Allowance(tuple(deeds), delegations)


@lru_cache(maxsize=64)
def meant_words(request: str) -> str:
    """The user's words that are plain, folded, without quoted lines: what only others name, no deed is for."""
    kept = (undenied(text) for _, text in _said(request) if not _ASKS.match(lowered(text)))
    return fold("\n\n".join(text for text in kept if not may_take_back(text)))


@lru_cache(maxsize=64)
def condition(request: str, asked: tuple[Span, ...]) -> str | None:
    """The last sentence that asks for a deed, where all that do have a condition, or leave a choice."""
    sentences = [request[span.start : span.end] for span in asked]
    return sentences[-1].strip() if sentences and all(map(depends, sentences)) else None


class SaidAmounts(NamedTuple):
    """The numbers that the user said as an argument of a deed."""

    all: frozenset[float]
    asked: bool
    """Whether one stands where the deed is asked for; otherwise it may have to be worked out."""
    numbers: frozenset[float]
    """Every number in the user's words, whatever it is of."""


@lru_cache(maxsize=64)
def said_amounts(request: str, asked: tuple[Span, ...], name: str) -> SaidAmounts:
    """The numbers that the user said as an argument of a deed: money, or what stands in a sentence that asks for the
    deed or beside the argument's name, or alone. A day, a year, a telephone and the number of a thing are none."""
    found: set[float] = set()
    is_asked = False
    names = words_of(name)
    for span, text in _said(request):
        words = lowered(text)
        if may_turn(words):
            continue
        is_about = span in asked or len(words.split()) <= _FEW or any(each in words.split() for each in names)
        plain = without_days(words)
        for number in numbers(plain):
            is_year = _YEAR.match(plain, number.start) is not None
            is_other = not number.is_sum and (is_year or not is_about or _NUMBERED.search(plain[: number.start]))
            if not is_other:
                found.add(float(number.value))
                is_asked = is_asked or span in asked
    every = frozenset(float(each.replace(",", "")) for each in NUMBER.findall(request))
    return SaidAmounts(frozenset(found), is_asked, every)


def is_plain(sentence: str) -> bool:
    """Whether a sentence may ask for something: it wants no answer, and no word of it denies, excepts or doubts."""
    # A mark within quotes is of what is to be written.
    is_asked = sentence.rstrip(" \n)").endswith("?") and not _ASKS_TO.search(sentence.lower())
    return not is_asked and not may_take_back(undenied(sentence)) and not _ASKS.match(lowered(sentence))


def _said(request: str) -> list[tuple[Span, str]]:
    """The sentences of a request, quoted lines left out."""
    bare = _QUOTED.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), request)
    return [(span, bare[span.start : span.end]) for span in sentences_of(bare)]


def _asking_part(sentence: str, writing: Sequence[Tool]) -> str:
    """A sentence without words of another, and without the text that it asks to write: "mail Bob: I will pay"."""
    own = _REPORTS.split(sentence, maxsplit=1)[0]
    before, colon, _ = own.partition(": ")
    return before if colon and any(_asks(tool, stems(before)) for tool in writing) else own


def _writes_text(tool: Tool) -> bool:
    """Whether a tool is for a text above all: it needs one, and no amount."""
    kinds = [kind for name, kind in kinds_of(tool).items() if name in tool.required]
    return "text" in kinds and "number" not in kinds


def slots_of(tool: Tool) -> Iterator[Slot]:
    """Every argument of a tool, each open but for texts and flags."""
    for name, schema in tool.parameters.items():
        kind = parameter_kind(name, schema)
        fill: Fill = "free" if kind in ("text", "flag") else "open"
        yield Slot(name, fill)


def _asks(tool: Tool, stems: frozenset[str]) -> bool:
    """Whether a sentence asks for a tool: by a phrase of the catalogue, or by the verb and a thing of its name."""
    for phrase in tool.also_called:
        if all(stem(word) in stems for word in WORD.findall(phrase.lower())):
            return True
    words = words_of(tool.name)
    verbs = [word for word in words if VERBS.get(word) == "write"]
    things = [word for word in words if word not in verbs and len(word) > 2]
    said_verb = any(stem(word) in stems for word in verbs)
    said_thing = any(stem(word) in stems for word in things)
    return said_verb and (said_thing or not things)


def sentences_of(text: str) -> Iterator[Span]:
    """Where the sentences of a text stand, and the items of its lists."""
    begin = 0
    for end in [*(match.start() for match in _SENTENCE.finditer(text)), len(text)]:
        if text[begin:end].strip():
            yield Span(begin, end)
        begin = end
