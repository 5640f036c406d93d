"""Asks a model what the user stated about facts that only the user knows. The model must quote the user for each
value.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from bylaw.answering.consent import Excerpt
from bylaw.answering.history import History, call_text
from bylaw.answering.running import PROMPTS
from bylaw.engine.predicate_values import UNSAID, Answered, AnswerQuote
from bylaw.facts.entity import UNSEEN, Field
from bylaw.facts.value import coerce
from bylaw.llm import Answer, Request
from bylaw.llm.chat import render, schema_of
from bylaw.pack import Pack
from bylaw.rule.monitor import Act
from bylaw.trace.event import Event


class Statement(Struct, frozen=True):
    """A model's answer about one fact. `value` is a string, or null if the user did not state the fact."""

    fact: str
    value: str | None
    quotes: tuple[AnswerQuote, ...] = ()
    because: str = ""


class Statements(Struct, frozen=True):
    facts: tuple[Statement, ...] = ()


SCHEMA = schema_of(Statements)
TOKENS = 200
"""The maximum number of tokens in an answer about one fact."""


def statement_request(pack: Pack, facts: Mapping[str, Field], act: Act, events: Sequence[Event]) -> Request:
    """Return the request to the model: the facts, an excerpt of the conversation before the call, and the call."""
    given = {
        "facts": "\n".join(
            f"- {name}: {field.question or field.name.replace('_', ' ')}\n  Form: {_form(field)}"
            for name, field in facts.items()
        ),
        "pieces": Excerpt(pack, events, act, dict(act.arguments), whole="user").text(),
        "call": call_text(act.tool or "", act.arguments),
    }
    return render(PROMPTS, "statement", given, schema=SCHEMA, max_tokens=TOKENS * (1 + len(facts)))


def statement_answer(name: str, field: Field, act: Act, answer: Answer, events: Sequence[Event]) -> Answered:
    """Interpret the answer. A value is ignored if the field does not allow the value, or if no quote from the user
    supports it.
    """
    replies = answer.read(Statements)
    if replies is None:
        return Answered(name, act.step, None, because=answer.why or "the answer could not be read")
    about = [each for each in replies.facts if each.fact == name]
    if len(about) != 1:
        return Answered(name, act.step, None, because="the answer does not settle this fact")
    (reply,) = about
    said = History(events, act, ("user",))
    quotes = tuple(quote for quote in reply.quotes if said.holds(quote))
    if field.nullable and reply.value == UNSAID:
        return Answered(name, act.step, UNSAID, because=reply.because)
    if reply.value is not None and not quotes:
        return Answered(name, act.step, None, because="the answer quotes nothing that the user said")
    if reply.value is not None and not _is_fit(field, reply.value):
        return Answered(name, act.step, None, quotes=quotes, because=f"`{reply.value}` is not a value of this fact")
    return Answered(name, act.step, reply.value, quotes=quotes, because=reply.because)


def _is_fit(field: Field, value: str) -> bool:
    try:
        return coerce(field, value) is not UNSEEN
    except ValueError:
        return False


def _form(field: Field) -> str:
    """Describe the possible values of a fact, for use in the question."""
    forms = {
        "enum": f"one of: {', '.join(field.values)}",
        "boolean": "`true` or `false`",
        "date": "a date such as 2026-05-31",
        "datetime": "such as 2026-05-31T09:30",
        "string": "a text; a code, a name or an address as a record would spell it",
    }
    unsaid = f"; `{UNSAID}` if the customer has plainly said nothing of it" if field.nullable else ""
    return forms.get(field.type, f"a {field.type}") + unsaid
