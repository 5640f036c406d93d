"""Consent: whether the user agreed to this very call before it was made.

The agent told the action, the user agreed in a later message, and nothing that matters in the call differs from what
was told or chosen. A consent is spent by the accepted write it was given for; a refusal gives it back. What code cannot
tell is None. Everything rests on events before the call's turn, so that no later event changes an answer.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from bylaw.engine.consent.action import Action
from bylaw.engine.consent.beside import is_beside
from bylaw.engine.consent.deed import any_deed
from bylaw.engine.consent.hearing import Hearing
from bylaw.engine.consent.lack import Grade, Lack
from bylaw.engine.consent.marks import is_told_apart, marks_told
from bylaw.engine.consent.means import Wallet
from bylaw.engine.consent.naming import alike
from bylaw.engine.consent.proposal import (
    asks_for_another,
    asks_leave,
    asks_otherwise,
    asks_which,
    asks_who,
    offers_another,
    offers_to,
)
from bylaw.engine.consent.records import Records
from bylaw.engine.consent.talk import Exchange, Talk
from bylaw.engine.consent.told import chooses, lacks
from bylaw.engine.consent.utterance import Utterance
from bylaw.facts.assent import UserAnswer, sentences, stance_of, without_quotes
from bylaw.facts.call_record import CallRecord
from bylaw.facts.folded_text import fold, occurs
from bylaw.facts.identifier import is_identifier
from bylaw.facts.ledger import Ledger
from bylaw.facts.plain_yes import is_bare_yes, is_plain_yes
from bylaw.facts.result_field import result_text
from bylaw.trace.event import Event

Basis = Literal["told", "requested"]
"""What a policy asks for: that the user agreed to what the agent told, or no more than that the user asked for it."""
Reason = Literal["agreed", "requested", "none", "unanswered", "spent", "held", "differs", "unclear", "unrecorded"]

_PLACE = re.compile(
    r"\b(?:option|choice|number|plan) ?(?:\d|one|two|three|a|b|c)\b|\bthat (?:one|option)\b"
    r"|\b(?:first|second|third|last|former|latter|cheapest|earliest|latest|fastest) (?:one|option|flight|choice)\b"
    r"|\b(?:both|all) (?:of )?(?:them|those|these)\b|^(?:\d|the first|the second)\b"
)
"""Names one of several options by its place among them."""
_COMPARED = re.compile(
    r"\b(?:cheaper|pricier|smaller|larger|bigger|shorter|longer|earlier|later|faster|slower|better|newer|older) "
    r"(?:one|option|choice|plan)\b"
)
"""Names one of two by what it is beside the other."""

_OF_A_PERSON = ("account", "profile", "default", "on file", "user")
"""Words for what is kept of a person, whatever they order."""

_RECENT = 8
"""So many exchanges before the last may have agreed to a call; of older ones, those that name what it acts on."""


class Consent(Struct, frozen=True):
    """Whether the user agreed to a call, and why this is thought so."""

    value: bool | None
    reason: Reason
    proposal: int | None = None
    """Step of the message that told the action."""
    agreement: int | None = None
    """Step of the message that agreed, or that did not."""
    lacks: tuple[Lack, ...] = ()
    """What was not surely told."""
    spent_by: int | None = None
    """Step of the accepted call that the agreement was spent on."""

    def record(self) -> dict[str, Any]:
        """The reason as `findings.jsonl` holds it: names of arguments and steps, none of their values."""
        steps = {"told_at": self.proposal, "answered_at": self.agreement, "spent_by": self.spent_by}
        told: dict[str, Any] = {"reason": self.reason} | {key: at for key, at in steps.items() if at is not None}
        return told | {"lacks": msgspec.to_builtins(self.lacks)} if self.lacks else told


class Consents:
    """The consents of one conversation, found where a write asks for one; `events` may grow while it is in use."""

    def __init__(self, events: Sequence[Event], ledger: Ledger) -> None:
        self._ledger = ledger
        self._talk = Talk(events)
        self._records = Records(events)
        self._wallet = Wallet(self._records)
        self._writes: dict[str, list[CallRecord]] = {}
        """By tool, the writes of the ledger, as far as they were counted."""
        self._counted = 0

    def follow(self, before: int) -> None:
        """Take in what came before a step, so that a question about a later call has only the rest to read."""
        self._talk.read(before)
        self._talk.mentions.take_in()
        self._records.take_in(before)
        self._count()

    def find(self, call: CallRecord, basis: Basis = "told") -> Consent:
        """Whether the user agreed to a call."""
        self._talk.read(call.start)
        if self._talk.is_lost:
            return Consent(None, "unrecorded")
        exchanges = self._talk.exchanges
        if not exchanges:
            return Consent(False, "none")
        if call.call.fault and (basis == "requested" or any(map(_is_put, exchanges))):
            # Whatever its arguments are, nobody agreed where nothing was put.
            return Consent(None, "unrecorded")
        action = Action(call)
        found = self._agreement(action)
        if basis == "requested" and found.value is not True and found.reason in ("requested", "differs", "unclear"):
            return self._request(action)
        return found

    def _agreement(self, action: Action) -> Consent:
        last = len(self._talk.exchanges) - 1
        found = self._weigh(action, last)
        if found.value is True or found.reason in ("held", "spent") or _is_about_it(found, action):
            return found
        # One yes may cover several told actions, which are done one after the other.
        for place in range(last - 1, max(last - 1 - _RECENT, -1), -1):
            earlier = self._weigh_earlier(action, place)
            if earlier is not None:
                return earlier if earlier.value is True else found
        return self._long_ago(action, last - 1 - _RECENT) or found

    def _long_ago(self, action: Action, until: int) -> Consent | None:
        """The agreement of an exchange up to a place that named what the call acts on, unless it was taken back."""
        exchanges = self._talk.exchanges
        if until < 0 or not action.targets:
            return None
        end = exchanges[until].end
        named = {self._talk.place_of(at) for each in action.targets for at in self._talk.mentions.all(each, end)}
        for place in sorted(named, reverse=True)[:_RECENT]:
            found = self._weigh_earlier(action, place)
            if found is not None and found.value is True:
                since = range(place + 1, until + 1)
                return None if any(_is_held(action, exchanges[later]) for later in since) else found
            if found is not None:
                return None
        return None

    def _weigh_earlier(self, action: Action, place: int) -> Consent | None:
        """What an exchange before the last says, where it holds the call back or agrees to it."""
        exchange = self._talk.exchanges[place]
        stance = exchange.said.stance
        if stance in ("mixed", "asks") or not (stance in ("held", "if", "no", "spares") or _is_put(exchange)):
            return None
        found = self._weigh(action, place, only_yes=True)
        return found if found.value is True or found.reason == "held" else None

    def _weigh(self, action: Action, place: int, *, only_yes: bool = False) -> Consent:
        """What one exchange says of the call; with `only_yes` no more than whether it holds it back or agrees to it."""
        exchange = self._talk.exchanges[place]
        exchange = _about(action, exchange.taken or exchange)
        if _is_held(action, exchange):
            return Consent(False, "held", exchange.proposed_at, exchange.answered_at)
        said, put, deed, things = exchange.said, exchange.put, action.deed, action.things
        told_deed = action.told.stands_in(put.text) or any(thing in put.text for thing in things) or put.is_foreign
        hearing = self._hearing(action, exchange)
        names_deed = told_deed or self._is_understood(action, place, hearing)
        if not names_deed or not _agrees(action, exchange, hearing):
            if told_deed and not only_yes and _is_yes_unasked(action, exchange):
                unsure = tuple(lacks(hearing, action.matters))
                if all(lack.grade != "missing" for lack in unsure):
                    return Consent(None, "unclear", exchange.proposed_at, exchange.answered_at, unsure)
            if not only_yes and (
                _is_yes_to_its_values(action, exchange)
                or _is_yes_in_other_words(action, exchange, hearing)
                or _is_perhaps_taken(action, exchange, hearing)
            ):
                return Consent(None, "unclear", exchange.proposed_at, exchange.answered_at)
            why: Reason = (
                "requested"
                if _asks_for(action, exchange)
                else "unanswered"
                if names_deed and put.asks_leave
                else "none"
            )
            return Consent(False, why, exchange.proposed_at, exchange.answered_at)
        is_named = action.is_named_in(exchange.proposal) or any(
            not goal.is_caller and is_told_apart(hearing, goal, action.matters) for goal in action.goals
        )
        is_named = is_named or (told_deed and _names_whom_it_charges(action, hearing))
        if only_yes and not is_named:
            return Consent(False, "none", exchange.proposed_at, exchange.answered_at)
        found = tuple(_read_in_words(lacks(hearing, action.matters), exchange, action))
        if not is_named:
            before = self._talk.exchanges[place - 1] if place else None
            is_topic = before is not None and action.is_named_in((*before.proposal, *before.answer))
            if not (is_topic and before is not None and _takes_up(exchange, before, action)):
                grade: Grade = "unclear" if is_topic else "missing"
                found = (*found, Lack(action.tool, grade, "not_named"))
        if _AGAIN.search(put.text):
            # "I'd refund 8.00 again" may well mean another charge.
            found = tuple(_unsure_of(found, action))
        spoken = " ".join(each.folded for each in exchange.answer)
        is_other = (
            offers_another(put.text, action.tool)
            or asks_for_another(put, spoken, deed, things)
            or (asks_otherwise(put, deed) and not deed.stands_in(spoken))
            or (asks_which(put) and not _picks(exchange, action))
            or (told_deed and is_beside(put, action.told, things))
        )
        if is_other or (not told_deed and any_deed().stands_in(put.text)):
            # The user had asked for it, or the thing was named, and the agent spoke of doing something else.
            found = (*found, Lack(action.tool, "unclear", "not_put"))
        found = (*found, *_redirected(exchange, action))
        is_unsure = said.stance in ("mixed", "asks") or bool(found) or _is_aside(said, action)
        # "Cancel it, don't charge me" may well refuse the fee.
        is_unsure = is_unsure or (said.stance == "spares" and _speaks_of(action, exchange))
        spent = self._spent_by(action, exchange.answered_at, is_in_doubt=is_unsure)
        if spent is not None:
            reason: Reason = "spent"
        elif any(lack.grade == "missing" for lack in found):
            reason = "differs"
        else:
            reason = "unclear" if is_unsure or _is_turned(exchange, action) else "agreed"
        value = None if reason == "unclear" else reason == "agreed"
        return Consent(value, reason, exchange.proposed_at, exchange.answered_at, found, spent)

    def _hearing(self, action: Action, exchange: Exchange, *, by: Literal["", "user"] = "") -> Hearing:
        return Hearing(
            exchange,
            self._talk.mentions,
            self._records,
            self._wallet,
            action.call.start,
            refusals=lambda: [] if by else self._refusals(action, exchange.answered_at),
            means=() if by else action.means,
            by=by,
            is_new=action.is_new,
        )

    def _request(self, action: Action) -> Consent:
        """Whether the user asked for this in words of their own, with all that matters, and was not served already."""
        exchanges = self._talk.exchanges
        last = exchanges[-1]
        asked = next((each for each in reversed(exchanges) if _speaks_of(action, each)), None)
        if asked is None or last.said.stance in ("held", "if", "no"):
            return Consent(False, "none", None, last.answered_at)
        hearing = self._hearing(action, last, by="user")
        found = tuple(lack for lack in lacks(hearing, action.matters) if lack.detail != "amount")
        spent = self._spent_by(action, asked.answered_at)
        if spent is not None:
            return Consent(False, "spent", None, asked.answered_at, spent_by=spent)
        if any(lack.grade == "missing" for lack in found if lack.why != "user_alone"):
            return Consent(False, "differs", None, asked.answered_at, found)
        unclear = tuple(lack for lack in found if lack.grade == "unclear")
        return Consent(None if unclear else True, "requested", None, asked.answered_at, unclear)

    def _spent_by(self, action: Action, agreement: int, *, is_in_doubt: bool = False) -> int | None:
        """The step of a call, perhaps accepted, that has done what was agreed to, however it was paid for.

        Where it is in doubt that this one was told, the other may have done otherwise to the same thing.
        """
        step = action.call.step
        spending = [
            other.step
            for other in self._made(action, agreement, step)
            if other.counts_at(step) and _does_the_same(Action(other), action, is_in_doubt=is_in_doubt)
        ]
        return min(spending) if spending else self._echoed(action, agreement)

    def _echoed(self, action: Action, agreement: int) -> int | None:
        """The step of a call that has done all of this to a thing, where this does it for a person who was not named:
        an order has got the address that was told, now the account gets it."""
        writes = self._ledger.writes
        if action.targets or not action.goals or not writes or writes[-1].step <= agreement:
            return None
        values = {detail.value for detail in action.matters} - {detail.value for detail in action.goals}
        if not values:
            return None
        proposal = self._talk.exchanges[-1].proposal
        if any(word in each.folded for word in _OF_A_PERSON for each in proposal):
            return None
        for write in reversed(writes):
            if write.step <= agreement:
                return None
            if write.step < action.call.step and write.call.tool != action.tool and write.counts_at(action.call.step):
                other = Action(write)
                if other.targets and values <= {detail.value for detail in other.matters}:
                    return write.step
        return None

    def _is_understood(self, action: Action, place: int, hearing: Hearing) -> bool:
        """Whether the agent need not say what would be done: it spoke of such a call that had just been refused, or
        told details of what the user had just asked for."""
        exchanges = self._talk.exchanges
        last = exchanges[place - 1] if place else None
        end = exchanges[place].answer[0].step
        if any(not each.counts_at(end) for each in self._made(action, last.answered_at if last else -1, end)):
            return True
        if last is None:
            return False
        is_silent = not any_deed().stands_in(exchanges[place].put.text)
        if is_silent and action.deed.stands_in(last.put.text) and not lacks(hearing, action.matters):
            # "$300.00 from A1 to B2, then. OK?"
            return True
        return not action.has_goals_alone and _speaks_of(action, last)

    def _refusals(self, action: Action, since: int) -> list[str]:
        """What the system said when it refused calls of the same tool since the user's answer."""
        made = self._made(action, since, action.call.step)
        start = action.call.start
        return [result_text(each.result) for each in made if each.result is not None and not each.counts_at(start)]

    def _count(self) -> None:
        for write in self._ledger.writes[self._counted :]:
            self._writes.setdefault(write.call.tool, []).append(write)
        self._counted = len(self._ledger.writes)

    def _made(self, action: Action, after: int, before: int) -> Iterator[CallRecord]:
        """The writes by the same tool after a step and before another, the latest first."""
        self._count()
        for other in reversed(self._writes.get(action.tool, ())):
            if other.step <= after:
                return
            if other.step < before:
                yield other


