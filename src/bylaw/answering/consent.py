"""Whether the user agreed, where code leaves it open: one question to a model, whose yes needs the user's own words."""

from collections.abc import Sequence

from bylaw.answering.history import History, Piece, call_text
from bylaw.answering.running import PROMPTS, SCHEMA, Reply
from bylaw.consent import OpenConsent
from bylaw.engine.predicate_values import Answered
from bylaw.facts.leaf import leaves
from bylaw.llm import Answer, Request
from bylaw.llm.prompt import render
from bylaw.pack import Pack
from bylaw.pack.predicate import Predicate
from bylaw.rule.act import Act
from bylaw.rule.formula import atoms
from bylaw.trace.event import Event

_AROUND = 300
"""Characters of a tool's result that are shown on either side of a value of the call."""
_SHORTEST = 3
"""A shorter value stands in too many results to tell anything."""


def consent_request(
    pack: Pack, predicate: Predicate, act: Act, question: OpenConsent, events: Sequence[Event]
) -> Request:
    """What a model is asked: the policy, the talk before the call, what tools showed of its values, what is open."""
    found = [leaf for leaf in leaves(question.arguments) if leaf is not None and not isinstance(leaf, bool)]
    values = tuple(text for text in map(str, found) if len(text) >= _SHORTEST)
    pieces = [shown for piece in History(events, act).pieces if (shown := _shown(piece, values))]
    given = {
        "policy": _policy(pack, predicate),
        "pieces": "\n".join(pieces) or "(nothing was said)",
        "call": call_text(question.tool, question.arguments),
        "open": _open(question),
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
        told.append("(That the customer asked for this change is enough.)")
    return "\n".join(" ".join(text.split()) for text in dict.fromkeys(told)) or "The customer agrees before a change."


def _shown(piece: Piece, values: Sequence[str]) -> str:
    """A piece as the model reads it; of what tools returned only where a value of the call stands, else nothing."""
    if piece.by != "tool":
        return piece.shown()
    spots = [spot for value in values if (spot := piece.text.find(value)) >= 0]
    if not spots:
        return ""
    start, end = max(0, min(spots) - _AROUND), min(spots) + _AROUND
    return f"[{piece.step}] tool: ... {piece.text[start:end]} ..."


def _open(question: OpenConsent) -> str:
    if question.answered:
        steps = ", ".join(str(quote.step) for quote in question.answered)
        return f"whether the answer at {steps} is a yes to this call"
    return "whether what was said amounts to an agreement"
