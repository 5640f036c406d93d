"""Whether what the user asked for was done before: one request for one thing is one deed.

Another call like it needs another request: a later message that asks for it, a second sentence that does, or words that
ask for several.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from bylaw.engine.request.allowance import Allowance, Deed, Span, kinds_of
from bylaw.engine.request.by_words import sentences_of
from bylaw.engine.request.values import leaves_of, parts_of
from bylaw.facts.call_record import CallRecord
from bylaw.facts.ledger import Ledger
from bylaw.facts.provenance import Provenance, plain_link
from bylaw.facts.value import alike
from bylaw.text.folding import fold
from bylaw.text.spelling import spell

_SEVERAL = re.compile(
    r"\b(?:each|every|all|twice|thrice|(?:\d{1,3}|two|three|four|five|six|seven|eight|nine|ten) (?:more )?times)\b"
    r"|\b\d{1,2} ?[x\u00d7](?!\w)|(?<!\w)[x\u00d7] ?\d{1,2}\b"
)
"""What tells in folded words that several calls alike are asked for."""


class Writes:
    """The writes of a conversation by what they do, taken in as they come."""

    def __init__(self, ledger: Ledger, provenance: Provenance) -> None:
        self._ledger, self._provenance = ledger, provenance
        self._taken = 0
        self._alike: dict[str, dict[str, list[CallRecord]]] = {}
        """By tool and what they do."""
        self._refused: list[CallRecord] = []
        self._known_at = -1
        """These were surely refused, as was known at that step: what is tried again and again costs nothing later."""

    def before(self, at: CallRecord) -> list[CallRecord]:
        """Those before a call that do what it does, as far as anybody can tell, and are done or may be."""
        if at.tool is None or at.tool.effect != "write":
            return []
        writes = self._ledger.writes
        for write in writes[self._taken :]:
            if write.delivered is not None and not _may_be_done(write, write.delivered + 1):
                self._refused.append(write)
                self._known_at = max(self._known_at, write.delivered)
            else:
                self._alike.setdefault(write.call.tool, {}).setdefault(self._need(write), []).append(write)
        self._taken = len(writes)
        made = self._alike.get(at.call.tool)
        wanted = self._need(at) if made or self._known_at >= at.step else ""
        found = [*made.get(wanted, ())] if made else []
        if self._known_at >= at.step:
            refused = (each for each in self._refused if each.call.tool == at.call.tool)
            found += [each for each in refused if self._need(each) == wanted]
        return [
            each for each in found if each.step < at.step and _may_be_done(each, at.step) and self._is_one(each, at)
        ]

    def _need(self, call: CallRecord) -> str:
        """The same for two calls of a tool that may do one thing: what they must be given, but for texts. Those that
        are given nothing but texts differ by them."""
        needed = call.tool.required if call.tool is not None else ()
        given = {name: each for name, each in _settled(call).items() if name in needed}
        return repr(alike(given or self._more(call) or call.call.arguments))

    def _is_one(self, one: CallRecord, other: CallRecord) -> bool:
        """Whether of two calls with one need the one only says more: to close a ticket is not to rename it."""
        some, others = self._more(one).items(), self._more(other).items()
        return some <= others or others <= some

    def _more(self, call: CallRecord) -> dict[str, str]:
        """What else a call is given, but for what only the agent or a text tells, such as a flag."""
        told = {name: each for name, each in _settled(call).items() if self._is_told(each, call)}
        return {name: repr(alike(each)) for name, each in told.items()}

    def _is_told(self, given: Any, call: CallRecord) -> bool:
        parts = [] if isinstance(given, bool) else parts_of(given)
        found = [self._provenance.trace(each, before=call.start) for each in parts]
        return any(each.source in ("user", "host", "record") or each.pointed for each in found)


def is_spent(
    at: CallRecord,
    done: Sequence[CallRecord],
    ledger: Ledger,
    allowance: Allowance,
    covering: Sequence[Deed],
    request: str,
) -> bool:
    """Whether calls that were done have used up what asks for a call; `covering` are the deeds of the request that it
    keeps to, none where a text asks for it that the user handed over to."""
    asking = [*_asking(at, allowance, covering, request)]
    if any(_SEVERAL.search(fold(_sentence_of(span, request))) for span in asking):
        return False
    if any(slot.every for deed in covering for slot in deed.slots):
        return False
    last, times = -1, 1
    for step, start, end in _messages(ledger, at.start):
        if asked := sum(start < span.end <= end for span in asking):
            last, times = step, asked
    return sum(each.step > last for each in done) >= times


def _asking(at: CallRecord, allowance: Allowance, covering: Sequence[Deed], request: str) -> Iterator[Span]:
    """Where the user's words ask for a call, once for each time that they do."""
    if not covering:
        yield from (span for each in allowance.delegations for span in each.asked[:1])
    elif allowance.by == "model":
        yield from (deed.asked[0] for deed in covering if deed.asked)
    else:
        # By its verb alone a sentence may ask for another such call: it has to say all of this one that any says.
        asked = {span: fold(request[span.start : span.end]) for deed in covering for span in deed.asked}
        spellings = [spell(plain_link(value)) for value in leaves_of(_settled(at))]
        said = [each for each in spellings if each is not None and any(each.said_in(words) for words in asked.values())]
        yield from (span for span, words in asked.items() if all(each.said_in(words) for each in said))


def _sentence_of(asked: Span, request: str) -> str:
    """The sentence that words stand in: a model may have named only the verb."""
    found = next((each for each in sentences_of(request) if each.start <= asked.start < each.end), asked)
    return request[found.start : max(found.end, asked.end)]


def _messages(ledger: Ledger, before: int) -> Iterator[tuple[int, int, int]]:
    """The user's messages before a step: the step of each, and where it begins and ends in all that the user said."""
    start = 0
    for step, text in ledger.said:
        if text and step < before:
            yield step, start, start + len(text)
            start += len(text) + len("\n\n")


def _settled(call: CallRecord) -> dict[str, Any]:
    """What a call is given but for its texts: a payment is no other one with another note."""
    given = call.call.arguments
    if call.tool is None:
        return {**given}
    kinds = kinds_of(call.tool)
    return {name: value for name, value in given.items() if kinds.get(name) != "text"}


def _may_be_done(write: CallRecord, step: int) -> bool:
    return write.counts_at(step) or not write.is_surely_refused()
