"""What the user answered: a plain yes, a bare no, or anything else, which is for somebody else to read.

The words are few and closed. Whatever is said in others is neither: nobody agreed by what is not surely a yes, and
nobody is accused of what we cannot read.
"""

import re
from functools import lru_cache
from typing import Literal

Said = Literal["yes", "no", "other"]

_YES = (
    r"yes+|yeah|yep|yup|yea|y|aye|sure(?: thing)?|of course|certainly|definitely|absolutely|indeed|exactly|"
    r"affirmative|by all means|correct|confirmed|agreed|approved|"
    r"i (?:do |hereby )?(?:confirm|agree|approve|accept|consent|authori[sz]e)(?: (?:it|this|that))?|"
    r"(?:please |just |you (?:may|can) )?(?:do (?:it|that|this|so)|go ahead|proceed|go for it)|please do|"
    r"(?:that|this|it|everything)(?:'s| is| looks| sounds) (?:all )?(?:right|correct)|"
    r"(?:(?:that|this|it) )?(?:sounds|looks) (?:right|good|great|perfect|fine|ok|okay)|that works|works for me|"
    r"fine(?: by me| with me)?|ok|okay|alright|all right|perfect"
)
"""Neither "it's fine" nor "continue" is among them, which may leave a thing as it is: "Shall I cancel my plan?"."""
_GO_ON = r"continue|carry on|go on|confirm(?: (?:it|this|that))?"
"""What says nothing but after a yes: "Please confirm" asks for something."""
_FIRM = r"yes+|yeah|yep|yup|yea|y|aye|sure(?: thing)?|of course|certainly|definitely|absolutely"
_TOO = (
    r"(?:that|this)(?:'s| is) (?:fine|good|great|ok|okay|perfect)|all good|no problem|it is(?=$| thank)|i do|"
    r"i'm sure|i am sure|"
    r"i(?:'d| would) like (?:that|it|to)|(?:that|this|it)(?: would|'d) be (?:great|good|fine|perfect|nice|lovely)|"
    r"let's (?:do (?:it|that|this)|go ahead)|i understand and (?:agree|accept)"
)
"""What repeats a firm yes, and after any other may leave a thing as it is."""
_NO = (
    r"no+|nope|nah|never(?: ?mind)?|stop|negative|"
    r"(?:please )?(?:don't|do not)(?! stop)(?: (?:do (?:it|that|this|so)|proceed|go ahead))?|"
    r"rather not|i'd rather not|not now|i (?:don't|do not) (?:agree|want (?:that|it|this|to))|"
    r"forget it|leave it(?: (?:as it is|be|alone))?"
)
_THANKS = (
    r"(?:many )?thanks?(?: you)?(?: (?:so|very) much| a lot| again)?(?: for (?:your|the|all your) help)?|thx|ty|cheers"
)
_PRAISE = r"great|good|nice|wonderful|excellent|brilliant|lovely|awesome"
_GREETING = (
    r"hi|hello|hey|good (?:morning|afternoon|evening|day)|(?:good)?bye|"
    r"have a (?:nice|good|great|lovely) (?:day|evening|weekend|one)|you too"
)
_COURTESY = (
    rf"please|pls|plz|{_THANKS}|{_PRAISE}|then|now|"
    r"with (?:it|that|this)|for me|to (?:me|that|it|this)|right away|and(?= \S)|very much"
)
_YES_SAID = re.compile(rf"(?:{_YES})(?!\S)")
_NO_SAID = re.compile(rf"(?:{_NO})(?!\S)")
_GOES_ON = re.compile(rf"(?:{_GO_ON})(?!\S)")
_FIRM_SAID = re.compile(rf"(?:{_FIRM})(?!\S)")
_TOO_SAID = re.compile(rf"(?:{_TOO})(?!\S)")
_COURTEOUS = re.compile(rf"(?:{_COURTESY})(?!\S)")
_KIND = re.compile(rf"(?:{_GREETING}|{_THANKS})(?!\S)")
_PRAISING = re.compile(rf"(?:{_PRAISE}|and)(?!\S)")
_APOSTROPHES = re.compile("[\u2018\u2019\u02bc\u2032\u00b4\uff07]")
_THUMB = re.compile("(?:\U0001f44d|\u2705|\U0001f44c)[\U0001f3fb-\U0001f3ff\ufe0f]*")
_FRIENDLY = re.compile(
    "[\U0001f600\U0001f601\U0001f603\U0001f604\U0001f60a\U0001f642\U0001f64f\U0001f389\u2764\ufe0f]+|(?<!\\S):-?\\)(?!\\S)"
)
"""Faces that neither laugh nor wink: what is said in jest is no yes."""
_MARKS = re.compile(r"(?<![,.!;:])[,.!;:]++(?=\s|$)|(?<=\s)[-\u2010-\u2015\u2212]++(?=\s)|[\u2013-\u2015()]")
_UNSURE = re.compile("[?\u061f\uff1f\u037e]|\\.\\.|\u2026|~~|^\\s*>", re.MULTILINE)
"""What asks, trails off, is struck out or quoted."""
_JOINS = frozenset(("and", "or"))
"""A title with one of them names two deeds, and which of them an answer names nobody knows."""
_NEGATES = re.compile(r"\b(?:not?|never|cannot|\w+n't)\b")
_EVERYWHERE = "i it to do that this so now as is be go ahead please"
_HELPS = frozenset(_EVERYWHERE.split())
"""Words of a no that are in many a question and say nothing of what it asks for."""
_COMMON = "the you your and that this with would please it its shall should could what how"
_ENGLISH = frozenset(_COMMON.split())
"""Common words of English that no language near to it has."""
_SHARE = 0.15
"""So many of its words are these in most English texts."""
_LETTERS = re.compile(r"[^\W\d_]+")
_POINTS = frozenset(("the", "it", "this", "that", "my"))
_LONGEST = 200
"""A longer answer says more than yes or no."""


