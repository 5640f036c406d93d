"""What an answer says to one call: refuses it, agrees to it, sets it aside, turns to another thing."""

import re
from collections.abc import Iterator, Sequence

from bylaw.engine.consent.answer.plain_yes import is_bare_yes, is_plain_yes
from bylaw.engine.consent.answer.stance import stance_of
from bylaw.engine.consent.call.action import Action
from bylaw.engine.consent.exchange import Exchange
from bylaw.engine.consent.put.question import asks_leave
from bylaw.engine.consent.said.utterance import Utterance
from bylaw.engine.consent.told.hearing import Hearing
from bylaw.engine.consent.told.lack import Lack
from bylaw.engine.consent.told.naming import alike
from bylaw.engine.consent.told.told import chooses
from bylaw.facts.folded_text import fold, occurs
from bylaw.facts.sentence import sentences, without_quotes

PLACE = re.compile(
    r"\b(?:option|choice|number|plan) ?(?:\d|one|two|three|a|b|c)\b|\bthat (?:one|option)\b"
    r"|\b(?:first|second|third|last|former|latter|cheapest|earliest|latest|fastest) (?:one|option|flight|choice)\b"
    r"|\b(?:both|all) (?:of )?(?:them|those|these)\b|^(?:\d|the first|the second)\b|^\W*[a-f]\W*$"
)
"""Names one of several options by its place among them."""
_THE_ONE = re.compile(r"\bthe (?:\w+ )?(?:one|option|plan)\b(?! (?:i|we) (?:have|had|booked|got)\b)")
_WONDERS = re.compile(r"\W*(?:(?:and|so|but|well|hm+|oh|ok|okay)\W+)*(?:how|what|when|where|why|which|who)\b")
_ELSEWHERE = re.compile(
    r"\b(?:the other (?:one|order|booking|reservation|appointment|trip|item)|a different one|another one)\b"
)


def is_held(action: Action, exchange: Exchange) -> bool:
    """Whether the answer refuses, puts off, makes it depend on something, or says or agrees not to do it."""
    stance = exchange.said.stance
    if any(occurs(fold(id), part) >= 0 for part in exchange.said.kept for id in action.targets):
        return True
    if stance in ("yes", "weak", "mixed"):
        return exchange.put.refrains_from(action.deed)
    if stance == "spares":
        # "Cancel it, don't change it" spares another deed.
        return asks_for(action, exchange) and not _asks_beside(action, exchange)
    return stance in ("held", "if", "no")


def is_left(action: Action, exchange: Exchange) -> bool:
    """Whether the answer took some of what was put, and what the call gives stands in the rest alone."""
    left = exchange.left
    if left is None:
        return False
    given = [each for each in action.matters if each.kind in ("id", "name", "date", "amount") and not each.is_person]
    return any(
        left.says(each.value) and not any(said.says(each.value) for said in (*exchange.proposal, *exchange.answer))
        for each in given
    )


def _asks_beside(action: Action, exchange: Exchange) -> bool:
    """Whether the answer speaks of what the call does beside what it says is not to be done."""
    rest = " ".join(part for each in exchange.answer for part in sentences(each.text))
    for aside in exchange.said.aside:
        rest = rest.replace(aside, " ")
    return action.deed.stands_in(rest)


def asks_for(action: Action, exchange: Exchange) -> bool:
    """Whether the answer speaks of what the call does, as far as its language is known."""
    return speaks_of(action, exchange) or exchange.put.is_foreign


def speaks_of(action: Action, exchange: Exchange) -> bool:
    """Whether the answer speaks of what the call does."""
    return any(action.deed.stands_in(without_quotes(each.folded)) for each in exchange.answer)


def is_taken_up(action: Action, exchange: Exchange) -> bool:
    """Whether the answer asks for what the call does, or for one of several by what it is, and takes nothing back."""
    if exchange.said.stance in ("no", "held", "if", "spares", "asks") or _only_wonders(exchange):
        return False
    return any(
        action.told.stands_in(without_quotes(each.folded)) or _THE_ONE.search(each.folded) for each in exchange.answer
    )


