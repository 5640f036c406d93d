"""Which fields a write changes: the same look-up made before and after it, or what it shows itself of what was read.

Only a pair with one write in between tells anything, and a field is left out of a write's changes only where it was
seen unchanged more than once and never changed. What was never compared stays in.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from bylaw.facts.acceptance import failed
from bylaw.policy.tool import Effect
from bylaw.scan.effect import by_definition, defined_name, may_write
from bylaw.scan.shape import records_in
from bylaw.scan.thing import LoggedThing
from bylaw.trace import Call, Result, Trajectory

_OFTEN = 2
"""So many times a field must have stayed as it was."""

Compared = tuple[str, str, str, str]
"""Write, look-up, place of the record in the look-up's result, field."""


class Narrowed(Struct, frozen=True):
    """What before and after say of a write and one kind of thing."""

    changed: tuple[str, ...]
    kept: tuple[str, ...]
    """Seen unchanged, and often enough."""


class Differences:
    """Counts of fields that differed or not around a write, over conversations."""

    def __init__(self, effects: Mapping[str, Effect] | None = None) -> None:
        self._effects: Mapping[str, Effect] = effects or {}
        self._changed: Counter[Compared] = Counter()
        self._same: Counter[Compared] = Counter()

    def add(self, trajectory: Trajectory) -> None:
        """Compare what one conversation shows before and after its writes."""
        events = trajectory.events
        definitions = {defined_name(each): by_definition(each) for each in trajectory.tools}
        writes: list[Call] = []
        shown: dict[tuple[str, str], tuple[int, Call, Any]] = {}
        """By look-up and its arguments: how many writes came before, the call, and what it gave."""
        for event in events:
            if not isinstance(event, Result) or event.call is None or not event.captured:
                continue
            call = events[event.call]
            if not isinstance(call, Call) or call.fault or failed(event):
                continue
            value = event.value()
            if may_write(call.tool, self._effects, definitions):
                for count, look_up, before in list(shown.values()):
                    named = look_up.arguments.items() <= call.arguments.items() and bool(look_up.arguments)
                    if named and count == len(writes) and look_up.turn != call.turn:
                        self._compare_shown(call, look_up, before, value)
                writes.append(call)
                continue
            key = (call.tool, repr(call.arguments))
            if key in shown and shown[key][0] == len(writes) - 1 and _names(writes[-1], call):
                count, earlier, before = shown[key]
                # Side by side with the write nobody knows which came first.
                apart = writes[count].turn not in (call.turn, earlier.turn)
                self._compare(writes[count].tool, call.tool, before, value if apart else None)
            shown[key] = (len(writes), call, value)

    def _compare(self, write: str, look_up: str, before: Any, after: Any) -> None:
        then = dict(records_in(before))
        for place, now in records_in(after):
            if len(now) == len(then.get(place, ())) == 1:
                self._count(write, look_up, place, then[place][0], now[0])

    def _compare_shown(self, write: Call, look_up: Call, before: Any, after: Any) -> None:
        """Compare with the record in a write's own result that bears the names the look-up was made with."""
        told = [record for _, records in records_in(after) for record in records]
        own = [each for each in told if look_up.arguments.items() <= each.items()]
        for place, then in records_in(before):
            if len(own) == len(then) == 1:
                self._count(write.tool, look_up.tool, place, then[0], own[0])

    def _count(self, write: str, look_up: str, place: str, then: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        for name in then.keys() & now.keys():
            (self._same if then[name] == now[name] else self._changed)[write, look_up, place, name] += 1

    def of(self, write: str, thing: LoggedThing) -> Narrowed:
        """What is known of the fields of a thing that its own look-up shows."""
        shows = [(sight.tool, sight.each) for sight in thing.sights if "[*]" not in sight.each and not sight.fields]
        changed: Counter[str] = Counter()
        same: Counter[str] = Counter()
        for tool, place in shows:
            for name in thing.fields:
                changed[name] += self._changed[write, tool, place, name]
                same[name] += self._same[write, tool, place, name]
        fields = [name for name in thing.fields if name not in thing.key]
        return Narrowed(
            tuple(name for name in fields if changed[name]),
            tuple(name for name in fields if not changed[name] and same[name] >= _OFTEN),
        )


def _names(write: Call, look_up: Call) -> bool:
    """Whether the write names the thing that was looked up."""
    given = [value for value in write.arguments.values() if isinstance(value, str | int | float | bool)]
    wanted: Sequence[Any] = list(look_up.arguments.values())
    return bool(wanted) and all(value in given for value in wanted)
