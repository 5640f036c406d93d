"""The facts that guards needed of one judged call: seen or not, true or not, and why those not seen were missing."""

from collections.abc import Iterable
from typing import Any, Literal

from msgspec import Struct
from msgspec.json import encode
from msgspec.structs import replace

from bylaw.engine.judgement import Judgement
from bylaw.facts.entity import ABSENT, NOT_KNOWN, UNSEEN, Entity, Fact, FactSource, Field, Key, is_known
from bylaw.facts.evidence import why_unread
from bylaw.facts.ledger import Ledger
from bylaw.facts.observation import Unread
from bylaw.facts.value import key_of

WhyMissing = Literal["never_seen", "stale", "pending", "claimed"]
Standing = Literal["seen", "missing"] | Unread
"""The status of a fact at a call: seen, missing, or looked up with an unreadable result."""


class MissingFact(Struct, frozen=True):
    """A system fact the call needed and the agent had not seen."""

    fact: Fact
    lookup: tuple[str, dict[str, Any]] | None
    """The read call that would have shown it."""
    reason: WhyMissing
    claimed_at: int | None
    decisive: bool = False
    """The determined criterion lacks it too."""
    claim: str = ""
    """The words of the user's message that state its value."""
    stale_by: int | None = None
    """Step of the write that changed it after it was seen; None where it had only grown old."""


class KnownFact(Struct, frozen=True):
    """A system fact the call needed and the agent had seen."""

    fact: Fact
    shown_at: int
    value: Any


