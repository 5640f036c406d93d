"""Consent: whether the user agreed to this very call before it was made. Certain, or open.

*Agreed*: a plain yes to a message that asks for leave, where every value that matters was told for this deed; or a
card's answer. *Not agreed*: only where structure proves it. *Open* otherwise: a guess is worse than a question.
Everything rests on events before the call's turn, so that no later event changes an answer.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from bylaw.consent.answer import figures
from bylaw.consent.argument import MOST, Argument, Terms, arguments
from bylaw.consent.card import Cards, CardWords, card_text, digest
from bylaw.consent.deed import Deed, Deeds, Leave
from bylaw.consent.finding import Basis, Consent, OpenConsent, Quote, Reason, Untold
from bylaw.consent.hearing import Hearing
from bylaw.consent.line import Asks
from bylaw.consent.not_agreed import why_not_agreed
from bylaw.consent.passage import Passage
from bylaw.consent.records import Records, plain_values
from bylaw.consent.requested import is_requested
from bylaw.consent.spending import SEVERAL, Writes, is_repeated, may_ask
from bylaw.consent.talk import Exchange, Talk
from bylaw.consent.told import untold
from bylaw.facts.call_record import CallRecord
from bylaw.facts.ledger import Ledger
from bylaw.facts.value import loose
from bylaw.text.number import numbers
from bylaw.trace.event import Call, Event

_BACK = 4
"""So many exchanges back a thing may have been named that the last one speaks of."""
_LEAVE: frozenset[Asks] = frozenset(("leave",))

_CHANGES = ("write", "unknown")
"""Effects of tools that a user may have to agree to."""


class Consents:
    """The consents of one conversation, found where a write asks for one; `events` may grow while it is in use."""

    def __init__(
        self,
        events: Sequence[Event],
        ledger: Ledger,
        terms: Terms | None = None,
        words: CardWords | None = None,
        deeds: Deeds | None = None,
    ) -> None:
        self._terms, self._words = terms or Terms(), words or CardWords()
        self._events = events
        self._cards = Cards(events, self._words)
        self._talk = Talk(events)
        self._records = Records(events)
        self._ledger = ledger
        self._writes = Writes(ledger, self._terms)
        self._deeds = deeds or Deeds(ledger.schema.tools)
        self._looked = 0
        self._asking: list[int] = []
        """Of so many events, the steps of calls that may have asked the user something."""

    def prepare(self, before: int) -> None:
        """Read what the last exchange before a step means, whatever the call that comes next."""
        self._talk.read(before)
        self._cards.read(before)
        self._records.read(before)
        self._records.read_marks()
        self._read_asking(before)
        for exchange in self._talk.exchanges[-1:]:
            exchange.read()
            heard = exchange.heard
            for passage in (heard.answer, heard.put, heard.bracketed):
                self._records.standing_in(passage)

    def find(self, call: CallRecord, basis: Basis = "told") -> Consent:
        """Whether the user agreed to a call."""
        self._talk.read(call.start)
        has_card = not call.call.fault and self._cards.may_be_answered(self._talk.exchanges, call.start)
        if has_card and (found := self._confirmed(call)) is not None:
            return found
        if self._talk.is_lost:
            return Consent(None, "unrecorded")
        found = self._found_in_talk(call, basis, has_card=has_card)
        if self._talk.has_gap and found.value is False and found.reason not in ("declined", "spent"):
            # What was put, or agreed to, may lie in what was not recorded.
            return Consent(None, "unrecorded")
        if found.value is False and (asked := self._asked_at(found, call.start)) is not None:
            return Consent(None, "unanswered", asked)
        return found

    def _asked_at(self, found: Consent, before: int) -> int | None:
        """Step of a question whose answer does not stand among the user's words: what a tool asked, or nobody answered
        here. After a no, or a yes that was spent, it is a later one."""
        since = {"declined": found.answered_at, "spent": found.spent_by}.get(found.reason)
        since = -1 if since is None else since
        asked = self._talk.asked_since(since)
        if asked is not None:
            return asked
        self._read_asking(before)
        at = bisect_left(self._asking, before) - 1
        return self._asking[at] if at >= 0 and self._asking[at] > since else None

    def _read_asking(self, before: int) -> None:
        """Look for calls that may have asked the user something."""
        tools = self._ledger.schema.tools
        for step in range(self._looked, before):
            call = self._events[step]
            if type(call) is Call and may_ask(call, tools.get(call.tool)):
                self._asking.append(step)
        self._looked = max(self._looked, before)

    def _found_in_talk(self, call: CallRecord, basis: Basis, *, has_card: bool) -> Consent:
        exchanges = self._talk.exchanges
        if not self._talk.is_put and basis != "requested":
            # Whatever its arguments are, nobody agreed where nothing was put; unless a yes shows that something was.
            if any(each.is_lone_yes for each in exchanges):
                return Consent(None, "unrecorded")
            return Consent(False, "never_put", None, exchanges[-1].answered_at if exchanges else None)
        if call.call.fault or not exchanges:
            return Consent(None, "unrecorded")
        last = exchanges[-1]
        spent = self._writes.spending(call, last.answered_from)
        if spent:
            if SEVERAL.search(last.raw):
                return self._found(None, "unread", last, spent_by=spent[0].step)
            if (sure := _surely(spent, call)) is None:
                return self._found(None, "perhaps_spent", last, spent_by=spent[0].step)
            return self._found(False, "spent", last, spent_by=sure.step)
        if has_card and self._cards.is_beside_words(last, self.card_text(call)):
            return self._found(None, "beside_card", last)
        given = arguments(call.tool, call.call.arguments, self._terms)
        if len(given) > MOST:
            # Nobody hears so many values, and so many are not read.
            return self._found(None, "untold", last, untold=(Untold(given[-1].top, given[-1].value, "never"),))
        return self._weighed(call, given, last, basis)

    def _confirmed(self, call: CallRecord) -> Consent | None:
        """What the answer to a card says; None where there is none."""
        made = call.call
        name = digest(made.tool, made.arguments)
        exchanges = self._talk.exchanges
        answer = self._cards.answer(name, self.card_text(call), exchanges, call.start, made.time)
        no = self._cards.declined(made.tool, made.arguments, exchanges, call.start, made.time)
        if no is not None and (answer is None or no.step > answer.step):
            # A no is to every spelling of a call, a yes to one.
            answer = no
        if answer is None:
            return None
        if not answer.yes:
            return Consent(False, "declined", None, answer.step)
        spent = self._writes.spending(call, answer.since)
        if not spent:
            return Consent(True, "confirmed", None, answer.step)
        sure = _surely(spent, call)
        if sure is None:
            return Consent(None, "perhaps_spent", None, answer.step, spent[0].step)
        return Consent(False, "spent", None, answer.step, sure.step)

    def card_text(self, call: CallRecord) -> str:
        """The call in plain words for the user; empty where it is too long to be read."""
        made = call.call
        return "" if made.fault else card_text(call.tool, made.tool, made.arguments, self._terms.spared, self._words)

    def _weighed(self, call: CallRecord, given: list[Argument], last: Exchange, basis: Basis) -> Consent:
        self._records.read(call.start)
        deed = self._deeds.of(call.call.tool)
        leave = Leave(call, given, self._deeds, self._records)
        if basis == "requested" and is_requested(last, given, deed, leave, self._records):
            return (
                self._found(None, "expired", last)
                if self._is_over(call, last)
                else self._found(True, "requested", last)
            )
        is_answered = self._is_answered(deed, last)
        found = self._answered(call, given, deed, leave, last) if is_answered else self._found(None, "unanswered", last)
        if found.value and self._is_over(call, last):
            found = self._found(None, "expired", last)
        if basis == "card" and found.value:
            return self._found(None, "no_card", last)
        is_put = found.reason in ("agreed", "untold") or (found.reason == "unread" and "leave" in last.put.asks)
        if basis == "requested" or is_put:
            return found
        why = why_not_agreed(self._talk, given, deed, self._records)
        return found if why is None else self._found(False, why, last)

    def _is_over(self, call: CallRecord, last: Exchange) -> bool:
        """Whether the user's words are too old for a call; where nobody knows when they were said, they are not."""
        said, now = self._talk.time_of(last.answered_at), call.call.time
        return said is not None and now is not None and now - said > self._terms.lifetime

    def _is_answered(self, deed: Deed, last: Exchange) -> bool:
        """Whether the user said yes to a question for leave, or to what the agent offered to do."""
        asks = last.put.asks
        if last.put.asks_leave or last.said != "yes":
            return last.put.asks_leave and last.said in ("yes", "echo")
        # To "which?" a yes is no answer, so it is one to the leave that was asked for beside it.
        is_leave = asks - {"which", "what"} == _LEAVE or (not asks and _offers(deed, last))
        first = tuple(line.words.split(maxsplit=1)[0] for line in last.put.questions)
        return is_leave or deed.is_called(first) or (bool(asks - {"what"}) and deed.stands_in(last.said_back.words))

    def _answered(self, call: CallRecord, given: list[Argument], deed: Deed, leave: Leave, last: Exchange) -> Consent:
        """What a plain yes to a message that asks for leave is worth."""
        since = self._talk.said_since(call.start, call.step)
        if (
            last.is_hidden
            or (since and (self._talk.adds_to(last, since) or deed.turns_away(since)))
            or _names_another(call, last)
            or not leave.is_asked_in(self._talk.exchanges)
        ):
            return self._found(None, "unread", last)
        if left := untold(self._hearing(call, given, deed, last)):
            named = tuple(Untold(each.name, each.value, why) for each, why in left)
            return self._found(None, "untold", last, untold=named)
        return self._found(True, "agreed", last)

    def _older(self) -> Iterator[Passage]:
        """What was said before the last exchange, the latest first, up to a question for leave after which the user
        may have asked for something else; after a gap nothing."""
        for each in () if self._talk.has_gap else self._talk.exchanges[-2 : -2 - _BACK : -1]:
            if "leave" in each.put.asks and each.said not in ("yes", "echo"):
                return
            yield each.whole

    def _hearing(self, call: CallRecord, given: list[Argument], deed: Deed, last: Exchange) -> Hearing:
        return Hearing(
            last.heard,
            given,
            self._records,
            deed=deed,
            older=self._older,
            now=call.call.time,
            is_met=self._is_met,
            is_clear=lambda: any(each.kind != "id" for each in given) or not self._is_put_again,
        )

    @property
    def _is_put_again(self) -> bool:
        """Whether leave was asked for in the exchange before, and not given: what is asked now may be another thing."""
        before = self._talk.exchanges[-2:]
        return len(before) > 1 and "leave" in before[0].put.asks and before[0].said not in ("yes", "echo")

    def _is_met(self, key: str) -> bool:
        """Whether the host vouches for a person, or anybody has called them by what a record of theirs holds."""
        if any(loose(str(value)) == key for value in self._ledger.vouched.values()):
            return True
        marks = self._records.marks_of(key)
        said = (each.whole for each in self._talk.exchanges)
        return any(each.place_of(key) >= 0 or not marks.isdisjoint(each.marks) for each in said)

    def _found(
        self,
        value: bool | None,
        reason: Reason,
        last: Exchange,
        *,
        spent_by: int | None = None,
        untold: tuple[Untold, ...] = (),
    ) -> Consent:
        put = tuple(_quotes(last.told)) if value is None else ()
        answered = tuple(_quotes(last.answer)) if value is None else ()
        return Consent(value, reason, last.told_at, last.answered_at, spent_by, untold, put, answered)


