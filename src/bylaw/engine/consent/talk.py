"""What was said in a conversation, cut into exchanges: what the agent said, and what the user said to it."""

from bisect import bisect_right
from collections.abc import Sequence

from bylaw.engine.consent.mentions import Mentions
from bylaw.engine.consent.once import once
from bylaw.engine.consent.options import taken
from bylaw.engine.consent.proposal import Proposal, proposal
from bylaw.engine.consent.utterance import Utterance
from bylaw.facts.assent import UserAnswer, answer_in
from bylaw.trace.event import Event, Message


class Exchange:
    """What the agent said, and what the user said to it; read for what it means once, where anybody asks."""

    def __init__(
        self,
        start: int,
        proposal: tuple[Utterance, ...],
        answer_in: tuple[Utterance, ...],
        *,
        is_taken: bool = False,
    ) -> None:
        self.is_taken = is_taken
        """Whether the answer took one of several options by its number, and the others are left out."""
        self.start = start
        """How many utterances came before it."""
        self.proposal = proposal
        self.answer = answer_in

    @once
    def taken(self) -> "Exchange | None":
        """The same without the numbered options that the answer does not take; None where it takes none by number."""
        kept = taken(self.proposal, self.answer)
        return None if kept is None else Exchange(self.start, kept, self.answer, is_taken=True)

    @property
    def end(self) -> int:
        """How many utterances there are up to its own last one."""
        return self.start + len(self.proposal) + len(self.answer)

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


class Talk:
    """The messages of one conversation, each read at most once; `events` may grow while it is in use."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self._begin()

    def _begin(self) -> None:
        self._read = 0
        self._is_lost = False
        self._said: list[Utterance] = []
        self._agent: list[Utterance] = []
        """What the agent has said since the user's last answer."""
        self.exchanges: list[Exchange] = []
        self.mentions = Mentions(self._said)

    @property
    def is_lost(self) -> bool:
        """Whether it is not known what was said: some text, or any message at all, was not recorded."""
        return self._is_lost or not self._said

    def read(self, before: int) -> None:
        """Take in what was said before a step, and nothing after it."""
        if before < self._read:
            self._begin()
        end = min(before, len(self._events))
        for step in range(self._read, end):
            event = self._events[step]
            if isinstance(event, Message):
                if not event.captured:
                    self._is_lost = True
                elif event.text.strip():
                    self._hear(Utterance(step, event.by, event.text))
        self._read = end

    def _hear(self, each: Utterance) -> None:
        """A new exchange begins where the agent speaks again after the user."""
        self._said.append(each)
        if each.by != "user":
            self._agent.append(each)
        elif self._agent or not self.exchanges:
            self.exchanges.append(Exchange(len(self._said) - 1 - len(self._agent), tuple(self._agent), (each,)))
            self._agent = []
        else:
            last = self.exchanges[-1]
            self.exchanges[-1] = Exchange(last.start, last.proposal, (*last.answer, each))

    def place_of(self, utterance: int) -> int:
        """The place of the exchange that an utterance belongs to."""
        return bisect_right(self.exchanges, utterance, key=_start) - 1


def _start(exchange: Exchange) -> int:
    return exchange.start
