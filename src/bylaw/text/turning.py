"""Whether words say or ask for plainly what they say, or have one that may turn it: deny it, leave it out, put it off.

The words that do so in English are few, and no list of things to say: to find one is enough, whatever it does there.
"""

import re

from bylaw.text.sentence import lowered

DENYING = (
    r"(?:no|not|none|nothing|nobody|nowhere|nor|neither|never|cannot|without|hardly|barely|"
    r"[a-z]+n[' ]t|"
    r"(?:do|does|did|wo|ca|is|are|was|were|should|must|could|would|have|has|had|need|ai|sha|might|ought)nt)"
)
_EXCEPTING = (
    r"(?:but|except\w*|exclud\w+|exclusive|exception|besides|only|rather|instead|unlike|minus|save for|bar(?:ring)?|"
    r"other than|apart from|aside from|all else|keep\w*|kept|leav\w+|skip\w*|spar(?:e|es|ed|ing)|avoid\w*|"
    r"ignor\w+|omit\w*|stop\w*|refus\w+|forget)"
)
_DEPENDING = (
    r"(?:if|unless|until|till|once(?! more| again)|when(?:ever)?|whether|in case|in the event|provided|providing|"
    r"assuming|supposing|as long as|so long as|as soon as|on condition|depend\w*|otherwise|or|either)"
)
_DOUBTING = (
    r"(?:doubt\w*|maybe|perhaps|possibly|probably|might|wonder\w*|suppos\w+|pretend\w*|imagin\w+|hypothetical\w*|"
    r"almost|nearly|wish|dry[ -]run|simulat\w+|rehears\w+|(?:is|as|only|just|in)(?: an?)? (?:test|demo|drill|preview)|"
    r"for (?:example|instance))"
)
_TAKING_BACK = re.compile(rf"\b(?:{DENYING}|{_EXCEPTING}|{_DOUBTING})\b")
_CONDITION = re.compile(rf"\b{_DEPENDING}\b")
_DENIED_OF_THEM = re.compile(rf"\bwho(?:se)?\b.*?\b{DENYING}\b.*", re.DOTALL)


def may_turn(words: str) -> bool:
    """Whether a sentence has a word that denies, excepts, depends or doubts, in any case and with any apostrophe."""
    return may_take_back(words) or depends(words)


def may_take_back(words: str) -> bool:
    """Whether it has one that denies, excepts or doubts."""
    return _TAKING_BACK.search(lowered(words)) is not None


def depends(words: str) -> bool:
    """Whether it has a condition, or leaves a choice."""
    return _CONDITION.search(lowered(words)) is not None


def undenied(words: str) -> str:
    """A sentence up to where it denies something of people: "add all users", of those "who are not in the channel"."""
    found = _DENIED_OF_THEM.search(lowered(words))
    return words if found is None else words[: found.start()]
