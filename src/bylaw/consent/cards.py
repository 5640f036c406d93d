"""Finds the answers to cards and sentences without interpreting free text.

An answer either directly follows an agent message that ends with the exact text, or is reported by a host. It covers
one call and is valid until the user writes again.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from bylaw.consent.answer import (
    LONGEST,
    Said,
    Shown,
    Unclear,
    bare,
    begins_with_yes,
    is_courtesy,
    languages_of,
    said,
    why_unclear,
)
from bylaw.consent.card import CALL, CardWords, Terms, card_form, digest, what_matters
from bylaw.consent.talk import Exchange
from bylaw.facts.value import alike
from bylaw.trace.event import Call, Card, Confirmation, Event, Message

_HIDES = re.compile(
    r"<[!?/a-z]|!\[|~~|\]:\s|\]\((?:[^)]{0,300}[\"']|[^)]{300})|"
    r"[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\x00-\x08]",
    re.IGNORECASE | re.MULTILINE,
)
"""Matches markup that may hide text: tags, strike-through, links, image descriptions and invisible characters."""
_THANKS = r"thanks|thank you|thanks a lot|thank you (?:so|very) much"
_WITH = r"(?: you)?(?: with (?:that|this|it))?"
_COURTESIES = re.compile(
    rf"(?:hi|hello|hey)(?: there)?|good (?:morning|afternoon|evening|day)|{_THANKS}|"
    r"(?:thanks|thank you) for (?:waiting|your patience|that|the (?:details|information)|confirming)|"
    r"sure(?: thing)?|certainly|absolutely|of course|great|perfect|wonderful|excellent|okay|ok|alright|all right|"
    rf"understood|got it|no problem|(?:great|good) news|(?:i'm |i am )?(?:happy|glad) to help{_WITH}|"
    rf"i can (?:help|assist){_WITH}|(?:i'd|i would) be (?:happy|glad) to help{_WITH}|one moment(?: please)?|"
    r"you're welcome|my pleasure|please (?:confirm|check|review)(?: the (?:details|following))?|here are the details"
)
"""Phrases that may precede a card, because they cannot change its meaning."""
_AFTER = re.compile(rf"{_THANKS}|\(?yes ?/ ?no\)?|\(?yes or no\)?")
"""Phrases that may follow a card."""
_EITHER = re.compile(f"{_COURTESIES.pattern}|{_AFTER.pattern}")
_PHRASES = re.compile(r"[.,!:;\n\u2014]+|\s[-\u2013]\s")
_SMILES = "\U0001f60a\U0001f642\U0001f600\U0001f44b\U0001f64f\ufe0f"
_PLAINLY = str.maketrans(dict.fromkeys(f"{_SMILES}*_#", " ") | {"\u2019": "'"})
_ASKS = frozenset("?\u061f\u037e\uff1f")
_MARKS = " *_-#"
"""Characters that may surround a card."""
_END = 30
"""The number of characters at the end of a text by which possible cards are found."""
_SAMPLE = 2000
"""The number of characters in a message that are used to recognise its language."""
_BLANK = re.compile(r"\s{8,}")
_FAR, _WIDE = 8, 100
"""Users may miss text after more than this many blank lines or characters."""
_BESIDE = 1000
"""The maximum number of characters of other text in a message with a card. Users are unlikely to read more."""
SKEW = 60.0
"""Clocks differ, so an answer may appear to be this many seconds later than the call."""
_LAST = 50
"""The maximum number of exchanges in which to search for an answer, and of messages in one answer."""


class CardAnswer(Struct, frozen=True):
    """The user's answer to a card and its position in the conversation."""

    step: int
    yes: bool
    since: int
    """Only calls after this step may use the answer."""
    is_expired: bool = False
    """Whether this is a no to a card that has expired. The user may then be asked again, but an earlier yes stays
    invalid.
    """

    @property
    def order(self) -> int:
        """The step by which answers are ordered: the first message of a yes, the last message of a no. A no that comes
        during a yes therefore counts.
        """
        return self.since if self.yes else self.step


class CardStanding(Struct, frozen=True):
    card: Card
    answer: bool | None = None
    """The latest answer that the host reported."""
    used_by: int | None = None
    """The step of the latest such call that was allowed after the card was shown."""


