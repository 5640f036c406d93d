"""What a model knows of a policy: yes/no questions whose answers are found by running the guards.

After the paper's QA test (5.2), which asks questions its authors wrote and answered by hand. Half of the questions on
each policy are answered with yes, so a model that always says the same, or that guesses by policy, scores 50 %.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from functools import cache
from itertools import product
from typing import Any, cast

from msgspec import Struct

from bylaw.align.agents import leanings
from bylaw.align.episode import ChatMessage
from bylaw.align.prompt import PolicyPlace, pack_named
from bylaw.align.rollout import Agent
from bylaw.errors import UsageError
from bylaw.facts.entity import UNSEEN, Entity, Field, Key, NoValue
from bylaw.facts.value import coerce
from bylaw.guard import evaluate
from bylaw.pack import Pack
from bylaw_lab.clinic.tasks.parts import read

ARGUMENTS = {
    "patient_id": "P1",
    "slot_id": "S1",
    "referral_id": "R1",
    "appointment_id": "A1",
    "invoice_id": "I1",
    "prescription_id": "X1",
    "membership_id": "M1",
    "kind": "telehealth",
    "email": "new@example.com",
    "person_id": "P1",
    "part": "visits",
    "delivery": "counter",
    "valid_until": "2026-01-01",
}
"""What a call has beside what a question tells."""


class Question(Struct, frozen=True):
    """One question and its answer."""

    policy: str
    text: str
    answer: bool


class Known(Struct, frozen=True):
    """How a model did."""

    questions: int
    accuracy: float
    """Over all questions, at the threshold 0."""
    yes_rate: float
    balanced: float
    """At the threshold that is the median over all questions: what it knows, whatever its leaning to yes or no."""
    by_policy: dict[str, float]


class AskedFacts:
    """The facts of one question, whichever thing they are asked of."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def read(self, entity: Entity, key: Key, field: Field) -> Any:
        if field.name == "exists":
            return True
        raw = self._values.get(f"{entity.name}.{field.name}", UNSEEN)
        return raw if raw is UNSEEN else coerce(field, raw)

    def members(self, entity: Entity, match: Mapping[str, Any]) -> tuple[Sequence[Key], bool]:
        return (), False

    def done(self, tool: str, match: Mapping[str, Any]) -> int | NoValue:
        return UNSEEN


@cache
def questions(pack: str = "clinic", *, each: int = 250, seed: int = 0) -> tuple[Question, ...]:
    """`each` questions answered with yes and as many with no; on every policy as many of the one as of the other."""
    held = pack_named(pack)
    rng = random.Random(seed)
    stock: list[tuple[list[Question], list[Question]]] = []
    for policy, body in read_questions(held).items():
        asked = list(dict.fromkeys(question for question, _ in asked_of(held, policy, body)))
        rng.shuffle(asked)
        yes = [question for question in asked if question.answer]
        no = [question for question in asked if not question.answer]
        stock.append((yes, no))
    chosen: list[Question] = []
    while len(chosen) < 2 * each:
        stock = [(yes, no) for yes, no in stock if yes and no]
        if not stock:
            raise UsageError(f"pack `{pack}` has only {len(chosen) // 2} questions of each answer")
        for yes, no in stock:
            if len(chosen) < 2 * each:
                chosen += [yes.pop(), no.pop()]
    rng.shuffle(chosen)
    return tuple(chosen)


def read_questions(pack: Pack) -> dict[str, Any]:
    """The questions on a pack, by policy."""
    if pack.name != "clinic":
        raise UsageError(f"there are no questions on pack `{pack.name}`", hint="name `clinic`")
    return read("questions.yaml")


class Situation(Struct, frozen=True):
    """What a question is about: a call, the facts it turns on, and the words for them."""

    tool: str
    arguments: dict[str, Any]
    facts: dict[str, Any]
    """`Entity.field` to the value as tools show it."""
    words: dict[str, Any]


