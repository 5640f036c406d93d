"""One judged call before its decision: what every policy says of it, after the look-ups that the shield made itself."""

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from msgspec.structs import force_setattr, replace

from bylaw.engine.asking import Answered
from bylaw.engine.conversation import Conversation
from bylaw.engine.judgement import Judgement
from bylaw.shield.deciding import Decider
from bylaw.shield.decision import Decision, Ground
from bylaw.shield.resolving import resolve

if TYPE_CHECKING:
    from bylaw.shield.shield import Shield

Arguments = Mapping[str, Any] | str
Beside = Sequence[tuple[str, Arguments]]


class Grounded:
    """A call that was judged in a conversation, with its grounds."""

    __slots__ = ("_decider", "_judgement", "_more", "_weighed", "grounds")

    def __init__(
        self,
        shield: "Shield",
        decider: Decider,
        conversation: Conversation,
        judgement: Judgement,
        *,
        context: Mapping[str, Any] | None = None,
        lacks: str = "",
        beside: Beside = (),
    ) -> None:
        """`lacks` says why what happened before is not known; `beside` are the calls that its turn makes after it."""
        weighed = conversation.weigh() if decider.must_weigh(judgement) else None
        grounds: Sequence[Ground] = decider.grounds(judgement, conversation.ledger, lacks, weighed)
        more: dict[str, Any] = {}
        if decider.resolves and shield.tools is not None and not lacks:
            found, resolved = resolve(decider, judgement, grounds, conversation.since(0), context, shield.tools)
            if resolved:
                more["resolved"], more["evidence"] = resolved, tuple(grounds)
            grounds = found
        if beside:
            tool = judgement.made.call.tool
            grounds = [*(decider.of_shape(each, tool) for each in conversation.beside(beside)), *grounds]
        self.grounds = grounds
        self._decider, self._judgement, self._weighed, self._more = decider, judgement, weighed, more

    def decision(self, name: str, grounds: Sequence[Ground], approval: str = "") -> Decision:
        """The decision on these grounds, which a person may have changed."""
        found = self._decider.decide(self._judgement, grounds, name, approval, self._weighed)
        return replace(found, **self._more) if self._more else found


def timed(decision: Decision, answered: tuple[Answered, ...], started: float) -> Decision:
    """The decision, which nobody has seen yet, with what a model was asked for it, and the time since `started`."""
    if answered:
        queries = sum([each.queries for each in answered])
        decision = replace(decision, answered=answered, model_queries=queries)
    force_setattr(decision, "seconds", perf_counter() - started)
    return decision
