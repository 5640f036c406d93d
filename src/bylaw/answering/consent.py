"""Asks a model whether the user agreed, if code cannot tell. To answer yes, the model must quote the user.

A question shows only part of the conversation: the messages, the changes, and the look-ups behind values in the call
that no message mentions.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from itertools import pairwise
from typing import Any

from bylaw.answering.history import History, Piece, call_text
from bylaw.answering.running import PROMPTS, SCHEMA, Reply
from bylaw.consent import OpenConsent
from bylaw.engine.predicate_values import Answered
from bylaw.facts.ledger import Ledger
from bylaw.facts.value import leaves
from bylaw.llm import Answer, Request
from bylaw.llm.chat import render
from bylaw.pack import Pack
from bylaw.pack.predicate import Predicate
from bylaw.rule.formula import atoms
from bylaw.rule.monitor import Act
from bylaw.trace.event import Call, Event, Message

_LAST = 12_000
"""The maximum number of characters shown from a message in the last exchange."""
_RECENT = 330
"""The maximum number of characters shown from a message in the second-to-last exchange."""
_EARLIER = {"user": 160, "agent": 90, "tool": 0}
"""The maximum number of characters shown from any earlier message, keyed by speaker."""
_CHANGE, _OUTCOME = 300, 150
"""The maximum numbers of characters shown from an earlier write and from its result."""
_BEFORE, _AFTER = 80, 160
"""The numbers of characters to show before and after a call's value that occurs in a look-up's result."""
_BESIDE = 25
"""The number of characters to keep around an amount or a call's value in a shortened message."""
_FIGURES = 4
"""The maximum number of amounts and call values to keep in a shortened message. If there are more, the last ones are
kept.
"""
_AMOUNT = r"[$\u20ac\u00a3\u00a5]\s?\d[\d.,]*|\d[\d.,]*\s?[$\u20ac\u00a3\u00a5]|(?<![\w.])\d[\d,]*\.\d\d(?!\w)"
_LINE = 25
"""A line that is repeated later is kept if it is shorter than this."""
_MOST = 30_000
"""The maximum length of an excerpt. If it is exceeded, the earliest pieces are left out."""
_CUT = "[...]"


class Excerpt:
    """Builds an excerpt of the conversation, from the last piece to the first. If text is repeated, only its last
    occurrence is kept.
    """

    def __init__(
        self, pack: Pack, events: Sequence[Event], act: Act, arguments: dict[str, Any], *, whole: str = ""
    ) -> None:
        """`whole` names a speaker whose messages are not shortened."""
        self._pack, self._events, self._whole = pack, events, whole
        self._pieces = History(events, act).pieces
        messages = [piece for piece in self._pieces if isinstance(events[piece.step], Message)]
        asks = [this.step for this, after in pairwise(messages) if (this.by, after.by) == _ASKS]
        self._last = asks[-1] if asks else messages[-1].step if messages else 0
        self._recent = asks[-2] if len(asks) > 1 else -1
        self._seen = set[str]()
        said = "\n".join(piece.text for piece in messages)
        self._unsaid = _values(arguments, lambda value: not _whole(value).search(said))
        told = _values(arguments, lambda value: not value.isalpha() and _whole(value).search(said) is not None)
        self._kept = re.compile("|".join([_AMOUNT, *(_whole(each).pattern for each in told)]))
        """Matches the text that may affect the answer: amounts, and values from the call."""

    def text(self) -> str:
        shown, room, left = list[str](), _MOST, len(self._pieces)
        for piece in reversed(self._pieces):
            text = self._shown(piece)
            if len(text) > room and piece.step < self._recent:
                break
            left -= 1
            room -= len(text)
            shown += [text] if text else []
        if left:
            shown.append(f"({left} earlier pieces are left out here)")
        return "\n".join(reversed(shown)) or "(nothing was said)"

    def _shown(self, piece: Piece) -> str:
        event = self._events[piece.step]
        if isinstance(event, Message):
            text = self._message(piece) if piece.text else f"({piece.note})"
        elif isinstance(event, Call):
            text = self._new(piece.text, _CHANGE) if self._may_change(event.tool) or event.card else ""
        elif self._may_change(event.tool):
            text = _cut(piece.text, _OUTCOME) or f"({piece.note})"
        else:
            text = self._explanation(piece.text)
        if not text or text == _CUT:
            return ""
        has_failed = not isinstance(event, Message | Call) and event.error
        return f"[{piece.step}] {piece.by}{' (it failed)' if has_failed else ''}: {text}"

    def _message(self, piece: Piece) -> str:
        """Return a message without lines that are repeated later. Messages in the last exchange are shown in full."""
        if piece.step >= self._last or piece.by == self._whole:
            self._seen.update(_plain(line) for line in piece.text.splitlines())
            return _cut(piece.text, _LAST)
        lines = [self._new(line.strip()) for line in piece.text.splitlines()]
        if piece.step >= self._recent:
            text = re.sub(r"(?:\[\.\.\.\]\s*){2,}", f"{_CUT}\n", "\n".join(line for line in lines if line))
            return _cut(text.strip(), _RECENT, self._kept)
        text = "\n".join(line for line in lines if line not in ("", _CUT)) or _CUT
        return _cut(text, _EARLIER[piece.by], self._kept)

    def _new(self, text: str, most: int = _LAST) -> str:
        plain = _plain(text)
        if plain in self._seen:
            return _CUT
        if len(plain) >= _LINE:
            self._seen.add(plain)
        return _cut(text, most)

    def _explanation(self, result: str) -> str:
        """Return the parts of a look-up's result around the call's values that occur in no message. Each value is shown
        once.
        """
        parts: list[str] = []
        for value in [*self._unsaid]:
            found = _whole(value).search(result)
            if found is not None:
                self._unsaid.remove(value)
                part = result[max(0, found.start() - _BEFORE) : found.end() + _AFTER]
                parts += [] if any(value in other for other in parts) else [part]
        return f"{_CUT} {f' {_CUT} '.join(parts)} {_CUT}" if parts else ""

    def _may_change(self, tool: str) -> bool:
        known = self._pack.schema.tools.get(tool)
        return known is None or known.effect in ("write", "unknown")


