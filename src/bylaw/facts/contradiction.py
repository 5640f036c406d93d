"""What was shown in two ways at once: by one result, or by look-ups of which neither was asked for after the other's
answer had come. Which of them is so nobody can tell; nor whether a thing is there that was shown, and then was not.
"""

from collections.abc import Callable, Sequence
from typing import Any

from bylaw.facts.call_record import CallRecord
from bylaw.facts.entity import EXISTS, Entity, Field, Key, OneOf
from bylaw.facts.ledger import Ledger
from bylaw.facts.path import NOTHING
from bylaw.facts.shown import SeenThing, Shown
from bylaw.facts.value import coerce, one_of


def beside(entry: Shown, shown: Sequence[Shown]) -> list[Shown]:
    """Those that were shown at once with an entry, which is one of them."""
    return [each for each in shown if each.delivered > entry.as_of and each.as_of < entry.delivered]


def told_by(field: Field, shown: Sequence[Shown]) -> Any:
    """The value where all tell the same, else `OneOf` what they tell; UNSEEN where one of them is a bare `null`."""
    return one_of(field, [each.value for each in shown])


def is_there(shown: Sequence[Shown], is_current: Callable[[Shown], bool]) -> Any:
    """Whether a thing exists, by all that was shown of that and is so still; None where it was shown both ways.

    That it is there outweighs that it was not, once: it may have been made meanwhile. The other way round, where no
    write has taken it away, one of the two is wrong.
    """
    current = [each for each in shown if is_current(each)]
    if not current:
        return NOTHING
    newest = max(current, key=_as_of)
    against = beside(newest, current) if newest.value else current
    return None if any(each.value is not newest.value for each in against) else newest.value


class Visible:
    """What the agent that makes a call had been shown of one thing, and is not stale for it."""

    def __init__(self, ledger: Ledger, thing: SeenThing, entity: Entity, key: Key, at: CallRecord) -> None:
        self._ledger = ledger
        self._thing = thing
        self._entity = entity
        self._key = key
        self._at = at

    def is_there(self) -> Any:
        """Whether it exists: None where it was shown both ways, NOTHING where nothing tells."""
        newest = self._ledger.latest_of(self._thing, self._entity, self._key, "exists", self._at)
        return NOTHING if newest is None else is_there(self._shown("exists"), lambda each: self._is_so(each, "exists"))

    def told(self, field: Field, entry: Shown, *, before: int | None = None) -> Any:
        """What the newest entry, and whatever was shown at once with it, tell of a field."""
        shown = self._shown(field.name)
        if len(shown) > 1:
            at_once = [each for each in beside(entry, shown) if self._is_so(each, field.name, before)]
            return told_by(field, at_once)
        return coerce(field, entry.value)

    def is_contradicted(self, field: Field) -> bool:
        """Whether the field is not known because it was shown in two ways."""
        if self._thing.is_ever_absent and self.is_there() is None:
            return True
        entry = self._ledger.latest_of(self._thing, self._entity, self._key, field.name, self._at)
        if entry is None or field is EXISTS:
            return False
        try:
            return isinstance(self.told(field, entry), OneOf)
        except ValueError:
            return False

    def may_be_settled(self, field: Field) -> bool:
        """Whether look-ups contradict one another, so that one made by itself would tell; not where one result does."""
        entry = self._ledger.latest_of(self._thing, self._entity, self._key, field.name, self._at)
        if entry is None or not self.is_contradicted(field):
            return False
        return len({each.as_of for each in beside(entry, self._shown(field.name))}) > 1

    def _shown(self, field: str) -> list[Shown]:
        at = self._at
        return [each for each in self._thing.shown(field) if each.delivered < at.start and each.agent == at.who]

    def _is_so(self, entry: Shown, field: str, before: int | None = None) -> bool:
        at, key = self._at, self._key
        before = at.step if before is None else before
        changes = self._ledger.changes
        return changes.last(self._entity.name, key, field, entry.as_of, before, known_at=at.step) is None


def may_be_settled(ledger: Ledger, entity: Entity, key: Key, field: str, at: CallRecord) -> bool:
    """Whether one more look-up would tell a fact that look-ups made at once told in two ways."""
    thing = ledger.thing(entity.name, key)
    named = EXISTS if field == "exists" else entity.fields[field]
    return thing is not None and Visible(ledger, thing, entity, key, at).may_be_settled(named)


def contradicted(ledger: Ledger, entity: Entity, key: Key, field: str, at: CallRecord) -> bool:
    """Whether a fact is not known to the judged call because it was shown in two ways."""
    thing = ledger.thing(entity.name, key)
    named = EXISTS if field == "exists" else entity.fields[field]
    return thing is not None and Visible(ledger, thing, entity, key, at).is_contradicted(named)


def _as_of(entry: Shown) -> int:
    return entry.as_of