def said(
    text: str,
    title: str = "",
    yes: frozenset[str] = frozenset(),
    no: frozenset[str] = frozenset(),
    *,
    asked: str = "",
    is_english: bool = True,
) -> Said:
    """What a whole answer says to a question; it may name what was asked for by the words of its title, from the first
    of them on: "Yes, cancel it". A no in words of what was `asked` is none: "Leave it" to "Shall I leave it?".

    Some packs have words for yes and no of their own; where a pack does not ask in English, no others count.
    """
    return _said(text, title, yes, no, asked, is_english) if len(text) <= _LONGEST else "other"


@lru_cache(maxsize=2048)
def _said(text: str, title: str, yes: frozenset[str], no: frozenset[str], asked: str, is_english: bool, /) -> Said:
    words = bare(text)
    if not words or _UNSURE.search(text):
        return "other"
    deed = bare(title).split()
    if words in yes:
        return "yes"
    says = "no" if words in no else _in_english(words, deed) if is_english else "other"
    if says == "no":
        put = f"{bare(title)} {bare(asked)}"
        if _NEGATES.search(put) or not (set(words.split()) - _HELPS).isdisjoint(put.split()):
            # "Stop." to "Shall I stop it?"
            return "other"
    return says


def _in_english(words: str, deed: list[str]) -> Said:
    is_yes = is_firm = is_no = is_named = False
    named, at = set(deed), 0
    while at < len(words):
        found = _TOO_SAID.match(words, at) if is_firm else None
        if found is None and (found := _NO_SAID.match(words, at)):
            is_no = True
        elif found is None and (found := _YES_SAID.match(words, at)):
            is_yes, is_firm = True, is_firm or _FIRM_SAID.fullmatch(found[0]) is not None
        found = found or _COURTEOUS.match(words, at) or (_GOES_ON.match(words, at) if is_yes else None)
        if found is not None:
            at = found.end() + 1
            continue
        word = words[at:].split(" ", 1)[0]
        at += len(word) + 1
        if deed and word == deed[0] and is_yes and _JOINS.isdisjoint(named):
            deed, is_named = deed[1:], True
        elif not is_named or word not in _POINTS:
            return "other"
    return "other" if is_yes == is_no else "yes" if is_yes else "no"


def begins_with_yes(text: str) -> bool:
    """Whether words begin with a yes, whatever they say then."""
    return _YES_SAID.match(bare(text.lstrip()[:_LONGEST])) is not None


def is_courtesy(text: str) -> bool:
    """Whether a message is thanks or a greeting, or both, and says nothing else."""
    if len(text) > _LONGEST or _UNSURE.search(text):
        return False
    words, at, is_kind = bare(text), 0, False
    while at < len(words):
        kind = _KIND.match(words, at)
        found = kind or _PRAISING.match(words, at)
        if found is None:
            return False
        at, is_kind = found.end() + 1, is_kind or kind is not None
    return is_kind


def is_english(text: str, least: int = 1) -> bool:
    """Whether a text looks English; one without words may be. `least`: so many different words must tell."""
    words = _LETTERS.findall(text.lower())
    common = [word for word in words if word in _ENGLISH]
    return not words or (len(set(common)) >= least and len(common) >= len(words) * _SHARE)


def bare(text: str) -> str:
    """An answer in lower case, without pictures that say nothing, marks between its words, and white space."""
    lower = _APOSTROPHES.sub("'", _FRIENDLY.sub(" ", _THUMB.sub(" yes ", text))).lower()
    return " ".join(_MARKS.sub(" ", lower.replace("*", " ")).split())
