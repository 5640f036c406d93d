"""What a message of the agent puts to the user: a deed to agree to, options to choose from, or neither."""

import re
from collections.abc import Iterator
from functools import lru_cache

from bylaw.engine.consent.call.deed import Deed
from bylaw.engine.consent.once import once
from bylaw.facts.folded_text import fold, letters_of
from bylaw.facts.phrases import Phrases
from bylaw.facts.sentence import sentences
from bylaw.policy.verb import VERBS

_DO = (
    "proceed|go ahead|continue|move forward|do|have|book|cancel|make|change|update|confirm|use|accept|receive|"
    "finali[sz]e|process|issue|add|keep|switch|upgrade|downgrade"
)
_GO_AHEAD = Phrases(
    (
        " to &like|want|wish|ready|happy|prefer|need|ok",
        rf"\b(?:like|want|wish|ready|happy|prefer|need|okay|ok)(?: me| us)?(?: for me)? to (?:{_DO})\b",
    ),
    (
        "?&shall |should |may |can |could & i| we",
        r"\b(?:shall|should) (?:i|we)\b.*\?"
        # "Could I have your name?" asks for something else.
        r"|\b(?:may|can|could) (?:i|we)\b(?! (?:please |also |just |quickly )*"
        r"(?:have|get|ask|help|assist|see|know|be of|take (?:your|down)|interest|offer)\b).*\?",
    ),
    (
        "would you |do you &like|want|wish",
        r"\b(?:would|do) you (?:still )?(?:like|want|wish)\b(?! to know)(?!.{0,20}\b(?:which|what)\b)",
    ),
    (" me to", r"\b(?:want|like|wish) me to\b"),
    ("confirm", r"\bconfirm(?:ation|ing)?\b(?! (?:which|your|what|the reason|once))"),
    ("confirmed", r"\b(?:once|if|when|until|after|be|is|are|have|get) (?:\w+ )?confirmed\b|\bconfirmed\?"),
    (
        "confirm your",
        r"\bconfirm your (?:choice|selection|agreement|approval|decision|acceptance|intent\w*|wish)\b",
    ),
    ("approv|authori", r"\bapprov\w*|\bauthori[sz]e\b"),
    ("agree", r"\bdo you agree\b|\bagree to\b|\bagreeable\b"),
    ("your permission|your consent|your go-ahead|your approval", r"\byour (?:permission|consent|go-ahead|approval)\b"),
    (
        "yes|ok|confirm|proceed&say|reply|respond|answer|type|typing|writ|send",
        r"\b(?:say|reply|respond|answer|type|write|send)(?:ing)?(?: back)?(?: with)?(?: me)?(?: an?)?"
        r"(?: clear| simple| explicit)? \W{0,3}(?:yes|ok|okay|confirm|proceed)\b",
    ),
    ("yes", r"\(yes\b|\byes ?/ ?no\b|\byes or no\b|\byes\?|[\"']yes\b"),
    (
        "green light|go-ahead|your ok|the word|objection",
        r"\b(?:green light|the go-ahead|your (?:ok|okay)|say the word|any objections?)\b",
    ),
    (
        "?&ok|right|fine|ready",
        r"\b(?:is|are|would) (?:it|that|this|you) (?:be )?(?:ok|okay|alright|all right|fine|ready)\b.*\?",
    ),
    (
        "right|correct|ok|good|work|fine|sound|accept|accurate|suit&is |are |does |do ",
        r"\b(?:is|are|does|do) (?:that|this|it|these|those|everything|all)\b.*"
        r"\b(?:right|correct|ok|okay|good|work|fine|sound|acceptable|accurate|suit)\b",
    ),
    (
        "would |will &?",
        r"\b(?:would|will) (?:that|this|it) (?:work|be (?:ok|okay|fine|good|alright|all right)|suit)\b.*\?",
    ),
    ("what you", r"\b(?:is|was) (?:that|this|it) what you\b.*\?"),
    ("sound|ok|happy", r"\bsounds? good\b|\b(?:okay|ok|happy) with\b"),
    ("proceed|go ahead", r"\b(?:proceed|go ahead)\b[^.?!]*\?"),
    (
        "let me know",
        r"\blet me know (?:if|whether) (?:you(?:'d| would)? (?:like|want|wish|are|agree)|this|that|it|everything|i)\b",
    ),
    (" yes ", r"\ba (?:clear |simple )?yes (?:from you|to)\b"),
    (" to&ok|ready|alright", r"^(?:\W*(?:ok|okay|ready|alright))\b (?:for me )?to\b.*\?|\bready for (?:me|us) to\b"),
    (
        "?&ok|k|right|agreed|deal|good|sound|correct",
        r"(?:^|, )\W*(?:ok|okay|k|alright|all right|agreed|deal|good|all good|good to go|sounds? (?:good|ok|okay|fine))"
        r"(?: (?:for|with|by) (?:you|that|this))?\s*\?|, correct\s*\?",
    ),
    ("before i |before we ", r"\bbefore (?:i|we) (?:proceed|make|go)\b"),
    (
        "if so|if yes|if you agree|if everything|if this|if that|if all",
        r"\bif (?:so|yes|you agree|everything|this|that|all)\b",
    ),
)
_CHOICE = re.compile(
    r"\b(?:which (?:one|option|of|flight|would|do|payment|method|card|reservation)|what would you (?:like|prefer)|"
    r"would you (?:like|prefer)|do you (?:want|prefer)|choose|select|pick|prefer(?:red|ence)?|option|let me know|"
    r"how would you like|please (?:advise|specify|indicate|tell)|tell me (?:which|[a-f1-9] or))\b"
    r"|\b(?:want|fancy)\b[^.!?]*\b(?:either|any of (?:these|those|them))\b"
)
_ASKING = ("please", "let me", "tell me")
_WHICH = re.compile(
    r"\b(?:which|what|how many|how much)\b(?! you(?:'d| would)? (?:like|want))"
    r".{0,60}\b(?:like|want|prefer|wish)\b"
    r"|\bhow (?:can|may|could) i (?:help|assist)\b|\b(?:anything|something|what) (?:else|more)\b"
    r"|\banything (?:you|i can|that)\b(?!.*\bbefore (?:i|we)\b)"
)
"""Asks for a choice, or whether there is anything else, whatever else it asks for."""
_REFUSES = Phrases(
    ("can|unable", r"\b(?:cannot|can't|can not|unable)\b"),
    (
        "not |ineligible|unfortunately|n't allow",
        r"\b(?:not (?:be )?(?:able|possible|allowed|eligible|permitted)|ineligible|doesn't allow|not allow\w*|"
        r"unfortunately)\b",
    ),
)
_NEGATING = ("not ", "n't ", "never ", "refrain", "without ")
_NEGATED = re.compile(
    r"\b(?:not|won't|wouldn't|don't|shouldn't|never|refrain from|without)\b(?! (?:only|just|be able))[^.,;:!?-]{0,24}"
)
_ENGLISH = frozenset(
    (
        *("the", "to", "you", "your", "is", "for", "and", "of", "i", "would", "please", "be", "will", "with", "this"),
        *(
            "that",
            "in",
            "on",
            "it",
            "are",
            "have",
            "can",
            "not",
            "a",
            "or",
            "no",
            "now",
            "what",
            "at",
            "from",
            "by",
            "if",
        ),
        *("yes", "confirm", "cancel", "cancellation", "reason", "details", "order", "payment", "policy", "flight"),
    )
)
_UNDERSTOOD = re.compile(r"\b(?:understand|understood|aware|clear|follow|make sense|makes sense|know)\b")
"""In a short question: it asks whether something was heard, and not whether it shall be done."""
_REPORTS_WISH = re.compile(
    r"\b(?:sorry|understand|see|hear|know|noted|gather|said|mentioned|told me)(?: to (?:hear|see|learn))?(?: that)? "
    r"you(?:'d| would|'re| are)? (?:like|want|wanted|wish|wished|need|asked|hoping|looking)\b"
)
"""Says what the user wishes, and asks for nothing."""
_HEAD = 60
_QUESTION = re.compile(r"\b(?:what|which|who|whom|when|where|why|how)\b")
_CLOSING = 4
"""Words of a question that only asks whether it is right so."""
_ANYTHING_ELSE = frozenset(
    ("else", "more", "help", "other", "another", "questions", "still", "there", "done", "you're")
)
_ENOUGH = 12
"""Words that a text needs before its language is guessed."""
_SHARE = 0.1
"""English texts have about four of these words in ten, bare lists of details one in six."""


