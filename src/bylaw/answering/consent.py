"""Asks a model whether the user agreed if code cannot tell; a yes must quote the user's own words."""

from collections.abc import Iterator, Sequence

from bylaw.answering.excerpt import Excerpt
from bylaw.answering.history import History, call_text
from bylaw.answering.running import PROMPTS, SCHEMA, Reply
from bylaw.consent import OpenConsent
from bylaw.engine.predicate_values import Answered
from bylaw.facts.ledger import Ledger
from bylaw.llm import Answer, Request
from bylaw.llm.chat import render
from bylaw.pack import Pack
from bylaw.pack.predicate import Predicate
from bylaw.rule.act import Act
from bylaw.rule.formula import atoms
from bylaw.trace.event import Event

_DESCRIBED = 150
"""Characters of a tool's description."""
_REQUESTED = (
    "For this policy a request is enough: before the call the customer asked in their own words for this very change, "
    "gave the values that matter or plainly meant them, and neither took it back nor had it carried out already. "
    "Then nothing need have been put to them. A question whether it can be done, or a complaint, asks for nothing."
)


def consent_request(
    pack: Pack, predicate: Predicate, act: Act, question: OpenConsent, events: Sequence[Event]
) -> Request:
    """The request to the model: the policy, an excerpt of the conversation before the call, and the call."""
    given = {
        "policy": _policy(pack, predicate),
        "pieces": Excerpt(pack, events, act, question.arguments).text(),
        "call": "\n".join(_call(pack, question)),
    }
    return render(PROMPTS, "consent", given, schema=SCHEMA, max_tokens=600)


def no_question(pack: Pack, act: Act, events: Sequence[Event]) -> str:
    """Why no model is asked about a call with undecided consent; empty if one is asked.

    A refused call changed nothing. Whether one yes covers two identical calls can seldom be read from the words.
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
    return "the same call was carried out before" if is_done else ""


def consent_answer(predicate: Predicate, act: Act, answer: Answer, events: Sequence[Event]) -> Answered:
    """Interpret the answer. A yes that does not quote the user settles nothing."""
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
    """The sentences of the rules that require this consent, and whether a request is enough."""
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
