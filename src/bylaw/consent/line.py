"""A sentence of the agent: whether it asks, what it would do, and when; read once for all the calls it may be about."""

import re
from decimal import Decimal
from functools import lru_cache
from typing import Literal, NamedTuple

from bylaw.text.day import days
from bylaw.text.number import numbers
from bylaw.text.once import once
from bylaw.text.sentence import Sentence, sentences

_LEAVE = re.compile(
    r"\b(?:shall|should|may|can|could|might|will) (?:i|we)\b|\b(?:would|do) you (?:like|want|wish|prefer|agree|confirm|"
    r"approve|"
    r"accept|consent|authori[sz]e)\b|\bwant (?:me|us) to\b|\b(?:ok|okay|alright|all right|fine|happy|good|ready|"
    r"safe) "
    r"(?:for (?:me|us) )?to\b|\b(?:go|going) ahead\b|\bproceed\b|\bconfirm\b|\bconfirmation\b|"
    r"\bexplicit(?:ly)? (?:\"?yes|agree)|"
    r"\b(?:is|are|does|do) (?:that|this|it|these|everything|all|all of (?:this|that|it)|the above|what i)\b|"
    r"\bsounds? (?:good|ok|okay|right|fine)\b|\b(?:yes/no|y/n|yes or no)\b|\bsay \"?yes\b|\breply\b.{0,20}\byes\b|"
    r"^(?:ok|okay|right|correct|agreed|good|deal|all good|all right|alright|shall i|yes)\W*$|"
    r"\b(?:ok|okay|right|correct|good|alright|yes|deal)\?$|\b(?:ok|okay|happy|fine) with\b|"
    r"\b(?:are you|you're) (?:ok|okay|happy|fine|sure)\b|\bdo i have your\b|"
    r"\b(?:once|when|as soon as|after) you (?:say|confirm|agree|approve|give)|\bif (?:you're|you are|that's|"
    r"that is|it's) "
    r"(?:happy|ok|okay|fine|all right|alright|good|right|correct)|\bsay the word\b|"
    r"\blet me know (?:if|whether) (?:you(?:'d| would)? (?:like|want|agree|wish)|i (?:should|may|can)|this|that|"
    r"it|everything)"
)
"""How an agent asks whether to do what it has told."""
_REQUEST = re.compile(
    r"\b(?:please|kindly|just) (?:confirm|reply|respond|say|let me know|tell me|provide|give|share|specify|choose|"
    r"select|"
    r"verify|advise|indicate|type|answer)\b|\blet me know\b|\b(?:reply|respond|answer|say|type)\b.{0,12}\byes\b|"
    r"\b(?:confirm|reply|say)\b.{0,20}\b(?:to|and|if|whether|before|so)\b|\b(?:yes/no|y/n)\b|\bi(?:'ll|"
    r" will)? need your\b|"
    r"\b(?:once|when|as soon as|after) you (?:say|confirm|agree|approve|give|tell)|\bif (?:you're|you are|that's|"
    r"that is|it's) "
    r"(?:happy|ok|okay|fine|all right|alright|good|right|correct)|\bsay the word\b|\btell me\b|\b(?:do you|"
    r"would you|shall i|should i)\b[^?]*$"
)
"""What asks without a question mark."""
_CHOICE = re.compile(
    r"\bor (?!no\b|n\b|not\b|\"?no\"?|(?:just |please )*(?:provide|suggest|specify|let me know|tell me|give|reply|"
    r"adjust|ask|"
    r"share|something similar|make (?:any )?changes|changes\b|call|contact))"
)
"""A yes to one or the other is no yes to either."""
_WHAT = re.compile(r"^\W*(?:(?:and|so|but|ok|okay|great|then)\W+)*(?:what|when|where|who|whose|how|why)\b")
_DOUBTED = re.compile(r"\W*(?:too \w+|or not|not|so no|no)\W*\?")
_ONE_OF = re.compile(r"\b(?:one|either|any|some|which)(?: one)? (?:of|or)\b|\bwhich\b")
_KNOWN = re.compile(
    r"^(?:so |just to confirm,? |to confirm,? )*(?:"
    r"(?:is|was|are|were) (?:this|that|it|these|those) "
    r"(?:the|your|yours|you|a|an|for|too|by|from|all(?! right)|everything)\b|"
    r"you(?:'d| would)? (?:want|like|wish|"
    r"asked)\b)|"
    r"\bconfirm (?:that )?(?:you(?:'re| are)\b|your \w+(?: \w+){0,3} is\b)|\byou understand\b|"
    r"\b(?:understood|understand|clear|noted|aware|informed|(?:follow|see|hear|heard|get|got) (?:me|it|that|this)|"
    r"with me)\W*$|\bnot (?:to )?(?!yet)[a-z]+ |"
    r"\b(?:like|want|wish) (?:me to )?(?:to )?(?:know|hear|think|learn|see)\b|"
    r"\b(?:may|can|could) i (?:(?:have|know|get) (?:your|the)|ask|check|inquire|enquire)\b|^would you like an? \w+ to\b"
)
"""What only makes sure that it was understood."""
_SHORT = 4
"""So short a question can only be about what was told before it: "Submit?", "Good for you?"."""
_HELP = re.compile(r"\b(?:anything else|something else|any (?:other )?questions?|further assistance|help you with)\b")
_NEGATOR = re.compile(
    r"\b(?:not|never|cannot|can't|neither|nor|unable|\w+n't|instead of|rather than|except|excluding|other than|"
    r"apart from|"
    r"impossible|ineligible)\b(?! only\b)"
)
_NONE = re.compile(r"\b(?:no|without|non)\b")
_MAY_DENY = re.compile(
    r"n(?:o|'t|e(?:ver|ither))|unable|i(?:nstead|mposs|nelig)|rather than|exc|other than|without|apart"
)
"""What a sentence must have for one of the two to find anything, which is quicker than they are."""
_CLAUSE = re.compile(r"[,;:]\s|\s-\s|\bbut\b|\bhowever\b|\bwhile\b|\bwhereas\b")
_BRACKET = re.compile(r"\([^()]*\)?|\[[^\[\]]*\]?")
_OWN = re.compile(
    r"\b(?:the|to|you|your|i|is|a|for|and|of|it|that|this|on|in|be|will|can|have|with|me|my|would|are|at|please)\b"
)
_WORD = re.compile(r"[^\W\d_]+")
_SPOKEN = re.compile(r"[^\W\d_]{3,}")
_TIED = (
    r"(?:(?:now|also|then|just|please|gladly|still|next|immediately|all|be able to|go ahead and|proceed to|"
    r"continue to|help you(?: with| to)?|(?:make|process|complete|finali[sz]e|submit|"
    r"handle|do|perform) (?:the|a|an|your|this|that|these|those)|the|a|an|your|this|that|these|those)\s+)*"
)
_HEAD = re.compile(
    r"(?:\b(?:shall|should|may|can|could|might|would) (?:i|we)|\b(?:i|we)(?:'ll|'d| will| would| can| could| shall|"
    r"(?:'m| am|'re| are) (?:going|ready|happy|about) to)(?: like to)?|\b(?:want|like|wish|prefer|for|allow) (?:me|"
    r"us) to|"
    r"\b(?:ok|okay|all right|alright|fine|good) if (?:i|we)|\blet me(?! know)|\blet's|\byou (?:like|want|wish) to)\s+"
    rf"{_TIED}(?P<head>(?:put|lock|get|set) (?:it|this|that|these|them|everything) \w+|[a-z]+)(?P<more>[^.?!]*)"
)
"""What the agent would do: the word after "shall I", "I will", "would you like me to"."""
_AND = re.compile(r"(?:\band(?: then)?|\bthen|&|,|;) (?:also |then )?([a-z]+)")
_ANY_DEED = re.compile(
    r"(?:do|go|proceed|continue|confirm|process|finali[sz]e|complete|submit|perform|execute|handle|apply|arrange|put "
    r"\w+ "
    r"through|lock \w+ in|get \w+ \w+|set \w+ up|it|this|that|so|these|those|them|both|all|everything|change|changes|"
    r"need|"
    r"be|request|action|actions|requested|following|above|exact|list|outline|summari[sz]e)"
)
"""Words that say that something would be done, and not what."""
_AT_YOUR_WORD = (
    r"(?! you(?:'d|'re|'ve|'ll)?(?: \w+){0,2} (?:confirm|agree|approve|authori[sz]e|like|want|wish|prefer|happy|ok|"
    r"okay|fine|good|ready|yes|(?:say|said|give|given)(?! so))\b)"
)
_IF_RIGHT = (
    r"(?! so\b)(?! (?:that|this|it|everything|all)(?:'s| is| looks| sounds)(?: all)? (?:ok|okay|alright|all right|fine|"
    r"good|right|correct)\b)(?! (?:that|this|it) (?:works|suits)(?: for)? you\b)"
)
_WAITS = re.compile(
    rf"\bif\b(?! (?:i|we) ){_AT_YOUR_WORD}{_IF_RIGHT}|"
    rf"\b(?:once|when|whenever|as soon as|unless|provided|assuming|in case|subject to|depending on)\b{_AT_YOUR_WORD}"
)
"""What is done when something else has happened, and not at the user's yes."""
_LATER = re.compile(
    r"\b(?:tomorrow|tonight|later|afterwards|next (?:week|month|year|mon|tues|wednes|thurs|fri|satur|sun)\w*|"
    r"in (?:19|20)\d\d|in (?:the (?:next|coming)|a few|\w+) (?:minute|hour|day|week|fortnight|month|year)s?|"
    r"(?:once|twice) an? \w+|(?:dai|week|month|year)ly|annually|(?:every|each) (?:day|week|month|year|other)\b)"
)
"""When something is done that is not done now; "24.00 monthly" is a price."""
_PRICE = re.compile(r"(?<![\w-])[$\u20ac\u00a3]?(\d+)[\d.,]* $")
_ON_A_DAY = re.compile(r"\b(?:on|from|starting|effective|as of|as from)(?: the| \w+day,?){0,2} $")
_VAGUE_BEFORE = re.compile(
    r"\b(?:about|around|roughly|approximately|approx|nearly|almost|at least|at most|(?:more|less) than|up to|under|"
    r"over|below|above|within|"
    r"(?:maximum|minimum) of|half(?: of)?|twice|double|\d+ ?(?:%|percent)(?: of(?: the)?)?)\W*$"
)
_VAGUE_AFTER = re.compile(r"\s*(?:thousand|million|billion|minus|less|or (?:more|less|so)|and up)\b")
_MAY_BE_VAGUE = re.compile(
    r"about|a(?:round|pprox|lmost|bove|t (?:least|most)|nd up)|roughly|nearly|than|u(?:p to|nder)|over|below|within|"
    r"m(?:axim|inim|illion|inus)|half|twice|double|%|percent|thousand|billion|less|or (?:more|so)"
)
"""What a sentence must have for one of the two to find anything."""
_NEAR = 20
_HIDES = re.compile(
    r"<[!?/a-z]|!\[|~~|```|\[[^\]]*\]:\s|\]\([^)]*[\"']|(?:\n[ \t]*){8,}|"
    r"[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\x00-\x08]",
    re.IGNORECASE,
)
"""What may keep words from being seen: tags, struck out, in a link or in place of a picture, far below."""
_QUOTES = re.compile(r"^[ \t]*>", re.MULTILINE)
"""What marks words as somebody else's."""
Asks = Literal["", "leave", "which", "what", "more"]
"""Whether a sentence asks: for leave to go ahead, for one of several, for what no yes answers, for something else that
a yes could answer, or not at all."""


