"""Splits a conversation into exchanges: messages from the agent and the reply from the user.

The module can also prove, by comparing words, that the agent never mentioned a call. It compares the words and numbers
from the agent with the call, the name of the tool, and the records that tools have shown. One match or one question
rules out the proof, so an agent that mentioned anything relevant is never accused.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any, cast

from bylaw.consent.answer import begins_with_yes, is_english
from bylaw.consent.card import card_form
from bylaw.facts.call_record import CallRecord
from bylaw.facts.value import leaves, loose
from bylaw.policy.verb import words_of
from bylaw.trace.event import Event, Message, Result

Utterance = tuple[int, str]
"""A step and its text."""
_QUOTING = re.compile(r"`|^[ \t]*>", re.MULTILINE)
_LONGEST = 20_000
"""The maximum length of a message with cards, in characters. Users do not read more."""
_QUESTION = re.compile("[?\xbf\u037e\u055e\u061f\u1367\u2047-\u2049\u203d\u2e2e\ufe56\uff1f]")
"""The question marks of all scripts."""


class Exchange:
    """The messages from the agent since the last reply of the user, and the next reply of the user."""

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
        """The step of the user's first message. Calls after this step use the answer, even if the user sends more
        messages.
        """
        return self.answer[0][0]

    @property
    def is_lone_yes(self) -> bool:
        """Whether a user message begins with a yes although the agent asked nothing."""
        return not self.told and any(begins_with_yes(text) for _, text in self.answer)

    @property
    def is_asked(self) -> bool:
        return any(_QUESTION.search(text) for _, text in self.told)

    @cached_property
    def closing(self) -> str:
        """The agent's last message on one line."""
        return " ".join(self.told[-1][1].split()) if self.told else ""

    @property
    def is_quoted(self) -> bool:
        """Whether the agent's last message contains a quotation or code, which another author may have written."""
        return _QUOTING.search(self.told[-1][1]) is not None if self.told else False

    def may_have(self, word: str) -> bool:
        """Whether the agent's last message may contain a word, ignoring formatting and punctuation."""
        return bool(self.told) and word in self.told[-1][1].replace("*", "").replace("`", "").replace("_", "")

    @cached_property
    def shown(self) -> str:
        """The agent's last message, normalised like a card."""
        return card_form(self.told[-1][1]) if self.told and len(self.told[-1][1]) <= _LONGEST else ""


class Talk:
    """The messages in one conversation. Events may be added to `events`."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self._begin()

    def _begin(self) -> None:
        self._read = 0
        self._agent: list[Utterance] = []
        self._asked: int | None = None
        self.gap_at = -1
        self.is_lost = True
        """Whether the latest words of the user are unknown, because no message was recorded, or none since an
        unrecorded one.
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
                    # An unrecorded message may have withdrawn an earlier answer. Later messages keep their meaning.
                    self.gap_at, self.is_lost = step, True
                    self._agent, self._asked, self.exchanges = [], None, []
                elif event.text.strip():
                    self._hear(step, event)
        self._read = end

    def time_of(self, step: int) -> float | None:
        return self._events[step].time

    def asked_since(self, step: int) -> int | None:
        """Return the step of the agent's last question after a given step, if the user has not replied to it."""
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


_WORD = re.compile(r"[^\W\d_]{2,}|\d+")
_FIGURE = re.compile(r"(?<![\w-])\d")
"""A number that is not part of a name. A message may write it as words, an amount, a date or a time."""
_IN_WORDS = re.compile(
    r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w{3,5}teen|"
    r"(?:twen|thir|for|fif|six|seven|eigh|nine)ty|hundred|thousand|million|dozen|half|quarter|couple|both|twice|once|first|second|third|fourth|fifth|"
    r"noon|midday|midnight|tonight|tomorrow|yesterday|weekend|(?:in the|this) (?:morning|afternoon|evening)|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|june|july|august|september|"
    r"october|november|december)s?\b"
)
_TOLD = "#"
_LEAST = 2
"""The minimum number of different common English words in a text that is recognised as English."""
_BEGIN = 5
_DEED = 3
"""The number of equal first letters that suggest the same action, as in "bag" and `add_baggage`."""
_OBJECTS = 400
_LONG = 200


