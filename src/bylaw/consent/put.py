"""What the agent put to the user in one go: what it asks for, and whether it is a proposal at all.

As a yes says nothing that was not put, the question that it answers names nothing that neither was told nor belongs to
the call: "Shall I cancel the reminder for order R-1001?" and "Do you want a callback about cancelling it?" ask for
something else.
"""

import re
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache

from bylaw.consent.answer import is_neutral, stems
from bylaw.consent.line import Asks, Line, is_english, lines_of
from bylaw.policy.verb import VERBS
from bylaw.text.once import once
from bylaw.text.stem import stem
from bylaw.text.turning import DENYING

_LEAVE: frozenset[Asks] = frozenset(("leave",))
_WORD = re.compile(r"[^\W\d_]{3,}")
NUMBERED = re.compile(
    r"(?:\b(?:mon|tues|wednes|thurs|fri|satur|sun)day,? )?(?:the )?\S*\d\S*"
    r"(?: (?:usd|eur|euros?|gbp|pounds?|dollars?|chf|francs?)\b)?"
)
_TAG = re.compile(
    r"^(?:so,? )?(?:just )?to confirm:|, (?:ok|okay|right|correct|all right|alright|good|deal|yes|fine)\?$"
)
"""A sentence that tells what would be done, and asks no more than whether."""
_ELSE = re.compile(r",? (?:or|otherwise,?) (?:please |just )?(?:let me|provide|tell|adjust|suggest|share|give)\b.*")
"""What the user may say instead of a yes."""
_ASKS = """
shall should may can could might would will does did are you your our like want wish prefer agree approve accept
consent authorize authorise confirm explicit explicitly yes okay alright all right fine happy good ready safe sure
correct deal going ahead proceed continue reply respond say word type answer let know please kindly just now then and
with for the from whether once when before that this these those them everything above here there have has get set put
through done sound look work great perfect both each not also too off over into under via how about which one still
any next was were been being what who where why make made take give following thank absolutely wonderful hello sir
madam need sense understand complete finalize finalise process submit perform clear soon match exact january february
march april june july august september october november december move forward because due using him her them
accordingly away agreed today eligible acceptable specify provide accurate retry full moment thing
"""
"""Words of asking, of going ahead, and of pointing at what was told."""
_ASKING = frozenset(map(stem, _ASKS.split()))
_DONE = re.compile(
    r"\b(?:i|we)(?:'ve| have)?(?: just| now| already)? (?!need|want|like)\w+ed\b|\bon (?:its|the) way\b|"
    r"\byou (?:received|made|sent|placed|booked|paid|ordered)\b|"
    r"\b(?:was|were|has been|have been) \w+ed\b"
)
_HANGS = re.compile(
    r"^\W*(?:if|once|when|as soon as|after|unless)\b(?! i |(?: (?:you|that's|that|this|it's|it) (?:\w+ )?"
    r"(?:confirm|agree|approve|say|like|want|wish|happy|ok|okay|fine|good|right|correct|works|sounds|looks|all right|"
    r"yes)))|"
    r"\bevery (?:day|week|month|year)\b|\binstal+ments?\b|\b(?:refuse|decline)\b"
)
"""A condition, a plan of several times, a refusal: what is put is not the call as it is made now."""
_REPORTED = re.compile(
    r"(?<!you )(?<!\bi )(?<!we )\b(?:asks|asked|says|said|wants|wanted|wrote|writes|tells|instructs|demands|claims)\b"
)
"""What somebody else would have done: "An email asks us to transfer 250.00"."""
_UNREAL = re.compile(
    r"\b(?:for (?:example|instance)|e\.g\.|suppose|imagine|pretend|hypothetical\w*|drill|rehears\w*|only a test|"
    r"to test you|nothing (?:will|would) happen|dry[ -]run|simulat\w+|(?:demo|test|preview|sandbox) mode|"
    r"(?:a|just|only)(?: an?)? (?:demo|preview|draft|test)|"
    r"(?:has|have|needs?) to (?:approve|agree|sign|confirm|release) |(?:has|have) no effect|"
    r"somebody else|another \w+ was asked)\b"
)
"""What is not meant: an example, a drill, somebody else's question."""
_UNDONE = re.compile(
    rf"\b(?:won't|(?:will|would|do|does|is|are|shall|going to)\b.{{0,20}}\b{DENYING}|wouldn't)\b"
    r"(?!.{0,30}\b(?:fees?|charged?|costs?|refund\w*|extra|penalt\w+|chang\w+|affect\w*|able|eligible)\b)"
    rf"|^\W*(?:nothing|no \w+) (?:will|would|is|gets?|leaves?)\b"
)
"""What will not be, beside the question: it may be the deed itself. That nothing is charged for it is no such thing."""
_OR_ANOTHER = re.compile(r"\bor (?:\w+ ){0,2}\S*\d")
_UNDOING = re.compile(r"\b(?:stop|undo|reverse|halt|withdraw|cancel) (?:the|your|this|that) cancell?ation\b")
_RETRACTED = re.compile(
    r"^\W*(?:actually|wait|hold|sorry|oh|unfortunately|but|however|correction|scratch|no)\b|"
    r"\b(?:can't|cannot|not possible|no longer|unable to|any more|anymore)\b"
)
_SAYS_MORE = re.compile(r"\w+\W+\w+\W+\w+")
"""A sentence after the question may change what it asks for, in words beyond number; two words are thanks."""
_FEW = 3
"""Fewer words name a thing and say nothing: "Economy, window"."""
_OTHER_LETTERS = re.compile(r"[^\W\d_\u0000-\u024f]{2}")
_SMALL = frozenset(("no", "or", "so", "if", "as", "by", "an", "have", "had", "yet", "but", "since", "only"))
_SPOKEN = re.compile(r"[^\W\d_]{2,}")
_FIGURE = re.compile(r"\d")
_LISTED = re.compile(r"[\d:|=\u2192]")