class Later(NamedTuple):
    """Words that tell when something is done that is not done now."""

    words: tuple[str, ...]
    rate: str
    """The figures right before: "24.00 monthly" is a price, unless it is a value of the call."""
    is_year: bool


class Line:
    """A sentence of the agent, without capitals; what it says of the deed is read where somebody asks."""

    def __init__(self, sentence: Sentence) -> None:
        self.words = sentence.words
        self.asks: Asks = _asks(sentence)

    @once
    def heads(self) -> tuple[str, ...]:
        """The words for what it would do first of all, and for what is joined to that."""
        return heads(self.words)

    @once
    def _rest(self) -> str:
        """What follows the first of them."""
        head = _HEAD.search(self.words)
        return self.words[head.end("head") :] if head is not None else ""

    @once
    def waits(self) -> bool:
        """Whether that is done when something else has happened."""
        return _WAITS.search(self._rest) is not None

    @once
    def later(self) -> tuple[Later, ...]:
        return tuple(map(_later, _LATER.finditer(self._rest)))

    @once
    def days(self) -> frozenset[tuple[int, int]]:
        """Months and days on which it is done, or from which on."""
        rest = self._rest
        found = days(rest) if rest else ()
        on = (each for each in found if _ON_A_DAY.search(rest, max(0, each.start - 30), each.start))
        return frozenset((each.month, each.day) for each in on)

    @once
    def vague(self) -> frozenset[Decimal]:
        """Numbers that it tells only roughly, as a bound or as a part: "about 250"."""
        if not _MAY_BE_VAGUE.search(self.words):
            return frozenset()
        return frozenset(
            each.value
            for each in numbers(self.words)
            if _VAGUE_BEFORE.search(self.words, max(0, each.start - _NEAR), each.start)
            or _VAGUE_AFTER.match(self.words, each.end)
        )


