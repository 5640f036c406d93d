"""Determines each policy's kind and tools, and the facts that only the user can state."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from bylaw.compile.card import Card
from bylaw.compile.context import catalogue_text
from bylaw.compile.desk import Desk, grouped, json_prompt, stage
from bylaw.compile.span import Draft
from bylaw.policy.pattern import PatternError, compile_pattern
from bylaw.policy.statement import PolicyKind, Severity

TOGETHER = 12
"""The maximum number of policies per question."""


class Saying(Struct, frozen=True):
    """A phrase that a user may say, and the value that the phrase gives a fact."""

    value: str
    pattern: str


class UserFact(Struct, frozen=True):
    name: str
    type: Literal["boolean", "enum", "string", "integer", "money", "date"]
    values: tuple[str, ...] = ()
    question: str = ""
    said: bool = False
    """Whether silence counts against the user: not mentioning the fact then breaks the policy, or means no.

    A fact that the user does not mention is None.
    """
    argument: str = ""
    sayings: tuple[Saying, ...] = ()


class Sorted(Struct, frozen=True):
    """The kind, tools and facts of one policy."""

    id: str
    kind: PolicyKind
    tools: tuple[str, ...] = ()
    severity: Severity = "medium"
    general: bool = False
    user_facts: tuple[UserFact, ...] = ()
    why: str = ""


class _Answer(Struct, frozen=True):
    policies: tuple[Sorted, ...]


_SORT = json_prompt("sort", _Answer, max_tokens=8192)


@stage
def sort(
    desk: Desk, drafts: Sequence[Draft], cards: Mapping[str, Card], known: Mapping[str, Sorted]
) -> dict[str, Sorted]:
    """Classify each policy. Asks only about policies that are not classified yet."""

    def ask(group: Sequence[Draft]) -> dict[str, Sorted]:
        policies = "\n\n".join(draft_text(draft) for draft in group)
        shown = {"tools": catalogue_text(cards, policies), "policies": policies}
        return desk.ask(_SORT, shown, lambda answer: _judged(answer, group, cards), empty={}).made

    fitting = {name: each for name, each in known.items() if cards.keys() >= set(each.tools)}
    found = {draft.id: fitting[draft.id] for draft in drafts if draft.id in fitting}
    for said in desk.each(grouped([draft for draft in drafts if draft.id not in found], TOGETHER), ask):
        found |= said
    return found


def draft_text(draft: Draft) -> str:
    """Return a policy's text as later questions show it."""
    quotes = "\n".join(f"  > {' '.join(quote.split())}" for quote in draft.quotes)
    more = f"\n  To look at: {draft.description}" if draft.description else ""
    cited = "".join(f"\n  It refers to {each}" for each in draft.refers.splitlines())
    cited += "".join(f"\n  {each}" for each in draft.remark.splitlines())
    return f"{draft.id}\n  {draft.definition}\n  Applies to: {draft.scope}{more}{cited}\n{quotes}"


def request_fields(facts: Sequence[UserFact]) -> dict[str, Any]:
    """Return the fields of `Request` in `entities.yaml`. If two facts have the same name, the first one is used."""
    fields: dict[str, Any] = {}
    counts_silence = {fact.name for fact in facts if fact.said}
    for fact in facts:
        if fact.name in fields or not fact.name.isidentifier():
            continue
        is_nullable = fact.name in counts_silence
        body: dict[str, Any] = {"type": f"{fact.type}{'?' if is_nullable else ''}", "origin": "user"}
        body["question"] = fact.question
        if fact.type == "enum":
            body["values"] = list(fact.values)
        # An argument shows what the agent claims, not what the user said.
        ways: list[dict[str, Any]] = [{"argument": fact.argument}] if fact.argument and not is_nullable else []
        for saying in fact.sayings:
            value = saying.value.lower() == "true" if fact.type == "boolean" else saying.value
            # If no value is given, the last group of the pattern provides it.
            ways.append({"says": saying.pattern} | ({"value": value} if value != "" else {}))
        fields[fact.name] = {**body, "from": ways} if ways else body
    return fields


def _judged(answer: _Answer, group: Sequence[Draft], cards: Mapping[str, Card]) -> tuple[dict[str, Sorted], list[str]]:
    ids = {draft.id for draft in group}
    found: dict[str, Sorted] = {}
    complaints: list[str] = []
    for each in answer.policies:
        wrong = _faults(each, ids, cards)
        complaints += wrong + _figures(each)
        if not wrong:
            found[each.id] = replace(each, user_facts=tuple(_without_figures(fact) for fact in each.user_facts))
    said = {each.id for each in answer.policies}
    return found, complaints + [f"nothing is said of `{draft.id}`" for draft in group if draft.id not in said]


_FIGURES = ("integer", "money", "date")
"""Types with more values than patterns can tell apart."""


def _figures(each: Sorted) -> list[str]:
    """Complain about patterns that give a number a fixed value. Such a pattern would read "no extra bags" as no bags at
    all.
    """
    return [
        f"`{each.id}`: `{fact.name}` is of type {fact.type}, and people state figures in more ways than patterns with"
        " fixed values can tell: give patterns whose last group is the figure, each with an empty `value`; or leave its"
        " `sayings` empty, so that the user is asked; or make it a boolean or an enum of what the policy tells apart;"
        " or, where only a reader of the conversation could tell, say so with the kind"
        for fact in each.user_facts
        if _without_figures(fact) != fact
    ]


def _without_figures(fact: UserFact) -> UserFact:
    """Remove the patterns with fixed values from a numeric fact, in case the model keeps them despite the complaint."""
    sayings = tuple(saying for saying in fact.sayings if not saying.value)
    return replace(fact, sayings=sayings) if fact.type in _FIGURES else fact


def _faults(each: Sorted, ids: set[str], cards: Mapping[str, Card]) -> list[str]:
    if each.id not in ids:
        return [f"`{each.id}` is not one of the policies"]
    wrong = [f"`{each.id}`: `{tool}` is not a tool" for tool in each.tools if tool not in cards]
    if each.kind == "guard" and not each.tools:
        wrong.append(f"`{each.id}` is a guard, but binds no tool")
    given = {name for tool in each.tools if tool in cards for name in cards[tool].parameters}
    for fact in each.user_facts:
        if fact.argument and fact.argument not in given:
            wrong.append(f"`{each.id}`: `{fact.argument}` is not an argument of the tools it binds")
        if fact.type == "enum" and not fact.values:
            wrong.append(f"`{each.id}`: the enumeration `{fact.name}` has no words")
        for saying in fact.sayings:
            try:
                compile_pattern(saying.pattern)
            except PatternError as error:
                wrong.append(f"`{each.id}`: the pattern `{saying.pattern}` cannot be used: {error.message}")
            if fact.type == "enum" and saying.value not in fact.values:
                wrong.append(f"`{each.id}`: `{saying.value}` is not one of the words of `{fact.name}`")
    return wrong