class Named:
    """Everything that an agent has mentioned in one conversation. Events may be added to `events`.

    Each message and result is read once. Results are read only if the agent's words are not enough.
    """

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self._begin()

    def _begin(self) -> None:
        self._told: set[str] = set()
        self._is_english = True
        self._heard = self._read = 0
        """The number of exchanges and events read so far."""
        self._records: list[frozenset[str]] = []
        self._shown: dict[str, list[int]] = {}
        """The positions of the records that contain each value."""

    def is_nothing_of(self, call: CallRecord, given: dict[str, Any], exchanges: Sequence[Exchange]) -> bool:
        """Whether the conversation was in English and mentioned nothing about a call before the user's last message."""
        if len(exchanges) < self._heard or call.start < self._read:
            self._begin()
        last = exchanges[-1].closing
        if exchanges[-1].is_asked:
            # The user answered a question that code has not read.
            return False
        for value in given.values():
            if type(value) is str and value and value in last:
                # Usually, the agent's words are enough.
                return False
        values = [str(each) for each in leaves(given) if each is not None and not isinstance(each, bool)]
        things = [each for each in values if _is_thing(each)]
        if not things or begins_with_yes(exchanges[-1].answer[-1][1]):
            # A yes may answer a question with unknown wording, such as "Your bag is free. Shall I add it?"
            return False
        self._hear(exchanges)
        if not self._is_english or any(not self._told.isdisjoint(_shown(each)) for each in values):
            return False
        if _asks_for(call, exchanges[-1]):
            return False
        self._see(call.start)
        records = {at for each in values for at in self._shown.get(loose(each), ())}
        if any(not self._told.isdisjoint(self._records[at]) for at in records):
            return False
        # Other words may have mentioned an entity that no look-up has shown.
        return all(loose(each) in self._shown for each in things)

    def _hear(self, exchanges: Sequence[Exchange]) -> None:
        for exchange in exchanges[self._heard :]:
            for _, text in exchange.told:
                self._told |= _words(text)
                if _IN_WORDS.search(text.lower()):
                    self._told.add(_TOLD)
                self._is_english = self._is_english and is_english(text, _LEAST)
        self._heard = len(exchanges)

    def _see(self, before: int) -> None:
        for event in self._events[self._read : before]:
            for record in _records(event.value()) if type(event) is Result and event.captured else ():
                self._records.append(frozenset[str]().union(*map(_shown, record)))
                for value in {loose(each) for each in record}:
                    self._shown.setdefault(value, []).append(len(self._records) - 1)
        self._read = before


def _asks_for(call: CallRecord, last: Exchange) -> bool:
    """Whether the last answer from the user replied to a question about the action of the tool, such as "Shall I cancel
    it?".
    """
    tool = call.tool
    deed = _deed(call.call.tool, tool.title, tool.also_called) if tool is not None else _deed(call.call.tool, "", ())
    return any(not deed.isdisjoint({word[:_DEED] for word in _words(text)}) for _, text in last.told)


@lru_cache(maxsize=1024)
def _deed(name: str, title: str, also_called: tuple[str, ...]) -> frozenset[str]:
    words = frozenset[str]().union(*(_words(" ".join(words_of(each))) for each in (name, title, *also_called)))
    return frozenset([word[:_DEED] for word in words])


def _is_thing(value: str) -> bool:
    """Whether a value looks like an id: a single word that people do not say."""
    return len(value.split()) == 1 and not value.isdigit() and (not value.isalpha() or value.isupper())


def _shown(value: str) -> frozenset[str]:
    return _words(value) | {_TOLD} if _FIGURE.search(value) else _words(value)


def _words(text: str) -> frozenset[str]:
    """Return the stems of the words in a text, and its numbers without leading zeros."""
    return _short_words(text) if len(text) <= _LONG else _short_words.__wrapped__(text)


@lru_cache(maxsize=4096)
def _short_words(text: str) -> frozenset[str]:
    return frozenset([each[:_BEGIN] if each.isalpha() else each.lstrip("0") for each in _WORD.findall(text.lower())])


def _records(shown: Any) -> Iterator[list[str]]:
    """Yield the plain values of every object in a result as strings."""
    pending: list[Any] = [shown] if isinstance(shown, dict | list) else []
    left = _OBJECTS
    while pending and left:
        left -= 1
        part = pending.pop()
        parts: list[Any] = list(cast("dict[str, Any]", part).values()) if isinstance(part, dict) else part
        pending += [each for each in parts if isinstance(each, dict | list)]
        if isinstance(part, dict):
            listed = [member for each in parts if isinstance(each, list) for member in cast("list[Any]", each)]
            plain = [each for each in (*parts, *listed) if isinstance(each, str | int | float)]
            yield [text for each in plain if len(text := str(each)) <= _LONG]
