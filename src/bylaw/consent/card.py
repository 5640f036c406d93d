"""Cards: a call in plain words put to the user, bound to its arguments by digest, answered without reading prose.

A card is answered in the talk, where the agent's message ends with its text, word for word, and the next user message
is the yes or the no; or the host shows it and reports the answer. Each answer is good for one call, and until the user
says something else.

The words come from the pack, the values from agents, tools and users, who may want to be believed: each stands on a
line of its own, in quotes unless it is one plain word, so that none of it reads like a line of the card.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct

from bylaw.consent.answer import figures, said_to_card, stems
from bylaw.consent.line import hidden
from bylaw.consent.put import new_words
from bylaw.consent.talk import Exchange, to_last_word
from bylaw.facts.value import alike
from bylaw.policy.tool import Tool
from bylaw.policy.verb import words_of
from bylaw.trace.event import Call, Card, Event, Message

_MISLEADS = re.compile(
    r"\?|\b(?:say|reply|answer)\b|<!--(?!.*-->)|<\w+[^>]*(?:hidden|display)|```|~~|\b(?:not?|nothing|never|none|ignore|disregard|pretend|test|example|"
    r"only|just|instead|cannot|[a-z]+n't|without|drill|rehears\w*|somebody|another \w+ was asked|imagine|suppose)\b"
)
"""What may hide a card, or take back what it says, where it stands before it."""

_ASKS = "?\u061f\u037e\uff1f"
_END = 30
"""So many characters at its end are enough to tell what may be a card."""


LIFETIME = 3600.0
"""Seconds for which a card is good, where the pack does not say."""
_LONGEST = 4000
"""Characters of a card at most: nobody reads more, and what was not read was not agreed to."""
_PLAIN = re.compile(r"[A-Za-z0-9](?:[\w.@/+:&-]{0,80}\w)?", re.ASCII)


class CardWords(Struct, frozen=True):
    """The words of a card in the language of the pack, and how long it is good."""

    heading: str = "Please confirm:"
    question: str = "Shall I do this? Please answer yes or no."
    yes: tuple[str, ...] = ()
    """Answers that mean yes, beside those in English; the first of them is how a card writes `true`."""
    no: tuple[str, ...] = ()
    lifetime: float = LIFETIME


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


def digest(tool: str, arguments: Mapping[str, Any]) -> str:
    """What binds a card to a call: the same for the same tool and arguments, in whatever order they stand."""
    told = json.dumps([tool, msgspec.to_builtins(dict(arguments))], sort_keys=True, ensure_ascii=True, default=str)
    return sha256(told.encode()).hexdigest()


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


class Cards:
    """The cards of one conversation, and what the user answered to them; `events` may grow while it is in use."""

    def __init__(self, events: Sequence[Event], words: CardWords) -> None:
        self._events = events
        self._words = words
        self._ends = {to_last_word(folded(words.question))[-_END:]}
        """How the cards of this conversation end, and those that nobody has put yet."""
        self._read = 0
        self._by_id: dict[str, Card] = {}
        self._texts: dict[str, set[str]] = {}
        """By digest, how its cards read."""
        self._confirmed: dict[str, list[CardAnswer]] = {}
        """By digest, what the host reported."""
        self._alike: dict[str, set[str]] = {}
        """By what tools may take for one call, the digests of its cards."""

    def may_be_answered(self, exchanges: Sequence[Exchange], before: int) -> bool:
        """Whether the host reported an answer before a step, or the agent's last message ends as cards do."""
        self.read(before)
        if self._confirmed or not exchanges:
            return bool(self._confirmed)
        return exchanges[-1].ending.endswith(tuple(self._ends))

    def answer(
        self, name: str, text: str, exchanges: Sequence[Exchange], before: int, now: float | None
    ) -> CardAnswer | None:
        """The answer that stands, before a step and at a time, to a card of this digest that reads so."""
        texts = self._texts.get(name, set[str]()) | ({folded(text)} if text else set[str]())
        found = [
            each for each in self._confirmed.get(name, ()) if each.step < before and self._is_good(each, name, now)
        ]
        for exchange in reversed(exchanges):
            if (said := self._said(exchange)) == "other" or exchange.told_at is None:
                break
            if self._ends_with(exchange, texts):
                if self._is_in_time(exchange.told_at, exchange.answered_at, now):
                    found.append(CardAnswer(exchange.answered_at, said == "yes", exchange.answered_from))
                break
            if not self._ends_with(exchange, self._every):
                break
        last = max(found, key=lambda each: each.step, default=None)
        if last is None or any(self._takes_back(each, texts) for each in exchanges if each.answered_at > last.step):
            return None
        return last

    def declined(
        self, tool: str, arguments: Mapping[str, Any], exchanges: Sequence[Exchange], before: int, now: float | None
    ) -> CardAnswer | None:
        """The last no that stands to a card of another spelling of a call."""
        others = self._alike.get(_fold(tool, arguments), set[str]()) - {digest(tool, arguments)}
        answers = (self.answer(each, "", exchanges, before, now) for each in others)
        said = [each for each in answers if each is not None and not each.yes]
        return max(said, key=lambda each: each.step, default=None)

    def is_beside_words(self, exchange: Exchange, text: str) -> bool:
        """Whether the agent's last message has a card, or this one, beside words that may take it back."""
        texts = self._every | ({folded(text)} if text else set[str]())
        message = exchange.closing
        return any(each in message for each in texts) and misleads(message, texts)

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
                    self._ends.add(to_last_word(text)[-_END:])
            elif type(event) is Message and event.confirmation is not None:
                card = self._by_id.get(event.confirmation.card)
                if card is not None and not _is_past(card.expires, event.time):
                    answer = CardAnswer(step, event.confirmation.yes, step)
                    self._confirmed.setdefault(card.digest, []).append(answer)
        self._read = max(self._read, min(before, len(events)))

    @property
    def _every(self) -> set[str]:
        return {text for texts in self._texts.values() for text in texts}

    def _is_good(self, answer: CardAnswer, name: str, now: float | None) -> bool:
        message = self._events[answer.step]
        assert isinstance(message, Message)
        assert message.confirmation is not None
        card = self._by_id.get(message.confirmation.card)
        return card is not None and card.digest == name and not _is_past(card.expires, now)

    def _is_in_time(self, told_at: int, answered_at: int, now: float | None) -> bool:
        """Whether a card that stood in a message was answered, and is used, while it was good."""
        told = self._events[told_at].time
        expires = told + self._words.lifetime if told is not None else None
        return not _is_past(expires, self._events[answered_at].time) and not _is_past(expires, now)

    def _takes_back(self, exchange: Exchange, texts: set[str]) -> bool:
        """Whether the user said something since that may take an answer back: all but answers to cards may."""
        return self._said(exchange) == "other" or not self._ends_with(exchange, self._every | texts)

    def _said(self, exchange: Exchange) -> Literal["yes", "no", "other"]:
        answer = "\n".join(text for _, text in exchange.answer)
        whole = _bare(answer)
        if whole in map(_bare, self._words.yes):
            # "Ja?" asks, in whatever language.
            return "other" if any(mark in answer for mark in _ASKS) else "yes"
        if whole in map(_bare, self._words.no):
            return "no"
        return said_to_card(answer, exchange.raw)

    def _ends_with(self, exchange: Exchange, texts: set[str]) -> bool:
        """Whether the agent's last message ends with one of these texts, or with it and other cards."""
        if not exchange.told or not texts:
            return False
        message = exchange.closing
        if misleads(message, texts | self._every):
            return False
        # What a card itself holds does not hide it.
        own = sum(hidden(text) for text in texts | self._every if text in message)
        if sum(hidden(text) for _, text in exchange.told) > own:
            return False
        while message:
            if any(_is_tail(message, text) for text in texts):
                return True
            other = next((text for text in self._every if _is_tail(message, text)), None)
            if other is None:
                return False
            message = _cut(message, other)
        return False


