"""Determines which requested actions earlier calls may already have used. A request permits one call per tool and
target.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from typing import Any

from bylaw.engine.request.allowance import Deed, Slot, kinds_of
from bylaw.engine.request.keeping import Held
from bylaw.engine.request.values import parts_of
from bylaw.facts.call_record import CallRecord, is_readable, may_have_run
from bylaw.facts.ledger import Ledger
from bylaw.facts.value import alike
from bylaw.policy.tool import Tool
from bylaw.trace.event import Call

Target = tuple[str, ...]
Fitting = Callable[[CallRecord, int], Sequence[Held]]
"""Returns the requested actions that a call may perform, based on what was known just before the step."""


class Spending:
    """Finds the requested actions that no earlier call may have used."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._first: dict[str, int] = {}
        """The step of each tool's first write among the writes read so far. `_sorted` is the number of these writes."""
        self._sorted = 0
        self._made: dict[tuple[int, Target], list[CallRecord]] = {}
        """The writes that may have had a given target, keyed by action and target."""
        self._seen: dict[int, tuple[Deed, int]] = {}
        """Actions by Python id, each with the number of writes that were searched for it. Keeping the action keeps its
        id unique.
        """

    def has_earlier(self, at: CallRecord) -> bool:
        for made in self._ledger.writes[self._sorted :]:
            self._first.setdefault(made.call.tool, made.step)
        self._sorted = len(self._ledger.writes)
        return self._first.get(at.call.tool, at.step) < at.step

    def unused(self, at: CallRecord, tool: Tool, fitting: Fitting) -> list[Held]:
        """Return the requested actions that this call may use.

        If several messages request the call, the latest one counts. A call uses one action if it fits that action
        exactly. Otherwise, none of the actions that it may fit may have been used.
        """
        fits = fitting(at, at.start)
        exact = _exact(fits)
        steps = [self.asked_at(each, at.start) for each in exact or fits]
        since = max(steps, default=-1)
        asked = {id(each.deed): each for step, each in zip(steps, exact or fits, strict=True) if step == since}
        left = dict(asked)
        for made, deeds in self._earlier(at, tool, [each.deed for each in asked.values()], since):
            used, is_exact = deeds, False
            if is_readable(made.call, made.tool):
                then = fitting(made, made.start)
                is_exact = bool(_exact(then))
                perhaps = _exact(then) or [*then, *fitting(made, at.start)]
                used = deeds & {id(each.deed) for each in perhaps}
            if used:
                gone = [deed for deed in left if deed in used] or [*left]
                for deed in gone[:1] if is_exact else gone:
                    del left[deed]
        return [*left.values()] if exact or len(left) == len(asked) else []

    def _earlier(
        self, at: CallRecord, tool: Tool, deeds: Sequence[Deed], since: int
    ) -> Iterator[tuple[CallRecord, set[int]]]:
        """Yield earlier calls that may have run, each with the ids of the actions for which it may have had the target
        of this call.
        """
        found: dict[int, tuple[CallRecord, set[int]]] = {}
        for deed in deeds:
            for target in _targets(deed, tool, at.call):
                for made in self._of(deed, tool, target):
                    if since < made.step < at.step and may_have_run(made, at.step):
                        found.setdefault(made.step, (made, set()))[1].add(id(deed))
        yield from (found[step] for step in sorted(found))

    def _of(self, deed: Deed, tool: Tool, target: Target) -> list[CallRecord]:
        writes = self._ledger.writes
        _, seen = self._seen.get(id(deed), (deed, 0))
        for made in writes[seen:]:
            if made.call.tool == deed.tool:
                for each in _targets(deed, tool, made.call):
                    self._made.setdefault((id(deed), each), []).append(made)
        self._seen[id(deed)] = (deed, len(writes))
        return [*self._made.get((id(deed), target), ()), *self._made.get((id(deed), _ANY), ())]

    def asked_at(self, held: Held, before: int) -> int:
        found = start = 0
        for step, text in new_words(self._ledger.said):
            if step < before:
                end = start + len(text)
                if any(start < span.end <= end for span in held.asked):
                    found = step
                start = end + len("\n\n")
        return found


def new_words(said: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield the user's messages with their steps, without immediate repetitions.

    An immediate repetition is not a new request. The same words after a different message are.
    """
    last = ""
    for step, text in said:
        if text and text != last:
            last = text
            yield step, text


_ANY: Target = ("\0any",)
"""The target of a call with unreadable arguments, which may be any target."""


def _targets(deed: Deed, tool: Tool, call: Call) -> Iterator[Target]:
    """Yield the targets of a call for an action. If the action names only one target, all its calls have it."""
    if not is_readable(call, tool):
        yield _ANY
        return
    named = [slot.name for slot in deed.slots if _names_several(slot, kinds_of(tool).get(slot.name, "name"))]
    yield from product(*(_values(call.arguments.get(name)) for name in named))


def _names_several(slot: Slot, kind: str) -> bool:
    """Whether a request names several targets for an argument: it lists them, or asks for everything that matches."""
    named = {source.named for source in slot.sources}
    return kind in ("name", "address", "link") and (slot.every or len(slot.said) + len(named) > 1)


def _values(given: Any) -> list[str]:
    return [str(alike(each)) for each in parts_of(given)] or [""]


def _exact(fits: Iterable[Held]) -> list[Held]:
    return [each for each in fits if not each.objections]