def _does_the_same(other: Action, action: Action, *, is_in_doubt: bool) -> bool:
    return other.core == action.core or (is_in_doubt and bool(action.targets) and other.targets == action.targets)


def _names_whom_it_charges(action: Action, hearing: Hearing) -> bool:
    """Whether a call that takes a sum from a person, and acts on nothing else, was told by their name or their card."""
    if action.targets or not action.means or not any(each.kind == "amount" for each in action.matters):
        return False
    means = [detail for detail in action.matters if detail.kind == "means"]
    return any(marks_told(hearing, goal) for goal in action.goals) or any(
        hearing.called(each).is_own_in(said.folded) for each in means for said in hearing.proposal
    )


def _is_held(action: Action, exchange: Exchange) -> bool:
    """Whether the answer refuses, puts off, makes it depend on something, or says or agrees not to do it."""
    stance = exchange.said.stance
    if any(occurs(fold(id), part) >= 0 for part in exchange.said.kept for id in action.targets):
        return True
    if stance in ("yes", "weak", "mixed"):
        return exchange.put.refrains_from(action.deed)
    if stance == "spares":
        # "Cancel it, don't change it" spares another deed.
        return _asks_for(action, exchange) and not _asks_beside(action, exchange)
    return stance in ("held", "if", "no")


