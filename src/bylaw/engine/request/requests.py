"""Determines what the user's words allow in one conversation. The result changes only when the user says more."""

import hashlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from bylaw.engine.request.allowance import Allowance, Objection, is_deed, told
from bylaw.engine.request.keeping import Delegating, Held, Keeping
from bylaw.engine.request.meaning import RequestModel, settle
from bylaw.engine.request.spending import Spending, new_words
from bylaw.facts.call_record import CallRecord
from bylaw.facts.entity import UNSEEN, NoValue
from bylaw.facts.ledger import Ledger
from bylaw.facts.provenance import plain_link

_NO_MODEL = "no model is set up to read requests"


class Granted(Struct, frozen=True, omit_defaults=True):
    """A model's reading of a request, as stored in the log. It has ranges of the user's words in place of quotes."""

    messages: int
    """The number of user messages on which the reading is based."""
    allowance: Allowance
    text: str = ""
    """A digest of these messages and, if the user told the agent to follow a text and it was read, of that text."""


class Requests:
    """Checks each call in a conversation against the user's messages before the call."""

    def __init__(
        self,
        ledger: Ledger,
        context: Mapping[str, Any],
        model: RequestModel | None,
        *,
        delegation: Delegating = "ask",
        known: Iterable[Granted] = (),
    ) -> None:
        """Without a `model`, every request is undecided. `known` contains the model's earlier answers."""
        self._ledger = ledger
        self._model = model
        self._provenance = ledger.provenance(context)
        self._keeping = Keeping(ledger.schema.tools, self._provenance, self._handed_over, delegation=delegation)
        self.granted: list[Granted] = []
        """The model's answers, in the order of the questions."""
        self._allowances: dict[int, Allowance] = {}
        """Allowances by the number of user messages on which they are based."""
        self._texts: dict[str, Allowance] = {}
        """Allowances by a digest of the user's words and of the instructions that they told the agent to follow."""
        self.know(known)
        self._unread: dict[int, Allowance] = {}
        """Requests to which the model gave no answer. It is asked again at the next call."""
        self._spending = Spending(ledger)
        self._text = (0, "")
        """The number of user messages at the last request, and their text."""
        self._found: dict[CallRecord, tuple[Objection, ...]] = {}
        """Objections by call. The step is not the key, because the actions of a call have different steps while it is
        judged.
        """

    def know(self, granted: Iterable[Granted]) -> None:
        for each in granted:
            self.granted.append(each)
            if each.text:
                self._texts[each.text] = each.allowance
            else:
                self._allowances[each.messages] = each.allowance

    def latest(self) -> Allowance | None:
        """Return what the user's words so far allow, or None if the user has said nothing."""
        return self.allowance(self._ledger.step) if self._ledger.said else None

    def allowance(self, before: int) -> Allowance:
        """Return what the user's words before a step allow. Nothing but later words from the user can allow more."""
        count = self._count(before)
        found = self._allowances.get(count)
        if found is None:
            if count in self._unread:
                return self._unread[count]
            text = self.text(before)
            found = self._ask(text) if text else Allowance()
            if found.unread:
                self._unread[count] = found
                return found
            self._allowances[count] = found
            if text:
                self.granted.append(Granted(count, found))
        return found

    def _ask(self, text: str) -> Allowance:
        return Allowance(unread=_NO_MODEL) if self._model is None else self._model.read(text)

    def _handed_over(self, text: str) -> Allowance:
        """Return what a text allows that the user told the agent to follow. The model is asked once per text."""
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        found = self._texts.get(digest)
        if found is None:
            found = self._ask(text)
            if not found.unread:
                self._texts[digest] = found
                self.granted.append(Granted(len(self._ledger.said), found, digest))
        return found

    def digest(self, before: int) -> str:
        """Return the id, in the log, of the allowance before a step."""
        found = self.allowance(before)
        return "" if found.unread else found.digest

    def told(self, before: int) -> list[str]:
        """Describe the allowance before a step, with one line per action."""
        found = self.allowance(before)
        return [] if found.unread else told(found, self.text(before))

    def text(self, before: int) -> str:
        count = self._count(before)
        if self._text[0] != count:
            self._text = (count, "\n\n".join(text for _, text in new_words(self._ledger.said[:count])))
        return self._text[1]

    def _count(self, before: int) -> int:
        said = self._ledger.said
        return len(said) if not said or said[-1][0] < before else bisect_left(said, before, key=lambda each: each[0])

    def keeps(self, at: CallRecord) -> bool | NoValue:
        """Whether the user asked for a call. UNSEEN if the user must be asked."""
        return UNSEEN if self.objections(at) else True

    def objections(self, at: CallRecord) -> tuple[Objection, ...]:
        """Return the reasons why the request does not cover a call. Empty if the user asked for the call."""
        found = self._found.get(at)
        if found is None:
            self._unread.clear()
            is_free = at.tool is None or not is_deed(at.tool)
            found = self._found[at] = () if is_free else tuple(self._against(at))
        return found

    def _against(self, at: CallRecord) -> list[Objection]:
        allowance, text = self.allowance(at.start), self.text(at.start)
        if allowance.unread:
            return [Objection("unread", value=allowance.unread)]

        def approved(value: str) -> bool:
            made = self._provenance.given(plain_link(value), before=at.start)
            return any(not self.objections(self._ledger.calls[step]) for step in made if step in self._ledger.calls)

        def held(made: CallRecord, before: int) -> Iterator[Held]:
            return self._keeping.hold(made.call, allowance, text, before=before, approved=approved)

        def fitting(made: CallRecord, before: int) -> list[Held]:
            return [each for each in held(made, before) if each.may_be_meant() and not each.is_on_the_way]

        nearest = _nearest(held(at, at.start))
        handed_over = [Objection("delegated")] if allowance.delegations else []
        if nearest is None:
            return handed_over or [Objection("not_asked")]
        if not nearest.may_be_meant():
            return nearest.objections + handed_over
        if not nearest.is_on_the_way and at.tool is not None and self._spending.has_earlier(at):
            nearest = _nearest(self._spending.unused(at, at.tool, fitting))
            if nearest is None:
                return [Objection("done")]
        if not self._ledger.has_heard_since(self._spending.asked_at(nearest, at.start), at.start):
            return [Objection("unheard")]
        against = settle(nearest, self._model)
        return against + handed_over if against else []


def _nearest(held: Iterable[Held]) -> Held | None:
    found: list[Held] = []
    for each in held:
        if not each.objections:
            return each
        found.append(each)
    return min(found, key=lambda each: (not each.may_be_meant(), len(each.objections)), default=None)
