"""Is this a yes? What a sentence agrees to, refuses, puts off or makes depend on something.

A negated phrase and one that hangs on a condition never count: "I will not be in state", "don't cancel it yet",
"yes, if it is free".
"""

import re
from functools import lru_cache
from typing import Literal

from bylaw.engine.consent.answer.affirmation import WEAK, YES, is_weak
from bylaw.engine.consent.answer.refusal import (
    DOES,
    HOLD,
    KEEPS,
    KEEPS_ONE,
    MOCKS,
    NO,
    REFUSES,
    SPARED,
    UNDONE,
    WITHOUT,
)
from bylaw.facts.condition import hangs_on, without_courtesy
from bylaw.facts.sentence import without_reports

Stance = Literal["yes", "weak", "no", "spares", "held", "if", "mixed", "asks", "other"]
"""Of a sentence or a message: agrees; agrees where a yes was asked for; refuses; says what not to do; puts off; makes
it depend on something; says yes and no; only asks; nothing of these."""

_ASKS = re.compile(
    r"^(?:\W*(?:and|so|but|also|then|ok|okay|just to be clear|great|thanks)\b)*\W*"
    r"(?:what|how|why|when|where|which|who|is|are|was|will|would|do|does|did|can|could|should|may|might|am|has|have)\b"
)
_BIDS = re.compile(
    r"\b(?:can|could|would|will) (?:you|we|i) (?:please |just |now |kindly |also )*"
    r"(?:go ahead|proceed|do (?:it|that|this|so)|process)\b(?! without)"
)
"""A question that asks for the thing to be done."""
_CORRECTS = re.compile(r"\W*(?:no|oh|actually|sorry)\b[,.]? wait\b[,:.]? +(?=\w+ \w+ \w)")
"""Takes back what was said right before, to say something else."""
_BARE = re.compile(r"\W*(?:yes|yeah|yep|ok|okay|sure|really)\W*(?:to )?(?:what|who|why)?\W*\?\W*")
"""Only echoes a yes, to ask what was meant."""
_OPENS = re.compile(r"\W*(?:yes|yeah|yep|oui|ok|okay|sure)\b")


_SHORT = re.compile(r"(?<![\w'-])(?:pls|plz|plse|yh|yah|im|dont|thats|u)(?![\w'-])")
_LONG = {
    **dict.fromkeys(("pls", "plz", "plse"), "please"),
    **dict.fromkeys(("yh", "yah"), "yeah"),
    "im": "i'm",
    "dont": "don't",
    "thats": "that's",
    "u": "you",
}


def _spelled_out(sentence: str) -> str:
    """A sentence with the words of chats written out."""
    return _SHORT.sub(lambda found: _LONG[found[0]], sentence)


@lru_cache(maxsize=4096)
def stance_of(sentence: str) -> Stance:
    """What one sentence says, as `sentences` gives it."""
    sentence = _spelled_out(without_reports(sentence))
    if corrected := _CORRECTS.match(sentence):
        # "No wait, the small one will do": what follows counts, and the change of mind leaves it open.
        after = stance_of(sentence[corrected.end() :])
        return after if after in ("no", "held", "if", "asks") else "mixed"
    bare = without_courtesy(sentence)
    if KEEPS.found_in(bare):
        rest = KEEPS.without(bare)
        if KEEPS_ONE.found_in(bare) and YES.found_in(rest):
            # "Yes, but leave R-2 alone" agrees to all the rest.
            return "yes"
        # "Cancel the one and keep the other" does both.
        return "mixed" if DOES.search(rest) else "no"
    if MOCKS.found_in(sentence):
        return "mixed"
    if HOLD.found_in(bare):
        return "held"
    if hangs_on(bare):
        return "if" if YES.found_in(bare) or is_weak(bare) else "other"
    if REFUSES.found_in(bare):
        return "mixed" if YES.found_in(REFUSES.without(bare)) else "no"
    if NO.found_in(bare):
        return "mixed" if YES.found_in(NO.without(bare)) else "no"
    if UNDONE.found_in(bare) and not WITHOUT.search(bare):
        if not _OPENS.match(bare) or not YES.found_in(UNDONE.without(bare)):
            return "no"
        return "mixed" if "but i " in bare else "yes"
    if SPARED.found_in(bare) and not YES.found_in(SPARED.without(bare)):
        return "spares"
    is_question = sentence.endswith("?")
    if is_question and _ASKS.search(bare):
        if _BIDS.search(bare):
            return "yes"
        # "Okay, but could you send me a receipt?"
        return "mixed" if " but " in bare and WEAK.found_in(bare) else "asks"
    if is_question and _BARE.fullmatch(bare):
        return "asks"
    if YES.found_in(bare):
        return "mixed" if is_question and " but " in bare else "yes"
    return "weak" if is_weak(bare) else "asks" if is_question else "other"