def _asks_beside(action: Action, exchange: Exchange) -> bool:
    """Whether the answer speaks of what the call does beside what it says is not to be done."""
    rest = " ".join(part for each in exchange.answer for part in sentences(each.text))
    for aside in exchange.said.aside:
        rest = rest.replace(aside, " ")
    return action.deed.stands_in(rest)


def _asks_for(action: Action, exchange: Exchange) -> bool:
    """Whether the answer speaks of what the call does."""
    return _speaks_of(action, exchange) or exchange.put.is_foreign


def _speaks_of(action: Action, exchange: Exchange) -> bool:
    return any(action.deed.stands_in(without_quotes(each.folded)) for each in exchange.answer)


def _agrees(action: Action, exchange: Exchange, hearing: Hearing) -> bool:
    """Whether the answer agrees to what was put, chooses among it, or asks for it."""
    said, put = exchange.said, exchange.put
    leave = asks_leave(put, action.deed, action.things)
    if not leave:
        # "Which one would you like to cancel?" names things, not what will be done to them.
        if not put.offers or action.has_goals_alone:
            return False
    elif said.stance == "weak":
        return True
    if said.stance in ("yes", "mixed"):
        return True
    if said.objects:
        return False
    return (
        (leave and _asks_for(action, exchange))
        or any(_PLACE.search(each.folded) for each in exchange.answer)
        or chooses(hearing, action.matters)
    )


