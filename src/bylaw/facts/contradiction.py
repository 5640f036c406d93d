"""What was shown in two ways at once: by one result, or by look-ups of which neither was asked for after the other's
answer had come. Which of them is so nobody can tell; nor whether a thing is there that was shown, and then was not.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from bylaw.facts.call_record import CallRecord
from bylaw.facts.entity import EXISTS, Entity, Field, Key, OneOf
from bylaw.facts.ledger import Ledger
from bylaw.facts.path import NOTHING
from bylaw.facts.shown import SeenThing, Shown, delivered_at, shown_before
from bylaw.facts.value import coerce, one_of


def beside(entry: Shown, shown: Sequence[Shown]) -> list[Shown]:
    """Those that were shown at once with an entry, which is one of them."""
    first = bisect_right(shown, entry.as_of, key=delivered_at)
    return [each for each in shown[first:] if each.as_of < entry.delivered]


def newest_of(shown: Sequence[Shown]) -> Shown:
    """The one of which the look-up was made last. What was delivered before that look-up is not newer."""
    newest = shown[-1]
    for each in reversed(shown):
        if each.delivered < newest.as_of:
            break
        if each.as_of >= newest.as_of:
            newest = each
    return newest


def newest_with(shown: Sequence[Shown], start: int, who: str) -> list[Shown]:
    """The one of which the look-up was made last, of those that an agent had been shown before a step, with those that
    were shown at once with it. Only the latest are looked at."""
    recent: list[Shown] = []
    newest: Shown | None = None
    for place in range(bisect_left(shown, start, key=delivered_at) - 1, -1, -1):
        each = shown[place]
        if newest is not None and each.delivered <= newest.as_of:
            break
        if each.agent == who:
            recent.append(each)
            newest = each if newest is None or each.as_of >= newest.as_of else newest
    return [] if newest is None else beside(newest, recent[::-1])


def told_by(field: Field, shown: Sequence[Shown]) -> Any:
    """The value where all tell the same, else `OneOf` what they tell; UNSEEN where one of them is a bare `null`."""
    return one_of(field, [each.value for each in shown])


def is_there(shown: Sequence[Shown], changed: int | None, is_current: Callable[[Shown], bool]) -> Any:
    """Whether a thing exists, by all that was shown of that and is so still; None where it was shown both ways.

    `changed` is the step of the last write that may have changed that: what was delivered before is not looked at.

    That it is there outweighs that it was not, once: it may have been made meanwhile. The other way round, where no
    write has taken it away, one of the two is wrong.
    """
    first = 0 if changed is None else bisect_right(shown, changed, key=delivered_at)
    current = [each for each in shown[first:] if is_current(each)]
    if not current:
        return NOTHING
    newest = newest_of(current)
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
        if newest is None:
            return NOTHING
        at = self._at
        changed = self._ledger.changes.between(self._entity.name, self._key, "exists", -1, at.step, known_at=at.step)
        return is_there(self._shown("exists"), changed, lambda each: self._is_so(each, "exists"))

    def told(self, field: Field, entry: Shown, *, before: int | None = None) -> Any:
        """What the newest entry, and whatever was shown at once with it, tell of a field."""
        at_once = beside(entry, shown_before(self._thing.shown(field.name), self._at.start))
        if len(at_once) > 1:
            who = self._at.who
            at_once = [each for each in at_once if each.agent == who and self._is_so(each, field.name, before)]
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
        return [each for each in shown_before(self._thing.shown(field), at.start) if each.agent == at.who]

    def _is_so(self, entry: Shown, field: str, before: int | None = None) -> bool:
        at, key = self._at, self._key
        before = at.step if before is None else before
        changes = self._ledger.changes
        return changes.last(self._entity.name, key, field, entry.as_of, before, known_at=at.step) is None


def may_be_settled(ledger: Ledger, entity: Entity, key: Key, field: str, at: CallRecord) -> bool:
    """Whether one more look-up would tell a fact that look-ups made at once told in two ways."""
    thing = ledger.thing(entity.name, key)
    return thing is not None and Visible(ledger, thing, entity, key, at).may_be_settled(entity.named(field))


def contradicted(ledger: Ledger, entity: Entity, key: Key, field: str, at: CallRecord) -> bool:
    """Whether a fact is not known to the judged call because it was shown in two ways."""
    thing = ledger.thing(entity.name, key)
    return thing is not None and Visible(ledger, thing, entity, key, at).is_contradicted(entity.named(field))
