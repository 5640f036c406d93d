"""Whether a value was told for this deed: by the sentence, and the clause of it, that it stands in.

"Your balance is 2500.00. Shall I send money?" tells no amount, and "Shall I close your savings account and move
everything to A1?" does not say that A1 is closed. A value counts in a sentence that asks, that names the deed or offers
something, or that has no verb ("Spin, Wed 8 Sep, £8. Book?"); in any other only where it says that the value is what
the argument is called. Within a sentence it counts where no other deed stands between this one and the value.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from bylaw.consent.argument import Argument
from bylaw.consent.deed import verb_of
from bylaw.consent.hearing import Hearing
from bylaw.consent.line import heads
from bylaw.consent.spot import NO_LABELS, stem_set
from bylaw.policy.verb import VERBS
from bylaw.text.stem import stem

_IS = r"is|are|was|were|be|been|'s|'re|has|have|had|'ve|will|would|'ll|'d|can|could|may|might|do|does|did"
_SAYS = re.compile(
    rf"(?<![\w-])(?:i|you|we|they|he|she|it|that|this|these|those|who|which)(?: \w+)? (?:{_IS})\b|"
    rf"(?:\b|(?='))(?:{_IS}|goes?|went|stays?|remains?|keeps?|kept|comes?|came|gets?|got|sent|paid|made|took|left)\b"
)
"""A verb that says something of something; what has none is a heading, a row, or a thing that is offered."""
_HERE = re.compile(r"^\W*(?:here|below)(?:'s| is| are)\b")
"""What only leads up to something: "Here is the letter for AC-11:"."""
_PAST = re.compile(
    r"\b(?:was|were|had|did|been|went|kept|came|got|sent|paid|made|took|left|last|previous(?:ly)?|ago)\b"
)
_LABEL = re.compile(
    r"(?:^|[,;.]\s|\band )\W*([a-z][^,;:=|]{0,60}?)\s*(?::|=|\||(?:\b|(?='))(?:is|are|will be|would be|comes to|'s)\b)"
    r"(?:\s+(?:also|just|now|only|then|at|on|for|of|to|in total|exactly|a|an|the|your|number|no\.?))*\W*$"
)
"""What a value right after it is told to be: "the total is", "daily limit:"."""
_PRONOUN = re.compile(r"(?:(?:and|so|well|ok|okay|then)\W+)*(?:it|that|this|these|those|all|everything|here)")
_WORD = re.compile(r"[a-z]+")
_VERB = re.compile(
    r"(?:^|\b(?:i|we|you|and|then|or|also|please|will|i'll|we'll|i'd|(?:me|us|like|want|wish) to)\b|[,;&:])\s*"
    r"(?:(?:also|then|now|please|just|and) )*([a-z]+)"
)
"""Where the word for a deed stands, as one would have it done: "shall I", "and", "like me to"."""
_NO_DEEDS = frozenset(("confirm", "order", "place", "accept", "approve", "make", "set", "record", "address", "start"))
"""Verbs that are as often something else: the order, the place, please confirm."""
_CALLED = re.compile(r"(?<![\w-])([a-z]+)(?: of)?\s*[$\u20ac\u00a3]?\s?$")
_LEADS = """
of for at is to the a an be costs pays only just exactly and you me us them him her back your full comes now usd eur gbp
chf on in
"""
_LEADING = frozenset(_LEADS.split())
"""Words right before a sum that do not say what it is."""
_CHANGING = frozenset(
    (
        *("update", "change", "modify", "edit", "set", "switch", "move", "replace", "upgrade", "downgrade", "adjust"),
        *("amend", "reschedule", "rename"),
    )
)
_BECOMES = re.compile(r"(?:\b(?:to|into|as|with|be|is|on|at|for)\b|[:=>\u2192,|-])[^.:;]{0,40}$")
"""What leads up to the value that something is given."""
_POINTING = frozenset(("a", "an", "your", "my", "our", "this", "that", "their", "s", "and", "so"))
_MONEY = frozenset(map(stem, ("amount", "total", "sum", "price", "cost", "costs", "payment", "fare")))
_DAYS = frozenset(map(stem, ("date", "day", "time", "when", "slot", "hour")))


def is_told_for(heard: Hearing, each: Argument, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether one of the places at which a value stands is where this deed is told."""
    if heard.deed is None:
        return True
    words = heard.bracketed.words
    for start, _ in spans:
        begin = words.rfind("\n", 0, start) + 1
        line = heard.bracketed.line_at(start)
        lead = line[: start - begin]
        is_told = _is_of_deed(heard, each, line, start - begin) and not _is_after_another(heard, each, lead)
        if is_told and not _is_called_otherwise(heard, each, lead) and not _is_what_was(heard, each, lead):
            return True
    return not spans


