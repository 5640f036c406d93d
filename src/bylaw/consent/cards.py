"""What the user answered to the calls that were put to them, without reading prose.

A card is answered in the talk, where the agent's message ends with its text, word for word, and the next user message
is the yes or the no; or the host shows it and reports the answer. A sentence of the pack's is answered in the talk
alone. Each answer is good for one call, and until the user says something else.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any

from msgspec import Struct

from bylaw.consent.answer import Said, said
from bylaw.consent.card import CardWords, digest
from bylaw.consent.talk import Exchange
from bylaw.facts.value import alike
from bylaw.trace.event import Call, Card, Event, Message

_MISLEADS = re.compile(
    r"\?|\b(?:say|reply|answer)\b|<!--(?!.*-->)|<\w+[^>]*(?:hidden|display)|```|~~|\b(?:not?|nothing|never|none|ignore|disregard|pretend|test|example|"
    r"only|just|instead|cannot|[a-z]+n't|without|drill|rehears\w*|somebody|another \w+ was asked|imagine|suppose)\b"
)
"""What may hide a card, or take back what it says, where it stands before it."""
_HIDES = re.compile(
    r"<[!?/a-z]|!\[|~~|```|\[[^\]]*\]:\s|\]\([^)]*[\"']|(?:\n[ \t]*){8,}|^[ \t]*>|"
    r"[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\x00-\x08]",
    re.IGNORECASE | re.MULTILINE,
)
"""What may keep words from being seen, or from being the agent's: tags, struck out, in a link or in place of a picture,
far below, in a quotation."""
_COURTEOUS = """
hi hello hey dear thanks thank you so much very sure certainly absolutely of course happy glad to help with that
this it great good perfect okay ok alright right all here is are the your my a i i'm i'll i've we can will shall let
me please confirm check look details summary following request for one moment before go ahead do and understood got
found have see welcome pleasure assist be
"""
_COURTESIES = frozenset(_COURTEOUS.split())
"""Words beside a card that turn nothing."""
_TOKEN = re.compile(r"[^\W_]+(?:'[a-z]+)?")
_END = 30
"""So many characters at its end are enough to tell what may be a card."""
_ASKS = "?\u061f\u037e\uff1f"


class CardAnswer(Struct, frozen=True):
    """The user's answer to a card, and where it was given."""

    step: int
    yes: bool
    since: int
    """What is done after this step spends it."""


class CardStanding(Struct, frozen=True):
    """How a card of a conversation stands."""

    card: Card
    answer: bool | None = None
    """What the host reported last."""
    used_by: int | None = None
    """Step of a call that was let run after the card was put."""


def standing_of(events: Iterable[Event], card: str) -> CardStanding | None:
    """How the card of this name stands; None where there is none."""
    found: CardStanding | None = None
    for step, event in enumerate(events):
        if isinstance(event, Call):
            if event.card is not None and event.card.id == card:
                found = CardStanding(event.card) if found is None else found
            elif found is not None and not event.refused and digest(event.tool, event.arguments) == found.card.digest:
                found = CardStanding(found.card, found.answer, step)
        elif isinstance(event, Message) and found is not None:
            answer = event.confirmation
            if answer is not None and answer.card == card:
                found = CardStanding(found.card, answer.yes, found.used_by)
    return found


class Put(Struct, frozen=True):
    """How one call is put to the user, by whatever name it goes on a card."""

    digest: str
    card: str = ""
    """The text of its card."""
    sentences: frozenset[str] = frozenset()
    """The sentences of the pack that ask for it; none where only a card counts."""
    title: str = ""
    lifetime: float = 0.0
    """Seconds for which a yes to a sentence is good."""


