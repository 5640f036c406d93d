"""What the user answered: a plain yes, a bare no, or anything else, which is for somebody else to read.

The words are few and closed. Whatever is said in others is neither: nobody agreed by what is not surely a yes, and
nobody is accused of what we cannot read.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

Said = Literal["yes", "no", "other"]

_YES = (
    r"yes+|yeah|yep|yup|yea|y|aye|sure(?: thing)?|of course|certainly|definitely|absolutely|indeed|exactly|"
    r"affirmative|by all means|correct|confirmed|agreed|approved|"
    r"i (?:do |hereby )?(?:confirm|agree|approve|accept|consent|authori[sz]e)(?: (?:it|this|that))?|"
    r"confirm(?: (?:it|this|that))?|"
    r"(?:please |just )?(?:do (?:it|that|this|so)|go ahead|proceed|go for it|go on|carry on|continue)|please do|"
    r"(?:that|this|it|everything)(?:'s| is| looks| sounds) (?:all )?(?:right|correct|fine|good|great|perfect|ok|okay)|"
    r"that works|works for me|(?:sounds|looks) (?:right|good|great|perfect|fine)|"
    r"fine(?: by me| with me)?|ok|okay|alright|all right|perfect|go"
)
_NO = (
    r"no+|nope|nah|never|stop|negative|(?:please )?(?:don't|do not)(?: (?:do (?:it|that|this|so)|proceed|go ahead))?|"
    r"rather not|i'd rather not|not now|i (?:don't|do not) (?:agree|want (?:that|it|this|to))|"
    r"forget it|never ?mind|leave it(?: (?:as it is|be|alone))?|i(?:'ve| have)? changed my mind"
)
_COURTESY = (
    r"please|pls|thanks?(?: you)?(?: (?:so|very) much| a lot)?|thank you(?: (?:so|very) much)?|thx|ty|cheers|"
    r"great|good|nice|wonderful|excellent|brilliant|lovely|then|now|"
    r"with (?:it|that|this)|for me|to (?:me|that|it|this)|right away|and|very much"
)
_YES_SAID = re.compile(rf"(?:{_YES})(?!\S)")
_NO_SAID = re.compile(rf"(?:{_NO})(?!\S)")
_COURTEOUS = re.compile(rf"(?:{_COURTESY})(?!\S)")
_CALLED_OFF = re.compile(
    r"\b(?:don't|dont|do not|stop|wait|hold (?:on|off)|forget (?:it|that|this)|never ?mind|changed my mind|not now)\b"
)
_APOSTROPHES = re.compile("[\u2018\u2019\u02bc\u2032\u00b4\uff07]")
_THUMB = re.compile("(?:\U0001f44d|\u2705|\U0001f44c)[\U0001f3fb-\U0001f3ff\ufe0f]*")
_FRIENDLY = re.compile("[\U0001f600-\U0001f60a\U0001f642\U0001f64f\U0001f389\u2764\ufe0f\U0001f3fb-\U0001f3ff]+")
_MARKS = re.compile(r"[,.!;:]+(?=\s|$)|\s-+\s|\u2014|[()]")
_SENTENCE = re.compile(r"(?<=[.!?;\n])\s+")
_UNSURE = re.compile("[?\u061f\uff1f\u037e]|\\.\\.|\u2026|~~|^\\s*>", re.MULTILINE)
"""What asks, trails off, is struck out or quoted."""
_JOINS = frozenset(("and", "or"))
"""A title with one of them names two deeds, and which of them an answer names nobody knows."""
_LONGEST = 200
"""A longer answer says more than yes or no."""


@lru_cache(maxsize=2048)
def said(text: str, title: str = "") -> Said:
    """What a whole answer says to a question; it may name what was asked for by the words of its title."""
    words = _bare(text) if len(text) <= _LONGEST else ""
    if not words or _UNSURE.search(text):
        return "other"
    is_yes = is_no = False
    named = _bare(title).split()
    own = frozenset((*named, "the", "it", "this", "that", "my")) if _JOINS.isdisjoint(named) else frozenset[str]()
    while words:
        if found := _YES_SAID.match(words):
            is_yes = True
        elif found := _NO_SAID.match(words):
            is_no = True
        else:
            found = _COURTEOUS.match(words)
        if found is None:
            first, _, rest = words.partition(" ")
            if not is_yes or first not in own:
                return "other"
            words = rest
            continue
        words = words[found.end() :].lstrip()
    return "other" if is_yes == is_no else "yes" if is_yes else "no"


def is_refusal(text: str, others: Iterable[str] = ()) -> bool:
    """Whether words begin with a no, in English or by one of these others, or tell to stop or forget it."""
    no = {_bare(each) for each in others}
    for sentence in _SENTENCE.split(text):
        words = _bare(sentence)
        while found := _COURTEOUS.match(words):
            words = words[found.end() :].lstrip()
        if _NO_SAID.match(words) or _CALLED_OFF.search(words) or words in no:
            return True
    return False


def _bare(text: str) -> str:
    """An answer in lower case, without pictures that say nothing, marks between its words, and white space."""
    lower = _APOSTROPHES.sub("'", _FRIENDLY.sub(" ", _THUMB.sub(" yes ", text))).lower()
    return " ".join(_MARKS.sub(" ", lower.replace("*", " ")).split())
