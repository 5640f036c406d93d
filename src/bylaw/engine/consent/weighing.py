"""What one exchange says of one call: was it put, did the answer agree, was all that matters told, is it spent."""

import re
from collections.abc import Iterable, Iterator

import msgspec

from bylaw.engine.consent.agreement import (
    agrees,
    asks_for,
    is_aside,
    is_held,
    is_left,
    is_turned,
    picks,
    redirected,
    speaks_of,
)
from bylaw.engine.consent.call.action import Action
from bylaw.engine.consent.call.deed import any_deed
from bylaw.engine.consent.consent import Consent, ConsentReason
from bylaw.engine.consent.doubt import (
    is_offer_asked_for,
    is_perhaps_answered,
    is_perhaps_taken,
    is_yes_in_other_words,
    is_yes_to_its_values,
    is_yes_unasked,
    tells_of,
)
from bylaw.engine.consent.exchange import Exchange
from bylaw.engine.consent.once import once
from bylaw.engine.consent.put.alternative import asks_either
from bylaw.engine.consent.put.beside import asks_another, is_beside
from bylaw.engine.consent.put.question import asks_for_another, asks_otherwise, asks_which, offers_another
from bylaw.engine.consent.said.utterance import Utterance
from bylaw.engine.consent.spending import Writes
from bylaw.engine.consent.told.hearing import Hearing
from bylaw.engine.consent.told.identity import is_the_only_one
from bylaw.engine.consent.told.lack import Lack
from bylaw.engine.consent.told.marks import is_told_apart, marks_told
from bylaw.engine.consent.told.told import is_all_told, lacks
from bylaw.facts.phrases import Phrases

_AGAIN = Phrases(
    (
        "again|another|once more|one more|same|a second|the other|as well|too",
        r"\b(?:again|another|once more|one more|(?:the )?same|a second|the other|as well|too)\b",
    )
)
_SEVERAL = re.compile(r"\b(?:both|all|them|these|those|each|every|and|two|three|four|bookings|orders|items|it)\b|,")
"""In a question: it may be about several things, or about what was told before."""
_IT = re.compile(r"\b(?:it|that|this|them|those|so)\b")
_IN_WORDS = re.compile(
    r"\b(?:(?:six|seven|eight|nine|thir|four|fif)teen|ten|eleven|twelve|twenty|thirty|forty|fifty|sixty|seventy|eighty|"
    r"ninety|hundred|thousand)\b"
)


