"""Splits a conversation into exchanges. Each consists of messages from the agent and the user's reply."""

import re
from collections.abc import Sequence
from functools import cached_property

from bylaw.consent.answer import begins_with_yes
from bylaw.consent.card import card_form
from bylaw.trace.event import Event, Message

Utterance = tuple[int, str]
"""A step and its text."""
_QUOTING = re.compile(r"`|^[ \t]*>", re.MULTILINE)
_LONGEST = 20_000
"""The maximum length, in characters, of a message in which cards count. Users do not read longer messages."""
_QUESTION = re.compile("[?\xbf\u037e\u055e\u061f\u1367\u2047-\u2049\u203d\u2e2e\ufe56\uff1f]")
"""Matches the question marks of all scripts."""


class Exchange:
    """The agent's messages since the user's previous reply, and the user's next reply."""

    def __init__(self, told: Sequence[Utterance], answer: Sequence[Utterance]) -> None:
        self.told = tuple(told)
        self.answer = list(answer)

    @property
    def told_at(self) -> int | None:
        return self.told[-1][0] if self.told else None

    @property
    def answered_at(self) -> int:
        return self.answer[-1][0]

    @property
    def answered_from(self) -> int:
        """The step of the first message of the reply. Only calls after it may use the answer."""
        return self.answer[0][0]

    @property
    def is_lone_yes(self) -> bool:
        """Whether a user message begins with a yes although the agent asked nothing."""
        return not self.told and any(begins_with_yes(text) for _, text in self.answer)

    @cached_property
    def closing(self) -> str:
        """The agent's last message on one line."""
        return " ".join(self.told[-1][1].split()) if self.told else ""

    @property
    def is_quoted(self) -> bool:
        """Whether the agent's last message contains a quotation or code, which somebody else may have written."""
        return _QUOTING.search(self.told[-1][1]) is not None if self.told else False

    @cached_property
    def shown(self) -> str:
        """The agent's last message, in the form in which cards are compared. Empty if it is too long."""
        return card_form(self.told[-1][1]) if self.told and len(self.told[-1][1]) <= _LONGEST else ""


class Talk:
    """The messages in one conversation. Events may be added to `events` later."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self._begin()

    def _begin(self) -> None:
        self._read = 0
        self._agent: list[Utterance] = []
        self._asked: int | None = None
        self.gap_at = -1
        self.is_lost = True
        """Whether the user's latest words are unknown, because nothing was recorded, or nothing after an unrecorded
        message.
        """
        self.exchanges: list[Exchange] = []

    @property
    def is_put(self) -> bool:
        """Whether the agent wrote before the user's last message. Always true after the first exchange."""
        return len(self.exchanges) > 1 or bool(self.exchanges and self.exchanges[0].told)

    def read(self, before: int) -> None:
        if before < self._read:
            self._begin()
        end = min(before, len(self._events))
        for step in range(self._read, end):
            event = self._events[step]
            if type(event) is Message:
                if not event.captured:
                    # The unrecorded message may have withdrawn an earlier answer. It does not affect later messages.
                    self.gap_at, self.is_lost = step, True
                    self._agent, self._asked, self.exchanges = [], None, []
                elif event.text.strip():
                    self._hear(step, event)
        self._read = end

    def time_of(self, step: int) -> float | None:
        return self._events[step].time

    def asked_since(self, step: int) -> int | None:
        """Return the step of the agent's last question after a given step. None if the user has replied to it."""
        return self._asked if self._asked is not None and self._asked > step else None

    def _hear(self, step: int, message: Message) -> None:
        each = (step, message.text)
        if message.by != "user":
            self._agent.append(each)
            if _QUESTION.search(message.text):
                self._asked = step
            return
        self.is_lost = self.is_lost and self.gap_at >= 0 and not self._agent
        if self._agent or not self.exchanges:
            self.exchanges.append(Exchange(self._agent, (each,)))
            self._agent, self._asked = [], None
        else:
            self.exchanges[-1].answer.append(each)
