"""Is this a yes? What a message agrees to, refuses, puts off or makes depend on something, sentence by sentence.

A negated phrase and one that hangs on a condition never count: "I will not be in state", "don't cancel it yet",
"yes, if it is free". Whether a yes is about the question at hand is for `engine.consent` to say.
"""

import re
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from bylaw.facts.phrases import Phrases

Stance = Literal["yes", "weak", "no", "spares", "held", "if", "mixed", "asks", "other"]
"""Of a sentence or a message: agrees; agrees where a yes was asked for; refuses; says what not to do; puts off; makes
it depend on something; says yes and no; only asks; nothing of these."""

_SENTENCE = 1_000
_SENTENCES = 400
"""Longer texts are cut, so that no text costs more than its length."""


_QUOTES = (("’", "'"), ("‘", "'"), ("“", '"'), ("”", '"'), ("—", "-"), ("–", "-"))
_END = re.compile(r"(?<=[.!?;])[\"')*]*\s+|\n+")
_BREAK = re.compile(r"[.!?;\n](?:(?<=\n)\n*|(?<!\n)[\"')*]*\s+)")
"""The same, with the mark that ends the sentence; what begins with one of a few signs is found much sooner."""
_BULLET = re.compile(r"(?:[\s>#\-•+(]|\(?\d{1,2}[.)](?=\s))+(?=\S)")
_UNDERLINE = re.compile("__+")