def standing_of(events: Iterable[Event], card: str) -> CardStanding | None:
    """Return the state of the card with this id, or None if no such card was shown."""
    found: CardStanding | None = None
    made = ""
    for step, event in enumerate(events):
        if isinstance(event, Call):
            if event.card is not None and event.card.id == card:
                found = CardStanding(event.card) if found is None else found
                made = digest(event.tool, event.arguments)
            elif found is not None and not event.refused and digest(event.tool, event.arguments) == made:
                found = CardStanding(found.card, found.answer, step)
        elif isinstance(event, Message) and found is not None:
            answer = event.confirmation
            if answer is not None and answer.card == card:
                found = CardStanding(found.card, answer.yes, found.used_by)
    return found


def press_fault(events: Sequence[Event], step: int, answer: Confirmation, time: float | None, words: CardWords) -> str:
    """Return the reason why a yes, reported at a step, is invalid. Empty if it is valid.

    After the card, the user may have written a yes or a polite phrase. If the user wrote any other message, the report
    must say that the user had seen that message (`after`), and the answer must not be older than the message.
    """
    shown = next((at for at in range(step - 1, -1, -1) if _shows(events[at], answer.card)), step)
    messages = [at for at in range(step) if is_message(events[at])]
    others = [at for at in messages if at > shown and _is_other(events[at], words)]
    if not answer.yes or not others:
        return ""
    said = events[others[-1]]
    if any(_answer_in(events[at], words) == "no" for at in others):
        return f"the user said no after card `{answer.card}` was shown"
    if answer.after is None:
        return f"the user wrote something else after card `{answer.card}` was shown"
    if answer.after > len(messages):
        return f"`after` is {answer.after}, but the conversation has only {len(messages)} messages"
    if answer.after <= messages.index(others[-1]):
        return f"card `{answer.card}` was answered before the user's last message"
    if time is not None and said.time is not None and time < said.time:
        return f"`at` is earlier than message {answer.after}, which the user had already seen"
    return ""


def is_message(event: Event) -> bool:
    """Whether an event is a message, rather than a reported answer or a handover."""
    return isinstance(event, Message) and event.confirmation is None and event.handover is None


def has_other_message(events: Sequence[Event], since: int, before: int, words: CardWords) -> bool:
    """Whether the user wrote anything other than a yes or a polite phrase between two steps."""
    return any(_is_other(events[at], words) for at in range(since + 1, before))


def _shows(event: Event, card: str) -> bool:
    return isinstance(event, Call) and event.card is not None and event.card.id == card


def _is_other(event: Event, words: CardWords) -> bool:
    if not (isinstance(event, Message) and is_message(event) and event.by == "user"):
        return False
    return not event.captured or not (_answer_in(event, words) == "yes" or is_courtesy(event.text))


def _answer_in(event: Event, words: CardWords) -> Said:
    if not isinstance(event, Message) or len(event.text) > LONGEST:
        return "other"
    _, _, yes, no = _forms_of(words)
    return said(event.text, yes=yes, no=no, known=_languages_of(words) | _spoken_in(event))


class Put(Struct, frozen=True):
    digest: str
    card: str = ""
    sentences: Mapping[str, str] = {}
    """The pack's sentences for the call each with the part that the pack's author wrote."""
    title: str = ""
    """The part of the card that the pack's author wrote."""
    lifetime: float = 0.0
    """The number of seconds for which consent to a sentence is valid."""


