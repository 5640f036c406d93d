"""Determines whether the user agreed to exactly this call before the agent made it.

*Agreed*: a plain yes to a card or to a sentence from the pack. *Not agreed*: only if the events prove it. *Undecided*:
everything else, because asking the user is better than guessing. Only events before the turn of the call count, so
later events do not change the result.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bylaw.consent.card import (
    CardFacts,
    CardWords,
    Terms,
    card_facts,
    card_form,
    card_text,
    digest,
    sentences_in,
    title_of,
    what_matters,
)
from bylaw.consent.cards import CardAnswer, Cards, Put, is_ahead
from bylaw.consent.talk import Exchange, Talk
from bylaw.facts.call_record import CallRecord, could_be_same_call, is_readable, may_have_run
from bylaw.facts.ledger import Ledger
from bylaw.facts.value import alike, leaves
from bylaw.policy.tool import Tool
from bylaw.policy.verb import VERBS, words_of
from bylaw.rule.monitor import Act
from bylaw.trace.event import Call, Event

Basis = Literal["card", "told", "requested"]
"""What a policy accepts as consent.

`card`: an answer to a card. `told`: also a yes to a sentence or to the agent's own words. `requested`: also the user's
own request. A model or a reviewer judges requests and the agent's own words.
"""
Reason = Literal[
    "confirmed",
    "never_put", "spent", "declined",
    "unrecorded", "unanswered", "unread", "perhaps_spent", "no_card", "beside_card", "changed_card",
    "expired", "interrupted", "conditional", "other_language", "unclear", "unseen",
]  # fmt: skip
"""The reason for the result.

Agreed: `confirmed` (a plain yes to a card or sentence). Not agreed: `never_put` (the user was never asked), `spent` (an
earlier call used the yes) or `declined`. All other reasons mean undecided.
"""


class QuotedSpan(Struct, frozen=True):
    """A quotation from the conversation: the step of a message, and a range of characters in it."""

    step: int
    start: int
    end: int
    text: str


class OpenConsent(Struct, frozen=True):
    """An undecided consent, with the agent's question and the user's answer."""

    tool: str
    arguments: dict[str, Any]
    put: tuple[QuotedSpan, ...]
    answered: tuple[QuotedSpan, ...]
    spared: tuple[str, ...] = ()
    """Arguments that, according to the pack, need not be shown to the user."""


class Consent(Struct, frozen=True):
    """Whether the user agreed to a call, with the reason. The value None means undecided."""

    value: bool | None
    reason: Reason
    told_at: int | None = None
    answered_at: int | None = None
    spent_by: int | None = None
    """The step of the call that certainly or possibly used the consent."""
    put: tuple[QuotedSpan, ...] = ()
    answered: tuple[QuotedSpan, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return the reason as stored in `findings.jsonl`: with positions in messages, without words or values."""
        steps = {"told_at": self.told_at, "answered_at": self.answered_at, "spent_by": self.spent_by}
        told: dict[str, Any] = {"reason": self.reason} | {key: at for key, at in steps.items() if at is not None}
        for name, quotes in (("put", self.put), ("answered", self.answered)):
            if quotes:
                told[name] = [{"step": each.step, "start": each.start, "end": each.end} for each in quotes]
        return told

    def question(self, tool: str, arguments: dict[str, Any], spared: tuple[str, ...] = ()) -> OpenConsent | None:
        """Return the question for a model or a reviewer, or None if they could not answer it."""
        if self.value is not None or self.reason in ("perhaps_spent", "expired", "unseen"):
            # A model or a reviewer cannot know whether a call ran or what the facts are, and the pack says how long an
            # answer is valid.
            return None
        return OpenConsent(tool, msgspec.to_builtins(arguments), self.put, self.answered, spared)


_QUOTED = 50
"""The maximum number of messages to quote. If there are more, the latest are quoted."""
_RECENT = 4
"""The number of latest exchanges in which to search for a card without a plain answer."""
_CHANGES = ("write", "unknown")
"""The effects of tools for which the user's consent may be needed."""


