"""What was said in a conversation, cut into exchanges."""

from bisect import bisect_right
from collections.abc import Sequence

from bylaw.engine.consent.exchange import Exchange
from bylaw.engine.consent.said.mentions import Mentions
from bylaw.engine.consent.said.utterance import Utterance
from bylaw.trace.event import Event, Message


class Talk:
    """The messages of one conversation, each read at most once; `events` may grow while it is in use."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self._begin()

    def _begin(self) -> None:
        self._read = 0
        self.has_gap = False
        """Whether something was said before that was not recorded."""
        self._is_lost = False
        self._said: list[Utterance] = []
        self._agent: list[Utterance] = []
        """What the agent has said since the user's last answer."""
        self.exchanges: list[Exchange] = []
        self.mentions = Mentions(self._said)

    @property
    def is_lost(self) -> bool:
        """Whether it is not known what was said last: nothing was recorded, or nothing since a message that was not."""
        return self._is_lost or not self._said

    def read(self, before: int) -> None:
        """Take in what was said before a step, and nothing after it."""
        if before < self._read:
            self._begin()
        end = min(before, len(self._events))
        for step in range(self._read, end):
            event = self._events[step]
            if type(event) is Message:
                if not event.captured:
                    # What was put and answered before may have been taken back; what comes after stands by itself.
                    self.has_gap = self._is_lost = True
                    self._agent.clear()
                    self.exchanges.clear()
                elif event.text.strip():
                    self._hear(Utterance(step, event.by, event.text))
        self._read = end

    def _hear(self, each: Utterance) -> None:
        """A new exchange begins where the agent speaks again after the user."""
        self._said.append(each)
        if each.by != "user":
            self._agent.append(each)
        elif self._agent or not self.exchanges:
            self._is_lost = self._is_lost and not self._agent
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