def situations(pack: Pack, body: dict[str, Any]) -> Iterator[Situation]:
    """Every situation that the lists of one policy give."""
    assert pack.now is not None
    lists: dict[str, list[Any]] = {**body.get("arguments", {}), **body.get("facts", {})}
    moved = {**dict.fromkeys(body.get("hours", {}), "hours"), **dict.fromkeys(body.get("days", {}), "days")}
    lists |= {**body.get("hours", {}), **body.get("days", {})}
    parameters = pack.schema.tools[body["tool"]].parameters
    for drawn in product(*lists.values()):
        chosen = dict(zip(lists, drawn, strict=True))
        facts = {name: value for name, value in chosen.items() if "." in name}
        words = {name: value for name, value in chosen.items() if name not in moved}
        for name, unit in moved.items():
            words[unit] = chosen[name]
            at = pack.now + (timedelta(hours=chosen[name]) if unit == "hours" else -timedelta(days=chosen[name]))
            facts[name] = at.isoformat() if unit == "hours" else at.date().isoformat()
        given = ARGUMENTS | {name: value for name, value in chosen.items() if "." not in name}
        arguments = {name: value for name, value in given.items() if name in parameters}
        yield Situation(body["tool"], arguments, facts, words)


def asked_of(pack: Pack, policy: str, body: dict[str, Any]) -> Iterator[tuple[Question, Situation]]:
    """Every question on one policy, with what it is about; situations that its guard leaves open are skipped."""
    for each in situations(pack, body):
        permitted = answer(pack, policy, each)
        if permitted is not None:
            for form in body["ask"]:
                yield Question(policy, _put(form, each.words, body.get("says", {})), permitted), each


def answer(pack: Pack, policy: str, each: Situation) -> bool | None:
    """What the guard says of a situation; None where that hangs on more."""
    done = evaluate(pack.guards[policy], each.arguments, AskedFacts(each.facts), tool=each.tool, now=pack.now)
    outcomes = {one.outcome for one in done}
    return outcomes == {"permit"} if outcomes in ({"permit"}, {"deny"}) else None


def _put(form: str, words: Mapping[str, Any], says: Mapping[str, Mapping[Any, str]]) -> str:
    for name, value in words.items():
        short = name.split(".")[-1]
        spelt = " ".join(cast(list[str], value)) if isinstance(value, list) else value
        told = says.get(name) or says.get(short) or {}
        text = str(told.get(spelt, spelt)).replace("_", " ")
        form = form.replace(f"{{{name}}}", text).replace(f"{{{short}}}", text)
    return form[0].upper() + form[1:]


def prompt(pack: str, question: str, policy: PolicyPlace) -> list[ChatMessage]:
    """A question as a model gets it."""
    held = pack_named(pack)
    about = f"You know the handbook of {held.title}. Answer with Yes or No."
    if policy == "context" and held.document is not None:
        about += f"\n\n{held.document.text}"
    return [{"role": "system", "content": about}, {"role": "user", "content": question}]


def examine(asked: Sequence[Question], leaning: Sequence[float]) -> Known:
    """How a model did, from how much it leans to yes at each question."""
    right = [(value > 0) == question.answer for question, value in zip(asked, leaning, strict=True)]
    middle = sorted(leaning)[len(leaning) // 2]
    settled = [(value >= middle) == question.answer for question, value in zip(asked, leaning, strict=True)]
    by_policy: dict[str, list[bool]] = {}
    for question, value in zip(asked, right, strict=True):
        by_policy.setdefault(question.policy, []).append(value)
    return Known(
        len(asked),
        sum(right) / len(right),
        sum(value > 0 for value in leaning) / len(leaning),
        sum(settled) / len(settled),
        {policy: sum(values) / len(values) for policy, values in sorted(by_policy.items())},
    )


def know(
    agent: Agent, pack: str, policy: PolicyPlace, *, limit: int | None = None
) -> tuple[list[dict[str, Any]], Known]:
    """What an agent knows, question by question and as a whole."""
    asked = questions(pack)[:limit]
    found = leanings(agent, [prompt(pack, question.text, policy) for question in asked])
    lines = [
        {"policy": question.policy, "text": question.text, "answer": question.answer, "leaning": leaning}
        for question, leaning in zip(asked, found, strict=True)
    ]
    return lines, examine(asked, found)