class Consents:
    """The consents in one conversation, determined when needed. Events may be added to `events` later."""

    def __init__(
        self,
        events: Sequence[Event],
        ledger: Ledger,
        terms: Terms | None = None,
        words: CardWords | None = None,
    ) -> None:
        self._terms, self._words = terms or Terms(), words or CardWords()
        self._events = events
        self._cards = Cards(events, self._words, self._terms)
        self._talk = Talk(events)
        self._ledger = ledger
        self._writes = Writes(ledger, self._terms)
        self._looked = 0
        self._asking: list[int] = []
        """The steps of the calls, so far, that may have asked the user a question."""

    def find(self, call: CallRecord, basis: Basis = "told") -> Consent:
        self._talk.read(call.start)
        self._cards.read(call.start)
        facts = card_facts(call, self._ledger)
        found = self._find(call, basis, facts)
        # If a fact on the card is unknown, the user cannot have agreed to it.
        return found if facts.is_known or found.value is False else replace(found, value=None, reason="unseen")

    def _find(self, call: CallRecord, basis: Basis, facts: CardFacts) -> Consent:
        put = None if call.call.fault else self._put(call, basis, facts)
        found = self._confirmed(call, put) if put is not None else None
        if found is None:
            if self._talk.is_lost:
                return Consent(None, "unrecorded")
            found = self._found_in_talk(call, basis, put, facts)
            if self._talk.gap_at >= 0 and found.value is False and found.reason != "spent":
                # The question or the answer may be in a message that was not recorded.
                return Consent(None, "unrecorded")
        if found.value is False and (asked := self._asked_at(found, call.start)) is not None:
            return Consent(None, "unanswered", asked)
        return found

    def _put(self, call: CallRecord, basis: Basis, facts: CardFacts) -> Put:
        made, exchanges = call.call, self._talk.exchanges
        if not facts.is_known:
            return Put("")
        closing = exchanges[-1].closing if exchanges and basis != "card" and not exchanges[-1].is_quoted else ""
        told = sentences_in(closing, call.tool, made.arguments, self._terms, self._words, facts) if closing else ()
        has_card = bool(exchanges) and self._cards.question in exchanges[-1].shown
        return Put(
            digest(made.tool, made.arguments, facts, self._terms.spared) if self._cards.has_one_of(made.tool) else "",
            card_form(self.card_text(call, facts)) if has_card else "",
            {card_form(sentence): own for sentence, own in told},
            title_of(call.tool, made.tool),
            self._terms.lifetime,
        )

    def _asked_at(self, found: Consent, before: int) -> int | None:
        """Return the step of a later question by the agent or a tool that the user has not answered. None if there is
        none.
        """
        since = {"spent": found.spent_by, "declined": found.answered_at}.get(found.reason)
        since = -1 if since is None else since
        asked = self._talk.asked_since(since)
        if asked is not None:
            return asked
        self._read_asking(before)
        at = bisect_left(self._asking, before) - 1
        return self._asking[at] if at >= 0 and self._asking[at] > since else None

    def _may_be_to_a_tool(self, answer: CardAnswer) -> bool:
        exchange = next((each for each in reversed(self._talk.exchanges) if each.answered_at == answer.step), None)
        if exchange is None or exchange.told_at is None:
            return False
        self._read_asking(exchange.answered_from)
        at = bisect_left(self._asking, exchange.answered_from) - 1
        return at >= 0 and self._asking[at] > exchange.told_at

    def _read_asking(self, before: int) -> None:
        tools = self._ledger.schema.tools
        for step in range(self._looked, before):
            call = self._events[step]
            if type(call) is Call and may_ask(call, tools.get(call.tool)):
                self._asking.append(step)
        self._looked = max(self._looked, before)

    def _found_in_talk(self, call: CallRecord, basis: Basis, put: Put | None, facts: CardFacts) -> Consent:
        exchanges = self._talk.exchanges
        if not self._talk.is_put and basis != "requested" and not self._cards.has_any:
            # Without a question there is no consent. A yes without a recorded question shows that a question is missing
            # from the record.
            if any(each.is_lone_yes for each in exchanges):
                return Consent(None, "unrecorded")
            return Consent(False, "never_put", None, exchanges[-1].answered_at if exchanges else None)
        if put is None or not exchanges:
            return Consent(None, "unrecorded")
        last = exchanges[-1]
        spent = self._writes.spending(call, last.answered_from)
        if spent is not None:
            by, is_sure = spent
            if is_sure and self._is_put_in(by, last):
                return _found(False, "spent", last, spent_by=by.step)
            # Only a model or a person can say whether one yes covered several identical calls, such as "two vouchers of
            # 25.00".
            return _found(None, "unread" if is_sure else "perhaps_spent", last, spent_by=by.step)
        if self._cards.is_beside_words(last, put):
            return _found(None, "beside_card", last)
        if self._cards.has_one_of(call.call.tool) and self._cards.is_changed(last, put):
            return _found(None, "changed_card", last)
        unclear = self._why_unclear(call, put)
        if unclear is None and basis == "card":
            return _found(None, "no_card", last)
        return _found(None, "expired" if self._is_over(call, last) else unclear or "unread", last)

    def _why_unclear(self, call: CallRecord, put: Put) -> Reason | None:
        """Return why the answer to the call's card or sentence is not enough. None if neither was shown to the user."""
        *before, last = self._talk.exchanges[-_RECENT:]
        if self._cards.is_put_in(last, put):
            return self._cards.why_unclear(last)
        shown = [each for each in before if self._cards.is_put_in(each, put)]
        is_unused = bool(shown) and self._writes.spending(call, shown[-1].answered_from) is None
        return "interrupted" if is_unused else None

    def _confirmed(self, call: CallRecord, put: Put) -> Consent | None:
        made = call.call
        exchanges = self._talk.exchanges
        answer = self._cards.answer(put, exchanges, call.start, made.time)
        if answer is not None and answer.yes and self._may_be_to_a_tool(answer):
            answer = None
        no = self._cards.declined(made, put.digest, exchanges, call.start, made.time)
        if no is not None and (answer is None or no.order > answer.order):
            # A denial covers every spelling of a call, whereas a yes covers only one.
            answer = no
        if answer is None or (answer.yes and self._talk.gap_at > answer.step):
            # A message that was not recorded may have withdrawn a yes. It does not affect a no.
            return None
        if not answer.yes:
            reason, value = ("expired", None) if answer.is_expired else ("declined", False)
            return Consent(value, reason, None, answer.step)
        spent = self._writes.spending(call, answer.since)
        if spent is None:
            other = self._also_put_by(put, call, answer.since)
            if other is not None:
                return Consent(None, "perhaps_spent", None, answer.step, other)
            return Consent(True, "confirmed", None, answer.step)
        by, is_sure = spent
        if is_sure:
            return Consent(False, "spent", None, answer.step, by.step)
        return Consent(None, "perhaps_spent", None, answer.step, by.step)

    def _is_put_in(self, call: CallRecord, exchange: Exchange) -> bool:
        put = self._put(call, "told", card_facts(call, self._ledger))
        return bool(put.sentences) or (put.card != "" and put.card in exchange.shown)

    def _also_put_by(self, put: Put, call: CallRecord, since: int) -> int | None:
        """Return the step of another call since the yes for which the agent had asked with the same text. The yes may
        belong to that call.
        """
        own = {put.card, *put.sentences, *self._cards.texts_of(put.digest)} - {""}
        for write in reversed(self._ledger.writes):
            if write.step <= since:
                return None
            if write.step < call.step and may_have_run(write, call.step) and not write.call.fault:
                facts = card_facts(write, self._ledger)
                other = self._put(write, "told", facts)
                if own & {card_form(self.card_text(write, facts)), *other.sentences}:
                    return write.step
        return None

    def may_be_made(self, call: CallRecord, since: int) -> bool:
        """Whether a call after a step may have used the user's yes to this call."""
        return self._writes.spending(call, since) is not None

    def card_text(self, call: CallRecord, facts: CardFacts | None = None) -> str:
        """Return the text that shows the call to the user. Empty if it would be too long or a fact is unknown."""
        made = call.call
        if made.fault:
            return ""
        facts = card_facts(call, self._ledger) if facts is None else facts
        return card_text(call.tool, made.tool, made.arguments, self._terms.spared, self._words, facts)

    def _is_over(self, call: CallRecord, last: Exchange) -> bool:
        """Whether the user's words are too old for a call, or come after it. False if a time is unknown."""
        said, now = self._talk.time_of(last.answered_at), call.call.time
        return said is not None and now is not None and (now - said > self._terms.lifetime or is_ahead(said, now))