class Put:
    """What the agent said between two messages of the user."""

    def __init__(self, messages: Sequence[str]) -> None:
        self.lines = tuple(line for text in messages for line in lines_of(text))
        self.questions = tuple(line for line in self.lines if line.asks)
        self.asks: frozenset[Asks] = frozenset(line.asks for line in self.questions)

    @once
    def proposed(self) -> list[Line]:
        """The sentences before its questions for leave, which those without a deed of their own are about."""
        before = [self.lines[at - 1] for at, line in enumerate(self.lines) if line.asks == "leave" and at]
        return [line for line in before if not line.asks]

    @once
    def is_english(self) -> bool:
        """Whether its words are those that the lists hold."""
        return is_english(" ".join(line.words for line in self.lines))

    @once
    def is_no_proposal(self) -> bool:
        """Whether what was told is reported as done, hangs on something, is one of two, or is taken back afterwards."""
        last = max((at for at, line in enumerate(self.lines) if line.asks), default=-1)
        before = self.lines[last - 1].words if last > 0 else ""
        return (
            any(_UNREAL.search(line.words) for line in self.lines)
            or any(_UNDONE.search(line.words) for line in self.lines if not line.asks)
            or any(each.search(before) for each in (_DONE, _HANGS, _OR_ANOTHER, _REPORTED))
            or any(_RETRACTED.search(line.words) for line in self.lines[last + 1 :])
            or (last >= 0 and any(_SAYS_MORE.search(line.words) for line in self.lines[last + 1 :]))
            or any(_UNDOING.search(line.words) for line in self.for_leave[-1:])
            or self._is_told_anew
        )

    @property
    def _is_told_anew(self) -> bool:
        """Whether something is told between two questions for leave: which of the two tellings a yes is to, nobody
        knows ("... 500.00. Shall I? Correction: 5.00. Shall I?")."""
        for_leave = [at for at, line in enumerate(self.lines) if line.asks == "leave"]
        first = next((at for at in for_leave if "?" in self.lines[at].words), len(self.lines))
        between = self.lines[first : for_leave[-1]] if for_leave else ()
        return any(not line.asks and (line.heads or _FIGURE.search(line.words)) for line in between)

    @once
    def added(self) -> list[str]:
        """The words of the last question for leave, which a yes answers, that are neither of asking nor told."""
        telling = (line.words for line in self.lines if not line.asks or _TAG.search(line.words))
        told = frozenset[str]().union(*map(stems, telling))
        return [
            word
            for line in self.for_leave[-1:]
            for word in new_words(NUMBERED.sub(" ", _ELSE.sub("", line.words)), told)
        ]

    @once
    def asks_leave(self) -> bool:
        """Whether it asks for leave, and for nothing else."""
        return self.asks == _LEAVE

    @once
    def for_leave(self) -> list[Line]:
        """Its questions for leave; a yes answers the last."""
        return [line for line in self.questions if line.asks == "leave"]

    @once
    def after(self) -> tuple[Line, ...]:
        """What is told after the last question."""
        last = max((at for at, line in enumerate(self.lines) if line.asks), default=len(self.lines))
        return self.lines[last + 1 :]

    @once
    def unread(self) -> list[tuple[list[str], int]]:
        """Of each sentence that has hardly a word that is known here, the others, and how many of them must be words
        of the call: in another language it may take back what the others say."""
        return [found for line in self.lines if (found := _unread(line.words)) is not None]

    @once
    def put_off(self) -> list[Line]:
        """The sentences that may have something done at another time than now."""
        return [line for line in self.lines if line.waits or line.later or line.days]

    @once
    def vague(self) -> frozenset[Decimal]:
        """Numbers that are told only roughly."""
        return frozenset[Decimal]().union(*(line.vague for line in self.lines))

    def read(self) -> None:
        """Read it before anybody asks."""
        _ = self.proposed, self.is_no_proposal, self.added, self.unread, self.put_off, self.vague, self.after


def new_words(words: str, told: frozenset[str]) -> list[str]:
    """The words of a text in lower case that are neither of asking nor told, whose stems are given."""
    return [
        each
        for each in _WORD.findall(words)
        if not ((form := stem(each)) in _ASKING or form in told or is_neutral(each))
    ]


@lru_cache(maxsize=4096)
def _unread(words: str) -> tuple[list[str], int] | None:
    """None for a sentence that can be read; what has figures or columns is a list."""
    told = _SPOKEN.findall(words)
    if _OTHER_LETTERS.search(words):
        return told, len(told)
    unknown = [each for each in told if not _is_known(each)]
    wanted = len(told) // 5 + 1 - (len(told) - len(unknown))
    is_readable = len(told) < _FEW or wanted <= 0 or _LISTED.search(words) is not None
    return None if is_readable else (unknown, wanted)


def _is_known(word: str) -> bool:
    return word in _SMALL or stem(word) in _ASKING or is_neutral(word) or word in VERBS or is_english(word)
