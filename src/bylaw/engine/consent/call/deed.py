"""Words for what tools do, and for what they do it to, in any usual form."""

import re
from collections.abc import Iterable
from functools import lru_cache

from bylaw.facts.folded_text import fold
from bylaw.policy.verb import VERBS, words_of

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
    ("drop", "withdraw", "retract", "revok", "cancel", "unenrol"),
    ("enrol", "register", "sign up"),
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
_LOOSELY = {
    "updat": ("sav", "set", "put", "enter", "stor"),
    "pay": ("tak", "deduct", "withdraw"),
    "submit": ("send",),
}
"""Stems that may stand for a deed where it is known which one is meant, and for much else."""
_SETTING = frozenset(("set", "put"))
"""Verbs of tools that change something, whatever it is told by."""
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
_NO_VERBS = frozenset(("the", "this", "use", "tool", "call", "for", "when", "only", "allows", "lets", "used"))
"""May begin a tool's description, and do not say what it does."""
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


def _verbs(tool: str) -> list[str]:
    """The verbs in a tool's name: the first, and what it carries out or is joined to: `refund` of `issue_refund`, but
    not `order` of `cancel_order`."""
    words = words_of(tool)
    verbs = [place for place, word in enumerate(words) if VERBS.get(word) == "write"]
    if not verbs:
        return words[:1]
    first = words[verbs[0]]
    return [words[at] for at in verbs if at == verbs[0] or first in _CARRY_OUT or words[at - 1] in ("and", "or")]


def _is_form(stem: str, member: str) -> bool:
    """Whether two stems are of one word: `cancel` and `cancell`, but not `set` and `settl`."""
    if min(len(stem), len(member)) > 3:
        return stem.startswith(member) or member.startswith(stem)
    return stem.rstrip("e") == member


@lru_cache(maxsize=512)
def deeds(tool: str, others: tuple[str, ...] = ()) -> Deed:
    """Words for what a tool does, by its name and others that are known."""
    stems = {word.rstrip("e") if len(word) > 4 else word for word in others}
    for word in _verbs(tool):
        stem = word.rstrip("e") if len(word) > 4 else word
        stems.add(stem)
        for family in _FAMILIES:
            if any(_is_form(stem, member) for member in family) or (stem in _SETTING and "updat" in family):
                stems.update(family)
    return Deed(stems)


@lru_cache(maxsize=512)
def loose_deeds(tool: str, others: tuple[str, ...] = ()) -> Deed:
    """Words for what a tool does, and those that an agent may use for it: "Should I save it?" """
    stems = set(deeds(tool, others).stems)
    return Deed(stems.union(*(words for stem, words in _LOOSELY.items() if stem in stems)))


@lru_cache(maxsize=512)
def other_words(called: tuple[str, ...], description: str) -> tuple[str, ...]:
    """Words for what a tool does, beside its name: those that the pack gives, and the verb its description begins
    with: "End a line on a date." """
    first = words_of(description[:40])[:1]
    return (*map(fold, called), *(word for word in first if len(word) > 2 and word not in _NO_VERBS))


@lru_cache(maxsize=1)
def any_deed() -> Deed:
    """Words for anything that tools do."""
    return Deed({stem for family in _FAMILIES for stem in family})


@lru_cache(maxsize=1)
def plain_deed() -> Deed:
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