class Cards:
    """The cards of one conversation, and what the user answered to them; `events` may grow while it is in use."""

    def __init__(self, events: Sequence[Event], words: CardWords) -> None:
        self._events = events
        self._words = words
        self._question = folded(words.question)
        self._yes, self._no = (frozenset(map(_bare, some)) for some in (words.yes, words.no))
        self._read = 0
        self._by_id: dict[str, Card] = {}
        self._texts: dict[str, set[str]] = {}
        """By digest, how its cards read."""
        self._ends: set[str] = set()
        """How they end."""
        self._tools: set[str] = set()
        """What they are for."""
        self._confirmed: dict[str, list[CardAnswer]] = {}
        """By digest, what the host reported."""
        self._alike: dict[str, set[str]] = {}
        """By what tools may take for one call, the digests of its cards."""

    def has_one_of(self, tool: str) -> bool:
        """Whether a card was put for calls of a tool."""
        return tool in self._tools

    def may_stand_in(self, exchange: Exchange) -> bool:
        """Whether the agent's last message has the words that every card ends with."""
        return self._question in exchange.closing

    def answer(self, put: Put, exchanges: Sequence[Exchange], before: int, now: float | None) -> CardAnswer | None:
        """The answer that stands, before a step and at a time, to a call that is put so."""
        cards = self._texts.get(put.digest, set[str]()) | ({put.card} if put.card else set[str]())
        texts = cards | put.sentences
        reported = self._confirmed.get(put.digest, ())
        if not texts and not reported:
            return None
        found = [each for each in reported if each.step < before and self._is_good(each, put.digest, now)]
        for exchange in reversed(exchanges):
            if exchange.told_at is None or (heard := self._said(exchange, put.title)) == "other":
                break
            if self._ends_with(exchange, texts):
                is_card = bool(cards) and self._ends_with(exchange, cards)
                if self._is_in_time(exchange, now, None if is_card else put.lifetime):
                    found.append(CardAnswer(exchange.answered_at, heard == "yes", exchange.answered_from))
                break
            if not self._ends_with(exchange, (), or_card=True):
                break
        last = max(found, key=lambda each: each.step, default=None)
        if last is None:
            return None
        since = takewhile(lambda each: each.answered_at > last.step, reversed(exchanges))
        return None if any(self._takes_back(each, texts, put.title) for each in since) else last

    def declined(self, call: Call, exchanges: Sequence[Exchange], before: int, now: float | None) -> CardAnswer | None:
        """The last no that stands to a card of another spelling of a call."""
        if call.tool not in self._tools:
            return None
        own = digest(call.tool, call.arguments)
        others = self._alike.get(_fold(call.tool, call.arguments), set[str]()) - {own}
        answers = (self.answer(Put(each), exchanges, before, now) for each in others)
        no = [each for each in answers if each is not None and not each.yes]
        return max(no, key=lambda each: each.step, default=None)

    def is_beside_words(self, exchange: Exchange, put: Put) -> bool:
        """Whether the agent's last message has a card, or puts this call, beside words that may take it back."""
        message = exchange.closing
        texts = [text for text in (put.card, *put.sentences) if text and text in message]
        texts += self._shown_in(message)
        return bool(texts) and misleads(message, texts)

    def read(self, before: int) -> None:
        """Take in the events before a step."""
        events = self._events
        for step in range(self._read, min(before, len(events))):
            event = events[step]
            if type(event) is Call:
                if event.card is not None:
                    self._by_id[event.card.id] = event.card
                    self._alike.setdefault(_fold(event.tool, event.arguments), set()).add(event.card.digest)
                    self._texts.setdefault(event.card.digest, set()).add(text := folded(event.card.text))
                    self._ends.add(text[-_END:])
                    self._tools.add(event.tool)
            elif type(event) is Message and event.confirmation is not None:
                card = self._by_id.get(event.confirmation.card)
                if card is not None and not _is_past(card.expires, event.time):
                    answer = CardAnswer(step, event.confirmation.yes, step)
                    self._confirmed.setdefault(card.digest, []).append(answer)
        self._read = max(self._read, min(before, len(events)))

    def _shown_in(self, message: str) -> list[str]:
        """The cards of the conversation that stand in a message."""
        if not any(end in message for end in self._ends):
            return []
        return [text for texts in self._texts.values() for text in texts if text in message]

    def _is_good(self, answer: CardAnswer, name: str, now: float | None) -> bool:
        message = self._events[answer.step]
        assert isinstance(message, Message)
        assert message.confirmation is not None
        card = self._by_id.get(message.confirmation.card)
        return card is not None and card.digest == name and not _is_past(card.expires, now)

    def _is_in_time(self, exchange: Exchange, now: float | None, lifetime: float | None) -> bool:
        """Whether a card that stood in a message was answered, and is used, while it was good; a sentence is good for
        its lifetime after the answer."""
        assert exchange.told_at is not None
        answered = self._events[exchange.answered_at].time
        if lifetime is not None:
            return answered is None or now is None or now - answered <= lifetime
        told = self._events[exchange.told_at].time
        expires = told + self._words.lifetime if told is not None else None
        return not _is_past(expires, answered) and not _is_past(expires, now)

    def _takes_back(self, exchange: Exchange, texts: set[str], title: str) -> bool:
        """Whether the user said something since that may take an answer back: all but answers to cards may."""
        return self._said(exchange, title) == "other" or not self._ends_with(exchange, texts, or_card=True)

    def _said(self, exchange: Exchange, title: str) -> Said:
        answer = "\n".join(text for _, text in exchange.answer)
        whole = _bare(answer) if self._yes or self._no else ""
        if whole and whole in self._yes:
            # "Ja?" asks, in whatever language.
            return "other" if any(mark in answer for mark in _ASKS) else "yes"
        return "no" if whole and whole in self._no else said(answer, title)

    def _ends_with(self, exchange: Exchange, texts: Collection[str], *, or_card: bool = False) -> bool:
        """Whether the agent's last message ends with one of these texts, or with it and other cards; or with any card,
        where that is enough."""
        message = exchange.closing
        wanted = [text for text in texts if text in message] if message else []
        cards = self._shown_in(message) if wanted or or_card else []
        if len(wanted) == 1 and len(exchange.told) == 1 and exchange.told[0][1] == wanted[0]:
            # So it is mostly: nothing stands beside it.
            return True
        shown = {*wanted, *cards}
        if not shown or misleads(message, shown):
            return False
        # What a card itself holds does not hide it.
        if sum(_hidden(text) for _, text in exchange.told) > sum(map(_hidden, shown)):
            return False
        wanted = shown if or_card else wanted
        while message:
            if any(_is_tail(message, text) for text in wanted):
                return True
            other = next((text for text in cards if _is_tail(message, text)), None)
            if other is None:
                return False
            message = _cut(message, other)
        return False


