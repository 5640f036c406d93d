"""What the agent said, and what the user said to it."""

from bylaw.engine.consent.answer.user_answer import UserAnswer, answer_in
from bylaw.engine.consent.once import once
from bylaw.engine.consent.put.options import taken
from bylaw.engine.consent.put.proposal import Proposal, proposal
from bylaw.engine.consent.said.utterance import Utterance


class Exchange:
    """One exchange; read for what it means once, where anybody asks."""

    def __init__(
        self,
        start: int,
        proposal: tuple[Utterance, ...],
        answer: tuple[Utterance, ...],
        *,
        end: int | None = None,
        left: Utterance | None = None,
    ) -> None:
        self.start = start
        """How many utterances came before it."""
        self.end = start + len(proposal) + len(answer) if end is None else end
        """How many utterances there are up to its own last one."""
        self.proposal = proposal
        self.answer = answer
        self.left = left
        """What was put and is left out, where the answer took one of several things by its place."""

    @once
    def taken(self) -> "Exchange | None":
        """The same without what the answer does not take; None where it takes nothing by its place."""
        kept = taken(self.proposal, self.answer)
        if kept is None:
            return None
        return Exchange(self.start, kept.proposal, kept.answer, end=self.end, left=kept.left)

    @property
    def proposed_at(self) -> int | None:
        """Step of the agent's last message in it."""
        return self.proposal[-1].step if self.proposal else None

    @property
    def answered_at(self) -> int:
        """Step of the user's last message in it."""
        return self.answer[-1].step

    @once
    def put(self) -> Proposal:
        """What the agent put to the user."""
        return proposal("\n".join(each.text for each in self.proposal))

    @once
    def said(self) -> UserAnswer:
        """What the user said to it."""
        return answer_in("\n".join(each.text for each in self.answer))

    @once
    def spoken(self) -> str:
        """The user's words in one, folded."""
        return " ".join(each.folded for each in self.answer)

    def read(self) -> None:
        """Read it for what it means before anybody asks."""
        meant = self.taken or self
        _ = meant.said, meant.spoken, meant.is_put, meant.put.folded
        for each in (*self.proposal, *self.answer):
            _ = each.folded, each.runs

    @property
    def is_put(self) -> bool:
        """Whether the agent put anything to the user at all."""
        return self.put.asks_leave or self.put.offers