class Proposal:
    """What a message asks of the user."""

    def __init__(self, text: str) -> None:
        self.parts = parts = sentences(text)
        self.text = " ".join(parts)
        self._leave: list[str] = []
        """The sentences that ask for a go-ahead, the last first, as far as they were looked for."""
        self._unread = len(parts)

    def leave(self) -> Iterator[str]:
        """The sentences that ask for a go-ahead, the last first; no more is read than is asked for."""
        at = 0
        while at < len(self._leave) or self._reads_on():
            yield self._leave[at]
            at += 1

    @property
    def asks_leave(self) -> bool:
        """Whether it asks for a go-ahead."""
        return bool(self._leave) or self._reads_on()

    def _reads_on(self) -> bool:
        """Whether another sentence asks for a go-ahead; in a foreign message, all of it may."""
        while self._unread:
            self._unread -= 1
            part = self.parts[self._unread]
            asks = _GO_AHEAD.found_in(part) or _is_deed_asked(part) or self._closes(part)
            if asks and not _is_refusal(part) and not _is_report(part) and not _WHICH.search(part):
                self._leave.append(part)
                return True
        if not self._leave and "?" in self.text and self.is_foreign:
            self._leave.append(self.text)
            return True
        return False

    def _closes(self, part: str) -> bool:
        """Whether a short question ends what the agent says it would do: "I'd move it to Friday. Sound right?" """
        if not part.endswith("?") or part is not self.parts[-1] or len(self.parts) < 2:
            return False
        words = letters_of(part)
        is_short = 0 < len(words) <= _CLOSING and _QUESTION.search(part) is None
        return is_short and _ANYTHING_ELSE.isdisjoint(words) and _UNDERSTOOD.search(part) is None

    @once
    def offers(self) -> bool:
        """Whether it offers a choice, or asks what the user would like."""
        return any(
            (part.endswith("?") or any(word in part for word in _ASKING)) and _CHOICE.search(part)
            for part in self.parts
        )

    @once
    def folded(self) -> str:
        """Its sentences in one, folded."""
        return fold(self.text)

    def refrains_from(self, deed: Deed) -> bool:
        """Whether it speaks of a deed only as not to be done: "Shall I not cancel it?" """
        if not any(word in self.text for word in _NEGATING) or not deed.stands_in(self.text):
            return False
        is_spoken_of = False
        for part in self.parts:
            if deed.stands_in(part):
                if not any(word in part for word in _NEGATING) or deed.stands_in(_NEGATED.sub(" ", part)):
                    return False
                is_spoken_of = True
        return is_spoken_of

    @property
    def refuses(self) -> bool:
        """Whether it says of anything that it cannot be done."""
        return any(map(_is_refusal, self.parts))

    @once
    def is_foreign(self) -> bool:
        """Whether it is in a language whose words for deeds and requests are not known here."""
        words = letters_of(self.text)
        return len(words) >= _ENOUGH and sum(map(_ENGLISH.__contains__, words)) < len(words) * _SHARE


@lru_cache(maxsize=2048)
def proposal(text: str) -> Proposal:
    """What a message of the agent puts to the user."""
    return Proposal(text)


def _is_deed_asked(part: str) -> bool:
    """Whether a question begins with what would be done: "Change the address of R-1 to 21 Elm Street?" """
    if not part.endswith("?"):
        return False
    # "Just to be sure: book the van?"
    words = letters_of(part.rpartition(": ")[2][:_HEAD])
    is_deed = VERBS.get(words[0] if words else "") == "write" and words[1:2] != ["of"]
    return is_deed and _QUESTION.search(part) is None


def _is_refusal(part: str) -> bool:
    """Whether a sentence says what cannot be done: it asks for nothing."""
    return not part.endswith("?") and _REFUSES.found_in(part)


def _is_report(part: str) -> bool:
    """Whether a sentence tells what the user wishes: "We are sorry you want to cancel R-1." """
    return not part.endswith("?") and _REPORTS_WISH.search(part) is not None