class Act(Protocol):
    """What is known of an act here."""

    @property
    def effect(self) -> str:
        """The called tool's effect; empty for a message."""
        ...


class ConsentWitness:
    """Follows one conversation, and says of its writes whether the user agreed to them.

    Nothing is read until a write asks; then each message and each result is read once.
    """

    def __init__(
        self,
        ledger: Ledger,
        basis: Basis = "told",
        terms: Terms | None = None,
        words: CardWords | None = None,
        deeds: Deeds | None = None,
    ) -> None:
        self._events: list[Event] = []
        self.words = words or CardWords()
        self._basis: Basis = basis
        self._consents = Consents(self._events, ledger, terms, self.words, deeds)
        self._found: tuple[CallRecord, int, Consent] | None = None
        """What was found last, for which call, after how many events: first it is asked whether, and then why."""

    def observe(self, step: int, event: Event) -> None:
        """Take in the next event; nothing is read yet."""
        assert step == len(self._events)
        self._events.append(event)

    def prepare(self) -> None:
        """Read what has been said, which a write that comes next will ask about."""
        self._consents.prepare(len(self._events))

    def ask(self, act: Act, record: CallRecord) -> bool | None:
        """Whether the user agreed to the call about to be observed; of acts that change nothing, no."""
        return act.effect in _CHANGES and self._find(record).value

    def tell(self, act: Act, record: CallRecord) -> dict[str, Any] | None:
        """Why this is thought so, as data."""
        return self._find(record).record() if act.effect in _CHANGES else None

    def question(self, act: Act, record: CallRecord) -> OpenConsent | None:
        """What is open of it, as a question for a model or a person; None where nothing is."""
        call = record.call
        return self._find(record).question(call.tool, call.arguments) if act.effect in _CHANGES else None

    def card_text(self, record: CallRecord) -> str:
        """The call in plain words, to be put to the user."""
        return self._consents.card_text(record)

    def _find(self, record: CallRecord) -> Consent:
        last = self._found
        if last is None or last[0] is not record or last[1] != len(self._events):
            last = self._found = (record, len(self._events), self._consents.find(record, self._basis))
        return last[2]


def _names_another(call: CallRecord, last: Exchange) -> bool:
    """Whether the answer has a number that neither the agent put nor the call holds: "Yes, make it 900"."""
    if not last.figures:
        return False
    values = [str(value).lower() for _, value in plain_values(call.call.arguments)]
    if last.figures - figures(" ".join(values)) - figures(last.raw):
        return True
    # What is a part of an id is no number: "Yes, 22" is not to AC-22.
    own = {each.value for each in last.said_back.numbers if last.said_back.words[each.start].isdigit()}
    return not own <= {each.value for told in (*values, last.raw) for each in numbers(told)}


def _surely(spent: Sequence[CallRecord], call: CallRecord) -> CallRecord | None:
    """The call that surely used an agreement up."""
    done = (each for each in spent if each.counts_at(call.step) and not each.is_doubtful())
    return next((each for each in done if is_repeated(each, call)), None)


def _offers(deed: Deed, last: Exchange) -> bool:
    """Whether the agent said that it would do this, and asked nothing: "I can cancel it for you."."""
    return any(deed.is_called(line.heads) for line in last.put.lines)


def _quotes(said: Sequence[tuple[int, str]]) -> list[Quote]:
    return [Quote(step, 0, len(text), text) for step, text in said]
