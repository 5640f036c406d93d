"""Determines whether earlier calls may have used up a request. A request permits one call for each tool and target that
it names.
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
Candidates = Callable[[Call], Sequence[Held]]
"""Returns the requested actions that a call may perform, given the judged call."""


class Spending:
    """Counts, for each requested action, the calls that may have used it."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._first: dict[str, int] = {}
        """The step of each tool's first write, taken from the first `_sorted` writes."""
        self._sorted = 0
        self._made: dict[tuple[int, Target], list[CallRecord]] = {}
        """The writes that may have had a given target, by action and target."""
        self._seen: dict[int, tuple[Deed, int]] = {}
        """Actions keyed by Python id, each with the number of its writes in `_made`. Storing the action keeps Python
        from reusing its id.
        """

    def is_used_up(self, at: CallRecord, candidates: Candidates) -> bool:
        """Whether calls that ran or may have run have used up the request for this call.

        Of the messages that request the call, only the latest counts. Each action in it permits one call per target.
        """
        if at.tool is None or not self._has_earlier(at):
            return False
        asked = [(self.asked_at(each, at.start), each.deed) for each in candidates(at.call)]
        since = max((step for step, _ in asked), default=-1)
        deeds = {id(deed): deed for step, deed in asked if step == since}
        earlier = {
            made.step: made
            for deed in deeds.values()
            for target in _targets(deed, at.tool, at.call)
            for made in self._of(deed, at.tool, target)
            if since < made.step < at.step and may_have_run(made, at.step)
        }
        used = [made for made in earlier.values() if _may_have_used(made, deeds, candidates)]
        return len(used) >= len(deeds)

    def _has_earlier(self, at: CallRecord) -> bool:
        for made in self._ledger.writes[self._sorted :]:
            self._first.setdefault(made.call.tool, made.step)
        self._sorted = len(self._ledger.writes)
        return self._first.get(at.call.tool, at.step) < at.step

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
    """Yield the user's messages that add something, with their steps. An immediate repetition is not a new request.

    After other messages, the same words are a new request: a second "Forget it." may withdraw a different request.
    """
    last = ""
    for step, text in said:
        if text and text != last:
            last = text
            yield step, text


_ANY: Target = ("\0any",)
"""The target of a call with unreadable arguments. Such a call may have any target."""


def _targets(deed: Deed, tool: Tool, call: Call) -> Iterator[Target]:
    """Yield the targets of a call for an action. If the action names only one target, all its calls share it."""
    if not is_readable(call, tool):
        yield _ANY
        return
    named = [slot.name for slot in deed.slots if _names_several(slot, kinds_of(tool).get(slot.name, "name"))]
    yield from product(*(_values(call.arguments.get(name)) for name in named))


def _names_several(slot: Slot, kind: str) -> bool:
    """Whether a request names several targets for an argument, either one by one or as everything that matches."""
    named = {source.named for source in slot.sources}
    return kind in ("name", "address", "link") and (slot.every or len(slot.said) + len(named) > 1)


def _values(given: Any) -> list[str]:
    return [str(alike(each)) for each in parts_of(given)] or [""]


def _may_have_used(made: CallRecord, deeds: dict[int, Deed], candidates: Candidates) -> bool:
    return not is_readable(made.call, made.tool) or any(id(each.deed) in deeds for each in candidates(made.call))