class Cards:
    """The cards in a conversation and the user's answers. Events may be added to `events` later."""

    def __init__(self, events: Sequence[Event], words: CardWords, terms: Terms | None = None) -> None:
        self._events = events
        self._terms = terms or Terms()
        self._words = words
        self.question, self._heading, self._yes, self._no = _forms_of(words)
        self._written = _languages_of(words)
        """The languages of the pack, and those in which the user has written so far."""
        self._heard: list[Message] = []
        """User messages whose language is not known yet."""
        self._read = 0
        self._by_id: dict[str, Card] = {}
        self._texts: dict[str, set[str]] = {}
        self._last: dict[str, str] = {}
        self._digests: dict[str, set[str]] = {}
        self._expires: dict[str, list[tuple[int, float]]] = {}
        """The expiry times of cards by digest, each with the step at which the card was shown."""
        self._ends: dict[str, dict[int, set[str]]] = {}
        """The texts of cards, by their last characters and their length."""
        self._tools: set[str] = set()
        """Tools for which a card was shown in this conversation."""
        self._confirmed: dict[str, list[CardAnswer]] = {}
        self._known: set[int | None] = set()
        """Steps of messages that end with a card."""
        self._alike: dict[str, set[str]] = {}
        """Digests of cards, keyed by a form of the call that is equal for all spellings that a tool may treat as the
        same.
        """

    @property
    def _languages(self) -> frozenset[str]:
        while self._heard:
            self._written |= _spoken_in(self._heard.pop())
        return self._written

    @property
    def has_any(self) -> bool:
        return bool(self._texts)

    def texts_of(self, digest: str) -> Collection[str]:
        return self._texts.get(digest, ())

    def has_one_of(self, tool: str) -> bool:
        return tool in self._tools

    def is_changed(self, exchange: Exchange, put: Put) -> bool:
        """Whether the agent's last message contains a card for the call whose text was changed."""
        is_like = self.question in exchange.shown or bool(self._heading and self._heading in exchange.shown)
        return is_like and not any(text in exchange.shown for text in (put.card, *self.texts_of(put.digest)) if text)

    def answer(self, put: Put, exchanges: Sequence[Exchange], before: int, now: float | None) -> CardAnswer | None:
        """Return the answer that is valid for a call before a given step, at time `now`. None if there is no valid
        answer.
        """
        cards = {*self.texts_of(put.digest), put.card} - {""}
        texts = cards | {text for text in put.sentences if not _hidden(text)}
        reported = self._confirmed.get(put.digest, ())
        if not texts and not reported:
            return None
        found = [
            replace(each, is_expired=not each.yes and not self._is_valid(each, put.digest, now))
            for each in reported
            if each.step < before and (not each.yes or self._is_valid(each, put.digest, now))
        ]
        for exchange in islice(reversed(exchanges), _LAST):
            if exchange.told_at is None or (heard := self._said(exchange, put)) == "other":
                break
            if self._ends_with(exchange, texts):
                if heard == "yes" and not self._ends_with(exchange, texts - self._unfit(put)):
                    break
                is_card = bool(cards) and self._ends_with(exchange, cards)
                in_time = self._is_card_in_time if is_card else self._is_in_time
                is_over = not in_time(exchange, now, put)
                if heard == "no" or not is_over:
                    found.append(CardAnswer(exchange.answered_at, heard == "yes", exchange.answered_from, is_over))
                break
            if not self._ends_with_a_card(exchange):
                break
        last = max(found, key=lambda each: each.order, default=None)
        if last is None:
            return None
        if last.yes:
            # A yes may have been reported after a no that the user gave later.
            last = next((each for each in found if not each.yes and self._is_later(each, last)), last)
        for at, each in enumerate(reversed(exchanges)):
            if each.answered_at <= last.step:
                break
            if at == _LAST or self._takes_back(each, texts, put, last.step):
                return None
        return last

    def _unfit(self, put: Put) -> set[str]:
        own = {*self.texts_of(put.digest), put.card}
        last = self._last.get(put.digest, put.card)
        return {text for text in own if text != last or self._digests.get(text, set[str]()) - {put.digest}}

    def declined(
        self, call: Call, own: str, exchanges: Sequence[Exchange], before: int, now: float | None
    ) -> CardAnswer | None:
        """Return the user's last no to a card for another spelling of the call. `own` is the call's own digest."""
        if call.tool not in self._tools:
            return None
        same = self._alike.get(self._fold(call), set[str]())
        if same <= {own}:
            return None
        shown = {text for each in exchanges[-_LAST:] for text in self._shown_in(each.shown)}
        answered = {each for text in shown for each in self._digests[text]} | self._confirmed.keys()
        others = (each for each in answered if each in same and each != own)
        answers = (self.answer(Put(each), exchanges, before, now) for each in others)
        no = [each for each in answers if each is not None and not each.yes]
        return max(no, key=lambda each: each.order, default=None)

    def is_put_in(self, exchange: Exchange, put: Put) -> bool:
        """Whether the agent's last message asks about this call, with a card or a sentence."""
        return any(text and text in exchange.shown for text in (put.card, *self.texts_of(put.digest), *put.sentences))

    def why_unclear(self, exchange: Exchange) -> Unclear:
        return why_unclear("\n".join(text for _, text in exchange.answer), self._languages)

    def is_beside_words(self, exchange: Exchange, put: Put) -> bool:
        """Whether the agent's last message asks about this call, or has a card, next to other text that may change the
        meaning.
        """
        if not (put.card or put.sentences or self.has_any):
            return False
        message = exchange.shown
        texts = [text for text in (put.card, *put.sentences) if text and text in message]
        texts += self._shown_in(message)
        return bool(texts) and (misleads(message, texts) or _is_hidden(exchange, texts))

    def read(self, before: int) -> None:
        events = self._events
        for step in range(self._read, min(before, len(events))):
            event = events[step]
            if type(event) is Call:
                if event.card is not None:
                    self._by_id[event.card.id] = event.card
                    self._alike.setdefault(self._fold(event), set()).add(event.card.digest)
                    self._texts.setdefault(event.card.digest, set()).add(text := card_form(event.card.text))
                    self._last[event.card.digest] = text
                    if event.card.expires is not None:
                        self._expires.setdefault(event.card.digest, []).append((step, event.card.expires))
                    self._digests.setdefault(text, set()).add(event.card.digest)
                    self._ends.setdefault(text[-_END:], {}).setdefault(len(text), set()).add(text)
                    self._tools.add(event.tool)
            elif type(event) is Message and event.confirmation is None:
                if event.by == "user":
                    self._heard.append(event)
            elif type(event) is Message and event.confirmation is not None:
                card = self._by_id.get(event.confirmation.card)
                answer = CardAnswer(step, event.confirmation.yes, step)
                is_late = answer.yes and card is not None and _is_past(card.expires, event.time)
                if card is not None and not is_late and not self._fault(step, event):
                    self._confirmed.setdefault(card.digest, []).append(answer)
        self._read = max(self._read, min(before, len(events)))

    def _fault(self, step: int, press: Message) -> str:
        assert press.confirmation is not None
        return press_fault(self._events, step, press.confirmation, press.time, self._words)

    def _fold(self, call: Call) -> str:
        return repr((call.tool, alike(what_matters(call.arguments, self._terms))))

    def _shown_in(self, message: str) -> list[str]:
        found: set[str] = set()
        for end, by_length in self._ends.items():
            at = message.find(end)
            while at >= 0:
                at += len(end)
                found.update(
                    [text for long, texts in by_length.items() if (text := message[max(at - long, 0) : at]) in texts]
                )
                at = message.find(end, at)
        return list(found)

    def _is_valid(self, answer: CardAnswer, digest: str, now: float | None) -> bool:
        """Whether a reported answer was given to a card that is still valid at this time."""
        message = self._events[answer.step]
        assert isinstance(message, Message)
        assert message.confirmation is not None
        card = self._by_id[message.confirmation.card]
        if card.digest != digest or _is_past(card.expires, now):
            return False
        shown = card.expires - self._words.lifetime if card.expires is not None else None
        return not is_ahead(message.time, now) and not is_ahead(shown, now)

    def _is_in_time(self, exchange: Exchange, now: float | None, put: Put) -> bool:
        answered = self._events[exchange.answered_from].time
        if answered is None or now is None:
            return True
        return now - answered <= put.lifetime and not is_ahead(answered, now)

    def _is_card_in_time(self, exchange: Exchange, now: float | None, put: Put) -> bool:
        """Whether the card was valid when the user answered and when the call was made. Showing it again does not
        extend it.
        """
        assert exchange.told_at is not None
        told, answered = self._events[exchange.told_at].time, self._events[exchange.answered_from].time
        shown = reversed(self._expires.get(put.digest, list[tuple[int, float]]()))
        expires = next((end for step, end in shown if step < exchange.told_at), None)
        ends = expires, told + self._words.lifetime if told is not None else None
        if any(_is_past(end, time) for end in ends for time in (answered, now)):
            return False
        return not is_ahead(answered, now) and not is_ahead(told, now)

    def _is_later(self, one: CardAnswer, other: CardAnswer) -> bool:
        times = self._events[one.step].time, self._events[other.step].time
        return times[0] is not None and times[1] is not None and times[0] > times[1]

    def _takes_back(self, exchange: Exchange, texts: set[str], put: Put, since: int) -> bool:
        """Whether a later message withdraws the answer. Answers to other cards do not, nor do thanks directly after the
        answer.
        """
        has_told = exchange.told_at is not None and exchange.told_at > since
        if not has_told and all(is_courtesy(text) for step, text in exchange.answer if step > since):
            return False
        return self._said(exchange, put) == "other" or not (
            self._ends_with_a_card(exchange) or self._ends_with(exchange, texts, or_card=True)
        )

    def _said(self, exchange: Exchange, put: Put) -> Said:
        several = exchange.answer
        # A longer series of messages says more than yes.
        answer = "\n".join([text for _, text in several]) if len(several) <= _LAST else ""
        if len(answer) > LONGEST:
            return "other"
        heard = said(answer, yes=self._yes, no=self._no, known=self._languages)
        if heard == "yes" or (heard == "other" and not begins_with_yes(answer)):
            return heard
        texts = {text for text in (put.card, *self.texts_of(put.digest), *put.sentences) if text in exchange.shown}
        shown = [self._asked(text, put) for text in sorted(texts or self._shown_in(exchange.shown)) if text]
        return said(answer, tuple(shown), yes=self._yes, no=self._no, known=self._languages)

    def _asked(self, text: str, put: Put) -> Shown:
        for ask in map(card_form, self._words.asks):
            lead, _, end = ask.partition(CALL)
            if text in put.sentences and text.startswith(lead) and text.endswith(end):
                own = text[len(lead) : len(text) - len(end)]
                return Shown(own, languages_of(f"{lead} {end}"), put.sentences[text])
        own = text.removeprefix(self._heading).removesuffix(self.question).strip()
        return Shown(own, _languages_of(self._words), put.title)

    def _ends_with_a_card(self, exchange: Exchange) -> bool:
        if exchange.told_at not in self._known and self._ends_with(exchange, (), or_card=True):
            self._known.add(exchange.told_at)
        return exchange.told_at in self._known

    def _ends_with(self, exchange: Exchange, texts: Collection[str], *, or_card: bool = False) -> bool:
        """Whether the agent's last message ends with one of these texts or, with `or_card`, any card. Other cards may
        follow it.
        """
        message = exchange.shown
        wanted = [text for text in texts if text in message]
        cards = self._shown_in(message) if wanted or or_card else []
        if len(wanted) == 1 and message == wanted[0] and not any(_hidden(text) for _, text in exchange.told):
            # Fast path: the message usually contains only this text.
            return True
        shown = {*wanted, *cards}
        if not shown or misleads(message, shown) or _is_hidden(exchange, shown):
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