@lru_cache(maxsize=2048)
def lines_of(text: str) -> tuple[Line, ...]:
    """The sentences of a message."""
    return tuple(map(Line, sentences(text)))


def _later(found: re.Match[str]) -> Later:
    price = _PRICE.search(found.string, max(0, found.start() - 20), found.start())
    return Later(tuple(_SPOKEN.findall(found[0])), price[1] if price else "", found[0][-1].isdigit())


def is_later(words: str) -> bool:
    """Whether words in lower case tell when something is done that is not done now."""
    return _WAITS.search(words) is not None or _LATER.search(words) is not None


@lru_cache(maxsize=2048)
def hidden(text: str) -> int:
    """In how many places a message may not be seen as it is read here."""
    return len(_HIDES.findall(text))


def quotes(text: str) -> bool:
    """Whether a message has lines that are set as a quotation."""
    return _QUOTES.search(text) is not None


def _asks(sentence: Sentence) -> Asks:
    words = sentence.words
    if not sentence.is_question:
        # What is no question is answered by a yes only where it asks for one.
        return "leave" if _REQUEST.search(words) and _LEAVE.search(words) and not _offers(words) else ""
    if _WHAT.search(words):
        return "what"
    if _DOUBTED.match(words):
        return "more"
    if _CHOICE.search(words) or _ONE_OF.search(words):
        return "which"
    if _KNOWN.search(words) or _HELP.search(words):
        return "more"
    return "leave" if _LEAVE.search(words) or len(words.split()) <= _SHORT else "more"