def _fold(tool: str, arguments: Mapping[str, Any]) -> str:
    return repr((tool, alike(arguments)))


def _cut(message: str, text: str) -> str:
    return message[: message.rindex(text)].rstrip()


def _is_tail(message: str, text: str) -> bool:
    """Whether a text stands at the end of a message: after it come no words."""
    place = message.rfind(text)
    return place >= 0 and not _has_words(message[place + len(text) :])


def misleads(message: str, cards: Iterable[str]) -> bool:
    """Whether what stands beside the cards of a message may hide them, or take back what they say: it has words that
    are not courtesies, of asking or on a card, in whatever language, or figures that are on none."""
    beside, shown = message, " ".join(cards := sorted(cards, key=len, reverse=True)).lower()
    for text in cards:
        beside = beside.replace(text, " ")
    beside = beside.lower()
    if not _has_words(beside):
        return _MISLEADS.search(beside) is not None
    is_new = bool(new_words(beside, stems(shown)) or figures(beside) - figures(shown))
    return is_new or _MISLEADS.search(beside) is not None


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


def card_text(
    tool: Tool | None, name: str, arguments: Mapping[str, Any], spared: frozenset[str], words: CardWords
) -> str:
    """The text of a card; empty where it would be too long to be read."""
    parameters = tool.parameters if tool is not None else {}
    lines = [f"{words.heading} {title_of(tool, name)}"]
    for key, value in arguments.items():
        if key not in spared:
            lines += [f"- {label}: {told}" for label, told in _told(key, value, parameters.get(key), words, spared)]
    lines.append(words.question)
    text = "\n".join(lines)
    return text if len(text) <= _LONGEST else ""


