"""What the user answered: a plain yes, a bare no, or anything else, which is for somebody else to read.

The words are English. An answer in another language is neither: nobody is accused of what we cannot read.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal

from bylaw.consent.put import heads, is_english
from bylaw.policy.verb import VERBS
from bylaw.text.sentence import sentences
from bylaw.text.stem import stem

Said = Literal["yes", "echo", "no", "plain", "other"]
"""A plain yes; an "ok" or the deed told back, which says yes where only leave was asked for; a bare no; words that take
nothing back and may choose; all else."""

_COURTESY = re.compile(
    r"(?:oh|ah|h?m+|um+|well|great|perfect|excellent|wonderful|awesome|cool|nice|good|alright|all right|hi|hello|hey|"
    r"got it|i see|understood|thanks|thank you|thx|ty|(?:so|very) much|for (?:the|your) \w+|a lot|ok(?:ay)?|so|then|"
    r"that's (?:great|good|fine|perfect)|in that case|that makes sense|makes sense|no problem|"
    r"no worries)\b[\s,.!:;-]*"
)
_DASH = re.compile(r"\s*(?:\u2014|--)\s*")
_THUMB = re.compile("\U0001f44d|\u2705|\U0001f44c")
_FRIENDLY = re.compile(
    "[\U0001f389\U0001f44b\U0001f44f\U0001f600-\U0001f60e\U0001f642\U0001f64f\U0001f91d\u263a\u2764\ufe0f"
    "\U0001f3fb-\U0001f3ff]+"
)
_PICTURE = re.compile("[\U0001f300-\U0001faff\u2600-\u27bf]+")
_PLAIN_YES = (
    r"(?:yes|yeah|yep|yup|yea|yess+|aye|ya|exactly|affirmative|by all means|carry on|you may(?! (?:be|want)\b)|do both|"
    r"absolutely|definitely|certainly|of course|correct(?! (?:the|my|our|it|this|that)\b)|confirmed|"
    r"confirm(?:ing)?(?! (?:to|(?:it |that |this )?with)\b)|"
    r"i (?:do |hereby |can )?(?:confirm|agree|approve|accept|consent)|agreed|approved|"
    r"(?:please )?(?:do (?:it|that|so)(?! again)|go ahead|proceed|go for it|go on|continue|make it so)|"
    r"(?:please|pls) do|"
    r"let's (?:do|go|proceed)|(?:i'd|i would) like (?:to (?:proceed|go ahead|do|confirm)|that|you to)|"
    r"please (?:proceed|go (?:ahead|for it|on)|do)|"
    r"(?:that|it|this|everything|all)(?:'?s| is| looks| sounds| seems)? (?:all )?(?:right|correct|good to go)|"
    r"y(?=\W*(?:$|please|pls|go|do it)))\b"
)
_WEAK_YES = (
    r"(?:sure(?: thing)?|ok(?:ay)?|k|alright|all right|fine|sounds (?:good|great|perfect|fine|right)|"
    r"looks (?:good|great|right|fine)|that (?:works|sounds (?:good|great|perfect|fine)|would be (?:great|fine|good))|"
    r"works for me|(?:that's )?fine by me|perfect|great|(?:i'm )?(?:happy|fine|ok|okay) with (?:that|this|it|both|"
    r"them)|"
    r"(?:that|it|this|everything)(?:'s| is| looks| sounds) (?:fine|good|great|perfect|ok(?:ay)?|all right))\b"
)
_YES = re.compile(_PLAIN_YES)
_WEAK = re.compile(_WEAK_YES)
_BACK = re.compile(
    r"\b(?:but|however|except|instead|unless|if(?! (?:possible|needed|necessary|required|you))|only|not|no|nor|never|"
    r"none|nothing|neither|cannot|wait|hold on|hang on|hold off|stop|actually|rather|first(?!\b.*\b(?:then|rest|"
    r"remain\w*)\b)|before|until|till|later|maybe|perhaps|possibly|probably|whether|although|though|otherwise|another|others?|"
    r"different|depend\w*|assum\w*|as long as|so long as|suppose|guess|unsure|wrong|incorrect|mistake|correction|sorry|"
    r"forget|never ?mind|leav\w+|keep\w*|skip\w*|ignor\w+|undo|hypothetical\w*|would have|could have|should have|"
    r"was going|tomorrow|tonight|decide|wish|kidding|joking|as if|half|part of|some of|one of|\w+n't|dont|wont|cant|"
    r"didnt|doesnt|without|once|or|either|apart|provided|providing|when|after(?! all)|while|ask|talk|said|says|told|"
    r"declin\w*|bad|next|yeah,? right\b(?! away)|i (?:proposed|suggested|mentioned|described|listed|discussed|stated|"
    r"specified)|(?:is|'s) (?:my|mine)|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|understand\W*$|"
    r"just(?! (?:to|want|wanted|go|do|make|get|wrap|let|confirm|proceed|process|please)\b))\b"
)
"""Words that may take the yes of their own sentence back, put it off, hang it on something or change what it is to."""
_AWAY = (
    r"(?:go ahead|going ahead|proceed\w*|sure|agree|confirm|do (?:it|that|this|so)|yet|until|ready|change my mind|"
    r"(?:want|like|wish)(?: you)? (?:to|it|that|this|them)|happy|ok|okay|right|good|correct|now|today|charged?)\b"
)
_LATER_BACK = re.compile(
    r"\bhow much\b|\bwhat (?:is|was|will|would|are)\b.*\b(?:cost|price|fee|total|charge)|"
    r"^\W*(?:but|however|although|though|except|wait|hold|hang on|stop|actually|never ?mind|no\b(?! \w+ing\b)"
    r"(?=\W*$|,| not| wait| don't| actually| to\b| i\b)|scratch|correction|forget|second thought|unless|only|instead|"
    r"not |don't|do not|just (?:kidding|joking)|or\b)|"
    r"^\W*(?:pending|subject to|contingent|given|upon|following|in case)\b|"
    r"\b(?:unless|only if|only when|as long as|so long as|on (?:the )?condition|provided that|providing|assuming|"
    r"depend(?:s|ing) on|on second thought\w*|changed my mind|kidding|joking|hold off|rather than|instead|"
    r"not yet|think (?:it|this|that) over|think about (?:it|this|that)|hypothetical\w*|"
    r"if(?! (?:possible|needed|necessary|required|any|applicable|you|there|that's ok|at all|so)\b)(?<!know "
    r"if)(?<!even if))\b|"
    rf"\b(?:not|never|cannot|\w+n't|dont|wont|cant) (?:\w+ ){{0,3}}?{_AWAY}|"
    r"\b(?:check|tell|confirm|explain|know|see|ask|talk|speak|discuss|find out)\b[^.]*\bfirst\b(?!\b.*\bthen\b)|"
    r"\b(?:leave|keep|make|change|switch) (?:it|that|this|them) "
)
"""What takes a yes back from another sentence than its own."""
_LATE_YES = re.compile(
    r"(?:and )?(?:yes|yeah|yep)\W+(?:please|i confirm|i'd like|i would like|i want|confirm|go ahead|proceed|do it|"
    r"let's)\b|"
    r"i confirm\b|please (?:proceed|go ahead)\b|go ahead\b"
)
_AGREEING = re.compile(
    r"\b(?:yes|yeah|yep|please|pls|plz|thanks|thank|you|so|very|much|again|a|lot|go|ahead|proceed|do|it|that|this|"
    r"them|"
    r"all|both|now|right|with|the|and|i|i'm|i'd|am|is|are|to|me|my|for|that's|it's|of|course|sure|ok|okay|fine|"
    r"good|great|perfect|correct(?! (?:the|my|our|it|this|that)\b)|looks|sounds|"
    r"works|confirm|confirmed|agree|want|like|would|happy|then|"
    r"your|appreciate|on|in|as|these|those|thing|be|let's|book|sir|dear|cheers|absolutely|definitely|well|done|"
    r"asap|immediately|quickly|sweet|lovely|brilliant|thats|continue)\b|[^\w\s]|\s+"
)
_NO = re.compile(
    r"(?:(?:no|nope|nah|never|stop|negative)\b|(?:please )?(?:don't|do not)(?: (?:do (?:it|that|this)|proceed|"
    r"go ahead|cancel|book|change|send|make (?:it|that)))?\b|(?:i )?(?:would |'d )?rather not\b|not now\b|"
    r"i (?:don't|do not) (?:want (?:to|that|it)|agree)\b|leave it(?: (?:as it is|be|alone))?\b)"
)
_NO_MORE = re.compile(
    r"\b(?:no|nope|thanks|thank you|please|don't|do not|do (?:it|that|this)|proceed|go ahead|stop|leave it|"
    r"(?:as|where|how) it (?:is|was)|as is|keep (?:it|that)|be|alone|for now|never ?mind|forget it|i|want (?:to|that|"
    r"it|this)|i've changed my mind|"
    r"i changed my mind|not now|wait|that's all|cancel that)\b|[^\w\s?]|\s+"
)


_THAT = re.compile(r"\b(?:that|(?:to|from) my) ([a-z]+)")
"""What a yes may be turned to, if it was not put."""
_NONE = frozenset(("no", "not", "without"))
_NOT = re.compile(r"\b(?:no|not|none|without|0|declin\w*|\w+n't)\b")
_NEGATION = re.compile(r"no|not|nothing|none|cannot|\w+n't|dont|wont|cant|didnt|doesnt|without")
_WEEKDAY = re.compile(r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|tomorrow|tonight")
_CLAUSE_END = re.compile(r"[,;.!?]|\s-\s|\b(?:but|and|so)\b")
_AWAY_WORD = re.compile(rf"\b{_AWAY}")
_JOINT = re.compile(r"[,;:!]\s|\s-\s|\.\.+|\band\b|\bthen\b")
_LAST_YES = re.compile(
    r"\b(?:yes+|yeah|yep|yup|ya|go ahead|do (?:it|that|both)|go for it|go on|proceed|confirmed?|agreed)\b"
)
_NAMING = re.compile(r"\b(?:the|one|to|for)\b|\d")
_COUNT = re.compile(r"\b(?:both|two|three|four|five|all|one)\b")
_LEADS = re.compile(rf"{_COURTESY.pattern}|{_WEAK_YES}|hope\b|i hope\b")
_WORD = re.compile(r"[^\W_]+(?:'[a-z]+)?")
_PHRASE = re.compile(
    rf"\b(?:{_PLAIN_YES}|{_WEAK_YES}|(?:right|straight) away\b|(?:you|we) can\b|after all\b|"
    r"(?:thanks?|appreciate)(?: you)?(?: so| very| much| a lot){0,3}(?: for)? "
    r"(?:(?:help|check|explain|sort|look|clarify)ing(?: this| that| it)?(?: out| up)?|(?:the|(?:all )?your) \w+)\b)"
)
_AGREES = re.compile(rf"{_AGREEING.pattern}|{_COURTESY.pattern}")
_PASSING = re.compile(
    r"as|(?:out|above-)?(?:lined|mentioned|described|listed|proposed|discussed|detailed|stated|suggested|specified)|"
    r"summari[sz]ed|above|per|exactly|same|details?|requests?|finali[sz](?:e|ing)|complet(?:e|ing)|process(?:ing)?|"
    r"mak(?:e|ing)|perform(?:ing)?|submit|us(?:e|es|ing)|payments?|method|reservations?|bookings?|orders?|id|an|at|by|from|its|we|we're|you've|i've|also|too|really|just|kindly|"
    r"perfectly|wanna|get|thank|thx|ty|u|love|man|mate|buddy|god|awesome|amazing|fantastic|wonderful|"
    r"excellent|cool|nice|spot|thing|decided|sound"
)
"""Words that turn no yes: they refer to what was told, name no deed, or are said in passing."""
_REFERRING = re.compile(
    r"\b(?:the|this|that|these|those) (?:chang(?:es?|ing)|updates?|modifications?|charges?|ones?)\b"
)
"""What was told, called by no more than its kind: "make these changes", and not "change the amount"."""
_OF_ASKING = re.compile(
    r"chang(?:es?|ing)|updat(?:es?|ing)|modifications?|options?|amount|balance|charg(?:es?|ing)|pay(?:ing)?|account|number|"
    r"us|our|he|she|his|her|their|they|am|pm|may|can|could|will|i'll|we'll|gonna|going|hope|ones?|two|three|entire|whole|"
    r"after|help|here|away"
)
"""Words that turn no question for leave, but may turn a yes: "Yes, change the amount", "Yes, to her account"."""
_NUMBERED = re.compile(r"\S*\d\S*")
"""A word with a number in it; whether the number was put is asked of the call."""
_FIGURE = re.compile(r"\d+")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3})|\.0+\b")
_FOREIGN = 3
"""So many words of one clause that nobody here knows are more than a name or a fond remark."""


@lru_cache(maxsize=2048)
def said(text: str, put: str = "", asked: str = "") -> Said:
    """What a whole answer says to what was put and to the questions in it, which are given in lower case."""
    told = [each.words for each in sentences(_DASH.sub(". ", _without_pictures(text)))]
    if not told:
        return "other"
    whole = " ".join(told)
    for place, sentence in enumerate(told):
        if sentence.endswith("?"):
            break
        if (_LATE_YES if place and not _LEADS.match(told[place - 1]) else _YES).match(_skip_courtesy(sentence)):
            others = [each for at, each in enumerate(told) if at != place]
            is_back = _takes_back(_BACK, sentence, put) or any(_LATER_BACK.search(each) for each in others)
            is_more = any(each.endswith("?") or _says_more(each, put) for each in others)
            return "other" if is_back or is_more or _says_more(sentence, put) or _is_foreign(whole, put) else "yes"
    if whole.endswith("?") or _takes_back(_BACK, whole, put):
        rest = _skip_courtesy(whole)
        return "no" if _NO.match(rest) and not _left(_NO_MORE, _NO.sub(" ", rest, count=1)) else "other"
    words = set(_WORD.findall(put))
    if any(
        _is_command(clause, asked, put)
        and _is_remark(before + own, words)
        and not any(_says_more(each, put) for each in (own, *after))
        for before, own, clause, after in _clauses(told)
    ):
        return "other" if _is_foreign(whole, put) else "yes"
    # An "ok", or the deed told back, says yes only where it says nothing that was not put.
    new = set(_WORD.findall(_left(_AGREEING, _WEAK.sub(" ", whole)))) - words
    is_told_back = any(word in VERBS and word in words for word in _WORD.findall(whole))
    is_echo = not new and (_is_assent(whole) or is_told_back)
    return "echo" if is_echo else "plain"


def _without_pictures(text: str) -> str:
    """A text without pictures that say nothing; of any other nobody knows what it says."""
    return _PICTURE.sub(" picture ", _FRIENDLY.sub(" ", _THUMB.sub(" yes ", text)))


def figures(text: str) -> set[str]:
    """The numbers of a text, digit by digit, whatever they count or name."""
    return set(_FIGURE.findall(_THOUSANDS.sub("", text)))


def said_to_card(text: str, put: str) -> Literal["yes", "no", "other"]:
    """What an answer says to a card: a yes that denies nothing, a bare no; the words of the question do not help it."""
    found = said(text, put)
    if found == "no":
        return "no"
    words = text.lower()
    is_yes = found == "yes" or (found == "echo" and _is_assent(words))
    is_more = any(map(_NEGATION.fullmatch, _WORD.findall(words))) or figures(text) - figures(put)
    return "yes" if is_yes and not is_more else "other"


def _clauses(told: Sequence[str]) -> Iterator[tuple[str, str, str, Sequence[str]]]:
    """The clauses of an answer, each with the sentences before it, what stands before it in its own, and what comes
    after it; of what it quotes or asks none."""
    before = ""
    for place, sentence in enumerate(told):
        own = ""
        clauses = _JOINT.split(sentence)
        for at, clause in enumerate(clauses):
            if '"' not in sentence and not sentence.endswith("?"):
                found = _LAST_YES.search(clause)
                start = found.start() if found else 0
                after = (*clauses[at + 1 :], *told[place + 1 :])
                yield before, own + clause[:start], clause[start:].strip(), after
            own += f"{clause} "
        before += f"{sentence} "


def _is_remark(before: str, words: set[str]) -> bool:
    """Whether what stands before a yes names nothing that was put and no other thing: "You're a lifesaver, yes"."""
    left = _COUNT.sub("", _left(_AGREEING, before))
    return words.isdisjoint(_WORD.findall(left)) and not _NAMING.search(before)


def _is_command(clause: str, asked: str, put: str) -> bool:
    """Whether a clause says yes, or says to do what the question would do: "move it"."""
    if _LAST_YES.match(clause):
        return not _says_more(clause, put)
    rest = _skip_courtesy(clause)
    first = _WORD.match(rest)
    if first is None or _AGREEING.fullmatch(first[0]):
        return False
    new = set(_WORD.findall(_left(_AGREEING, rest))).difference(_WORD.findall(put))
    # A question may begin with its verb ("Cancel it?"), or with "ja oder nein": only a verb is told back as a yes.
    return not new and any(
        first[0] in heads(each) or (first[0] in VERBS and first[0] == each.split(maxsplit=1)[0])
        for each in asked.split("\n")
        if each
    )


def _says_more(sentence: str, put: str) -> bool:
    """Whether the sentence of a yes has a word that neither agrees nor was put: such a yes may be to something else,
    on a condition, or none at all ("Yes, to a manager", "Yes, given a full refund", "Yes I know")."""
    left = _WORD.findall(_NUMBERED.sub(" ", _REFERRING.sub(" ", _PHRASE.sub(" ", sentence))))
    unknown = [each for each in left if not (_PASSING.fullmatch(each) or _AGREES.fullmatch(each))]
    return bool(unknown) and not stems(put).issuperset(map(stem, unknown))


@lru_cache(maxsize=2048)
def stems(words: str) -> frozenset[str]:
    """The words of a text in lower case, without their endings."""
    return frozenset(map(stem, _WORD.findall(words)))


def is_neutral(word: str) -> bool:
    """Whether a word turns no question for leave: it agrees, refers to what was told, or is said in passing."""
    return any(each.fullmatch(word) is not None for each in (_PASSING, _OF_ASKING, _AGREES))


def _is_foreign(whole: str, put: str) -> bool:
    """Whether a clause beside the yes is in a language that is not read here, and so may take it back."""
    known = set(_WORD.findall(put))
    for clause in _JOINT.split(whole):
        words = (each for each in _WORD.findall(clause) if not (_AGREEING.fullmatch(each) or _YES.fullmatch(each)))
        unknown = [each for each in words if each not in known]
        if len(unknown) >= _FOREIGN and not is_english(clause):
            return True
    return False


def _is_assent(whole: str) -> bool:
    return _WEAK.search(whole) is not None or _YES.search(whole) is not None or "please" in whole or "pls" in whole


def _takes_back(back: re.Pattern[str], whole: str, put: str) -> bool:
    """Whether anything in an answer may take its yes back; what repeats the words that were put does not, nor does a
    no to what nobody spoke of."""
    for match in back.finditer(whole):
        after = _WORD.search(whole, match.end())
        phrase = whole[match.start() : after.end()] if after else ""
        if match[0] in put and _WEEKDAY.match(match[0]):
            continue
        if _NEGATION.fullmatch(match[0]) and _is_beside(_CLAUSE_END.split(whole[match.end() :])[0], put):
            continue
        if phrase and (phrase in put or (after and match[0] in _NONE and _is_denied(after[0], put))):
            continue
        return True
    return any(_AGREEING.fullmatch(each) is None and each not in (*put.split(), "one") for each in _THAT.findall(whole))


def _is_beside(denied: str, put: str) -> bool:
    """Whether what an answer denies is nothing that was put, no value, and not the yes itself: "I'm in no rush"."""
    words = _WORD.findall(_left(_AGREEING, denied))
    known = set(_WORD.findall(put))
    return bool(words) and known.isdisjoint(words) and not _AWAY_WORD.search(denied) and not _NAMING.search(denied)


def _is_denied(word: str, put: str) -> bool:
    """Whether what was put says no to the same: "no insurance" to "Insurance: No"."""
    return any(word in line and _NOT.search(line) for line in put.split("\n"))


def _skip_courtesy(sentence: str) -> str:
    while (match := _COURTESY.match(sentence)) and not _YES.match(sentence) and not _WEAK.fullmatch(sentence):
        sentence = sentence[match.end() :]
    return sentence


def _left(known: re.Pattern[str], words: str) -> str:
    return known.sub("", words).strip()
