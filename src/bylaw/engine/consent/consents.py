"""Consent: whether the user agreed to this very call before it was made.

The agent told the action, the user agreed in a later message, and nothing that matters in the call differs from what
was told or chosen. A consent is spent by the accepted write it was given for; a refusal gives it back. What code cannot
tell is None. Everything rests on events before the call's turn, so that no later event changes an answer.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from bylaw.engine.consent.agreement import about, is_held, is_taken_up, speaks_of
from bylaw.engine.consent.call.action import Action
from bylaw.engine.consent.consent import Basis, Consent
from bylaw.engine.consent.doubt import puts
from bylaw.engine.consent.exchange import Exchange
from bylaw.engine.consent.shown.means import Wallet
from bylaw.engine.consent.shown.records import Records
from bylaw.engine.consent.spending import Writes
from bylaw.engine.consent.standing import Standing, leaves_open, withdraws
from bylaw.engine.consent.talk import Talk
from bylaw.engine.consent.told.hearing import Hearing
from bylaw.engine.consent.told.told import lacks
from bylaw.engine.consent.weighing import Weighing
from bylaw.facts.call_record import CallRecord
from bylaw.facts.ledger import Ledger
from bylaw.trace.event import Event

_CHAIN = 4
"""So many exchanges may lie between a proposal and a user who takes it up."""
_RECENT = 8
"""So many exchanges before the last may have agreed to a call; of older ones, those that name what it acts on."""


class Consents:
    """The consents of one conversation, found where a write asks for one; `events` may grow while it is in use."""

    def __init__(self, events: Sequence[Event], ledger: Ledger) -> None:
        self._talk = Talk(events)
        self._records = Records(events)
        self._wallet = Wallet(self._records)
        self._writes = Writes(ledger)

    def follow(self, before: int) -> None:
        """Take in what came before a step, so that a question about a later call has only the rest to read."""
        self._talk.read(before)
        self._talk.mentions.take_in()
        self._records.take_in(before)
        self._writes.take_in()

    def prepare(self, before: int) -> None:
        """Read what the last exchange before a step means, whatever the call that comes next."""
        self.follow(before)
        for exchange in self._talk.exchanges[-1:]:
            exchange.read()

    def find(self, call: CallRecord, basis: Basis = "told") -> Consent:
        """Whether the user agreed to a call."""
        self._talk.read(call.start)
        if self._talk.is_lost:
            return Consent(None, "unrecorded")
        exchanges = self._talk.exchanges
        if not exchanges:
            return Consent(False, "none")
        if call.call.fault and (basis == "requested" or any(each.is_put for each in exchanges)):
            # Whatever its arguments are, nobody agreed where nothing was put.
            return Consent(None, "unrecorded")
        action = Action(call)
        # After a gap nothing counts but the last thing that was put and answered.
        last = exchanges[-1]
        found = self._weighing(action, last, None).consent() if self._talk.has_gap else self._agreement(action)
        if basis == "requested" and found.value is not True and found.reason in ("requested", "differs", "unclear"):
            found = self._request(action)
        if self._talk.has_gap and found.value is False and found.reason not in ("held", "spent"):
            # What was put, or agreed to, may lie in what was not recorded.
            return Consent(None, "unrecorded")
        return found

    def _agreement(self, action: Action) -> Consent:
        """What the last exchange says, or an earlier one: a yes may cover several actions, done one after the other."""
        last = len(self._talk.exchanges) - 1
        found = self._weigh_last(action)
        if found.value is True or found.reason in ("held", "spent") or _is_about_it(found, action):
            return found
        for place in range(last - 1, max(last - 1 - _RECENT, -1), -1):
            earlier = self._weigh_earlier(action, place)
            if earlier is not None:
                return earlier if earlier.value is True else found
        return self._long_ago(action, last - 1 - _RECENT) or self._taken_up(action, found) or found

    def _taken_up(self, action: Action, found: Consent) -> Consent | None:
        """Open, where the user now asks for what the agent put some exchanges before, and told all that matters of."""
        exchanges = self._talk.exchanges
        last = len(exchanges) - 1
        if found.reason not in ("none", "requested") or not is_taken_up(action, exchanges[last]):
            return None
        for place in range(last - 1, max(last - 1 - _CHAIN, -1), -1):
            later = exchanges[place + 1]
            is_done = self._writes.are_made(exchanges[place].answered_at, action.call.start)
            is_choice = later.put.offers and action.deed.stands_in(later.put.text)
            is_other = (later.put.asks_leave or is_choice) and not leaves_open(later, action.deed)
            if withdraws(later) or is_other or is_done:
                # Another thing was put since, or what was put is done.
                return None
            if puts(self._hearing(action, exchanges[place])):
                told = tuple(each for exchange in exchanges[place:] for each in exchange.proposal)
                whole = Exchange(exchanges[last].start, told, exchanges[last].answer, end=exchanges[last].end)
                before = exchanges[place - 1] if place else None
                weighing = Weighing(self._hearing(action, whole), (whole, before, exchanges[last]), self._writes)
                return weighing.if_taken_up()
        return None

    def _long_ago(self, action: Action, until: int) -> Consent | None:
        """The agreement of an exchange up to a place that named what the call acts on, unless it was taken back."""
        exchanges = self._talk.exchanges
        if until < 0 or not action.targets:
            return None
        end = exchanges[until].end
        named = {self._talk.place_of(at) for each in action.targets for at in self._talk.mentions.all(each, end)}
        for place in sorted(named, reverse=True)[:_RECENT]:
            found = self._weigh_earlier(action, place)
            if found is not None and found.value is True:
                since = range(place + 1, until + 1)
                return None if any(is_held(action, exchanges[later]) for later in since) else found
            if found is not None:
                return None
        return None

    def _weigh_last(self, action: Action) -> Consent:
        """What the last exchange says of the call, with what was put before it and still stands."""
        exchanges = self._talk.exchanges
        exchange, place = exchanges[-1], len(exchanges) - 1
        found = self._weighing(action, exchange, exchanges[-2] if place else None).consent()
        if found.value is True or _is_final(found):
            return found
        standing = Standing(exchanges, place, action.deed)
        if standing.exchange is exchange:
            return found
        whole = self._weighing(action, standing.exchange, standing.before).consent()
        if whole.value is True and standing.is_doubtful and not _repeats(action, exchange):
            whole = msgspec.structs.replace(whole, value=None, reason="unclear")
        return whole if whole.value or (whole.value is None and found.value is False) else found

    def _weigh_earlier(self, action: Action, place: int) -> Consent | None:
        """The same of an exchange before the last, where it holds the call back or agrees to it: most do neither, and
        no more of them is read than shows that."""
        exchanges = self._talk.exchanges
        exchange, before = exchanges[place], exchanges[place - 1] if place else None
        stance = exchange.said.stance
        if stance in ("mixed", "asks"):
            return None
        alone: Weighing | None = None
        if exchange.is_put or stance in ("held", "if", "no", "spares"):
            alone = self._weighing(action, exchange, before)
            if alone.is_held or alone.is_sure():
                return alone.held() if alone.is_held else alone.agreed()
        standing = Standing(exchanges, place, action.deed)
        if standing.exchange is exchange or (standing.is_doubtful and not _repeats(action, exchange)):
            return None
        whole = self._weighing(action, standing.exchange, standing.before)
        if (
            whole.is_held
            or not whole.is_sure()
            or (alone is not None and alone.is_named and _is_final(alone.consent()))
        ):
            return None
        return whole.agreed()

    def _weighing(self, action: Action, exchange: Exchange, before: Exchange | None) -> Weighing:
        hearing = self._hearing(action, about(action, exchange.taken or exchange))
        return Weighing(hearing, (exchange, before, self._talk.exchanges[-1]), self._writes)

    def _hearing(self, action: Action, exchange: Exchange, *, by: Literal["", "user"] = "") -> Hearing:
        return Hearing(
            action,
            exchange,
            self._talk.mentions,
            self._wallet,
            refusals=lambda: [] if by else self._writes.refusals(action, exchange.answered_at),
            by=by,
        )

    def _request(self, action: Action) -> Consent:
        """Whether the user asked for this in words of their own, with all that matters, and was not served already."""
        exchanges = self._talk.exchanges
        last = exchanges[-1]
        asked = next((each for each in reversed(exchanges) if speaks_of(action, each)), None)
        if asked is None or last.said.stance in ("held", "if", "no"):
            return Consent(False, "none", None, last.answered_at)
        found = tuple(lack for lack in lacks(self._hearing(action, last, by="user")) if lack.detail != "amount")
        spent = self._writes.spent_by(action, asked.answered_at)
        if spent is None:
            spent = self._writes.echoed_by(action, asked.answered_at, last.proposal)
        if spent is not None:
            return Consent(False, "spent", None, asked.answered_at, spent_by=spent)
        if any(lack.grade == "missing" for lack in found if lack.why != "user_alone"):
            return Consent(False, "differs", None, asked.answered_at, found)
        unclear = tuple(lack for lack in found if lack.grade == "unclear")
        return Consent(None if unclear else True, "requested", None, asked.answered_at, unclear)


def _repeats(action: Action, exchange: Exchange) -> bool:
    """Whether the answer says again what the call gives: "ok then, use the 15,000"."""
    given = [detail.value for detail in action.matters if not detail.is_target and not detail.is_off]
    return any(each.says(value) for each in exchange.answer for value in given)


def _is_final(found: Consent) -> bool:
    """Whether nothing that was put before counts: it is held back or spent; or the agent told this action, and
    something that matters in it otherwise or not at all."""
    is_told_otherwise = any(lack.grade == "missing" and lack.why != "not_named" for lack in found.lacks)
    return is_told_otherwise or found.reason in ("held", "spent")


def _is_about_it(found: Consent, action: Action) -> bool:
    """Whether the last thing the user said answered a proposal of this action, however it was meant."""
    missed = {lack.detail for lack in found.lacks if lack.grade == "missing"}
    return found.reason in ("differs", "unclear") and not any(detail.name in missed for detail in action.goals)
