"""What had been said and shown when the user answered, asked for one exchange and one call."""

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from functools import lru_cache
from typing import Literal

from bylaw.engine.consent.call.action import Action
from bylaw.engine.consent.call.detail import Detail
from bylaw.engine.consent.exchange import Exchange
from bylaw.engine.consent.once import once
from bylaw.engine.consent.put.proposal import Proposal
from bylaw.engine.consent.said.mentions import Mentions
from bylaw.engine.consent.said.utterance import Utterance
from bylaw.engine.consent.shown.entry import Entry
from bylaw.engine.consent.shown.means import Called, Wallet
from bylaw.facts.folded_text import fold_name
from bylaw.facts.sentence import sentences
from bylaw.policy.verb import words_of

_OF_AN_ID = frozenset(("id", "number", "no", "code", "key"))
_CHANGES = re.compile(r"\b(?:but|actually|instead|rather|make it|change it to|switch (?:it )?to|on second thought)\b")


class Hearing:
    """One exchange, all that was said before it, and the records shown before the call's turn, asked for one call."""

    def __init__(
        self,
        action: Action,
        exchange: Exchange,
        mentions: Mentions,
        wallet: Wallet,
        *,
        refusals: Callable[[], Iterable[str]] = tuple,
        by: Literal["", "user"] = "",
    ) -> None:
        """`by` is the one party who is listened to."""
        self.action = action
        self.exchange = exchange
        self.matters = action.matters
        self.goals = action.goals
        self.is_new = action.is_new
        """Whether the call makes a thing."""
        self.before = action.call.start
        """The step from which on nothing counts."""
        self.start = exchange.start
        self.end = exchange.end
        self.proposal = exchange.proposal if by != "user" else ()
        self.answer = exchange.answer
        self.records = wallet.records
        self.mentions = mentions
        self._wallet = wallet
        self._refusals = refusals
        self._means = frozenset[str]() if by else action.means
        self._by = by
        self._recorded: dict[tuple[str, str], Entry | None] = {}
        self._called: dict[str, Called] = {}
        self.now = [*reversed(self.answer), *reversed(self.proposal)]
        """The proposal and the answer to it, the latest first."""

    @property
    def put(self) -> Proposal:
        """What the agent put to the user."""
        return self.exchange.put

    @property
    def said(self) -> tuple[str, ...]:
        """The sentences of the answer."""
        return tuple(part for each in self.answer for part in sentences(each.text))

    @property
    def aside(self) -> tuple[str, ...]:
        """What the user said is not to be done, or not to be used."""
        return self.exchange.said.aside

    @once
    def said_now(self) -> str:
        """The words of the proposal and of the answer in one, folded, the latest first."""
        return " ".join([each.folded for each in self.now])

    @once
    def refused(self) -> list[Utterance]:
        """What the system demanded when it refused the same call since the user's answer."""
        return [Utterance(-1, "system", text) for text in self._refusals()]

    @once
    def is_changed(self) -> bool:
        """Whether the answer asks for something else than was told: "actually", "instead", "make it"."""
        return any(_CHANGES.search(each.folded) for each in self.answer)

    def last_said(self, value: str | float, by: str = "") -> int | None:
        """The place of the last utterance before the exchange that states a value."""
        return None if self._is_deaf(by) else self.mentions.latest(value, self.start, by or self._by)

    def said_before(self, key: Hashable, holds: Callable[[Utterance], bool], by: str = "") -> bool:
        """Whether `holds` is true of anything said before the exchange; the key stands for it."""
        return not self._is_deaf(by) and self.mentions.has(key, holds, self.start, by or self._by)

    def named_before(self, forms: Iterable[str]) -> bool:
        """Whether any of some folded words stands in what was said before the exchange."""
        return any(self.mentions.has_form(form, self.start, self._by) for form in forms)

    def counted_before(self, wanted: Collection[str], of: str, by: str) -> bool:
        """Whether one of the wanted numbers was said of a thing before the exchange."""
        return not self._is_deaf(by) and self.mentions.has_number(wanted, of, self.start, by)

    def is_told_now(self, value: str | float) -> bool:
        """Whether a value was stated in the proposal or in the answer."""
        for each in self.now:  # noqa: SIM110 - asked of every value
            if each.says(value):
                return True
        return False

    def is_told(self, value: str | float) -> bool:
        """Whether anybody has stated a value, the answer included."""
        return self.is_told_now(value) or self.last_said(value) is not None

    def is_agents(self, value: str | float) -> bool:
        """Whether the agent has stated a value, or the user did in the answer."""
        return self.is_told_now(value) or self.last_said(value, "agent") is not None

    def is_forced(self, value: str | float) -> bool:
        """Whether the system asked for the value when it refused the call."""
        return any(each.says(value) for each in self.refused)

    def record(self, detail: Detail) -> Entry | None:
        """The newest record of the thing that an argument names."""
        if detail.key not in self._recorded:
            self._recorded[detail.key] = next(self.records_of(detail), None)
        return self._recorded[detail.key]

    def records_of(self, detail: Detail) -> Iterator[Entry]:
        """The records of the thing that an argument names, whose own id, their first, this is; the newest first."""
        value = fold_name(str(detail.value))
        for entry in self.records.entries(str(detail.value), self.before):
            own = entry.id_field or detail.name
            is_named = own in ("", "id", detail.name, detail.name.removesuffix("s")) or not detail.is_person
            if (is_named or _is_named_after(detail.name, own)) and fold_name(str(entry.fields.get(own, ""))) == value:
                yield entry

    def belongs(self, value: str, *, alone: bool = False, depth: int = 2) -> bool:
        """Whether records show a value as part of a thing that was told, or of one that belongs to such a thing.

        With `alone` it must be the only one of its name there: one of three accounts is not told by their owner.
        """
        for entry in self.records.holders(value, self.before):
            owner = str(entry.fields.get(entry.id_field or "", ""))
            if not owner or owner == value or (alone and entry.is_one_of_several(value)):
                continue
            if self.is_told(owner) or (depth > 1 and self.belongs(owner, alone=alone, depth=depth - 1)):
                return True
        return False

    def is_unchanged(self, detail: Detail) -> bool:
        """Whether a thing the call is about was last seen to have a field just so."""
        name, value = detail.key
        has = any(each.has(name, value) for each in self._records_of_goals)
        return has and all(goal.name != name or goal.key != detail.key for goal in self.goals)

    @once
    def _records_of_goals(self) -> list[Entry]:
        found = (self.record(goal) for goal in self.goals)
        return [record for record in found if record is not None]

    def called(self, detail: Detail) -> Called:
        """What a means of payment may be called."""
        value = str(detail.value)
        found = self._called.get(value)
        if found is None:
            found = self._called[value] = self._wallet.called(value, self._means, self.before)
        return found

    def _is_deaf(self, by: str) -> bool:
        return bool(by and self._by and by != self._by)


@lru_cache(maxsize=1024)
def _is_named_after(argument: str, field: str) -> bool:
    """Whether an argument is named after the field that holds a thing's id: `from_account` after `account_id`."""
    words = {*words_of(field)} - _OF_AN_ID
    return bool(words) and words <= {*words_of(argument)}