class Weighing:
    """One exchange and one call; each of these is found once, where anybody asks."""

    def __init__(self, hearing: Hearing, exchanges: tuple[Exchange, Exchange | None, Exchange], writes: Writes) -> None:
        """`exchanges` are this one as it was said, the one before it, and the last of the conversation."""
        self.hearing = hearing
        self.action: Action = hearing.action
        self.exchange: Exchange = hearing.exchange
        self._whole, self._before, self._last = exchanges
        self._writes = writes

    def consent(self) -> Consent:
        """What is found."""
        if self.is_held:
            if is_perhaps_answered(self.hearing):
                # "Anything to change before I add it?" - "No, that's it."
                return self._found(None, "unclear", self.lacks)
            return self.held()
        if not self._is_agreed_to:
            return self._without_agreement()
        found = (*self._untold(), *self._misplaced())
        is_unsure = bool(found) or self._is_unsure
        spent = self._spent_by(is_in_doubt=is_unsure)
        if spent is not None:
            return self._found(False, "spent", found, spent)
        if any(lack.grade == "missing" for lack in found):
            return self._found(False, "differs", found)
        if is_unsure or is_turned(self.action, self.exchange):
            return self._found(None, "unclear", found)
        return self.agreed()

    def is_sure(self) -> bool:
        """Whether `consent` would find that it agrees to the call, and what it acts on was named: read no further than
        to the first doubt, and what is soonest read comes first."""
        return (
            self._is_agreed_to
            and self.is_named
            and not self._is_unsure
            and is_all_told(self.hearing)
            and next(self._misplaced(), None) is None
            and not is_turned(self.action, self.exchange)
            and self._spent_by(is_in_doubt=False) is None
        )

    def held(self) -> Consent:
        """Found where it holds the call back."""
        return self._found(False, "held")

    def agreed(self) -> Consent:
        """Found where it agrees to the call."""
        return self._found(True, "agreed")

    @once
    def is_held(self) -> bool:
        """Whether the answer refuses it, puts it off, or took something else."""
        return is_held(self.action, self.exchange) or is_left(self.action, self.exchange)

    @once
    def _is_agreed_to(self) -> bool:
        return agrees(self.hearing, is_told=self.is_told_by_values) and self.names_deed

    @once
    def _is_unsure(self) -> bool:
        """Whether something in the answer speaks against the yes in it."""
        stance = self.exchange.said.stance
        if stance in ("mixed", "asks") or is_aside(self.action, self.exchange):
            return True
        # "Cancel it, don't charge me" may well refuse the fee.
        return stance == "spares" and speaks_of(self.action, self.exchange)

    def if_taken_up(self) -> Consent | None:
        """Open, where nothing that matters was told otherwise or not at all."""
        is_told = self.told_deed and self.is_named and self._is_nothing_missing
        return self._found(None, "unclear", self.lacks) if is_told else None

    def _found(
        self, value: bool | None, reason: ConsentReason, lacks: tuple[Lack, ...] = (), spent: int | None = None
    ) -> Consent:
        return Consent(value, reason, self.exchange.proposed_at, self.exchange.answered_at, lacks, spent)

    def _spent_by(self, *, is_in_doubt: bool) -> int | None:
        agreement = self.exchange.answered_at
        spent = self._writes.spent_by(self.action, agreement, self.exchange.proposal if is_in_doubt else ())
        return self._writes.echoed_by(self.action, agreement, self._last.proposal) if spent is None else spent

    @once
    def told_deed(self) -> bool:
        """Whether the agent spoke of what the call does, or does it to."""
        action, put = self.action, self.exchange.put
        return action.told.stands_in(put.text) or any(thing in put.text for thing in action.things) or put.is_foreign

    @once
    def names_deed(self) -> bool:
        """Whether it was said, or need not be said, what would be done."""
        return self.told_deed or self.is_told_by_values or self._is_understood()

    @once
    def is_told_by_values(self) -> bool:
        """Whether leave was asked for all that the call gives, and more than for what it acts on: whatever the verb, it
        is this call that was told, unless it is the verb of another tool that acts on such a thing."""
        action, put = self.action, self.exchange.put
        if self.told_deed or not put.asks_leave or put.is_foreign or _AGAIN.found_in(put.text):
            return False
        telling = self._telling
        if sum(any(part.says(value) for part in telling) for value in self._given) < 2:
            return False
        return self._is_no_rival_told and not asks_otherwise(put, action.deed) and not self.lacks

    @once
    def _given(self) -> set[str | int | float]:
        matters = self.action.matters
        return {each.value for each in matters if not (each.is_caller or each.is_off or each.kind == "count")}

    @once
    def _telling(self) -> list[Utterance]:
        """The sentences of the agent's that state something the call gives."""
        parts = (Utterance(-1, "agent", part) for part in self.exchange.put.parts)
        return [part for part in parts if any(map(part.says, self._given))]

    @property
    def _is_no_rival_told(self) -> bool:
        rivals = self._writes.rivals(self.action)
        return not any(rival.stands_in(part.text) for rival in rivals for part in self._telling)

    @once
    def is_named(self) -> bool:
        """Whether it was said what it would be done to."""
        action, hearing = self.action, self.hearing
        return (
            action.is_named_in(self.exchange.proposal)
            or any(not goal.is_caller and is_told_apart(hearing, goal) for goal in action.goals)
            or (self.told_deed and self._names_whom_it_charges())
            or (self.told_deed and self._is_the_only_one_to_pay())
        )

    def _is_the_only_one_to_pay(self) -> bool:
        """Whether the call gives only what it acts on, a sum and the means, and no other such thing was shown."""
        is_alone = all(each.is_target or each.kind in ("amount", "means") for each in self.action.matters)
        return is_alone and self._is_the_only_one_shown()

    def _is_the_only_one_shown(self) -> bool:
        return any(is_the_only_one(self.hearing, goal) for goal in self.action.goals)

    @once
    def lacks(self) -> tuple[Lack, ...]:
        """What of the call's arguments was not surely told."""
        return tuple(lacks(self.hearing))

    @property
    def _is_nothing_missing(self) -> bool:
        return all(lack.grade != "missing" for lack in self.lacks)

    def _without_agreement(self) -> Consent:
        """What is found where nothing known here says that the answer agrees to this."""
        if self.told_deed and is_yes_unasked(self.hearing) and self._is_nothing_missing:
            return self._found(None, "unclear", self.lacks)
        if self._perhaps_agrees():
            return self._found(None, "unclear")
        if is_perhaps_answered(self.hearing) and self._is_nothing_missing:
            return self._found(None, "unclear", self.lacks)
        if asks_for(self.action, self.exchange):
            return self._found(False, "requested")
        return self._found(False, "unanswered" if self.names_deed and self.exchange.put.asks_leave else "none")

    def _perhaps_agrees(self) -> bool:
        hearing = self.hearing
        if is_yes_to_its_values(hearing) or (is_yes_in_other_words(hearing) and not self.lacks):
            return True
        if self._is_perhaps_told_by_values():
            return True
        if is_perhaps_taken(hearing) and (self.action.has_goals_alone or self._is_nothing_missing):
            return True
        return is_offer_asked_for(hearing) and not self.lacks

    def _is_perhaps_told_by_values(self) -> bool:
        """Whether it is a yes to a message that stated some of what the call gives, and the rest is known, too."""
        action, put = self.action, self.exchange.put
        if self.exchange.said.stance not in ("yes", "weak") or not put.asks_leave or len(self._given) < 2:
            return False
        if asks_another(put, action.deed) or asks_otherwise(put, action.deed):
            return False
        rivals = self._writes.rivals(action, on_the_same=True)
        return bool(self._telling) and not any(each.stands_in(put.text) for each in rivals) and not self.lacks

    def _untold(self) -> tuple[Lack, ...]:
        """What of the call, its arguments and what it acts on, was not surely told."""
        found = tuple(self._read_in_words())
        if not self.is_named:
            before = self._before
            is_topic = before is not None and self.action.is_named_in((*before.proposal, *before.answer))
            if not (is_topic and before is not None and self._takes_up(before)):
                is_perhaps = is_topic or tells_of(self.hearing) or self._is_the_only_one_shown()
                found = (*found, Lack(self.action.tool, "unclear" if is_perhaps else "missing", "not_named"))
        # "I'd refund 8.00 again" may well mean another charge.
        return tuple(self._unsure_of(found)) if found and _AGAIN.found_in(self.exchange.put.text) else found

    def _misplaced(self) -> Iterator[Lack]:
        """What shows that something else was put, or answered to."""
        action, exchange, put = self.action, self.exchange, self.exchange.put
        is_other = not self.is_told_by_values and (
            offers_another(put.text, action.tool)
            or asks_for_another(put, exchange.spoken, action.deed, action.things)
            or (asks_otherwise(put, action.deed) and not action.deed.stands_in(exchange.spoken))
            or (asks_which(put) and not picks(action, exchange))
            or (asks_either(put, action.deed) and not self._is_chosen())
            or (self.told_deed and is_beside(put, action.told, action.things))
            or self._is_asked_of_another()
        )
        is_other = is_other or not (self.told_deed or self.is_told_by_values or not any_deed().stands_in(put.text))
        if is_other:
            # The user had asked for it, or the thing was named, and the agent spoke of doing something else.
            yield Lack(action.tool, "unclear", "not_put")
        yield from redirected(action, exchange)

    def _is_chosen(self) -> bool:
        """Whether the answer says which of two it shall be."""
        return picks(self.action, self.exchange) or speaks_of(self.action, self.exchange)

    def _is_asked_of_another(self) -> bool:
        """Whether one such deed was asked for, without naming this thing, and it was done to another already: "Bruges
        stays. Shall I cancel Ghent?" """
        action, hearing = self.action, self.hearing
        done = self._writes.made(action.tool, self.exchange.answered_at, hearing.before)
        others = (each for each in done if each.counts_at(hearing.before))
        if not action.targets or all(
            not self._writes.action(each).targets.isdisjoint(action.targets) for each in others
        ):
            return False
        asked = [part for part in self.exchange.put.leave() if action.deed.stands_in(part)]
        if not asked or any(map(_SEVERAL.search, asked)):
            return False
        said = (*(Utterance(-1, "agent", part) for part in asked), *hearing.answer)
        return not any(each.says(target) for each in said for target in action.targets)

    def _is_understood(self) -> bool:
        """Whether the agent need not say what would be done: it spoke of such a call that had just been refused, or
        told details of what the user had just asked for."""
        action, before = self.action, self._before
        end = self._whole.answer[0].step
        made = self._writes.made(action.tool, before.answered_at if before else -1, end)
        if any(not each.counts_at(end) for each in made):
            return True
        if before is None:
            return False
        put = self._whole.put
        is_silent = not any_deed().stands_in(put.text) and not asks_another(put, action.deed)
        is_telling = any(each.says(detail.value) for detail in action.matters for each in self._whole.proposal)
        if is_silent and is_telling and action.deed.stands_in(before.put.text) and not self.lacks:
            # "$300.00 from A1 to B2, then. OK?"
            return True
        return not action.has_goals_alone and speaks_of(action, before)

    def _takes_up(self, before: Exchange) -> bool:
        """Whether leave is asked for what the agent had put before, and was only asked about: "Yes, a buffet. Shall I
        add it?" """
        is_put = self.action.deed.stands_in(before.put.text) and self.action.is_named_in(before.proposal)
        return is_put and before.said.stance == "asks" and any(map(_IT.search, self.exchange.put.leave()))

    def _names_whom_it_charges(self) -> bool:
        """Whether a call that takes a sum from a person, and acts on nothing else, was told by their name or card."""
        action, hearing = self.action, self.hearing
        if action.targets or not action.means or not any(each.kind == "amount" for each in action.matters):
            return False
        means = [detail for detail in action.matters if detail.kind == "means"]
        return any(marks_told(hearing, goal) for goal in action.goals) or any(
            hearing.called(each).is_own_in(said.folded) for each in means for said in hearing.proposal
        )

    def _unsure_of(self, found: Iterable[Lack]) -> Iterator[Lack]:
        """What was not told; which thing it is may have been understood."""
        names = {goal.name for goal in self.action.goals} | {self.action.tool}
        for lack in found:
            is_perhaps = lack.detail in names and lack.why in ("never_told", "not_named")
            yield msgspec.structs.replace(lack, grade="unclear") if is_perhaps else lack

    def _read_in_words(self) -> Iterator[Lack]:
        """What was not told; an amount may have been, where the agent wrote one out: "fifty dollars"."""
        for lack in self.lacks:
            is_sum = any(detail.kind == "amount" and detail.name == lack.detail for detail in self.action.matters)
            is_perhaps = is_sum and lack.grade == "missing" and _IN_WORDS.search(self.exchange.put.text)
            yield msgspec.structs.replace(lack, grade="unclear") if is_perhaps else lack
