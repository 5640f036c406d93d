"""What was said in a conversation, cut into exchanges: what the agent said, and what the user said to it."""

import re
from collections.abc import Sequence

from bylaw.consent.answer import begins_with_yes
from bylaw.consent.card import card_form
from bylaw.text.once import once
from bylaw.trace.event import Event, Message

Utterance = tuple[int, str]
"""A step and what was said there."""
_QUOTING = re.compile(r"`|^[ \t]*>", re.MULTILINE)
_LONGEST = 20_000
"""Characters of a message with cards, at most: nobody reads more."""
_QUESTION = re.compile("[?\xbf\u037e\u055e\u061f\u1367\u2047-\u2049\u203d\u2e2e\ufe56\uff1f]")
"""The mark of a question, in any script that has one."""


class Exchange:
    """What the agent said since the user's last message, and the user's answer."""

    def __init__(self, told: Sequence[Utterance], answer: Sequence[Utterance]) -> None:
        self.told = tuple(told)
        self.answer = list(answer)

    @property
    def told_at(self) -> int | None:
        """Step of the agent's last message in it."""
        return self.told[-1][0] if self.told else None

    @property
    def answered_at(self) -> int:
        """Step of the user's last message in it."""
        return self.answer[-1][0]

    @property
    def answered_from(self) -> int:
        """Step of the user's first message in it: what is done after that spends the answer, whatever they add."""
        return self.answer[0][0]

    @property
    def is_lone_yes(self) -> bool:
        """Whether nothing was put that a yes is to: a message of the user's begins with one, all the same."""
        return not self.told and any(begins_with_yes(text) for _, text in self.answer)

    @property
    def is_asked(self) -> bool:
        """Whether the agent asked something in it."""
        return any(_QUESTION.search(text) for _, text in self.told)

    @once
    def closing(self) -> str:
        """The agent's last message in it, without what white space tells."""
        return " ".join(self.told[-1][1].split()) if self.told else ""

    @property
    def is_quoted(self) -> bool:
        """Whether the agent's last message has a quotation or code in it: a sentence there may be somebody else's."""
        return _QUOTING.search(self.told[-1][1]) is not None if self.told else False

    def may_have(self, word: str) -> bool:
        """Whether a word may stand in the agent's last message, as cards are compared: it does, marks aside."""
        return bool(self.told) and word in self.told[-1][1].replace("*", "").replace("`", "").replace("_", "")

    @once
    def shown(self) -> str:
        """The agent's last message in it, in the form in which cards are compared."""
        return card_form(self.told[-1][1]) if self.told and len(self.told[-1][1]) <= _LONGEST else ""


class Talk:
    """The messages of one conversation; `events` may grow while it is in use."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self._begin()

    def _begin(self) -> None:
        self._read = 0
        self._agent: list[Utterance] = []
        """What the agent has said since the user's last answer."""
        self._asked: int | None = None
        """Step of the last question in it."""
        self.gap_at = -1
        """Step of the last message that was not recorded."""
        self.is_lost = True
        """Whether it is not known what was said last: nothing of the user's was recorded, or nothing since a message
        that was not."""
        self.exchanges: list[Exchange] = []

    @property
    def is_put(self) -> bool:
        """Whether the agent had said anything before the user's last message; before the second exchange it has."""
        return len(self.exchanges) > 1 or bool(self.exchanges and self.exchanges[0].told)

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
                    self.gap_at, self.is_lost = step, True
                    self._agent, self._asked, self.exchanges = [], None, []
                elif event.text.strip():
                    self._hear(step, event)
        self._read = end

    def time_of(self, step: int) -> float | None:
        """When something was said, where anybody knows."""
        return self._events[step].time

    def asked_since(self, step: int) -> int | None:
        """Step of the last question after a step that the agent put and nobody answered in words."""
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