class ConsentWitness:
    """Determines whether the user agreed to each write. No events are read until a rule asks about a write."""

    def __init__(
        self,
        ledger: Ledger,
        basis: Basis = "told",
        terms: Terms | None = None,
        words: CardWords | None = None,
    ) -> None:
        self._events: list[Event] = []
        self.words = words or CardWords()
        self._basis: Basis = basis
        self._ledger = ledger
        self._terms = terms or Terms()
        self._consents = Consents(self._events, ledger, terms, self.words)
        self._found: tuple[CallRecord, int, Consent] | None = None
        """The latest result, with its call and the number of events, because the value and the reason are requested
        separately.
        """

    def observe(self, step: int, event: Event) -> None:
        assert step == len(self._events)
        self._events.append(event)

    def ask(self, act: Act, record: CallRecord) -> bool | None:
        """Return whether the user agreed to the next call. False if the call changes nothing, None if undecided."""
        return act.effect in _CHANGES and self._find(record).value

    def tell(self, act: Act, record: CallRecord) -> dict[str, Any] | None:
        return self._find(record).record() if act.effect in _CHANGES else None

    def question(self, act: Act, record: CallRecord) -> OpenConsent | None:
        """Return the question for a model or a reviewer, or None if they could not answer it."""
        if act.effect not in _CHANGES:
            return None
        call = record.call
        spared = tuple(name for name in call.arguments if name in self._terms.spared)
        shown = card_facts(record, self._ledger).plain()
        return self._find(record).question(call.tool, {**call.arguments, **shown}, spared)

    def card_text(self, record: CallRecord) -> str:
        return self._consents.card_text(record)

    def may_be_made(self, record: CallRecord, since: int) -> bool:
        return self._consents.may_be_made(record, since)

    @property
    def spared(self) -> frozenset[str]:
        """Arguments that no card shows. They are the same for all predicates of a pack."""
        return self._terms.spared

    def agreed_terms(self, call: Call) -> dict[str, Any]:
        """Return the arguments on which the user's consent depends."""
        return what_matters(call.arguments, self._terms)

    def _find(self, record: CallRecord) -> Consent:
        last = self._found
        if last is None or last[0] is not record or last[1] != len(self._events):
            last = self._found = (record, len(self._events), self._consents.find(record, self._basis))
        return last[2]


