"""What was said in a conversation, cut into exchanges: what the agent said, and what the user said to it."""

import re
from collections.abc import Sequence
from functools import cached_property

from msgspec import Struct

from bylaw.facts.provenance import fold, spell
from bylaw.trace.event import Event, Message

_MARKUP = re.compile(r"[-*`\"']+")


class Utterance:
    """One message, folded once where anybody asks."""

    def __init__(self, step: int, by: str, text: str) -> None:
        self.step = step
        self.by = by
        self.text = text
        self._told: dict[tuple[type, str | float], bool] = {}

    @cached_property
    def folded(self) -> str:
        """The text with case and blanks made alike."""
        return fold(self.text)

    @cached_property
    def loose(self) -> str:
        """The same without hyphens and marks of emphasis, for words of a list."""
        return " ".join(_MARKUP.sub(" ", self.folded).split())

    def says(self, value: str | float) -> bool:
        """Whether it states a value in any usual form."""
        asked = (value.__class__, value)
        told = self._told.get(asked)
        if told is None:
            spelling = spell(value)
            told = self._told[asked] = spelling is not None and spelling.said_in(self.folded)
        return told


class Exchange(Struct, frozen=True, eq=False):
    """What the agent said, and what the user said to it."""

    proposal: tuple[Utterance, ...]
    answer: tuple[Utterance, ...]

    @property
    def proposed_at(self) -> int | None:
        """Step of the agent's last message in it."""
        return self.proposal[-1].step if self.proposal else None

    @property
    def answered_at(self) -> int:
        """Step of the user's last message in it."""
        return self.answer[-1].step


class Talk:
    """The messages of one conversation, each read at most once; `events` may grow while it is in use."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self._read = 0
        self._utterances: list[Utterance] = []
        self._lost: list[int] = []
        """Steps of messages whose text was not recorded."""

    def exchanges(self, before: int) -> list[Exchange]:
        """What was said before a step; a new exchange begins where the agent speaks again after the user."""
        self._take_in(before)
        found: list[Exchange] = []
        agent: list[Utterance] = []
        user: list[Utterance] = []
        for each in self._utterances:
            if each.step >= before:
                break
            if each.by == "user":
                user.append(each)
                continue
            if user:
                found.append(Exchange(tuple(agent), tuple(user)))
                agent, user = [], []
            agent.append(each)
        return [*found, Exchange(tuple(agent), tuple(user))] if user else found

    def is_lost(self, before: int) -> bool:
        """Whether it is not known what was said before a step: some text, or any message at all, was not recorded."""
        self._take_in(before)
        nothing = not self._utterances or self._utterances[0].step >= before
        return nothing or any(step < before for step in self._lost)

    def _take_in(self, before: int) -> None:
        for step in range(self._read, min(before, len(self._events))):
            event = self._events[step]
            if isinstance(event, Message):
                if not getattr(event, "captured", True):
                    self._lost.append(step)
                elif event.text.strip():
                    self._utterances.append(Utterance(step, event.by, event.text))
        self._read = max(self._read, min(before, len(self._events)))