_REPORTED = Phrases(
    (
        "\"|'",
        r"(?<!\bi )(?<!\bi'd )(?<!\bi'll )(?<!\bi would )(?<!\bi will )"
        r"\b(?:sa(?:id|ys|ying)|wr(?:ote|ites|itten)|t(?:old|ells)|reads?|stat(?:ed|es)|ask(?:ed|s)|answer(?:ed|s)|"
        r"repl(?:ied|ies)|typed|put it|quot(?:e|ed|es|ing))\b[^\"]{0,30}?(?:\"[^\"]*(?:\"|$)|(?<!\w)'[^']*(?:'|$))",
    )
)
"""What somebody else said, or what stands somewhere, in quotes: the user says nothing by it."""
_NO_CONDITION = Phrases(
    (
        "if|whether|once|when",
        r"\b(?:let|tell|inform|notify|remind)\s+(?:me|us)\s+(?:know\s+)?(?:right away\s+|please\s+)?"
        r"(?:if|whether|once|when)\b[^,;-]*",
    ),
    (
        "if|whether",
        r"\b(?:see|check|know|ask|wonder(?:ing)?|sure|clarify|verify|understand|mind|explain|confirm|say)"
        r"\s+(?:if|whether)\b",
    ),
    (
        "if",
        r"\bif\s+(?:you|there)(?:'s|'d|\s+is|\s+are|'re)?\s*"
        r"(?:need|have|want|require|like|could|can|don't mind|wouldn't mind|anything|any)\b[^,;-]*",
    ),
    ("if", r"\b(?:even|as)\s+if\b"),
    ("if", r"\bif\s+(?:possible|that's ok(?:ay)?|at all|any|applicable|needed|necessary|required|available)\b"),
    (
        "if",
        r"\bif (?:that|this|it)(?:'s| is) (?:really |truly |indeed )?"
        r"(?:the only|the case|the best|all|how|what|so|necessary|needed|required|the way|not possible|impossible|"
        r"not an option|not allowed)\b",
    ),
    ("confirm ", r"\bconfirm (?:once|when|after)\b"),
    (
        "since |because |though |as ",
        r"^(?:since|because|although|though|even though|as) [^,]*,",
    ),
)
"""An `if` on which no yes depends: a courtesy, or what the agent has just said."""
_CONDITION = Phrases(
    (
        "if|unless|assuming|long as|condition|depending",
        r"\b(?:if|unless|assuming|as long as|so long as|on condition|on the condition|depending on)\b",
    ),
    ("provid", r"\b(?:provided|providing) that\b"),
    ("only ", r"\bonly (?:when|once|after)\b"),
    (
        "after |once |when |until ",
        r"^\W*(?:(?:yes|yeah|yep|ok|okay|sure|go ahead|do it|please do|please)\W+)+(?:but )?"
        r"(?:after|once|when|until) (?:i|i'm|i've|we|my|our|the|it|it's)\b",
    ),
)
_LATER = (
    r"(?:later|tomorrow|tonight|another (?:day|time)|some other (?:day|time)|next (?:week|month|time|year)|"
    r"in an? (?:while|bit|minute|moment|hour|day|week|few \w+|couple of \w+))"
)
_HOLD = Phrases(
    (
        "hold |not yet|just a |never|think",
        r"\b(?:hold (?:on|off|it|that)|not yet|just a (?:second|moment|minute)|let me think|"
        # "Never mind the fee" waves a worry aside, and not what was put.
        r"never ?mind(?! (?:about )?(?:the|any|all|those|these|its|your) \w)|"
        r"think about it)\b",
    ),
    ("wait", r"(?<!can't )(?<!cannot )\bwait\b(?! (?:for|to))"),
    (
        "give me |let me ",
        r"\bgive me (?:until|till|(?:a|an|one|two|some|a few|a couple of) "
        r"(?:sec(?:ond)?|moment|min(?:ute)?|hour|day|week|time)s?)\b"
        r"|\blet me (?:just |first )?(?:check|ask|think|talk|discuss)\b",
    ),
    (
        "day|next |in ",
        r"\b(?:go ahead|proceed|do (?:it|that)) (?:(?:on |next |this )?(?:mon|tues|wednes|thurs|fri|satur|sun)day"
        r"|next (?:week|month)|in (?:an?|one|two|three|\d+) \w+)\b"
        r"|\bon (?:mon|tues|wednes|thurs|fri|satur|sun)day,? (?:please )?(?:go ahead|proceed|do (?:it|that))\b",
    ),
    ("first|before", r"\b(?:but|though) (?:first|before)\b"),
    (
        "before ",
        r"\bbefore (?:(?:i|we|you) )?(?:do|decide|proceed|confirm|go|agree|mak|cancel|book|finali|mov|commit|chang)\w*",
    ),
    ("sure ", r"\bnot (?:so |yet )?sure (?:if i|whether|about|yet|i want)\b"),
    (
        "not ",
        r"\bnot (?:today|now|tonight|tomorrow|right now|right away|just yet|at the moment|for now|"
        r"this (?:week|month|time))\b",
    ),
    (
        "later|tomorrow|tonight|next |another |some other |in a",
        # "Book it for tomorrow" says when it is to be; "do it tomorrow" puts it off.
        r"(?<!i'll )(?<!i will )(?<!i can )(?<!we'll )"
        rf"\b(?:do|cancel|book|make|change|process|submit|move|send|decide|confirm)\w* (?:it|that|this|them) {_LATER}\b"
        rf"|\bbut (?:only |please |maybe )?{_LATER}\b|\b(?:ask|remind|call) me (?:again )?{_LATER}\b"
        rf"|^\W*(?:(?:yes|yeah|yep|ok|okay|sure|fine|please)\W+)*(?:maybe |perhaps )?(?:later|another (?:day|time)|"
        r"some other (?:day|time)|next time)\W*$",
    ),
    (
        "my mind|second thought|rather ",
        r"\bchanged? my mind\b|\bon second thought\b|\bi(?:'d| would) rather (?:not|wait)\b",
    ),
)
_NO = Phrases(
    (
        "no|nah|nein",
        r"^(?:\W*(?:oh|well|sorry|hmm|actually|um|uh)\b)*\W*"
        # Before a noun it says what is not wanted beside: "no insurance", "no changes".
        r"(?:nope|nah|non|nein|no(?!\s+\w)|no(?=\s+(?:i|we|you|it|it's|that|that's|this|thanks?|please|don't|do|not|"
        r"there|wait|actually|sorry|but|let|let's|can|just|way|the|my)\b))\b",
    )
)
_REFUSES = Phrases(
    (
        "not",
        r"\b(?:absolutely|definitely|certainly|of course|surely|obviously|please|better|preferably|i think|"
        r"i'd say) not\b",
    ),
    ("no ", r"\b(?:no way|hell no|by no means|under no circumstances|no chance)\b"),
    (
        "a chance|scratch|strike|nothing|touch",
        r"\bnot a chance\b|\b(?:scratch|strike) that\b|\bdo nothing\b|(?:n't|\bnot) touch\b",
    ),
    ("no", r"\bactually,? no\b|\b(?:yes|yeah|right|well|ok|okay|sure)\W+no\W*$|\byes is not\b"),
    (
        "forget|scrap|drop|abort|stop",
        r"\b(?:forget|scrap|drop|abort) (?:it|that|this|about it)\b"
        r"|\bstop\b(?= (?:it|that|this|there|please|now)\b|\W*$)",
    ),
    (
        "leave |keep ",
        r"\b(?:leave|keep) (?:it|that|this|them|everything|things)(?: just| exactly)? "
        r"(?:as (?:it |they |that |things )?(?:is|are|was|were)|alone|unchanged|be)\b",
    ),
    ("don|do not", r"\b(?:don'?t|do not)\W*$"),
)
"""Says no without the word, or after one that sounds like a yes: "absolutely not", "ok, forget it"."""
_KEEPS = Phrases(
    (
        "keep|leav|retain",
        r"\b(?:keep|keeping|leave|leaving|retain|retaining) (?:it|that|this|them|both|everything|[a-z]{0,4}-?\d\w*|"
        r"(?:the|my|our|that|this) (?:\w+ )?"
        r"(?:appointment|booking|reservation|visit|order|trip|flight|slot|one|listing)s?)"
        r"(?: [a-z]*-?\d\w*)?(?: (?:please|thanks|thank you|then|instead|for now|after all|though|anyway|yes|"
        r"on the books|as booked|booked|in place))*\W*(?:,.*)?$",
    ),
    (" to keep", r"\b(?:want|wanted|like|wish|plan) to keep\W*$"),
)
"""Agrees to leaving things as they are: "yes to keeping it", "go ahead and keep it"."""
_KEEPS_ONE = re.compile(r"\b(?:keep|keeping|leave|leaving|retain|retaining) #?[a-z]{1,6}-?\d[\w-]*")
"""The same of one thing by its id."""
_DOES = re.compile(r"\b(?:cancel|book|chang|mov|updat|add|upgrad|downgrad|refund|send|switch|proceed with)")
_MOCKS = Phrases(
    ("right", r"\b(?:yeah|yea|ya|sure|oh),? right\b(?! (?:away|now|there))"),
    ("as if", r"\bas if\W*$"),
    ("wish|dreams|chance|funny", r"\byou wish\b|\bin your dreams\b|\bfat chance\b|\bvery funny\b"),
    ("everything |anything |all ", r"\b(?:everything|anything|all) but (?:that|this|it)\b"),
)
"""Says yes and may mean the opposite, or all but what was asked."""
_NOT = r"\b(?:don'?t|do not|not|never|stop|won'?t|can'?t|cannot|wouldn'?t|isn'?t|aren'?t|shouldn'?t)\b[^,.;-]{0,24}?"
_NOT_PARTS = "n't|not|never|stop|dont|wont|cant|wouldnt|isnt|arent|shouldnt"
_UNDONE = Phrases(
    (
        _NOT_PARTS,
        _NOT
        + r"\b(?:proceed|go ahead|do (?:it|that|this)|confirm|agree|accept|approve|work for me|correct|right|ok|okay|"
        r"fine|acceptable|want (?:that|this|it)\b|\w+ (?:it|that|this|them|anything)? ?yet)\b",
    )
)
_SPARED = Phrases(
    (
        _NOT_PARTS,
        _NOT + r"\b(?:cancel|book|chang|process|submit|send|charg|updat|make|refund|remov|add|mov|switch|upgrad|"
        r"downgrad)\w*\b",
    )
)
_ASIDE = Phrases(
    (
        "don|do not|no to|not|skip|leave out|never|forget|except",
        r"\b(?:don'?t|do not|no to|not|skip|leave out|never ?mind|forget(?: about)?|except(?: for)?)\b"
        r"(?:[^,.;:!?-]|-(?=\w))*",
    )
)
"""Says of one thing that it is not to be done, whatever else is."""
_WITHOUT = re.compile(r"\b(?:want|wanted|like|liked)\b.*\b(?:without|otherwise)\b")
"""Says what would not have been wanted, and so that this is."""
_YES = Phrases(
    (
        "yes|yea|yep|yup|ya|oui|si|sí|ja|da|affirm|absolute|definite|certain|of course|agree|confirm|i do|please do|"
        "approve",
        r"^(?:\W*(?:oh|well|ah|great|perfect|good|ok|okay|sure|thanks|thank you|alright|um|hi|hello)\b[\s,!.]*)*"
        r"\W*(?:yes+|yeah|yep|yup|yea|ya|oui|si|sí|ja|da|affirmative|absolutely|definitely|certainly|of course|agreed|"
        r"confirmed|i confirm|i do|i agree|please do|approved?)\b",
    ),
    ("yes|yeah|yep|oui", r"(?:[,;:-]|\band|\bthen|\bso)\W*\b(?:yes+|yeah|yep|oui)\b"),
    ("yes|oui|ja|sí", r"[\"'](?:yes|oui|ja|sí)[\"']"),
    ("ahead|please do|do ", r"\b(?:go|going) ahead\b|\bplease do\b|\bdo (?:it|that|this|both|all)\b"),
    (
        "proceed",
        # "How do we proceed?" and "Can you confirm the price?" ask.
        r"(?<!how do we )(?<!how to )(?<!how can we )(?<!how should we )(?<!how would we )(?<!how do i )\bproceed\b",
    ),
    (
        "confirm",
        r"(?<!you )(?<!you please )(?<!you also )(?<!please )(?<!to )\bconfirm(?:ed|ing)?\b"
        r"(?! (?:if|whether|how|what|when|once|that the|my|the exact))",
    ),
    ("forward", r"\b(?:move|going?) forward\b"),
    (
        "confirm|agree|accept|approve|consent|authori",
        r"\b(?:i|we) (?:can |hereby |do |fully |also )?(?:confirm|agree|accept|approve|consent|authori[sz]e)\b",
    ),
    (" me", r"\b(?:works?|fine|good|okay|ok|perfect|great) (?:for|by|with) me\b"),
    (" my ", r"\byou (?:have|got) my (?:ok|okay|permission|confirmation|consent|approval|go-ahead)\b"),
    (
        "sounds |looks |seems |all ",
        r"\b(?:sounds|looks|seems|all) (?:\w+ )?(?:good|great|fine|correct|right|perfect|ok|okay|excellent)\b",
    ),
    (
        "correct|right|fine|perfect|work|great|good|ok|accurate",
        r"\b(?:that|this|it|all|everything|those|these|they|details)(?:'?s|'?re| is| are| all)?(?: all)? "
        r"(?:correct|right|fine|perfect|works|work|great|good|ok|okay|accurate)\b",
    ),
    (
        "let's ",
        r"\blet's (?:do|go|book|make|finali[sz]e|get|proceed|use|stick|move|take|have|cancel|change)\b",
    ),
    ("am |'m ", r"\bi(?:'m|\s+am) (?:ok|okay|happy|fine|good|comfortable|ready) (?:with|to)\b"),
    ("finali|process ", r"\bfinali[sz]e\b|\bprocess (?:it|that|this|the|them|my|these|those)\b"),
)
_WEAK = Phrases(
    (
        "sure|ok|right|correct|exact|perfect|great|fine|good|wonderful|excellent|awesome|cool|understood|that helps",
        r"^\W*(?:sure|ok|okay|alright|all right|correct|right|exactly|perfect|great|fine|good|wonderful|excellent|"
        r"awesome|cool|understood|that helps)\b"
        # "Sure, my user ID is ..." gives what was asked for; it agrees to nothing.
        # "Ok, but please also send a receipt" agrees, perhaps.
        r"(?!\W+(?:my|here|i have|what|how|why|can|could|let me (?!know)|is|before)\b)"
        r"(?!\W+but\b(?! (?:also|please|could you|can you|make sure|i(?:'d| would) (?:also )?like)\b"
        r"(?!.*\b(?:first|before|instead|only|not|rather|different|lower|reduce|waive|wait|cheaper)\b|.*n't\b)))",
    )
)
_WELCOMES = Phrases(
    ("i'd |i would ", r"\bi(?:'d| would) (?:like|love|appreciate|be happy with) (?:that|it|this)\b"),
    (
        "'d | would | will ",
        r"\b(?:that|this|it)(?:'d| would| will) (?:be|do) (?:just )?"
        r"(?:great|perfect|fine|good|wonderful|ideal|nice|ok|okay|lovely|awesome|amazing|fantastic|brilliant|excellent|"
        r"helpful|appreciated|super|cool)\b",
    ),
    (
        "please|y|k|for sure|all means|👍",
        r"^\W*(?:please|y|k|kk|for sure|by all means|why not|👍)\W*(?:thanks?|thank you|please)?\W*$",
    ),
    ("no ", r"^\W*no (?:objections?|problems?|issues?|worries)\b(?!.*\b(?:but|except)\b)"),
    (
        " on| it so|go through|go for",
        r"\b(?:go|carry) on\b|\bmake it so\b|\bgo through with\b|\bgo for (?:it|that)\b",
    ),
    ("i'll |i will ", r"\bi(?:'ll| will) (?:go with|take|have|accept) (?:that|it|this|them|those|the)\b"),
    ("what i ", r"\bthat(?:'s| is) (?:exactly |just )?what i (?:want|need|wanted|asked for)\b"),
    (
        "please |accept ",
        r"\bplease (?:continue|complete|finish|accept|submit|execute)\b|\baccept (?:it|that|this|the)\b",
    ),
    ("my ", r"\b(?:give|have) (?:you )?my (?:consent|approval|permission|okay|ok|go-ahead)\b"),
)
"""Agrees where a yes was asked for, wherever it stands."""
_OBJECTS = Phrases(
    (
        "but|however|instead|rather|fair|short|reconsider|increase|waive|too |acceptable|another option|different|"
        "disappointed|make it |enough",
        r"\b(?:but|however|instead|rather|not fair|unfair|seems? fair|falls? short|reconsider\w*|increased?|waived?|"
        r"too (?:much|high|expensive|long|low)|unacceptable|not acceptable|another option|different|disappointed|"
        r"make it \$?\d|isn't enough|not enough)\b",
    )
)
_ASKS = re.compile(
    r"^(?:\W*(?:and|so|but|also|then|ok|okay|just to be clear|great|thanks)\b)*\W*"
    r"(?:what|how|why|when|where|which|who|is|are|was|will|would|do|does|did|can|could|should|may|might|am|has|have)\b"
)
_BIDS = re.compile(
    r"\b(?:can|could|would|will) (?:you|we|i) (?:please |just |now |kindly |also )*"
    r"(?:go ahead|proceed|do (?:it|that|this|so)|process)\b(?! without)"
)
"""A question that asks for the thing to be done."""
_HOW_MUCH = re.compile(
    r"\bhow much\b(?! (?:time|longer|notice))"
    r"|\bwhat(?:'s| is| would| will)\b.{0,20}\b(?:total|cost|price|charge|fee|difference)\b"
)
_CORRECTS = re.compile(r"\W*(?:no|oh|actually|sorry)\b[,.]? wait\b[,:.]? +(?=\w+ \w+ \w)")
"""Takes back what was said right before, to say something else."""
_BARE = re.compile(r"\W*(?:yes|yeah|yep|ok|okay|sure|really)\W*(?:to )?(?:what|who|why)?\W*\?\W*")
"""Only echoes a yes, to ask what was meant."""
_OPENS = re.compile(r"\W*(?:yes|yeah|yep|oui|ok|okay|sure)\b")
_DENIES = re.compile(r"\b(?:no|not|never|nor|neither|without|hardly|cannot|\w+n't)\b(?! (?:only|just|sure|to mention))")
_CLAUSE = re.compile(r"[,;:]|\b(?:but|and|so|because|since)\b")