def title_of(tool: Tool | None, name: str) -> str:
    """What a tool does, in the pack's words or by its name."""
    return (tool.title if tool is not None else "") or _named(name)


def label_of(key: str, schema: Any) -> str:
    """What an argument is called, in the pack's words or by its name."""
    declared: Mapping[str, Any] = cast("Mapping[str, Any]", schema) if isinstance(schema, Mapping) else {}
    title = declared.get("title")
    return title if isinstance(title, str) and title else _named(key)


def _told(
    key: str, value: Any, schema: Any, words: CardWords, spared: frozenset[str], above: str = ""
) -> Iterator[tuple[str, str]]:
    """What an argument says, by its name in words; one without a value says nothing."""
    declared: Mapping[str, Any] = cast("Mapping[str, Any]", schema) if isinstance(schema, Mapping) else {}
    label = f"{above} {label_of(key, declared)}".strip()
    if isinstance(value, dict):
        fields: Any = declared.get("properties")
        known: Mapping[str, Any] = cast("Mapping[str, Any]", fields) if isinstance(fields, Mapping) else {}
        for inner, part in cast("dict[str, Any]", value).items():
            if inner not in spared:
                yield from _told(inner, part, known.get(inner), words, spared, label)
    elif isinstance(value, list):
        parts = cast("list[Any]", value)
        if any(isinstance(part, dict | list) for part in parts):
            for place, part in enumerate(parts, 1):
                yield from _told(str(place), part, declared.get("items"), words, spared, label)
        else:
            yield label, ", ".join(_shown(part, declared.get("items"), words) for part in parts) or "-"
    elif value is not None:
        yield label, _shown(value, declared, words)


def _shown(value: Any, schema: Any, words: CardWords) -> str:
    if isinstance(value, bool):
        return (words.yes or ("yes",))[0] if value else (words.no or ("no",))[0]
    text = str(value)
    if not isinstance(value, str) or _PLAIN.fullmatch(text):
        declared: Mapping[str, Any] = cast("Mapping[str, Any]", schema) if isinstance(schema, Mapping) else {}
        return text.replace("_", " ") if "enum" in declared else text
    return _quoted(text)


def _named(name: str) -> str:
    """A name of a tool or an argument in words; one that is none in quotes."""
    return " ".join(words_of(name)) if name.isidentifier() and name.isascii() and len(name) <= 80 else _quoted(name)


def _quoted(text: str) -> str:
    """A text in quotes on one line, every character in it to be seen."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in quoted)
