"""What became of an agreement: spent by the accepted write it was given for, given back by a refusal."""

from collections.abc import Iterator

from bylaw.engine.consent.call.action import Action
from bylaw.engine.consent.call.deed import Deed, deeds, other_words
from bylaw.engine.consent.said.utterance import Utterance
from bylaw.engine.consent.shown.entry import scalars
from bylaw.facts.call_record import CallRecord
from bylaw.facts.ledger import Ledger
from bylaw.facts.result_field import result_text

_OF_A_PERSON = ("account", "profile", "default", "on file", "user")
"""Words for what is kept of a person, whatever they order."""


class Writes:
    """The writes of one conversation, by tool; the ledger may grow while it is in use."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._by_tool: dict[str, list[CallRecord]] = {}
        self._counted = 0
        self._actions: dict[int, Action] = {}

    def action(self, write: CallRecord) -> Action:
        """A write that was made, as consent looks at it."""
        found = self._actions.get(write.step)
        if found is None:
            found = self._actions[write.step] = Action(write)
        return found

    def take_in(self) -> None:
        """Count what the ledger has by now."""
        for write in self._ledger.writes[self._counted :]:
            self._by_tool.setdefault(write.call.tool, []).append(write)
        self._counted = len(self._ledger.writes)

    def are_made(self, after: int, before: int) -> bool:
        """Whether there was any write after a step and before another."""
        for write in reversed(self._ledger.writes):
            if write.step < before:
                return write.step > after
        return False

    def made(self, tool: str, after: int, before: int) -> Iterator[CallRecord]:
        """The writes by a tool after a step and before another, the latest first."""
        self.take_in()
        for other in reversed(self._by_tool.get(tool, ())):
            if other.step <= after:
                return
            if other.step < before:
                yield other

    def rivals(self, action: Action, *, on_the_same: bool = False) -> list[Deed]:
        """Words for what other tools do that could be given all that the call gives; or what it acts on, at least."""
        needed = {detail.top.rstrip("s") for detail in (action.goals if on_the_same else action.matters)}
        tools = self._ledger.schema.tools
        return [
            deeds(name, other_words(tools[name].also_called, tools[name].description))
            for name in self._ledger.schema.writing
            if name != action.tool and needed <= {each.rstrip("s") for each in tools[name].parameters}
        ]

    def refusals(self, action: Action, since: int) -> list[str]:
        """What the system said when it refused calls of the same tool since the user's answer."""
        made = self.made(action.tool, since, action.call.step)
        start = action.call.start
        return [result_text(each.result) for each in made if each.result is not None and not each.counts_at(start)]

    def spent_by(self, action: Action, agreement: int, doubted: tuple[Utterance, ...] = ()) -> int | None:
        """The step of a call, perhaps accepted, that has done what was agreed to, however it was paid for.

        Where it is in doubt that this one was told, the other may have done otherwise to the same thing; unless what
        was `doubted` tells all in which the two differ: "$700 today and $700 on the 20th".
        """
        step = action.call.step
        spending = [
            other.step
            for other in self.made(action.tool, agreement, step)
            if other.counts_at(step)
            and _may_do_the_same(other, action)
            and _does_the_same(self.action(other), action, doubted)
        ]
        return min(spending, default=None)

    def echoed_by(self, action: Action, agreement: int, told: tuple[Utterance, ...]) -> int | None:
        """The step of a call that has done all of this to a thing, where this does it for a person who was not named:
        an order has got the address that was told, now the account gets it."""
        writes = self._ledger.writes
        if action.targets or not action.goals or not writes or writes[-1].step <= agreement:
            return None
        values = {detail.value for detail in action.matters} - {detail.value for detail in action.goals}
        if not values or any(word in each.folded for word in _OF_A_PERSON for each in told):
            return None
        for write in reversed(writes):
            if write.step <= agreement:
                return None
            if write.step < action.call.step and write.call.tool != action.tool and write.counts_at(action.call.step):
                other = self.action(write)
                if other.targets and values <= {detail.value for detail in other.matters}:
                    return write.step
        return None


def _may_do_the_same(other: CallRecord, action: Action) -> bool:
    """Whether a call is given all that another acts on: this is soon read, and all that matters in it is not."""
    given = {str(value) for _, value in scalars(other.call.arguments)}
    return given.issuperset(action.targets & {str(detail.value) for detail in action.core})


def _does_the_same(other: Action, action: Action, doubted: tuple[Utterance, ...]) -> bool:
    if other.core == action.core:
        return True
    if not doubted or not action.targets or other.targets != action.targets:
        return False
    done = {detail.value for detail in other.matters}
    rest = [detail.value for detail in action.matters if detail.value not in done]
    return not rest or not all(any(each.says(value) for each in doubted) for value in rest)