class UserAnswer(Struct, frozen=True):
    """What a message says to a proposal, taken whole."""

    stance: Stance
    objects: bool
    """Whether it wants something else, or more, than what was put to it."""
    aside: tuple[str, ...] = ()
    """What it says is not to be done."""
    kept: tuple[str, ...] = ()
    """What it says of things, by their ids, that they are to stay as they are."""


@lru_cache(maxsize=2048)
def answer_in(text: str) -> UserAnswer:
    """What a message says: its last sentence that takes a side decides; a yes with a no or an `if` after it is both."""
    stance: Stance = "other"
    parts = sentences(text)
    for part in parts:
        match stance_of(part):
            case "no" | "if" if stance in ("yes", "mixed"):
                stance = "mixed"
            case "yes" | "no" | "held" | "if" | "mixed" as found:
                stance = found
            case "asks" if stance == "yes" and _HOW_MUCH.search(part):
                # Whoever asks what it costs has not agreed to it.
                stance = "mixed"
            case "asks" if stance == "weak":
                # "Okay. What does it cost?" may mean either.
                stance = "mixed"
            case "weak" if stance == "asks":
                stance = "weak"
            case "weak" | "asks" | "spares" as found:
                stance = found if stance == "other" else stance
            case "other":
                pass
    aside = tuple(found for part in parts for found in _ASIDE.all_in(part))
    kept = tuple(found[0] for part in parts for found in _KEEPS_ONE.finditer(part))
    return UserAnswer(stance, any(_OBJECTS.found_in(part) for part in parts), aside, kept)