def _fold(tool: str, arguments: Mapping[str, Any]) -> str:
    return repr((tool, alike(arguments)))


def _cut(message: str, text: str) -> str:
    return message[: message.rindex(text)].rstrip()


def _is_tail(message: str, text: str) -> bool:
    """Whether a text stands at the end of a message by itself: after it come no words."""
    place = message.rfind(text)
    return place >= 0 and not message[:place][-1:].isalnum() and not _has_words(message[place + len(text) :])


def _hidden(text: str) -> int:
    """In how many places a message may not be seen as it is read here."""
    return len(_HIDES.findall(text))


def misleads(message: str, cards: Iterable[str]) -> bool:
    """Whether what stands beside the cards of a message may hide them, or take back what they say: it has words that
    are neither courtesies nor on a card, in whatever language, or figures that are on none."""
    beside, cards = message, sorted(cards, key=len, reverse=True)
    for text in cards:
        beside = beside.replace(text, " ")
    beside = beside.lower()
    if _MISLEADS.search(beside) is not None:
        return True
    told = set(_TOKEN.findall(beside)) - _COURTESIES
    return bool(told) and not told <= set(_TOKEN.findall(" ".join(cards).lower()))


def _has_words(text: str) -> bool:
    return any(each.isalnum() for each in text)


def folded(text: str) -> str:
    """A text without what white space tells."""
    return " ".join(text.split())


def _bare(text: str) -> str:
    """A short answer without its case, marks and white space."""
    return " ".join("".join(each if each.isalnum() else " " for each in text.lower()).split())


def _is_past(expires: float | None, time: float | None) -> bool:
    return expires is not None and time is not None and time >= expires
