"""Answers that perhaps agree: a yes to something that was asked in words not known here, or one of several taken.

Each of these leaves it open whether the user agreed, where nothing that matters was told otherwise.
"""

import re

from bylaw.engine.consent.agreement import PLACE, speaks_of
from bylaw.engine.consent.call.deed import any_deed, plain_deed
from bylaw.engine.consent.call.detail import Detail
from bylaw.engine.consent.put.question import asks_leave, asks_otherwise, asks_who, offered, offers_to
from bylaw.engine.consent.told.choice import names_word
from bylaw.engine.consent.told.hearing import Hearing
from bylaw.engine.consent.told.identity import is_the_only_one
from bylaw.engine.consent.told.marks import is_other_told, is_spoken_of, is_told_apart
from bylaw.engine.consent.told.told import chooses
from bylaw.facts.identifier import is_identifier

_COMPARED = re.compile(
    r"\b(?:cheaper|pricier|smaller|larger|bigger|shorter|longer|earlier|later|faster|slower|better|newer|older) "
    r"(?:one|option|choice|plan)\b"
)
"""Names one of two by what it is beside the other."""
_QUOTED = re.compile(r"[\"“”]")
_ONLY = re.compile(r"\W*(?:just|only)\b")
_BUT_YES = re.compile(r"\bbut (?:ok|okay|fine|yes|sure|alright|all right|go|do it|take it)\b")
_ANY_CHANGE = re.compile(
    r"\b(?:anything|something|any changes?|any details?)\b[^.!?]*\b(?:change|adjust|add|correct|before)\w*\b"
)
"""Asks whether anything should be other than told: a no agrees."""
_SAY = re.compile(
    r"\b(?:just say|say which|tell me which|your (?:call|choice)|up to you|let me know|as soon as you|before i|"
    r"(?:all|one thing|only thing|last thing)(?: that)? i(?:'d)? (?:still )?need)\b"
)
"""Says that something is left to the user, after which it will be done."""
_EITHER = re.compile(r"\b(?:either|any of (?:these|those|them))\b")


def is_yes_unasked(hearing: Hearing) -> bool:
    """Whether it is a yes to a message that told of it, though in no words known here was anything asked."""
    action, exchange, put = hearing.action, hearing.exchange, hearing.put
    is_told = not put.asks_leave and not put.refuses and action.is_named_in(exchange.proposal)
    if not is_told or asks_who(put, [str(each.value) for each in action.matters]):
        return False
    stance = exchange.said.stance
    return stance == "yes" or (stance == "weak" and put.parts[-1].endswith("?"))


def is_yes_in_other_words(hearing: Hearing) -> bool:
    """Whether leave was asked for what the call acts on, in words for the deed that are not known here."""
    action, exchange, put = hearing.action, hearing.exchange, hearing.put
    is_yes = exchange.said.stance in ("yes", "weak") and put.asks_leave and not put.refuses
    if not is_yes or not action.targets or asks_otherwise(put, action.deed):
        return False
    if any(not any(told.says(target) for told in exchange.proposal) for target in action.targets):
        return False
    is_known = len(action.deed.stems) > 1
    if not is_known:
        return True
    # `order` may be what it is done to; what else would be done is told by a plain word, or by a verb of the agent's.
    verbs = offered(put.text)
    if not verbs:
        return not any_deed().stands_in(put.text)
    return not plain_deed().stands_in(put.text) and not any(map(any_deed().stands_in, verbs))


def is_yes_to_its_values(hearing: Hearing) -> bool:
    """Whether the agent's last message asked about all that the call names and moves, in whatever words, and the
    answer sounds like a yes: "50.00 from A1 to B2, right?" - "Yes." """
    exchange, put = hearing.exchange, hearing.put
    is_yes = exchange.said.stance in ("yes", "weak") and bool(exchange.proposal)
    if not is_yes or put.refuses or asks_otherwise(put, hearing.action.deed):
        return False
    matters = hearing.matters
    values = [each.value for each in matters if each.is_target or each.kind == "amount" or _is_id(each.value)]
    return len(values) > 1 and all(exchange.proposal[-1].says(value) for value in values)


def is_perhaps_taken(hearing: Hearing) -> bool:
    """Whether the answer takes one of several things that were offered, in words that do not say which for sure: "The
    cheaper one, please." """
    if not _may_be_taken(hearing):
        return False
    if hearing.action.has_goals_alone:
        # "Which one would you like to cancel?" offers nothing; "A spot in either?" does.
        return _EITHER.search(hearing.put.text) is not None and any(
            is_told_apart(hearing, goal, by="user") for goal in hearing.goals
        )
    offered = [each for each in hearing.matters if not each.is_target and each.kind in ("choice", "id", "date")]
    is_offered = any(told.says(each.value) for each in offered for told in hearing.exchange.proposal)
    spoken = hearing.exchange.spoken
    return is_offered and bool(PLACE.search(spoken) or _COMPARED.search(spoken) or chooses(hearing))


