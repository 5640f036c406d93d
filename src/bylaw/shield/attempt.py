"""What is asked of a conversation at once, and the decisions that hold once they are written."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from bylaw.engine.conversation import Conversation
from bylaw.engine.judgement import Judgement
from bylaw.record.entry import Draft
from bylaw.shield.decision import Decision
from bylaw.shield.grounded import Beside
from bylaw.shield.history import Named

Happening = Callable[[Conversation], object]
Asking = Callable[[Conversation], Judgement]


class Wanted(Struct, frozen=True):
    """What is to happen and to be decided at once."""

    asked: Sequence[Asking]
    beside: Sequence[Beside] = ()
    """For each call, those that its turn makes after it."""
    first: Sequence[Happening] = ()
    """What happens before."""
    named: Named | None = None
    """The request that it is, where its sender gave it a name."""
    repeated: Sequence[Decision] = ()
    """Decisions from before on calls that are interrupted now, or go on."""


class Attempt(Struct, frozen=True):
    """Decisions that hold once they are written."""

    conversation: Conversation
    happened: int
    """How many of the happenings that were not written before are among the drafts."""
    decisions: list[Decision]
    drafts: list[Draft]
    events: int
    """How many events of the conversation are then in the log."""