def _found(value: bool | None, reason: Reason, last: Exchange, *, spent_by: int | None = None) -> Consent:
    put = tuple(_quotes(last.told[-_QUOTED:])) if value is None else ()
    answered = tuple(_quotes(last.answer[-_QUOTED:])) if value is None else ()
    return Consent(value, reason, last.told_at, last.answered_at, spent_by, put, answered)


def _quotes(said: Sequence[tuple[int, str]]) -> list[QuotedSpan]:
    return [QuotedSpan(step, 0, len(text), text) for step, text in said]


class Writes:
    """The writes in one conversation that may have used a yes. Calls may be added to the ledger later."""

    def __init__(self, ledger: Ledger, terms: Terms) -> None:
        self._ledger = ledger
        self._terms = terms
        self._alike: dict[str, list[CallRecord]] = {}
        """Writes with readable arguments, by the arguments on which consent depends."""
        self._unreadable: dict[str, list[CallRecord]] = {}
        self._counted = 0

    def spending(self, call: CallRecord, since: int) -> tuple[CallRecord, bool] | None:
        """Return the call that certainly or possibly used the yes to this call, and whether it certainly did. None if
        no call did.
        """
        writes = self._ledger.writes
        if not writes or writes[-1].step <= since:
            return None
        for write in writes[self._counted :]:
            if is_readable(write.call, write.tool):
                self._alike.setdefault(self._agreed(write), []).append(write)
            else:
                self._unreadable.setdefault(write.call.tool, []).append(write)
            for action in write.may_be:
                self._unreadable.setdefault(action, []).append(write)
        self._counted = len(writes)
        made = self._between(self._alike.get(self._agreed(call), ()), since, call)
        for each in made:
            is_certain = each.counts_at(call.step) and not each.is_doubtful() and _is_repeated(each, call)
            if is_certain:
                return each, True
        unreadable = self._between(self._unreadable.get(call.call.tool, ()), since, call)
        made += [each for each in unreadable if could_be_same_call(each, call, self._ignored(each, call))]
        return (min(made, key=_step), False) if made else None

    def _ignored(self, *calls: CallRecord) -> frozenset[str]:
        return frozenset(
            name
            for each in calls
            for name in each.call.arguments.keys() - what_matters(each.call.arguments, self._terms).keys()
        )

    def _between(self, writes: Sequence[CallRecord], since: int, call: CallRecord) -> list[CallRecord]:
        later = islice(writes, bisect_right(writes, since, key=_step), None)
        return [each for each in later if each.step < call.step and may_have_run(each, call.step)]

    def _agreed(self, call: CallRecord) -> str:
        return repr((call.call.tool, alike(what_matters(call.call.arguments, self._terms))))