class NeededFacts:
    """The facts of one call, cached because several guards need the same ones."""

    def __init__(self, ledger: Ledger, judgement: Judgement, truth: FactSource | None) -> None:
        self._entities = ledger.schema.entities
        self._ledger = ledger
        self._made = judgement.made
        self._seen = judgement.seen
        self._truth = truth
        self._so: dict[Fact, bool | None] = {}
        """Whether facts are in truth what the agent had seen; None where neither is known."""
        self._no_better: bool | None = None
        self._standing: dict[Fact, Standing] = {}
        self._lost: dict[tuple[Fact, bool, bool], MissingFact] = {}

    def are_so(self, facts: Iterable[Fact]) -> bool:
        """Whether all of these are in truth what the agent had seen."""
        known = self._so
        for fact in facts:
            so = known[fact] if fact in known else self._is_so(fact)
            if not so:
                return False
        return True

    def is_no_better_known(self) -> bool:
        """Whether the truth agrees with everything guards asked for and the agent had seen, or knows it no better."""
        if self._no_better is None:
            known, asked = self._so, self._seen.asked()
            self._no_better = asked is not None
            for fact in asked or ():
                if (known[fact] if fact in known else self._is_so(fact)) is False:
                    self._no_better = False
                    break
        return self._no_better

    def _is_so(self, fact: Fact) -> bool | None:
        assert self._truth is not None
        (entity, field), key = self._named(fact), fact.key or ()
        so: bool | None = False
        try:
            seen, true = self._seen.read(entity, key, field), self._truth.read(entity, key, field)
            so = None if seen is true is UNSEEN else is_equal(seen, true)
        except ValueError:
            pass
        self._so[fact] = so
        return so

    def standing(self, fact: Fact) -> Standing:
        """Whether the agent had seen a fact, or else whether it had looked it up."""
        found = self._standing.get(fact)
        if found is None:
            found = "missing"
            if self.is_seen(fact):
                found = "seen"
            elif fact.key is not None:
                entity = self._entities[fact.entity]
                found = why_unread(self._ledger, entity, key_of(fact.key), fact.field, self._made) or found
            self._standing[fact] = found
        return found

    def asked(self, fact: Fact) -> str:
        """The tool that was asked for a fact; empty where there is none of its own."""
        answered = self._ledger.answers.by_tool()
        ways = self._ledger.schema.ways[fact.entity, fact.field]
        return next((way.tool for way in ways if way.tool in answered), "")

    def is_seen(self, fact: Fact) -> bool:
        """Whether the agent had seen a fact; one that is not of its type was seen too."""
        if fact.key is None:
            return False
        entity, field = self._named(fact)
        try:
            return is_known(self._seen.read(entity, fact.key, field))
        except ValueError:
            return True

    def lacks(self, facts: Iterable[Fact]) -> bool:
        """Whether there is one that the agent did not look up."""
        return any(self.standing(fact) in ("seen", "missing") for fact in facts)

    def known(self, facts: Iterable[Fact]) -> tuple[KnownFact, ...]:
        """Those that a result had shown, each with the step that did."""
        found: list[KnownFact] = []
        for fact in facts:
            if fact.key is not None and self.standing(fact) == "seen":
                entity, field = self._named(fact)
                shown = self._seen.shown_at(entity, fact.key, field)
                if shown is not None:
                    found.append(KnownFact(fact, shown.delivered, shown.value))
        return tuple(found)

    def missing(self, fact: Fact, decisive: bool, is_wrong: bool = False) -> MissingFact:
        """Why a fact was missing, and how it could have been seen; for a wrong call, also the user's false claim about
        it.
        """
        known = (fact, decisive, is_wrong)
        found = self._lost.get(known)
        if found is None:
            found = self._lost[known] = self._missing(fact, decisive)
            if is_wrong and found.claimed_at is None and fact.key is not None:
                said = self._ledger.claims.last(self._named(fact)[1], UNSEEN, self._made.step)
                if said is not None:
                    found = self._lost[known] = replace(found, claimed_at=said[0], claim=said[1])
        return found

    def _missing(self, fact: Fact, decisive: bool) -> MissingFact:
        if fact.key is None:
            return MissingFact(fact, None, "never_seen", None, decisive)
        entity, field = self._named(fact)
        key = key_of(fact.key)
        made, ledger = self._made, self._ledger
        step, words = ledger.claims.last(field, self._value(entity, fact.key, field), made.step) or (None, "")
        shown = ledger.ever_visible(entity, key, fact.field, made)
        lookup = self._look_up(entity, key, fact.field, again=shown is not None)
        if shown is not None:
            by = ledger.changes.last(entity.name, key, fact.field, shown.as_of, made.step, known_at=made.step)
            is_pending = by is not None and ledger.calls[by].start == made.start
            return MissingFact(fact, lookup, "pending" if is_pending else "stale", step, decisive, words, by)
        return MissingFact(fact, lookup, "never_seen" if step is None else "claimed", step, decisive, words)

    def _look_up(self, entity: Entity, key: Key, field: str, *, again: bool) -> tuple[str, dict[str, Any]] | None:
        """The look-up to make: the entity's own, unless it was made without showing the field and
        another may show it.
        """
        named = dict(zip(entity.key, key, strict=False))
        first: tuple[str, dict[str, Any]] | None = None
        for way in self._ledger.schema.ways[entity.name, field]:
            arguments = way.given(named)
            if again or not self._ledger.answers.was_asked(way.tool, arguments, self._made):
                return way.tool, arguments
            first = first or (way.tool, arguments)
        return first

    def _value(self, entity: Entity, key: Key, field: Field) -> Any:
        """The true value, for comparison with the user's claims."""
        if self._truth is None:
            return UNSEEN
        try:
            value = self._truth.read(entity, key, field)
            return value if is_known(value) else UNSEEN
        except ValueError:
            return UNSEEN

    def _named(self, fact: Fact) -> tuple[Entity, Field]:
        entity = self._entities[fact.entity]
        return entity, entity.named(fact.field)


def is_equal(one: Any, other: Any) -> bool:
    """Whether no guard can tell the two values apart: `1`, `1.0` and `True` are three values, at any depth."""
    kind = one.__class__
    if kind is not other.__class__:
        return False
    if kind in NOT_KNOWN:
        return one is other is ABSENT
    if kind is list or kind is dict or kind is tuple:
        return one is other or (one == other and encode(one) == encode(other))
    return one == other