@lru_cache(maxsize=4096)
def is_english(words: str) -> bool:
    """Whether words in lower case are in the language that the lists are in."""
    count = len(_WORD.findall(words))
    return count > 0 and len(_OWN.findall(words)) >= count * 0.15


@lru_cache(maxsize=4096)
def heads(words: str) -> tuple[str, ...]:
    """The words for what somebody would do first of all in a sentence, and for what is joined to that."""
    found = _HEAD.search(words)
    if found is None or (_ANY_DEED.fullmatch(found["head"]) and not found["more"]):
        return ()
    if _ANY_DEED.fullmatch(found["head"]):
        return heads(found["more"])
    return (found["head"], *_AND.findall(found["more"]))


_GO_AHEAD = re.compile(
    r"\W*(?:(?:so|then|and|now|please|just|great|ok|okay|also|kindly|thanks|thank you)\W+)*(?:"
    r"(?:(?:shall|should|may|can|could) (?:i|we)|(?:do|would) you (?:like|want|wish) (?:me|us)? ?to|want (?:me|us) to|"
    r"(?:ok|okay|all right|alright|fine|good|happy|ready) (?:for (?:me|us) )?(?:to|if (?:i|we)))(?: now| then| just)*"
    r"(?: (?:go ahead|proceed|continue|do (?:it|that|this|so|both|these|all of (?:it|this|that))|"
    r"confirm(?: (?:it|this|that))?))?(?: and)?|"
    r"(?:(?:does|do|is|are) )?(?:that|this|it|these|everything|all|the above|all of (?:this|that|it))?(?:'s)? ?"
    r"(?:sounds?|looks?|works?|is|all)? ?"
    r"(?:ok|okay|right|correct|agreed|good|fine|all right|alright|acceptable|deal|work)"
    r"(?: (?:with|for|by) you| to you)?|"
    r"(?:do you |would you |can you |could you |will you )?(?:please )?"
    r"(?:agree|confirm|approve|consent|accept|authori[sz]e)"
    r"(?: (?:this|that|it|these|to this|to that|so|both|with this|with that))?|"
    r"(?:are you |you're )?(?:ok|okay|happy|fine|sure|all right|alright)(?: with (?:this|that|it|these|both))?|"
    r"yes(?:/| or )no|y/n|yes|say yes|reply (?:with )?\W?yes|go ahead|proceed|"
    r"do i have your (?:ok|okay|consent|approval|agreement|go-ahead))"
    r"(?:\W+(?:now|then|please|for you|with (?:it|that|this|both|these|them)|today|"
    r"to (?:go ahead|proceed|confirm|continue)|and (?:proceed|go ahead|continue)|yes/no|yes or no|y/n|right away|"
    r"like this|as (?:above|described|outlined|listed)))*\W*"
)
"""The questions that ask whether to do what was told, and name nothing."""


