"""What the user answered: a plain yes, a bare no, or anything else, which is for somebody else to read.

The words are English. An answer in another language is neither: nobody is accused of what we cannot read.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

from bylaw.consent.line import heads
from bylaw.policy.verb import VERBS
from bylaw.text.sentence import sentences
from bylaw.text.stem import stem

Said = Literal["yes", "echo", "no", "other"]
"""A plain yes; an "ok", which says yes where only leave was asked for; a bare no; all else."""

_COURTESY = re.compile(
    r"(?:oh|ah|h?m+|um+|well|great|perfect|excellent|wonderful|awesome|cool|nice|good|alright|all right|hi|hello|hey|"
    r"got it|i see|understood|thanks|thank you|thx|ty|(?:so|very) much|for (?:the|your) \w+|a lot|ok(?:ay)?|so|then|"
    r"that's (?:great|good|fine|perfect)|in that case|that makes sense|makes sense|no problem|"
    r"no worries)\b[\s,.!:;-]*"
)
_DASH = re.compile(r"\s*(?:\u2014|--)\s*")
_THUMB = re.compile("\U0001f44d|\u2705|\U0001f44c")
_FRIENDLY = re.compile(
    "[\U0001f48d\U0001f493-\U0001f49f\U0001f4aa\U0001f64c\U0001f929\U0001f970\U0001f973\u2708\u2728\U0001f389\U0001f44b\U0001f44f\U0001f600-\U0001f60e\U0001f642\U0001f64f\U0001f91d\u263a\u2764\ufe0f"
    "\U0001f3fb-\U0001f3ff]+"
)
_PICTURE = re.compile("[\U0001f300-\U0001faff\u2600-\u27bf]+")
_PLAIN_YES = (
    r"\b(?:yes+|yeah|yep|yup|yea|yeh?|yh|yas+|aye|ya|exactly|affirmative|by all means|carry on|"
    r"you may(?! (?:be|want)\b)|do both|"
    r"absolutely|definitely|certainly|indeed|of course|correct(?! (?:the|my|our|it|this|that)\b)|confirmed|"
    r"confirm(?:ing)?(?! (?:to|(?:it |that |this )?with)\b)|"
    r"i (?:do |hereby |can )?(?:confirm|agree|approve|accept|consent)|agreed|approved|"
    r"(?:please )?(?:do (?:it|that|so)(?! again)|go ahead|proceed|go for it|go on|continue|make it so)|"
    r"(?:please|pls|kindly) do|i authori[sz]e|lock it in|sign me up|"
    r"let's (?:do|go|proceed)|(?:i'd|i would) like (?:to (?:proceed|go ahead|do|confirm)|that|you to)|"
    r"please (?:proceed|go (?:ahead|for it|on)|do)|"
    r"(?:that|it|this|everything|all)(?:'?s| is| looks| sounds| seems)? (?:all )?(?:right|correct|good to go)|"
    r"y(?=\W*(?:$|please|pls|go|do it)))\b"
)
_FINE = r"(?:fine|good|great|perfect|ok(?:ay)?|all right|fair|lovely|ideal|beautiful|wonderful|brilliant|amazing|super)"
_WEAK_YES = (
    r"\b(?:sure(?: thing)?|ok(?:ay)?|k|alright|alrighty|all right|fine|(?:sounds|looks) (?:right|good|great|perfect|"
    r"fine)|"
    rf"that works|that(?:'d| would|'ll| will) be {_FINE}|works for me|(?:that's )?fine by me|perfect|great|"
    r"(?:i'm )?(?:happy|fine|ok|okay) with (?:that|this|it|both|them)|that(?:'ll| will) do(?: nicely)?|"
    r"good(?: to go)?|deal|"
    rf"(?:that|it|this|everything|all)(?:'?s| is| looks| sounds)? (?:{_FINE}|it|the one|what i want(?:ed)?)|"
    r"spot on|quite all right|i'm sure)\b"
)
_YES = re.compile(_PLAIN_YES)
_WEAK = re.compile(_WEAK_YES)
_BACK = re.compile(
    r"\b(?:correct (?=(?:the|my|our|it|this|that)\b)|but|however|except|instead|unless|if(?! (?:possible|needed|"
    r"necessary|required|you))|only|not|no|nor|never|"
    r"none|nothing|neither|cannot|wait|hold on|hang on|hold off|stop|actually|rather|first(?!\b.*\b(?:then|rest|"
    r"remain\w*)\b)|before|until|till|later|maybe|perhaps|possibly|probably|whether|although|though|otherwise|"
    r"another|others?|"
    r"different|depend\w*|assum\w*|as long as|so long as|suppose|guess|unsure|wrong|incorrect|mistake|correction|"
    r"forget|never ?mind|leav\w+|keep\w*|skip\w*|ignor\w+|undo|hypothetical\w*|would have|could have|should have|"
    r"was going|tomorrow|tonight|decide|wish|kidding|joking|as if|half|part of|some of|one of|\w+n't|dont|wont|cant|"
    r"didnt|doesnt|without|once|or|either|apart|provided|providing|when|after(?! all)|while|ask|talk|said|says|told|"
    r"declin\w*|bad|next|as (?:it |they |that )?(?:is|are|was|were)|as is|about that|good now|with it|me wrong|"
    r"correct me|alone|yeah,? right\b(?! away)|i (?:proposed|suggested|mentioned|described|listed|discussed|stated|"
    r"specified)|(?:is|'s) (?:my|mine)|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|understand\W*$|"
    r"just(?! (?:to|want|wanted|go|do|make|get|wrap|let|confirm|proceed|process|please)\b))\b"
)
"""Words that may take the yes of their own sentence back, put it off, hang it on something or change what it is to."""
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


_CALLED_OFF = re.compile(
    r"\b(?:don't|dont|do not|stop|wait|hold (?:on|off)|forget (?:it|that|this)|never ?mind|changed my mind|not now)\b"
)
_MYSELF = re.compile(r"\b(?:my|our)sel(?:f|ves)\b")
_NEGATION = re.compile(r"no|not|nothing|none|cannot|\w+n't|dont|wont|cant|didnt|doesnt|without")
_WEEKDAY = re.compile(r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|tomorrow|tonight")
_JOINT = re.compile(r"[,;:!]\s|\s-\s|\.\.+|\band\b|\bthen\b")
_WORD = re.compile(r"[^\W_]+(?:'[a-z]+)?")
_FEELING = (
    r"(?:glad|happy|pleased|delighted|relieved|grateful|thankful|excited|eager|keen|annoyed|disappointed|frustrated|"
    r"stressed(?: out)?|upset|tired|in (?:a|such a) (?:rush|hurry))"
)
_PHRASE = re.compile(
    rf"\b(?:(?:right|straight) away\b|{_PLAIN_YES}|{_WEAK_YES}|(?:you|we) can\b|after all\b|"
    r"with (?:our|my|many) thanks\b|"
    rf"(?:i'm|we're|i am|we are) (?:(?:so|very|really|quite|just|also) )?{_FEELING}\b|"
    r"(?:both|all|all (?:two|three|four|five)|the (?:two|pair)) of (?:us|them)\b|"
    r"(?:full|original|extra|additional|remaining|entire|current) (?=[a-z])|"
    r"(?:thanks?|appreciate)(?: you)?(?: so| very| much| a lot){0,3}(?: for)? "
    r"(?:(?:help|check|explain|sort|look|clarify|ask)ing(?: this| that| it)?(?: out| up| first)?|"
    r"being(?: so)? (?:kind|quick|nice|patient|decent|helpful|honest)(?: about it)?|(?:the|(?:all )?your) \w+)\b)"
)
_MARKED = re.compile(r"~~|^\s*>", re.MULTILINE)
"""What is struck out, or quoted."""
_DOUBTS = re.compile(r"\W*(?:h+m+|u+m+|e+r+m*)\W*")
_INFORMED = re.compile(
    r"\b(?:thanks?|appreciate)\b.*?\b(?:explain|clarify|check|look|ask)ing\b|"
    r"\b(?:thanks?|appreciate)\b.*?\bfor (?:the|your) (?:advice|warning|offer|info\w*|explanation|suggestion|hint)\b"
)
"""Thanks for being told something: with no more than "great" before it they agree to nothing."""
_AGREES = re.compile(rf"{_AGREEING.pattern}|{_COURTESY.pattern}")
_PASSING = re.compile(
    r"as|(?:out|above-)?(?:lined|mentioned|described|listed|proposed|discussed|detailed|stated|suggested|specified)|"
    r"summari[sz]ed|above|per|exactly|same|details?|requests?|finali[sz](?:e|ing)|complet(?:e|ing)|process(?:ing)?|"
    r"mak(?:e|ing)|perform(?:ing)?|submit|us(?:e|es|ing)|payments?|method|reservations?|bookings?|orders?|id|an|at|"
    r"by|from|its|we|we're|you've|i've|also|too|really|just|kindly|"
    r"perfectly|wanna|get|thank|thx|ty|u|love|man|mate|buddy|god|awesome|amazing|fantastic|wonderful|"
    r"excellent|cool|nice|spot|thing|decided|sound|o+h|ooh|aw+|ugh+|wow|omg|blimey|damn|phew|gosh|ya+y+|woo+|"
    r"(?:ha)+|lol|class|"
    r"sick|jubbly|obviously|obvs|ma'am|madam|pal|hun|babe|x+|ta|merci|grazie|danke|gracias|quick|"
    r"hear|about|"
    r"fast|match(?:es)?|clearly|super|exact|within|approach|checks|sorry|ending|including|oui|s\u00ed|si|ja|"
    r"hai|d'accord|vale|arigato"
)
"""Words that turn no yes: they refer to what was told, name no deed, or are said in passing."""
_REFERRING = re.compile(
    r"\b(?:the|this|that|these|those) (?:chang(?:es?|ing)|updates?|modifications?|charges?|ones?)\b"
)
"""What was told, called by no more than its kind: "make these changes", and not "change the amount"."""
_OF_ASKING = re.compile(
    r"chang(?:es?|ing)|updat(?:es?|ing)|modifications?|options?|amount|balance|charg(?:es?|ing)|pay(?:ing)?|account|"
    r"number|"
    r"us|our|he|she|his|her|their|they|am|pm|may|can|could|will|i'll|we'll|gonna|going|hope|ones?|two|three|entire|"
    r"whole|"
    r"after|help|here|away"
)
"""Words that turn no question for leave, but may turn a yes: "Yes, change the amount", "Yes, to her account"."""
_NUMBERED = re.compile(r"\S*\d\S*")
"""A word with a number in it; whether the number was put is asked of the call."""
_FIGURE = re.compile(r"\d+")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3})|\.0+\b")


@lru_cache(maxsize=2048)
def said(text: str, put: str = "", asked: str = "") -> Said:
    """What a whole answer says to what was put and to the questions in it, which are given in lower case."""
    told = [each.words for each in sentences(_DASH.sub(". ", _without_pictures(text)))]
    whole = " ".join(told).strip()
    if not whole or any(map(_DOUBTS.fullmatch, told)):
        return "other"
    if "?" in whole or _MARKED.search(text) or _takes_back(whole, put):
        rest = _skip_courtesy(whole)
        return "no" if _NO.match(rest) and not _left(_NO_MORE, _NO.sub(" ", rest, count=1)) else "other"
    if any(_says_more(each, put) for each in told):
        return "other"
    if _YES.search(whole) or any(_is_command(clause, asked) for each in told for clause in _JOINT.split(each)):
        return "yes"
    is_assent = _is_assent(whole) and not _INFORMED.search(whole) and not figures(whole) - figures(put)
    return "echo" if is_assent else "other"


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


def is_refusal(text: str, others: Iterable[str] = ()) -> bool:
    """Whether words begin with a no, in English or by one of these others, or tell to stop or forget it."""
    told = [each.words for each in sentences(_without_pictures(text))]
    bare = {" ".join(_WORD.findall(each.lower())) for each in others}
    return any(
        _NO.match(_skip_courtesy(each)) or _CALLED_OFF.search(each) or " ".join(_WORD.findall(each)) in bare
        for each in told
    )


def _is_command(clause: str, asked: str) -> bool:
    """Whether a clause says to do what the question would do: "move it"."""
    first = _WORD.match(_skip_courtesy(clause))
    if first is None or _AGREEING.fullmatch(first[0]):
        return False
    # A question may begin with its verb ("Cancel it?"), or with "ja oder nein": only a verb is told back as a yes.
    return any(
        first[0] in heads(each) or (first[0] in VERBS and first[0] == each.split(maxsplit=1)[0])
        for each in asked.split("\n")
        if each
    )


def _says_more(sentence: str, put: str) -> bool:
    """Whether the sentence of a yes has a word that neither agrees nor was put: such a yes may be to something else,
    on a condition, or none at all ("Yes, to a manager", "Yes, given a full refund", "Yes I know")."""
    left = _WORD.findall(_NUMBERED.sub(" ", _REFERRING.sub(" ", _PHRASE.sub(" ", sentence))))
    unknown = [each for each in left if not (_PASSING.fullmatch(each) or _AGREES.fullmatch(each))]
    return bool(unknown) and not stems(put).issuperset(stem(each.removesuffix("'s")) for each in unknown)


@lru_cache(maxsize=2048)
def stems(words: str) -> frozenset[str]:
    """The words of a text in lower case, without their endings."""
    return frozenset(map(stem, _WORD.findall(words)))


@lru_cache(maxsize=8192)
def is_neutral(word: str) -> bool:
    """Whether a word turns no question for leave: it agrees, refers to what was told, or is said in passing."""
    return any(each.fullmatch(word) is not None for each in (_PASSING, _OF_ASKING, _AGREES))


def _is_assent(whole: str) -> bool:
    return _WEAK.search(whole) is not None or _YES.search(whole) is not None or "please" in whole or "pls" in whole


def _takes_back(whole: str, put: str) -> bool:
    """Whether anything in an answer may take its yes back; what repeats the words that were put does not."""
    for match in _BACK.finditer(whole):
        after = _WORD.search(whole, match.end())
        phrase = whole[match.start() : after.end()] if after else ""
        if match[0] in put and _WEEKDAY.match(match[0]):
            continue
        if phrase and phrase in put:
            continue
        return True
    return False


def may_take_back(words: str) -> bool:
    """Whether anything in a request in lower case, beside what it denies, may take it back, put it off or leave it to
    somebody else: "but I changed my mind", "just kidding", "I will do it myself"."""
    return any(not _NEGATION.fullmatch(each[0]) for each in _BACK.finditer(words)) or _MYSELF.search(words) is not None


def _skip_courtesy(sentence: str) -> str:
    while (match := _COURTESY.match(sentence)) and not _YES.match(sentence) and not _WEAK.fullmatch(sentence):
        sentence = sentence[match.end() :]
    return sentence


def _left(known: re.Pattern[str], words: str) -> str:
    return known.sub("", words).strip()
