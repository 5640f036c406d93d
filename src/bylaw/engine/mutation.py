"""Changes to a live conversation, as data: what was said, reported or asked.

A mutation that is not written yet is applied again if another worker has gone on with the conversation meanwhile.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from bylaw.engine.conversation import Conversation
from bylaw.engine.door import one_waits
from bylaw.engine.judgement import Judgement


class Mutation(Struct, frozen=True):
    """One change: the method of a conversation that makes it, and the arguments it is given."""

    kind: Literal[
        "user", "agent", "messages", "result", "confirm", "vouch", "unheard", "assume_executed",
        "begin_turn", "resume_turn", "finish_turn",
    ]  # fmt: skip
    given: dict[str, Any] = {}

    @property
    def is_spoken(self) -> bool:
        """Whether it is said by or to whoever is vouched for."""
        return self.kind in ("user", "agent", "messages")

    def apply(self, conversation: Conversation) -> None:
        """Change a conversation; a result without an id is refused if it may answer several calls."""
        if self.kind == "result" and not self.given.get("id"):
            one_waits(conversation.waiting(), self.given.get("tool", ""))
        getattr(conversation, self.kind)(**self.given)


class AskedCall(Struct, frozen=True):
    """A call that the agent wants to make."""

    tool: str
    arguments: Mapping[str, Any] | str
    id: str = ""
    time: float | None = None
    agent: str = ""
    """The inner agent that makes it for the main one."""
    messages: Sequence[Any] | None = None
    """All messages so far, from a caller that keeps the history itself."""
    given_up: int | None = None
    """The step of the same call, asked for before, which is decided anew."""

    def judge(self, conversation: Conversation) -> Judgement:
        """What guards and rules say of it now."""
        if self.given_up is not None:
            conversation.give_up(self.given_up)
        if self.messages is not None:
            return conversation.asked(self.messages, self.tool, self.arguments, id=self.id, time=self.time)
        return conversation.call(self.tool, self.arguments, id=self.id, time=self.time, agent=self.agent)