def _is_repeated(earlier: CallRecord, call: CallRecord) -> bool:
    return bool(alike(earlier.call.arguments) == alike(call.call.arguments))


def _step(write: CallRecord) -> int:
    return write.step


_ASKS = """
ask asks question questions confirm confirmation approve approval authorize authorise authorization authorisation
consent permission prompt prompts dialog dialogue input elicit elicitation clarify clarification
"""
_ASKING = frozenset(_ASKS.split())
_PEOPLE = "user users customer client human person people caller member guest patient"
_PERSONS = frozenset(_PEOPLE.split())
_MESSAGES = "message messages sms mms text email mail chat whatsapp notification reply form forms dialog dialogue popup"
_SENT = frozenset(_MESSAGES.split())
_SENDS = frozenset(("send", "sends", "notify", "show", "display", "present", "push", "post"))
_LOOKING = frozenset(("get", "list", "find", "search", "read", "fetch", "look", "view", "check"))
_ASKED = re.compile(r"[?\u061f\uff1f](?=[\"')\]*\s]|$)")


def may_ask(call: Call, tool: Tool | None) -> bool:
    """Whether a call may have asked the user a question, judging by its name, description or arguments.

    A known write asks only if its name mentions a person, so `confirm_booking` does not ask.
    """
    effect = "none" if tool is None else tool.effect
    is_asking = _is_asking(call.tool, tool.description if tool is not None and effect == "none" else "", effect)
    if is_asking is not None or call.refused:
        return bool(is_asking) and not call.refused
    return any(isinstance(value, str) and _ASKED.search(value) for value in leaves(call.arguments))


@lru_cache(maxsize=1024)
def _is_asking(name: str, description: str, effect: str, /) -> bool | None:
    """Whether every call to a tool asks the user a question. None if this depends on the arguments."""
    words, described = set(words_of(name)), set(re.findall("[a-z]+", description.lower()))
    if effect == "none" and any(VERBS.get(word) == "none" for word in words):
        # The user does not see the agent's thoughts and calculations.
        return False
    # `get_consent` and `list_approvals` are look-ups and ask nothing.
    is_looked_up = effect == "read" and not words.isdisjoint(_LOOKING)
    is_named = words & _ASKING and not is_looked_up and (effect != "write" or words & _PERSONS)
    is_sent = "notify" in words or (words & _SENT and (effect == "none" or words & _SENDS))
    return True if is_named or is_sent or (described & _ASKING and described & _PERSONS) else None
