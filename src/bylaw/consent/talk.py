"""Splits a conversation into exchanges: the agent's messages and the user's reply to them."""

import re
from collections.abc import Sequence

from bylaw.consent.answer import begins_with_yes
from bylaw.consent.card import card_form
from bylaw.text.once import once
from bylaw.trace.event import Event, Message

Utterance = tuple[int, str]
"""A step and the text said there."""
_QUOTING = re.compile(r"`|^[ \t]*>", re.MULTILINE)
_LONGEST = 20_000
"""Maximum characters of a message with cards: nobody reads more."""
_QUESTION = re.compile("[?\xbf\u037e\u055e\u061f\u1367\u2047-\u2049\u203d\u2e2e\ufe56\uff1f]")
"""Question marks of all scripts."""


class Exchange:
    """The agent's messages since the user's last reply, and the user's reply."""

    def __init__(self, told: Sequence[Utterance], answer: Sequence[Utterance]) -> None:
        self.told = tuple(told)
        self.answer = list(answer)

    @property
    def told_at(self) -> int | None:
        """Step of the agent's last message in the exchange."""
        return self.told[-1][0] if self.told else None

    @property
    def answered_at(self) -> int:
        """Step of the user's last message in the exchange."""
        return self.answer[-1][0]

    @property
    def answered_from(self) -> int:
        """Step of the user's first message in the exchange; calls after it use up the answer, whatever
        the user adds.
        """
        return self.answer[0][0]

    @property
    def is_lone_yes(self) -> bool:
        """Whether a user message begins with a yes although nothing was asked."""
        return not self.told and any(begins_with_yes(text) for _, text in self.answer)

    @property
    def is_asked(self) -> bool:
        """Whether the agent asked something in the exchange."""
        return any(_QUESTION.search(text) for _, text in self.told)

    @once
    def closing(self) -> str:
        """The agent's last message in the exchange, without surrounding white space."""
        return " ".join(self.told[-1][1].split()) if self.told else ""

    @property
    def is_quoted(self) -> bool:
        """Whether the agent's last message contains a quotation or code, in which a sentence may be somebody else's."""
        return _QUOTING.search(self.told[-1][1]) is not None if self.told else False

    def may_have(self, word: str) -> bool:
        """Whether a word may occur in the agent's last message, normalised as cards are and ignoring punctuation."""
        return bool(self.told) and word in self.told[-1][1].replace("*", "").replace("`", "").replace("_", "")

    @once
    def shown(self) -> str:
        """The agent's last message in the exchange, normalised as cards are."""
        return card_form(self.told[-1][1]) if self.told and len(self.told[-1][1]) <= _LONGEST else ""


class Talk:
    """The messages of one conversation; `events` may grow while it is in use."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self._begin()

    def _begin(self) -> None:
        self._read = 0
        self._agent: list[Utterance] = []
        """The agent's messages since the user's last reply."""
        self._asked: int | None = None
        """Step of the last question in it."""
        self.gap_at = -1
        """Step of the last message that was not recorded."""
        self.is_lost = True
        """Whether the latest words are unknown: no user message was recorded, or none since one that was not."""
        self.exchanges: list[Exchange] = []

    @property
    def is_put(self) -> bool:
        """Whether the agent had said anything before the user's last message; always true after the first exchange."""
        return len(self.exchanges) > 1 or bool(self.exchanges and self.exchanges[0].told)

    def read(self, before: int) -> None:
        """Read the messages before a step."""
        if before < self._read:
            self._begin()
        end = min(before, len(self._events))
        for step in range(self._read, end):
            event = self._events[step]
            if type(event) is Message:
                if not event.captured:
                    # An unrecorded message may have withdrawn anything before it; later messages are independent of it.
                    self.gap_at, self.is_lost = step, True
                    self._agent, self._asked, self.exchanges = [], None, []
                elif event.text.strip():
                    self._hear(step, event)
        self._read = end

    def time_of(self, step: int) -> float | None:
        """When something was said, if known."""
        return self._events[step].time

    def asked_since(self, step: int) -> int | None:
        """Step of the agent's last question after a step that nobody answered in words."""
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
