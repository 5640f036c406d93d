"""What a message of the agent puts to the user: a deed to agree to, options to choose from, or neither."""

import re
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache

from bylaw.facts.assent import sentences
from bylaw.facts.phrases import Phrases
from bylaw.facts.provenance import fold
from bylaw.policy.verb import VERBS, words_of

_DO = (
    "proceed|go ahead|continue|move forward|do|have|book|cancel|make|change|update|confirm|use|accept|receive|"
    "finali[sz]e|process|issue|add|keep|switch|upgrade|downgrade"
)
_GO_AHEAD = Phrases(
    (
        " to ",
        rf"\b(?:like|want|wish|ready|happy|prefer|need|okay|ok)(?: me| us)?(?: for me)? to (?:{_DO})\b",
    ),
    ("?", r"\b(?:shall|should|may|can|could) (?:i|we)\b.*\?"),
    (" you ", r"\b(?:would|do) you (?:still )?(?:like|want|wish)\b(?! to know)(?!.{0,20}\b(?:which|what)\b)"),
    (" me to", r"\b(?:want|like|wish) me to\b"),
    ("confirm", r"\bconfirm(?:ation|ing)?\b(?! (?:which|your|what|the reason|once))"),
    ("confirmed", r"\b(?:once|if|when|until|after|be|is|are|have|get) (?:\w+ )?confirmed\b|\bconfirmed\?"),
    (
        "confirm your",
        r"\bconfirm your (?:choice|selection|agreement|approval|decision|acceptance|intent\w*|wish)\b",
    ),
    ("approv|authori", r"\bapprov\w*|\bauthori[sz]e\b"),
    ("agree", r"\bdo you agree\b|\bagree to\b|\bagreeable\b"),
    ("your ", r"\byour (?:permission|consent|go-ahead|approval)\b"),
    (
        "yes|ok|confirm|proceed",
        r"\b(?:say|reply|respond|answer|type|write|send)(?:ing)?(?: back)?(?: with)?(?: me)?(?: an?)?"
        r"(?: clear| simple| explicit)? \W{0,3}(?:yes|ok|okay|confirm|proceed)\b",
    ),
    ("yes", r"\(yes\b|\byes ?/ ?no\b|\byes or no\b|\byes\?|[\"']yes\b"),
    (
        "green light|go-ahead|your ok|the word|objection",
        r"\b(?:green light|the go-ahead|your (?:ok|okay)|say the word|any objections?)\b",
    ),
    ("?", r"\b(?:is|are|would) (?:it|that|this|you) (?:be )?(?:ok|okay|alright|all right|fine|ready)\b.*\?"),
    (
        "right|correct|ok|good|work|fine|sound|accept|accurate|suit",
        r"\b(?:is|are|does|do) (?:that|this|it|these|those|everything|all)\b.*"
        r"\b(?:right|correct|ok|okay|good|work|fine|sound|acceptable|accurate|suit)\b",
    ),
    ("sound|ok|happy", r"\bsounds? good\b|\b(?:okay|ok|happy) with\b"),
    ("proceed|go ahead", r"\b(?:proceed|go ahead)\b[^.?!]*\?"),
    (
        "let me know",
        r"\blet me know (?:if|whether) (?:you(?:'d| would)? (?:like|want|wish|are|agree)|this|that|it|everything|i)\b",
    ),
    (" yes ", r"\ba (?:clear |simple )?yes (?:from you|to)\b"),
    ("to |for ", r"^(?:\W*(?:ok|okay|ready|alright))\b (?:for me )?to\b.*\?|\bready for (?:me|us) to\b"),
    ("before ", r"\bbefore (?:i|we) (?:proceed|make|go)\b"),
    ("if ", r"\bif (?:so|yes|you agree|everything|this|that|all)\b"),
)
_ANYTHING = re.compile(
    r"\b(?:proceed|go ahead|confirm\w*|continue|move forward|do (?:it|this|that|so|both|all)|correct|right|accurate|"
    r"agree\w*|ok|okay|good|works?|fine|acceptable|yes|approv\w*|authori[sz]e|finali[sz]e|changes?|ready|accept|happy|"
    r"permission|consent|green light|go-ahead|objections?|complete|process|these|those|everything|all of)\b"
)
"""Asks for a go-ahead to all that was told, not to one thing beside it."""
_CHOICE = re.compile(
    r"\b(?:which (?:one|option|of|flight|would|do|payment|method|card|reservation)|what would you (?:like|prefer)|"
    r"would you (?:like|prefer)|do you (?:want|prefer)|choose|select|pick|prefer(?:red|ence)?|option|let me know|"
    r"how would you like|please (?:advise|specify|indicate|tell))\b"
)
_WHICH = re.compile(
    r"\b(?:which|what|how many|how much)\b(?! you(?:'d| would)? (?:like|want))"
    r".{0,60}\b(?:like|want|prefer|wish)\b"
    r"|\bhow (?:can|may|could) i (?:help|assist)\b|\banything else\b"
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
_WORD = re.compile(r"[^\W\d_]+")
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
_ENOUGH = 12
"""Words that a text needs before its language is guessed."""
_SHARE = 0.1
"""English texts have about four of these words in ten, bare lists of details one in six."""
_FAMILIES: tuple[tuple[str, ...], ...] = (
    ("cancel", "call off", "terminat", "void"),
    ("book", "reserv", "schedul", "purchas", "order", "plac", "buy", "creat", "register", "open", "make", "set up"),
    (
        *("updat", "chang", "modif", "edit", "switch", "mov", "upgrad", "downgrad", "adjust", "add", "remov", "replac"),
        *("increas", "reduc", "reschedul", "swap", "correct", "convert", "rebook", "exchang", "revert"),
    ),
    (
        *("send", "issu", "provid", "offer", "giv", "grant", "compensat", "credit", "appl", "award", "transfer"),
        *("deliver", "receiv"),
    ),
    ("refund", "reimburs", "return", "money back"),
    ("pay", "charg", "bill", "settl", "debit", "collect"),
    ("return", "send back"),
    ("exchang", "swap", "replac"),
    ("delet", "remov", "eras", "drop", "clos", "deactivat", "disabl", "end", "stop"),
    ("renew", "extend", "refill", "prolong"),
    ("approv", "accept", "confirm", "record", "submit", "file", "enter"),
    ("reject", "declin", "deny"),
    ("waiv", "forgiv", "drop"),
    ("releas", "shar", "hand", "send"),
    ("invit", "add"),
    ("assign", "appoint", "name"),
    ("block", "lock", "freez", "suspend", "paus"),
    ("unblock", "unlock", "unfreez", "resum", "reactivat", "activat", "enabl"),
)
"""Stems of words for one deed."""
_CARRY_OUT = frozenset(
    ("issue", "make", "place", "apply", "submit", "create", "send", "execute", "run", "start", "post")
)
"""Verbs of tools that say what is done by another word: a refund is issued."""
_UNPLAIN = {"creat", "correct", "edit", "make", "mov", "open", "order", "plac", "register", "set up", "void"}
_THINGS: tuple[tuple[str, ...], ...] = (
    ("bag", "luggage", "suitcase"),
    ("passenger", "traveler", "traveller", "companion"),
    ("flight", "itinerar", "segment"),
    ("cabin", "upgrad", "downgrad", "class"),
    ("certificat", "voucher"),
    ("insurance", "coverage"),
    ("reservation", "booking"),
    ("appointment", "visit", "booking"),
    ("item", "product", "article"),
    ("address", "shipping", "deliver"),
)
"""Stems of words for one kind of thing."""
_NOUNS = frozenset(("order", "charge", "deposit", "exchange", "post", "record", "refund", "return", "transfer"))
"""Verbs of tools that are names of things as well."""
PRICED: tuple[tuple[str, ...], ...] = (_THINGS[0], (*_THINGS[2], *_THINGS[3]), _THINGS[5])
"""Of these, what mostly has a price of its own beside others."""
_SHORT = 4
"""Longer stems stand for every word that begins with them; `add` does not stand for `additional`."""
_ENDING = re.compile(r"(?:e|s|d|es|ed|ing|ings)?\b")


class Deed:
    """A word for something that tools do, in any usual form."""

    def __init__(self, stems: Iterable[str]) -> None:
        self.stems = sorted(stems)

    def stands_in(self, text: str) -> bool:
        """Whether a text in lower case has such a word."""
        for stem in self.stems:  # noqa: SIM110 - a generator would cost more than what it looks for
            if stem in text and _is_word(stem, text):
                return True
        return False


def _is_word(stem: str, text: str) -> bool:
    """Whether a stem begins a word of a text, perhaps after `re` or `un`; a short one must be nearly all of it."""
    here = text.find(stem)
    while here >= 0:
        begin = here - 2 if text[max(0, here - 2) : here] in ("re", "un") else here
        is_whole = len(stem) > _SHORT or _ENDING.match(text, here + len(stem)) is not None
        if is_whole and not (_is_inside(text, here) and _is_inside(text, begin)):
            return True
        here = text.find(stem, here + 1)
    return False


def _is_inside(text: str, place: int) -> bool:
    return place > 0 and (text[place - 1].isalnum() or text[place - 1] == "_")


class Proposal:
    """What a message asks of the user."""

    def __init__(self, text: str) -> None:
        self.parts = parts = sentences(text)
        self.text = " ".join(parts)
        asking = _GO_AHEAD.among(parts, self.text)
        leave = [part for part in asking if not _is_refusal(part) and not _WHICH.search(part)]
        if not leave and "?" in text and self.is_foreign:
            leave.append(self.text)
        self.leave = leave
        """The sentences that ask for a go-ahead."""

    @cached_property
    def offers(self) -> bool:
        """Whether it offers a choice, or asks what the user would like."""
        return any(
            (part.endswith("?") or "please" in part or "let me" in part) and _CHOICE.search(part) for part in self.parts
        )

    @cached_property
    def folded(self) -> str:
        """Its sentences in one, folded."""
        return fold(self.text)

    def refrains_from(self, deed: Deed) -> bool:
        """Whether it speaks of a deed only as not to be done: "Shall I not cancel it?" """
        spoken = [part for part in self.parts if deed.stands_in(part)] if deed.stands_in(self.text) else []
        return bool(spoken) and all(
            any(word in part for word in _NEGATING) and not deed.stands_in(_NEGATED.sub(" ", part)) for part in spoken
        )

    @property
    def refuses(self) -> bool:
        """Whether it says of anything that it cannot be done."""
        return any(map(_is_refusal, self.parts))

    @cached_property
    def is_foreign(self) -> bool:
        """Whether it is in a language whose words for deeds and requests are not known here."""
        words = _WORD.findall(self.text)
        return len(words) >= _ENOUGH and sum(word in _ENGLISH for word in words) < len(words) * _SHARE


@lru_cache(maxsize=2048)
def proposal(text: str) -> Proposal:
    """What a message of the agent puts to the user."""
    return Proposal(text)


def asks_leave(put: Proposal, deed: Deed, things: Sequence[str]) -> bool:
    """Whether a go-ahead is asked for what a tool does: "Would you like to add insurance?" asks for another thing."""
    return any(
        _ANYTHING.search(part)
        or deed.stands_in(part)
        or any(thing in part for thing in things)
        or not any_deed().stands_in(part)
        or put.is_foreign
        for part in put.leave
    )


def asks_for_another(put: Proposal, said: str, deed: Deed, things: Sequence[str]) -> bool:
    """Whether leave is asked for another deed, and the answer speaks of one: "Yes to book it?" - "Yes, book it." """
    return all(
        _plain_deed().stands_in(part) and not deed.stands_in(part) and not any(thing in part for thing in things)
        for part in (*put.leave, said)
    )


_LEAVE_TO = re.compile(
    r"\b(?:(?:shall|should|may|can|could) (?:i|we)|(?:want|like|wish|prefer)(?: me| us)? to)"
    r"\s+(?:(?:now|then|also|please|just|still|instead|go ahead and|proceed to|proceed with|help you)\s+)*([a-z]+)"
)
_STOPPING = frozenset(
    """cancel stop refuse abort halt prevent block decline reject skip drop hold void undo reverse revoke withdraw
    delay postpone pause avoid deny""".split()  # noqa: SIM905
)
_TALKING = frozenset(
    """explain describe show tell know hear see learn understand hang wait talk discuss repeat read think end leave
    ask remind call speak chat connect""".split()  # noqa: SIM905
)
"""Verbs after which what follows is spoken of, not done."""


def asks_otherwise(put: Proposal, deed: Deed) -> bool:
    """Whether all it asks leave for is to stop a deed, or to speak of it: "Shall I stop the transfer?" """
    asking = put.leave or [part for part in put.parts if part.endswith("?")]
    return bool(asking) and all(_is_otherwise(part, deed) for part in asking)


def _is_otherwise(part: str, deed: Deed) -> bool:
    verbs = [found[1] for found in _LEAVE_TO.finditer(part)]
    return bool(verbs) and all(verb in _TALKING or (verb in _STOPPING and not deed.stands_in(verb)) for verb in verbs)


_ALTERNATIVES = re.compile(r"\bwhich (?:one|of (?:them|these|those|the)|option)\b[^.!?]*\?")


def asks_which(put: Proposal) -> bool:
    """Whether it ends by asking which of several it shall be, to which a yes is no answer."""
    return bool(put.parts) and not put.leave and _ALTERNATIVES.search(put.parts[-1]) is not None


def _is_refusal(part: str) -> bool:
    """Whether a sentence says what cannot be done: it asks for nothing."""
    return not part.endswith("?") and _REFUSES.found_in(part)


def _verbs(tool: str) -> list[str]:
    """The verbs in a tool's name: the first, and what it carries out or is joined to: `refund` of `issue_refund`, but
    not `order` of `cancel_order`."""
    words = words_of(tool)
    verbs = [place for place, word in enumerate(words) if VERBS.get(word) == "write"]
    if not verbs:
        return words[:1]
    first = words[verbs[0]]
    return [words[at] for at in verbs if at == verbs[0] or first in _CARRY_OUT or words[at - 1] in ("and", "or")]


@lru_cache(maxsize=512)
def deeds(tool: str) -> Deed:
    """Words for what a tool does."""
    stems: set[str] = set()
    for word in _verbs(tool):
        stem = word.rstrip("e") if len(word) > 4 else word
        stems.add(stem)
        for family in _FAMILIES:
            if any(stem.startswith(member) or member.startswith(stem) for member in family):
                stems.update(family)
    return Deed(stems)


_OFFERS_TO = re.compile(
    r"\b(?:i(?:'ll| will| can| could| would|'d|(?:'m| am) (?:going|about) to)|shall i|should i|let me|"
    r"(?:want|like) me to)\s+(?:now |then |also |please |just |go ahead and )*(\w+)"
)
_FILLERS = frozenset(
    """confirm make place apply start run submit put execute issue mark check look find get show verify""".split()  # noqa: SIM905
)
"""Verbs that may stand before any deed."""


_VAGUE = frozenset(
    """update modify change set record edit adjust add create put post write save apply issue make submit process mark
    place run execute""".split()  # noqa: SIM905
)
"""Verbs of tools that do what may be told by many a verb: a withdrawal is recorded."""


def offers_another(text: str, tool: str) -> bool:
    """Whether the agent says that it will do something, and nothing it says so of is what the tool does."""
    verb = words_of(tool)[:1]
    if VERBS.get("".join(verb)) != "write" or verb[0] in _VAGUE:
        return False
    if deeds(verb[0]).stands_in(text):
        return False
    offered = (found[1] for found in _OFFERS_TO.finditer(text))
    return any(each in VERBS and each not in _FILLERS for each in offered)


@lru_cache(maxsize=1)
def any_deed() -> Deed:
    """Words for anything that tools do."""
    return Deed({stem for family in _FAMILIES for stem in family})


@lru_cache(maxsize=1)
def _plain_deed() -> Deed:
    """Words that say plainly what is done: not `make`, `confirm` or `issue`, which may stand for much."""
    return Deed({stem for family in _FAMILIES[:3] for stem in family} - _UNPLAIN)


@lru_cache(maxsize=512)
def objects(name: str) -> tuple[str, ...]:
    """Stems of what a tool or an argument is named after, verbs left out: `baggag` of `update_reservation_baggages`."""
    every = words_of(name)
    words = [word for word in every if VERBS.get(word) is None and len(word) > 2]
    stems = {word[: max(3, min(len(word) - 2, 7))]: None for word in words}
    for word in words:
        stems.update((stem, None) for family in _THINGS if any(map(word.startswith, family)) for stem in family)
    # After a verb, or before what names a thing, it is what something is done to.
    stems.update((word, None) for word in every if word in _NOUNS and (word != every[0] or every[1:2] == ["id"]))
    return tuple(stems)