def _picks(exchange: Exchange, action: Action) -> bool:
    """Whether the answer says which it shall be: by its place or by any value of the call."""
    return any(
        _PLACE.search(each.folded) or any(each.says(detail.value) for detail in action.matters)
        for each in exchange.answer
    )


def _is_yes_unasked(action: Action, exchange: Exchange) -> bool:
    """Whether it is a yes to a message that told of it, though in no words known here was anything asked."""
    put = exchange.put
    is_told = not put.asks_leave and not put.refuses and action.is_named_in(exchange.proposal)
    if not is_told or asks_who(put, [str(each.value) for each in action.matters]):
        return False
    stance = exchange.said.stance
    return stance == "yes" or (stance == "weak" and put.parts[-1].endswith("?"))


def _is_yes_in_other_words(action: Action, exchange: Exchange, hearing: Hearing) -> bool:
    """Whether leave was asked for all that the call gives, in words for the deed that are not known here."""
    put = exchange.put
    is_yes = exchange.said.stance in ("yes", "weak") and put.asks_leave and not put.refuses
    if not is_yes or not action.targets or asks_otherwise(put, action.deed):
        return False
    if any(not any(told.says(target) for told in exchange.proposal) for target in action.targets):
        return False
    is_known = len(action.deed.stems) > 1
    return not (is_known and any_deed().stands_in(put.text)) and not lacks(hearing, action.matters)