@lru_cache(maxsize=2048)
def sentences(text: str) -> tuple[str, ...]:
    """The sentences and lines of a text, in lower case, with plain quotes and without bullets."""
    plain = _plain(text)
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
    return tuple([part for piece in pieces if (part := _unlisted(piece[:_SENTENCE]))])


def _plain(text: str) -> str:
    """A text in lower case, with plain quotes and dashes."""
    if not text.isascii():
        for curled, mark in _QUOTES:
            text = text.replace(curled, mark)
    return text.lower()


def _unlisted(line: str) -> str:
    bullet = None if line[:1].isalpha() else _BULLET.match(line)
    return (line if bullet is None else line[bullet.end() :]).strip()


def is_meant(text: str, start: int, end: int) -> bool:
    """Whether a phrase found in a message states what it says: neither negated nor made to depend on something."""
    plain = _plain(text)
    # Lower case may be longer in some languages; the place of the phrase would then be lost.
    plain = plain if len(plain) == len(text) else text
    begin = max((match.end() for match in _END.finditer(plain, max(0, start - _SENTENCE), start)), default=0)
    begin = max(begin, start - _SENTENCE)
    stop = match.start() if (match := _END.search(plain, end, end + _SENTENCE)) else min(len(plain), end + _SENTENCE)
    if _DENIES.search(_CLAUSE.split(plain[begin:start])[-1]):
        return False
    return not _CONDITION.found_in(_NO_CONDITION.without(plain[begin:stop]))


