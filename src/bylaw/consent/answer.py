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
    r"(?:please |just )?(?:do (?:it|that|this|so)|go ahead|proceed|go for it)|please do|"
    r"(?:that|this|it|everything)(?:'s| is| looks| sounds) (?:all )?(?:right|correct)|"
    r"(?:(?:that|this|it) )?(?:sounds|looks) (?:right|good|great|perfect|fine|ok|okay)|that works|works for me|"
    r"fine(?: by me| with me)?|ok|okay|alright|all right|perfect"
)
"""Neither "it's fine" nor "continue" is among them, which may leave a thing as it is: "Shall I cancel my plan?"."""
_GO_ON = r"continue|carry on|go on"
"""What says nothing but after a yes."""
_NO = (
    r"no+|nope|nah|never(?: ?mind)?|stop|negative|"
    r"(?:please )?(?:don't|do not)(?! stop)(?: (?:do (?:it|that|this|so)|proceed|go ahead))?|"
    r"rather not|i'd rather not|not now|i (?:don't|do not) (?:agree|want (?:that|it|this|to))|"
    r"forget it|leave it(?: (?:as it is|be|alone))?"
)
_COURTESY = (
    r"please|pls|thanks?(?: you)?(?: (?:so|very) much| a lot)?|thank you(?: (?:so|very) much)?|thx|ty|cheers|"
    r"great|good|nice|wonderful|excellent|brilliant|lovely|then|now|"
    r"with (?:it|that|this)|for me|to (?:me|that|it|this)|right away|and(?= \S)|very much"
)
_YES_SAID = re.compile(rf"(?:{_YES})(?!\S)")
_NO_SAID = re.compile(rf"(?:{_NO})(?!\S)")
_GOES_ON = re.compile(rf"(?:{_GO_ON})(?!\S)")
_COURTEOUS = re.compile(rf"(?:{_COURTESY})(?!\S)")
_CALLED_OFF = re.compile(
    r"\b(?:don't|dont|do not|stop|wait|hold (?:on|off)|forget (?:it|that|this)|never ?mind|changed my mind|not now)\b"
)
_APOSTROPHES = re.compile("[\u2018\u2019\u02bc\u2032\u00b4\uff07]")
_THUMB = re.compile("(?:\U0001f44d|\u2705|\U0001f44c)[\U0001f3fb-\U0001f3ff\ufe0f]*")
_FRIENDLY = re.compile(
    "[\U0001f600\U0001f601\U0001f603\U0001f604\U0001f60a\U0001f642\U0001f64f\U0001f389\u2764\ufe0f]+"
)
"""Faces that neither laugh nor wink: what is said in jest is no yes."""
_MARKS = re.compile(r"[,.!;:]+(?=\s|$)|\s-+\s|\u2014|[()]")
_SENTENCE = re.compile(r"(?<=[.!?;\n])\s+")
_UNSURE = re.compile("[?\u061f\uff1f\u037e]|\\.\\.|\u2026|~~|^\\s*>", re.MULTILINE)
"""What asks, trails off, is struck out or quoted."""
_JOINS = frozenset(("and", "or"))
"""A title with one of them names two deeds, and which of them an answer names nobody knows."""
_POINTS = frozenset(("the", "it", "this", "that", "my"))
_LONGEST = 200
"""A longer answer says more than yes or no."""


def said(text: str, title: str = "", yes: frozenset[str] = frozenset(), no: frozenset[str] = frozenset()) -> Said:
    """What a whole answer says to a question; it may name what was asked for by the words of its title, from the first
    of them on: "Yes, cancel it". Some packs have words for yes and no of their own."""
    return _said(text, title, yes, no) if len(text) <= _LONGEST else "other"


@lru_cache(maxsize=2048)
def _said(text: str, title: str, yes: frozenset[str], no: frozenset[str], /) -> Said:
    words = bare(text)
    if not words or _UNSURE.search(text):
        return "other"
    if words in yes or words in no:
        return "yes" if words in yes else "no"
    is_yes = is_no = is_named = False
    deed = bare(title).split()
    named = set(deed)
    while words:
        if found := _YES_SAID.match(words):
            is_yes = True
        elif found := _NO_SAID.match(words):
            is_no = True
            if not named.isdisjoint(found[0].split()):
                # "Stop." to "Shall I stop it?"
                return "other"
        else:
            found = _COURTEOUS.match(words) or (_GOES_ON.match(words) if is_yes else None)
        if found is not None:
            words = words[found.end() :].lstrip()
            continue
        word, _, words = words.partition(" ")
        if deed and word == deed[0] and is_yes and _JOINS.isdisjoint(named):
            deed, is_named = deed[1:], True
        elif not is_named or word not in _POINTS:
            return "other"
    return "other" if is_yes == is_no else "yes" if is_yes else "no"


def begins_with_yes(text: str) -> bool:
    """Whether words begin with a yes, whatever they say then."""
    return _YES_SAID.match(bare(text[:_LONGEST])) is not None


def is_refusal(text: str, others: Iterable[str] = ()) -> bool:
    """Whether words begin with a no, in English or by one of these others, or tell to stop or forget it."""
    no = {bare(each) for each in others}
    for sentence in _SENTENCE.split(text):
        words = bare(sentence)
        while found := _COURTEOUS.match(words):
            words = words[found.end() :].lstrip()
        if _NO_SAID.match(words) or _CALLED_OFF.search(words) or words in no:
            return True
    return False


def bare(text: str) -> str:
    """An answer in lower case, without pictures that say nothing, marks between its words, and white space."""
    lower = _APOSTROPHES.sub("'", _FRIENDLY.sub(" ", _THUMB.sub(" yes ", text))).lower()
    return " ".join(_MARKS.sub(" ", lower.replace("*", " ")).split())