def _about(action: Action, exchange: Exchange) -> Exchange:
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
    return Exchange(exchange.start, exchange.proposal, tuple(kept), is_taken=exchange.is_taken)


def _is_of_another(part: str, action: Action, shapes: Sequence[re.Pattern[str]]) -> bool:
    if stance_of(part) not in ("held", "no", "if", "spares"):
        return False
    own = {fold(target) for target in action.targets}
    named = {found[0] for shape in shapes for found in shape.finditer(part)}
    return bool(named) and own.isdisjoint(named)


def _is_yes_to_its_values(action: Action, exchange: Exchange) -> bool:
    """Whether the agent's last message asked about all that the call names and moves, in whatever words, and the
    answer sounds like a yes: "50.00 from A1 to B2, right?" - "Yes." """
    put = exchange.put
    is_yes = exchange.said.stance in ("yes", "weak") and bool(exchange.proposal)
    if not is_yes or put.refuses or asks_otherwise(put, action.deed):
        return False
    return _tells_values(action, exchange)


def _tells_values(action: Action, exchange: Exchange) -> bool:
    """Whether the agent's last message has all that the call names and moves, and this is more than one thing."""
    values = [each.value for each in action.matters if each.is_target or each.kind == "amount" or _is_id(each.value)]
    is_told = all(each.says(value) for each in exchange.proposal[-1:] for value in values)
    return len(values) > 1 and bool(exchange.proposal) and is_told


def _is_perhaps_taken(action: Action, exchange: Exchange, hearing: Hearing) -> bool:
    """Whether the answer takes one of several things that were offered, in words that do not say which for sure: "The
    cheaper one, please." """
    put = exchange.put
    if not put.offers or put.refuses or exchange.said.objects or not exchange.proposal:
        return False
    if action.has_goals_alone:
        # "Which one would you like to cancel?" offers nothing; "A spot in either?" does.
        return _EITHER.search(put.text) is not None and any(
            is_told_apart(hearing, goal, action.matters, by="user") for goal in action.goals
        )
    offered = [each for each in action.matters if not each.is_target and each.kind in ("choice", "id", "date")]
    is_offered = any(told.says(each.value) for each in offered for told in exchange.proposal)
    spoken = " ".join(each.folded for each in exchange.answer)
    is_taken = _PLACE.search(spoken) or _COMPARED.search(spoken) or chooses(hearing, action.matters)
    if is_offered and is_taken:
        return all(lack.grade != "missing" for lack in lacks(hearing, action.matters))
    is_asked = offers_to(put.text, action.deed) and _speaks_of(action, exchange)
    return is_asked and not lacks(hearing, action.matters)


