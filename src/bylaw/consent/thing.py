"""Whether the thing that an id names was told.

It may be told by what its record holds and no other of its kind does, or in an older message, where nothing of its kind
was said since. What only the answer says the user asked for, but nobody told it.
"""

import re
from itertools import chain

from bylaw.consent.answer import is_neutral
from bylaw.consent.argument import Argument
from bylaw.consent.hearing import Hearing, Why
from bylaw.consent.passage import Passage, is_code
from bylaw.consent.spot import NO_LABELS
from bylaw.policy.verb import words_of
from bylaw.text.stem import stem

_NOBODY = frozenset(
    ("it", "that", "here", "there", "what", "let", "today", "tomorrow", "thursday", "friday", "saturday")
)
_ENDS = re.compile(r"\bend(?:ing|s)(?: in| with)? (\d+)\b")
_POINTS = r"\b(?:your|the|this|that|a|an|his|her|their|my|our|from|to)"


def why_thing(heard: Hearing, each: Argument) -> Why | None:
    """Why an id was not surely told; None where it was."""
    if _is_plain(heard, each):
        return None
    is_seen_alone = heard.is_clear and heard.records.of(each.key, heard.before) and not heard.beside(each)
    is_alone = is_seen_alone or (_is_of_user(heard, each) and not heard.beside(each))
    said = (heard.near[0], heard.near[-1])
    if each.is_person and is_alone and not any(heard.rivals(each, passage) for passage in said):
        # "Your membership" is that of somebody who has said who they are.
        if _is_of_user(heard, each):
            return None
        if not any(passage.place_of(each.key) >= 0 for passage in said) and _is_called_otherwise(heard, each):
            return "another"
        return None if heard.is_met(each.key) else "never"
    for passage in heard.regions(each):
        found = why_thing_in(heard, each, passage)
        if found is None and passage is heard.near[0] and not each.is_means:
            # Of what the user names alone nothing was told.
            found = "never" if why_thing_in(heard, each, heard.bracketed) in ("never", "another") else None
        if found != "never":
            return found
    if is_seen_alone:
        # The only one of its kind that anybody has seen, where nobody named another.
        return "another" if _is_called_otherwise(heard, each) else None
    for passage in heard.older():
        found = why_thing_in(heard, each, passage)
        if found != "never":
            return found
    return "never"


def _is_plain(heard: Hearing, each: Argument) -> bool:
    """Whether an id stands in what was put with none that could be meant instead, and neither the answer nor the
    question calls a thing by anything else: nothing need be read passage by passage."""
    if len(heard.near) < 3 or not heard.is_bare_answer:
        return False
    asked, put, key = heard.near[1], heard.near[2], each.key
    if put.place_of(key) < 0 or heard.rivals(each, put):
        return False
    if asked.place_of(key) < 0:
        return not (asked.marks or asked.endings) and heard.in_order(each, put) is None
    return heard.in_order(each, asked) is None


def _is_called_otherwise(heard: Hearing, each: Argument) -> bool:
    """Whether the agent spoke of somebody's thing, of another kind of it, or of one with a number or an id, that
    the thing's records do not hold: "Bob's order", "your savings account", "order 7", "the one ending in 99"."""
    held = heard.records.marks_of(each.key, heard.before)

    def is_its_own(word: str) -> bool:
        is_end = word.isdigit() and each.key.endswith(word) and not each.key.removesuffix(word)[-1:].isdigit()
        return word == each.key or is_end or word in held or f"n:{word}" in held

    def is_known(code: str) -> bool:
        return code in heard.own or heard.records.holds(code, heard.before)

    for name in (word for word in words_of(each.name) if word not in NO_LABELS):
        called = rf"\b([a-z]+)'s (?:\w+ )?{name}\b|\b{name}s?(?: number| no\.?| id)? #?(\w*\d\w*)"
        for found in re.finditer(called, heard.raw):
            word = found[1] or found[2]
            if word not in _NOBODY and not is_its_own(word) and not (is_code(word) and is_known(word)):
                return True
        kinds = re.findall(rf"{_POINTS} ([a-z]+) {name}\b", heard.raw)
        if not all(is_its_own(kind) or _is_of_call(heard, kind) for kind in kinds):
            return True
    endings = {found[1] for found in _ENDS.finditer(heard.raw)}
    if not all(heard.records.ends(figures, heard.before) for figures in endings):
        return True
    return not all(is_known(key) for passage in (heard.near[0], heard.bracketed) for key in passage.ids)


def _is_of_call(heard: Hearing, word: str) -> bool:
    """Whether a word tells no thing from another, or is one of the call's own."""
    own = chain(words_of(heard.tool), *(words_of(other.name) for other in heard.given))
    return (
        is_neutral(word) or stem(word) in map(stem, own) or (heard.deed is not None and heard.deed.is_called((word,)))
    )


def _is_of_user(heard: Hearing, each: Argument) -> bool:
    """Whether it only says for whom something is done: who that is, the user need not be told."""
    return each.is_user and len(heard.given) > 1 and not set(words_of(heard.tool)) & set(words_of(each.name))


def why_thing_in(heard: Hearing, each: Argument, passage: Passage) -> Why | None:
    """The same in one passage."""
    place = passage.place_of(each.key)
    rivals = heard.rivals(each, passage)
    if place < 0 and not rivals:
        return heard.by_marks(each, passage)
    if place < 0:
        return "another"
    if not rivals:
        return heard.in_order(each, passage)
    spots = [(place, place + len(each.key)), *((at, at + len(key)) for key, at in rivals.items())]
    if passage in heard.near[:2]:
        return None if passage.joins(spots) else "beside"
    is_listed = heard.deed is not None and heard.deed.stands_in(passage.line_at(place)) and passage.joins(spots)
    return None if is_listed else "beside"