def agrees(hearing: Hearing, *, is_told: bool = False) -> bool:
    """Whether the answer agrees to what was put, chooses among it, or asks for it; `is_told` says that it was this for
    which leave was asked, if any was."""
    action, exchange = hearing.action, hearing.exchange
    said, put = exchange.said, exchange.put
    leave = (is_told and put.asks_leave) or asks_leave(put, action.told, action.things)
    if not leave:
        # "Which one would you like to cancel?" names things, not what will be done to them.
        if not put.offers or action.has_goals_alone:
            return False
    elif said.stance == "weak":
        return True
    if said.stance in ("yes", "mixed"):
        return True
    if said.objects or _only_wonders(exchange):
        return False
    return (
        (leave and asks_for(action, exchange))
        or any(PLACE.search(each.folded) for each in exchange.answer)
        or chooses(hearing)
    )


def _only_wonders(exchange: Exchange) -> bool:
    """Whether the answer is nothing but a question that wants to know something: "How long does that take?" """
    parts = [part for each in exchange.answer for part in sentences(each.text)]
    return bool(parts) and all(part.endswith("?") and _WONDERS.match(part) for part in parts)


def picks(action: Action, exchange: Exchange) -> bool:
    """Whether the answer says which it shall be: by its place or by any value of the call."""
    return any(
        PLACE.search(each.folded) or any(each.says(detail.value) for detail in action.matters)
        for each in exchange.answer
    )


def about(action: Action, exchange: Exchange) -> Exchange:
    """An exchange without what the answer refuses or puts off of another thing: "For R-2 let me ask my wife." """
    if exchange.said.stance not in ("held", "no", "if", "mixed") or not action.targets:
        return exchange
    shapes = [shape for target in action.targets if (shape := alike(fold(target))) is not None]
    if not shapes:
        return exchange
    kept: list[Utterance] = []
    for each in exchange.answer:
        parts = sentences(each.text)
        mine = [part for part in parts if not _is_of_another(part, action, shapes)]
        kept.append(each if len(mine) == len(parts) else Utterance(each.step, each.by, "\n".join(mine)))
    return Exchange(exchange.start, exchange.proposal, tuple(kept), end=exchange.end, left=exchange.left)


def _is_of_another(part: str, action: Action, shapes: Sequence[re.Pattern[str]]) -> bool:
    if stance_of(part) not in ("held", "no", "if", "spares"):
        return False
    own = {fold(target) for target in action.targets}
    named = {found[0] for shape in shapes for found in shape.finditer(part)}
    return bool(named) and own.isdisjoint(named)


def redirected(action: Action, exchange: Exchange) -> Iterator[Lack]:
    """What the answer names another of than the call does: "yes, cancel R-2 instead", "yes, the other one"."""
    for detail in action.goals:
        shape = None if detail.is_person or exchange.said.kept else alike(fold(str(detail.value)))
        if shape is None or any(each.says(detail.value) for each in exchange.answer):
            continue
        if any(shape.search(each.folded) or _ELSEWHERE.search(each.folded) for each in exchange.answer):
            yield Lack(detail.name, "unclear", "another_told")


def is_turned(action: Action, exchange: Exchange) -> bool:
    """Whether something beside the yes may turn it: "yes, half of it", "sure, once you lower it"."""
    if exchange.said.stance not in ("yes", "weak"):
        return False
    text = "\n".join(each.text for each in exchange.answer)
    if is_bare_yes(text):
        return False
    values = [detail.value for detail in action.matters]
    place = ("first", "second", "last") if exchange.left else ()
    named = (*place, *map(str, values), *(detail.name for detail in action.matters), action.tool)
    if is_plain_yes(text, exchange.put.text, named):
        return False
    follows = any(
        any(each.says(value) for each in exchange.answer) and not any(each.says(value) for each in exchange.proposal)
        for value in values
    )
    return not (follows and is_plain_yes(text, exchange.put.text, named, follows=True))


def is_aside(action: Action, exchange: Exchange) -> bool:
    """Whether the answer sets such a thing aside: "no to the upgrade", "skip the bags", "don't cancel R-2"."""
    said = exchange.said
    ids = [fold(str(detail.value)) for detail in action.goals] if said.aside else []
    return any(
        occurs(id, part) >= 0
        or (not ids and action.deed.stands_in(part))
        or any(thing in part for thing in action.things)
        for part in said.aside
        for id in (ids or [""])
    )