def _is_id(value: str | float) -> bool:
    return isinstance(value, str) and is_identifier(value)


def _is_put(exchange: Exchange) -> bool:
    """Whether the agent put anything to the user at all."""
    return exchange.put.asks_leave or exchange.put.offers


_AGAIN = re.compile(r"\b(?:again|another|once more|one more|(?:the )?same|a second|the other|as well|too)\b")
_EITHER = re.compile(r"\b(?:either|any of (?:these|those|them))\b")
_IT = re.compile(r"\b(?:it|that|this|them|those|so)\b")


def _takes_up(exchange: Exchange, before: Exchange, action: Action) -> bool:
    """Whether leave is asked for what the agent had put before, and was only asked about: "Yes, a buffet. Shall I add
    it?" """
    is_put = action.deed.stands_in(before.put.text) and action.is_named_in(before.proposal)
    return is_put and before.said.stance == "asks" and any(_IT.search(part) for part in exchange.put.leave())


def _unsure_of(found: Iterable[Lack], action: Action) -> Iterator[Lack]:
    """What was not told; which thing it is may have been understood."""
    names = {goal.name for goal in action.goals} | {action.tool}
    for lack in found:
        is_perhaps = lack.detail in names and lack.why in ("never_told", "not_named")
        yield msgspec.structs.replace(lack, grade="unclear") if is_perhaps else lack


_ELSEWHERE = re.compile(
    r"\b(?:the other (?:one|order|booking|reservation|appointment|trip|item)|a different one|another one)\b"
)


def _redirected(exchange: Exchange, action: Action) -> Iterator[Lack]:
    """What the answer names another of than the call does: "yes, cancel R-2 instead", "yes, the other one"."""
    for detail in action.goals:
        shape = None if detail.is_person or exchange.said.kept else alike(fold(str(detail.value)))
        if shape is None or any(each.says(detail.value) for each in exchange.answer):
            continue
        if any(shape.search(each.folded) or _ELSEWHERE.search(each.folded) for each in exchange.answer):
            yield Lack(detail.name, "unclear", "another_told")


_IN_WORDS = re.compile(
    r"\b(?:(?:six|seven|eight|nine|thir|four|fif)teen|ten|eleven|twelve|twenty|thirty|forty|fifty|sixty|seventy|eighty|"
    r"ninety|hundred|thousand)\b"
)


def _read_in_words(found: Iterable[Lack], exchange: Exchange, action: Action) -> Iterator[Lack]:
    """What was not told; an amount may have been, where the agent wrote one out: "fifty dollars"."""
    amounts = {detail.name for detail in action.matters if detail.kind == "amount"}
    for lack in found:
        is_written_out = (
            lack.grade == "missing" and lack.detail in amounts and _IN_WORDS.search(exchange.put.text) is not None
        )
        yield msgspec.structs.replace(lack, grade="unclear") if is_written_out else lack


def _is_turned(exchange: Exchange, action: Action) -> bool:
    """Whether something beside the yes may turn it: "yes, half of it", "sure, once you lower it"."""
    if exchange.said.stance not in ("yes", "weak"):
        return False
    text = "\n".join(each.text for each in exchange.answer)
    if is_bare_yes(text):
        return False
    values = [detail.value for detail in action.matters]
    place = ("first", "second", "last") if exchange.is_taken else ()
    follows = any(
        any(each.says(value) for each in exchange.answer) and not any(each.says(value) for each in exchange.proposal)
        for value in values
    )
    named = (*place, *map(str, values), *(detail.name for detail in action.matters), action.tool)
    return not is_plain_yes(text, exchange.put.text, named, follows=follows)


def _is_aside(said: UserAnswer, action: Action) -> bool:
    """Whether the answer sets such a thing aside: "no to the upgrade", "skip the bags", "don't cancel R-2"."""
    ids = [fold(str(detail.value)) for detail in action.goals] if said.aside else []
    return any(
        occurs(id, part) >= 0
        or (not ids and action.deed.stands_in(part))
        or any(thing in part for thing in action.things)
        for part in said.aside
        for id in (ids or [""])
    )


def _is_about_it(found: Consent, action: Action) -> bool:
    """Whether the last thing the user said answered a proposal of this action, however it was meant."""
    missed = {lack.detail for lack in found.lacks if lack.grade == "missing"}
    return found.reason in ("differs", "unclear") and not any(detail.name in missed for detail in action.goals)
