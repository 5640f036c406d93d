"""What a message says to a proposal, taken whole. Whether its yes is about this very call is for others to say."""

import re
from functools import lru_cache

from msgspec import Struct

from bylaw.engine.consent.answer.refusal import ASIDE, KEEPS_ONE
from bylaw.engine.consent.answer.stance import Stance, stance_of
from bylaw.facts.phrases import Phrases
from bylaw.facts.sentence import sentences

_OBJECTS = Phrases(
    (
        "but|however|instead|rather|fair|short|reconsider|increase|waive|too |acceptable|another option|different|"
        "disappointed|make it |enough",
        r"\b(?:but|however|instead|rather|not fair|unfair|seems? fair|falls? short|reconsider\w*|increased?|waived?|"
        r"too (?:much|high|expensive|long|low)|unacceptable|not acceptable|another option|different|disappointed|"
        r"make it \$?\d|isn't enough|not enough)\b",
    )
)
_HOW_MUCH = re.compile(
    r"\bhow much\b(?! (?:time|longer|notice))"
    r"|\bwhat(?:'s| is| would| will)\b.{0,20}\b(?:total|cost|price|charge|fee|difference)\b"
)


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
    aside = tuple(found for part in parts for found in ASIDE.all_in(part))
    kept = tuple(found for part in parts for found in KEEPS_ONE.all_in(part))
    return UserAnswer(stance, any(_OBJECTS.found_in(part) for part in parts), aside, kept)