def without_quotes(text: str) -> str:
    """A text in lower case without what it reports of others in quotes."""
    return _REPORTED.without(_plain(text))


def without_courtesy(sentence: str) -> str:
    """A sentence without an `if` or `once` on which nothing depends: "let me know once it is done"."""
    return _NO_CONDITION.without(sentence)


@lru_cache(maxsize=4096)
def stance_of(sentence: str) -> Stance:
    """What one sentence says, as `sentences` gives it."""
    sentence = _REPORTED.without(sentence)
    if corrected := _CORRECTS.match(sentence):
        # "No wait, the small one will do": what follows counts, and the change of mind leaves it open.
        after = stance_of(sentence[corrected.end() :])
        return after if after in ("no", "held", "if", "asks") else "mixed"
    bare = _NO_CONDITION.without(sentence)
    if _KEEPS.found_in(bare):
        rest = _KEEPS.without(bare)
        if _KEEPS_ONE.search(bare) and _YES.found_in(rest):
            # "Yes, but leave R-2 alone" agrees to all the rest.
            return "yes"
        # "Cancel the one and keep the other" does both.
        return "mixed" if _DOES.search(rest) else "no"
    if _MOCKS.found_in(sentence):
        return "mixed"
    if _HOLD.found_in(bare):
        return "held"
    if _CONDITION.found_in(bare):
        return "if" if _YES.found_in(bare) or _is_weak(bare) else "other"
    if _REFUSES.found_in(bare):
        return "mixed" if _YES.found_in(_REFUSES.without(bare)) else "no"
    if _NO.found_in(bare):
        return "mixed" if _YES.found_in(_NO.without(bare)) else "no"
    if _UNDONE.found_in(bare) and not _WITHOUT.search(bare):
        if not _OPENS.match(bare) or not _YES.found_in(_UNDONE.without(bare)):
            return "no"
        return "mixed" if "but i " in bare else "yes"
    if _SPARED.found_in(bare) and not _YES.found_in(_SPARED.without(bare)):
        return "spares"
    is_question = sentence.endswith("?")
    if is_question and _ASKS.search(bare):
        if _BIDS.search(bare):
            return "yes"
        # "Okay, but could you send me a receipt?"
        return "mixed" if " but " in bare and _WEAK.found_in(bare) else "asks"
    if is_question and _BARE.fullmatch(bare):
        return "asks"
    if _YES.found_in(bare):
        return "mixed" if is_question and " but " in bare else "yes"
    return "weak" if _is_weak(bare) else "asks" if is_question else "other"


def _is_weak(sentence: str) -> bool:
    return _WEAK.found_in(sentence) or _WELCOMES.found_in(sentence)