def only_goes_ahead(words: str) -> bool:
    """Whether a question in lower case asks no more than whether to go ahead."""
    return _GO_AHEAD.fullmatch(words) is not None


def _offers(words: str) -> bool:
    """Whether a sentence only says what else could be: "if you'd prefer another day, let me know"."""
    return words.startswith(("if ", "otherwise", "or ", "however, if")) and "yes" not in words


@lru_cache(maxsize=4096)
def stated(words: str, *, brackets: bool = False) -> str:
    """A sentence with blanks for what it denies and what stands in brackets, everything else where it stood."""
    has_brackets = not brackets and ("(" in words or "[" in words)
    kept = _BRACKET.sub(lambda match: " " * len(match[0]), words) if has_brackets else words
    if not _MAY_DENY.search(kept):
        return kept
    if not _NEGATOR.search(kept) and not _NONE.search(kept):
        return kept
    parts: list[str] = []
    start = 0
    for end in [*(match.end() for match in _CLAUSE.finditer(kept)), len(kept)]:
        clause = kept[start:end]
        if _NEGATOR.search(clause):
            clause = " " * len(clause)
        elif none := _NONE.search(clause):
            # What stands before "with no fee" is told all the same.
            clause = clause[: none.start()] + " " * (len(clause) - none.start())
        parts.append(clause)
        start = end
    return "".join(parts)