def _cut(message: str, text: str) -> str:
    return message[: message.rindex(text)].rstrip(_MARKS)


def _is_tail(message: str, text: str) -> bool:
    """Whether the text is at the end of a message, not quoted, and separate from other text."""
    place = message.rfind(text)
    if place < 0 or message[:place][-1:] not in _MARKS:
        return False
    after = message[place + len(text) :]
    return len(after) <= _BESIDE and _is_all(_AFTER, after)


def _is_hidden(exchange: Exchange, texts: Iterable[str]) -> bool:
    return sum(_hidden(text) for _, text in exchange.told) > sum(map(_hidden, texts))


def _hidden(text: str) -> int:
    far = sum(len(blank.splitlines()) > _FAR or len(blank) > _WIDE for blank in _BLANK.findall(text))
    return far + len(_HIDES.findall(text))


def misleads(message: str, cards: Iterable[str]) -> bool:
    """Whether the text around the cards contains more than polite phrases, so that it may change their meaning."""
    for text in sorted(cards, key=len, reverse=True):
        message = message.replace(text, " ")
    beside = message.strip()
    return len(beside) > _BESIDE or not _ASKS.isdisjoint(beside) or not _is_all(_EITHER, beside)


def _is_all(known: re.Pattern[str], text: str) -> bool:
    phrases = (" ".join(each.split()) for each in _PHRASES.split(text.translate(_PLAINLY).lower()))
    return all(known.fullmatch(each) or is_courtesy(each) for each in phrases if each.strip("-"))


def _spoken_in(message: Message) -> frozenset[str]:
    """Return the languages of a message. Two words are needed: because of "to" alone, the Malay no "tak" would count as
    a Polish yes.
    """
    return languages_of(message.text[:_SAMPLE], 2)


@lru_cache(maxsize=256)
def _forms_of(words: CardWords) -> tuple[str, str, frozenset[str], frozenset[str]]:
    yes, no = (frozenset(map(bare, some)) for some in (words.yes, words.no))
    return card_form(words.question), card_form(words.heading), yes, no


@lru_cache(maxsize=256)
def _languages_of(words: CardWords) -> frozenset[str]:
    return languages_of(f"{words.heading} {words.question}")


def is_ahead(time: float | None, now: float | None) -> bool:
    """Whether a time is so far in the future that different clocks cannot explain it."""
    return time is not None and now is not None and time > now + SKEW


def _is_past(expires: float | None, time: float | None) -> bool:
    return expires is not None and time is not None and time >= expires
