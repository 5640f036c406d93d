"""Whether the user agreed, where code leaves it open: one question to a model, whose yes needs the user's own words."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from bylaw.answering.history import History, Piece, call_text
from bylaw.answering.running import PROMPTS, SCHEMA, Reply
from bylaw.consent import OpenConsent
from bylaw.engine.predicate_values import Answered
from bylaw.facts.result_places import leaves
from bylaw.llm import Answer, Request
from bylaw.llm.chat import render
from bylaw.pack import Pack
from bylaw.pack.predicate import Predicate
from bylaw.rule.act import Act
from bylaw.rule.formula import atoms
from bylaw.trace.event import Event, Result

_BEFORE, _AFTER = 150, 350
"""Characters of a tool's result that are shown before and after a value of the call."""
_MOST_OF_RESULT = 1500
_MOST = 60_000
"""Characters of the conversation that are shown: about twice the longest that airline agents have been recorded with.
What is left out is what came first."""
_DESCRIBED = 400
_REQUESTED = (
    "For this policy a request is enough: before the call the customer asked in their own words for this very change, "
    "gave the values that matter or plainly meant them, and neither took it back nor had it carried out already. "
    "Then nothing need have been put to them. A question whether it can be done, or a complaint, asks for nothing."
)


def consent_request(
    pack: Pack, predicate: Predicate, act: Act, question: OpenConsent, events: Sequence[Event]
) -> Request:
    """What a model is asked: the policy, the talk before the call, what tools showed of its values, the call."""
    values = _sought(question.arguments)
    shown = [text for piece in History(events, act).pieces if (text := _shown(piece, values, pack, events))]
    given = {
        "policy": _policy(pack, predicate),
        "pieces": "\n".join(_latest(shown)) or "(nothing was said)",
        "call": "\n".join(_call(pack, question)),
    }
    return render(PROMPTS, "consent", given, schema=SCHEMA, max_tokens=600)


def consent_answer(predicate: Predicate, act: Act, answer: Answer, events: Sequence[Event]) -> Answered:
    """What the answer settles. A yes that quotes no words of the user's settles nothing."""
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
    """The sentences of the rules that ask for this consent, and whether a request is enough for them."""
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


def _sought(arguments: dict[str, Any]) -> re.Pattern[str]:
    """Finds values of a call in a text; none so short that it stands everywhere."""
    found = {str(leaf) for leaf in leaves(arguments) if leaf is not None and not isinstance(leaf, bool)}
    texts = sorted((each for each in found if len(each) > (2 if each.isdigit() else 1)), key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, texts))})(?!\w)" if texts else r"(?!)")


def _shown(piece: Piece, values: re.Pattern[str], pack: Pack, events: Sequence[Event]) -> str:
    """A piece as the model reads it; of what tools returned the parts around the call's values, or what became of a
    change."""
    result = events[piece.step]
    if not isinstance(result, Result):
        return piece.shown()
    parts: list[list[int]] = []
    seen = set[str]()
    for found in values.finditer(piece.text):
        if found[0] not in seen:
            seen.add(found[0])
            start, end = max(0, found.start() - _BEFORE), found.end() + _AFTER
            if parts and start <= parts[-1][1]:
                parts[-1][1] = end
            else:
                parts.append([start, end])
    tool = pack.schema.tools.get(result.tool)
    if not parts and (tool is None or tool.effect in ("write", "unknown")):
        parts.append([0, _AFTER])
    if not parts:
        return ""
    text = " ... ".join(piece.text[start:end] for start, end in parts)[:_MOST_OF_RESULT] or f"({piece.note})"
    before, after = "... " if parts[0][0] else "", " ..." if parts[-1][1] < len(piece.text) else ""
    return f"[{piece.step}] tool{' (it failed)' if result.error else ''}: {before}{text}{after}"


def _latest(shown: Sequence[str]) -> list[str]:
    """The last pieces, as many as there is room for."""
    room, first = _MOST, len(shown)
    while first and len(shown[first - 1]) <= room:
        first -= 1
        room -= len(shown[first])
    left_out = [f"({first} earlier pieces are left out here)"] if first else []
    return [*left_out, *shown[first:]]
