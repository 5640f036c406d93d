"""Requests that were taken, and may be sent again: each is answered once, and what it let run is not made twice."""

from collections.abc import Sequence

from msgspec.structs import replace

from bylaw.engine.conversation import Conversation
from bylaw.errors import UsageError
from bylaw.facts.schema import Schema
from bylaw.record.stop import Stop
from bylaw.shield.decision import Decision
from bylaw.shield.history import History, Named
from bylaw.shield.stopping import told
from bylaw.trace.event import Call

DONE_BEFORE = "Made before, and its result is known: do not make it again"
"""What is told of a call whose request comes again after its result."""


class TakenRequests:
    """Requests of one conversation, by the names that their senders gave them."""

    def __init__(self, history: History | None = None) -> None:
        self._taken: dict[str, tuple[str, list[Decision] | None]] = {}
        """The digest of each, and what was answered; None where the log has to be asked."""
        if history is not None:
            self.take(history)

    def take(self, history: History) -> None:
        """Those of a history."""
        for name, (digest, start) in history.requests.items():
            self._taken[name] = (digest, history.decisions[start:])

    def note(self, named: Named, decisions: list[Decision]) -> None:
        """One that was taken now. The answer to the last one alone is kept at hand."""
        if self._taken:
            last = next(reversed(self._taken))
            self._taken[last] = (self._taken[last][0], None)
        self._taken[named.name] = (named.digest, decisions)

    def knows(self, named: Named) -> bool:
        """Whether one of this name was taken."""
        return named.name in self._taken

    def answer(self, named: Named) -> Sequence[Decision] | None:
        """What was answered to a request; one that used the name for something else is refused."""
        digest, found = self._taken.get(named.name, ("", None))
        if digest and digest != named.digest:
            raise UsageError(
                f"request `{named.name}` was used for something else", hint="give each request a name of its own"
            )
        return found


def sent_again(decision: Decision, conversation: Conversation, schema: Schema, stop: Stop | None) -> Decision:
    """What was decided; and whether the call has been answered since, so that nobody makes it a second time."""
    if not decision.allowed:
        return decision
    made = [
        event
        for event in conversation.events
        if isinstance(event, Call) and not event.refused and _is_of(event, decision)
    ]
    waiting = [call for call in conversation.waiting() if _is_of(call, decision)]
    if len(waiting) == len(made):
        return decision if stop is None else replace(decision, allowed=False, to_agent=f"{told(stop)}.")
    tool = schema.tools.get(decision.tool)
    if tool is not None and tool.effect != "write":
        return replace(decision, is_over=True)
    return replace(decision, is_over=True, allowed=False, to_agent=f"{DONE_BEFORE} ({decision.tool}).")


def _is_of(call: Call, decision: Decision) -> bool:
    return call.tool == decision.tool and call.arguments == decision.arguments