def _is_called_otherwise(heard: Hearing, each: Argument, lead: str) -> bool:
    """Whether the word right before a sum calls it something else: "fee 50.00", "save 50.00", "a deposit of 50.00"."""
    found = _CALLED.search(lead) if each.kind == "sum" else None
    return found is not None and found[1] not in _LEADING and not _names(heard, each, found[1])


def _is_what_was(heard: Hearing, each: Argument, lead: str) -> bool:
    """Whether a value may be what something is, where the deed gives it another: "change the gold plan"."""
    is_new = each.kind in ("choice", "name", "day", "time", "sum", "count")
    if not is_new or heard.deed is None or verb_of(heard.deed.name) not in _CHANGING:
        return False
    return _BECOMES.search(lead) is None


def _is_of_deed(heard: Hearing, each: Argument, line: str, at: int) -> bool:
    """Whether a sentence asks, names the deed or offers something, has no verb, or says that this is the value."""
    deed = heard.deed
    if deed is None or line in heard.questions:
        return True
    offered, label = heads(line), _LABEL.search(line[:at])
    is_offered = deed.is_called(offered) or any(_is_value(heard, verb) for verb in offered[:1])
    if label is not None and not _PRONOUN.fullmatch(label[1]) and not is_offered:
        return _names(heard, each, label[1]) and not _PAST.search(label[1])
    if offered:
        return is_offered or VERBS.get(offered[0]) not in ("read", "write")
    if _PAST.search(line):
        return False
    return deed.stands_in(line) or not _SAYS.search(_HERE.sub("", line))


def _names(heard: Hearing, each: Argument, label: str) -> bool:
    """Whether words are nothing but what the argument is called by: its name, the deed, a value of the call, or what
    any sum or any day is called. "Your main account is A1" may be said of one that is not meant."""
    own = {*stem_set(each.name), *stem_set(each.top)}
    own |= _MONEY if each.kind == "sum" else _DAYS if each.kind in ("day", "time") else frozenset[str]()
    own |= {stem(word) for other in heard.given for word in _WORD.findall(other.value.lower()) if len(word) > 2}
    told = [word for word in _WORD.findall(label) if word not in _POINTING and word not in NO_LABELS]
    if stem("".join(told)) in own:
        return True
    return all(stem(word) in own or (heard.deed is not None and heard.deed.is_called((word,))) for word in told)


def _is_after_another(heard: Hearing, each: Argument, lead: str) -> bool:
    """Whether another deed stands between this one and what follows. What a thing is done to may be told with a deed
    before: "cancel order 7 and refund 50.00"."""
    deed, is_named, is_another = heard.deed, False, False
    for found in _VERB.finditer(lead) if deed is not None else ():
        if deed is not None and (deed.is_done_by(found[1]) or _is_value(heard, found[1])):
            is_named, is_another = True, False
        elif _is_deed(found[1]):
            is_another = True
    return is_another and (is_named or each.kind != "id")


def _is_value(heard: Hearing, verb: str) -> bool:
    """Whether a verb tells a value: to withdraw a consent is to record it as `withdrawn`."""
    return any(each.value.lower().startswith(verb) for each in heard.given if each.kind in ("choice", "name"))


@lru_cache(maxsize=4096)
def _is_deed(verb: str) -> bool:
    """Whether a word is one for changing something, also for doing that again."""
    if verb in VERBS:
        return VERBS[verb] == "write" and verb not in _NO_DEEDS
    return VERBS.get(verb.removeprefix("re")) == "write"