_ASKS = ("agent", "user")


def _values(arguments: dict[str, Any], wanted: Callable[[str], bool]) -> list[str]:
    """Return the call's values to search for, longest first. Very short values are left out, because they occur
    everywhere.
    """
    found = {str(leaf) for leaf in leaves(arguments) if leaf is not None and not isinstance(leaf, bool)}
    values = [each for each in found if len(each) > (2 if each.isdigit() else 1) and not _is_day(each)]
    return sorted((each for each in values if wanted(each)), key=lambda each: (-len(each), each))


def _is_day(value: str) -> bool:
    """Whether a value is a date. Dates may be written differently in messages and calls."""
    try:
        return bool(date.fromisoformat(value))
    except ValueError:
        return False


def _whole(value: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(value)}(?!\w)")


def _plain(text: str) -> str:
    return " ".join(text.split())


def _cut(text: str, most: int, kept: re.Pattern[str] | None = None) -> str:
    """Shorten a text to its beginning, marked parts from its middle, and its end. The end is the longest part, because
    it contains the question.
    """
    if len(text) <= most:
        return text
    start, end = most // 3, len(text) - (most - most // 3)
    parts = [(0, start)]
    found = [match.span() for match in kept.finditer(text, start, end)] if kept is not None else []
    for first, last in [*((first - _BESIDE, last + _BESIDE) for first, last in found[-_FIGURES:]), (end, len(text))]:
        if first <= parts[-1][1]:
            parts[-1] = parts[-1][0], max(parts[-1][1], last)
        else:
            parts.append((first, last))
    return f" {_CUT} ".join(text[first:last].strip() for first, last in parts)


_DESCRIBED = 150
"""The maximum length of a tool's description."""
_REQUESTED = (
    "For this policy a request is enough: before the call the customer asked in their own words for this very change, "
    "gave the values that matter or plainly meant them, and neither took it back nor had it carried out already. "
    "Then nothing need have been put to them. A question whether it can be done, or a complaint, asks for nothing."
)


def consent_request(
    pack: Pack, predicate: Predicate, act: Act, question: OpenConsent, events: Sequence[Event]
) -> Request:
    """Return the request to the model: the policy, an excerpt of the conversation before the call, and the call."""
    given = {
        "policy": _policy(pack, predicate),
        "pieces": Excerpt(pack, events, act, question.arguments).text(),
        "call": "\n".join(_call(pack, question)),
    }
    return render(PROMPTS, "consent", given, schema=SCHEMA, max_tokens=600)


def no_question(pack: Pack, act: Act, events: Sequence[Event]) -> str:
    """Return why no model is asked about undecided consent. Empty if a model is asked.

    A model is not asked about a refused call, because it changed nothing, or about a repetition of a completed call,
    because messages seldom show whether one yes covers both calls.
    """
    ledger = Ledger(pack.schema)
    ledger.observe_all(0, events)
    writes = {made.step: made for made in ledger.writes}
    made = writes.get(act.step)
    if made is None:
        return ""
    if made.accepted is False:
        return "the call was refused"
    earlier = (writes[step] for step in writes if step < act.step)
    is_done = any(
        each.call.tool == made.call.tool and each.call.arguments == made.call.arguments and each.accepted
        for each in earlier
    )
    return "the same call has already been carried out" if is_done else ""


def consent_answer(predicate: Predicate, act: Act, answer: Answer, events: Sequence[Event]) -> Answered:
    """Interpret the answer. A yes without a quote from the user leaves the consent undecided."""
    reply = answer.read(Reply)
    if reply is None:
        return Answered(predicate.name, act.step, None, because=answer.why or "the answer could not be read")
    said = History(events, act, ("user",))
    quotes = tuple(quote for quote in reply.quotes if said.holds(quote))
    if reply.answer == "yes" and not quotes:
        return Answered(predicate.name, act.step, None, because="the answer quotes nothing that the user said")
    value = {"yes": True, "no": False}.get(reply.answer)
    return Answered(predicate.name, act.step, value, quotes=quotes, because=reply.because)


def _policy(pack: Pack, predicate: Predicate) -> str:
    """Return the sentences behind the rules that require this consent, and whether the user's own request is sufficient
    consent.
    """
    owners = [pack.policies.get(rule.policy) for rule in pack.book.rules if predicate.name in atoms(rule.formula)]
    told = [
        " ".join(each.text for each in owner.citations if each.text) or owner.definition for owner in owners if owner
    ]
    if predicate.consent == "requested":
        told.append(_REQUESTED)
    return "\n".join(" ".join(text.split()) for text in dict.fromkeys(told)) or "The customer agrees before a change."


def _call(pack: Pack, question: OpenConsent) -> Iterator[str]:
    yield call_text(question.tool, question.arguments)
    tool = pack.schema.tools.get(question.tool)
    if tool is not None and tool.description:
        yield f"What the tool does: {' '.join(tool.description.split())[:_DESCRIBED]}"
    if question.spared:
        yield f"Need not be told: {', '.join(question.spared)}"