def is_offer_asked_for(hearing: Hearing) -> bool:
    """Whether the agent offered a choice and to do it, and the answer speaks of it."""
    action = hearing.action
    if not _may_be_taken(hearing) or action.has_goals_alone:
        return False
    return offers_to(hearing.put.text, action.deed) and speaks_of(action, hearing.exchange)


def is_perhaps_answered(hearing: Hearing) -> bool:
    """Whether the agent asked or offered something and told something of this call, and the answer is in words that are
    not known here: neither a refusal nor a mere question nor a wish for something else."""
    exchange, put = hearing.exchange, hearing.put
    stance = exchange.said.stance
    if put.refuses or not exchange.proposal:
        return False
    if stance in ("yes", "weak", "mixed"):
        is_put = put.asks_leave or put.offers or stance == "mixed" or bool(offered(put.text))
        return is_put and tells_of(hearing, beside_first=True)
    if stance in ("no", "held"):
        return _ANY_CHANGE.search(put.text) is not None and tells_of(hearing)
    objects = exchange.said.objects and _BUT_YES.search(exchange.spoken) is None
    if stance != "other" or objects or _QUOTED.search(exchange.spoken):
        return False
    if _ONLY.match(exchange.spoken) and not _is_all_named(hearing):
        return False
    is_asked = put.asks_leave or (put.offers and not hearing.action.has_goals_alone)
    if not is_asked and not ((_SAY.search(put.text) or offered(put.text)) and tells_of(hearing, beside_first=True)):
        # "Which one would you like to cancel?" names things, not what will be done to them.
        return False
    return tells_of(hearing) and not any(_takes_another(hearing, each) for each in hearing.matters)


def puts(hearing: Hearing) -> bool:
    """Whether the agent asked for leave to do this, or offered to, and told something of it."""
    action, put = hearing.action, hearing.put
    is_asked = put.asks_leave and action.deed.stands_in(put.text) and asks_leave(put, action.deed, action.things)
    if not (is_asked or offers_to(put.text, action.told)) or not tells_of(hearing):
        return False
    things = [goal for goal in hearing.goals if not goal.is_person]
    return all(
        any(said.says(each.value) for said in hearing.proposal)
        or is_told_apart(hearing, each, by="agent")
        or is_the_only_one(hearing, each)
        for each in things
    )


def tells_of(hearing: Hearing, *, beside_first: bool = False) -> bool:
    """Whether the agent's own words tell anything that matters in the call: a sum, a day, a thing or what it holds;
    with `beside_first` something else than the first thing it names, which others are done to as well."""
    said = hearing.exchange.proposal
    first = _first(hearing) if beside_first else None
    for each in hearing.matters:
        if each.kind in ("count", "flag", "means") or each.is_person or each is first:
            continue
        if beside_first and each.kind in ("choice", "name"):
            # A word may stand there for something else.
            continue
        if any(one.says(each.value) for one in said) or (each.kind == "id" and is_spoken_of(hearing, each, by="agent")):
            return True
    return False


def _takes_another(hearing: Hearing, detail: Detail) -> bool:
    """Whether the answer names another thing, or another word of the list, than the call does."""
    if detail.kind == "choice":
        others = tuple(word for word in detail.words if word != detail.value)
        said = [each.loose for each in hearing.answer]
        return any(names_word(text, word, ())[0] for text in said for word in others) and not any(
            names_word(text, str(detail.value), others)[0] for text in said
        )
    if detail.kind != "id" or detail.is_person or not is_other_told(hearing, detail, by="user"):
        return False
    return not is_told_apart(hearing, detail, by="user")


def _first(hearing: Hearing) -> Detail | None:
    return next((each for each in hearing.goals if not each.is_person), None)


def _is_all_named(hearing: Hearing) -> bool:
    """Whether the answer names each thing of the call that is not what it acts on as a whole: "Only the toaster." """
    first = _first(hearing)
    named = [each for each in hearing.matters if each.kind == "id" and not each.is_person and each is not first]
    return bool(named) and all(
        any(said.says(each.value) for said in hearing.answer) or is_told_apart(hearing, each, by="user")
        for each in named
    )


def _may_be_taken(hearing: Hearing) -> bool:
    exchange, put = hearing.exchange, hearing.put
    return put.offers and not put.refuses and not exchange.said.objects and bool(exchange.proposal)


def _is_id(value: str | float) -> bool:
    return isinstance(value, str) and is_identifier(value)
