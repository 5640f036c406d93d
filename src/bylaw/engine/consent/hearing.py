"""What had been said and shown when the user answered, asked for one exchange and one call."""

import re
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property

from bylaw.engine.consent.detail import Detail
from bylaw.engine.consent.means import Called, called
from bylaw.engine.consent.records import Entry, Records
from bylaw.engine.consent.talk import Exchange, Utterance
from bylaw.facts.assent import answer
from bylaw.facts.provenance import fold
from bylaw.policy.verb import words_of

_CHANGES = re.compile(r"\b(?:but|actually|instead|rather|make it|change it to|switch (?:it )?to|on second thought)\b")
_ENTRIES = 3
"""Records of a means of payment that are looked at, the newest first."""


class Hearing:
    """One exchange, all that was said before it, and the records shown before the call's turn."""

    def __init__(
        self,
        earlier: Sequence[Exchange],
        exchange: Exchange,
        records: Records,
        before: int,
        refusals: Iterable[str],
        means: Collection[str] = (),
    ) -> None:
        self._earlier = earlier
        self.proposal = exchange.proposal
        self.answer = exchange.answer
        self.records = records
        self.before = before
        self.refused = [Utterance(-1, "system", text) for text in refusals]
        """What the system demanded when it refused the same call since the user's answer."""
        self.aside = answer("\n".join(each.text for each in exchange.answer)).aside
        """What the user said is not to be done, or not to be used."""
        self._means = means
        self._called: dict[str, Called] = {}
        self._unchanged: set[tuple[str, str]] | None = None

    @cached_property
    def earlier(self) -> list[Utterance]:
        """What was said before the exchange."""
        return [each for other in self._earlier for each in (*other.proposal, *other.answer)]

    @cached_property
    def now(self) -> list[Utterance]:
        """The proposal and the answer to it, the latest first."""
        return [*reversed(self.answer), *reversed(self.proposal)]

    @cached_property
    def is_changed(self) -> bool:
        """Whether the answer asks for something else than was told: "actually", "instead", "make it"."""
        return any(_CHANGES.search(each.folded) for each in self.answer)

    @cached_property
    def whole(self) -> list[Utterance]:
        """Everything said, the answer included."""
        return [*self.earlier, *self.proposal, *self.answer]

    @cached_property
    def by_agent(self) -> list[Utterance]:
        """What the agent said."""
        return [each for each in self.whole if each.by == "agent"]

    def is_forced(self, value: str | float) -> bool:
        """Whether the system asked for the value when it refused the call."""
        return any(each.says(value) for each in self.refused)

    def record(self, detail: Detail) -> Entry | None:
        """The newest record of the thing that an argument names: the one whose own id, its first, this is."""
        value = fold(str(detail.value))
        for entry in self.records.entries(str(detail.value), self.before):
            ids = (name for name in entry.fields if name in ("", "id") or words_of(name)[-1:] == ["id"])
            own = next(ids, detail.name)
            if own in ("", "id", detail.name) and fold(str(entry.fields.get(own, ""))) == value:
                return entry
        return None

    def unchanged(self, matters: Sequence[Detail]) -> set[tuple[str, str]]:
        """Fields that the thing the call is about was last seen to have just so, by name and value."""
        if self._unchanged is None:
            found: set[tuple[str, str]] = set()
            for detail in matters:
                record = self.record(detail) if detail.is_target else None
                if record is not None:
                    found |= record.values
            self._unchanged = found - {detail.key for detail in matters if detail.is_target}
        return self._unchanged

    def called(self, detail: Detail) -> Called:
        """What a means of payment may be called."""
        value = str(detail.value)
        found = self._called.get(value)
        if found is None:
            entries = self.records.entries(value, self.before)[:_ENTRIES]
            found = self._called[value] = called(value, entries, self._means)
        return found
