"""The operations that a plan is made of (ShieldAgent, 3.3), as typed steps; each has a name that later ones use.

A plan belongs to a rule, not to a conversation: `{argument}` in it stands for what the call at hand names so.
"""

from collections.abc import Collection, Mapping
from typing import Literal

from msgspec import Struct

from bylaw.errors import FormulaError
from bylaw.rule.formula import atoms
from bylaw.rule.parser import parse

By = Literal["user", "agent", "tool", "anyone"]
MOST_STEPS = 12
LONGEST = 400
"""A formula has no more characters than these."""


class Search(Struct, frozen=True, tag_field="operation", tag="search"):
    """Finds pieces of the history by their words, without a model."""

    name: str
    words: str
    by: By = "anyone"
    last: int = 0
    """So many of the latest pieces are taken, whatever they say."""


class Check(Struct, frozen=True, tag_field="operation", tag="binary_check"):
    """Asks a model a question about what searches found: yes, no, or not known."""

    name: str
    question: str
    uses: tuple[str, ...] = ()


class Detect(Struct, frozen=True, tag_field="operation", tag="detect"):
    """Whether what searches found holds something of a kind: by a detector of that name, else by a model."""

    name: str
    kind: str
    uses: tuple[str, ...] = ()


class Verify(Struct, frozen=True, tag_field="operation", tag="formal_verify"):
    """A formula over earlier answers, checked by the engine that checks the rules themselves.

    With operators over time it is read over the steps of the history: an answer holds at the steps it quotes.
    """

    name: str
    formula: str


class Argument(Struct, frozen=True):
    """What a tool of the user's is given."""

    name: str
    value: str
    """`{history}` and `{call}` stand for the whole of them, as data."""


class Use(Struct, frozen=True, tag_field="operation", tag="use"):
    """An operation that the user added, such as a tool of an MCP server."""

    name: str
    tool: str
    arguments: tuple[Argument, ...] = ()


Step = Search | Check | Detect | Verify | Use


class Plan(Struct, frozen=True):
    """Steps in an order in which they can be taken; the one named as a predicate gives its value."""

    steps: tuple[Step, ...]

    def by_name(self) -> dict[str, Step]:
        return {step.name: step for step in self.steps}

    def faults(self, predicates: Collection[str], tools: Collection[str] = ()) -> list[str]:
        """Why it cannot be carried out for these predicates; empty where it can."""
        found: list[str] = []
        known: dict[str, Step] = {}
        if not 0 < len(self.steps) <= MOST_STEPS:
            found.append(f"a plan has 1 to {MOST_STEPS} steps, this one {len(self.steps)}")
        for step in self.steps:
            if not step.name.isidentifier() or step.name in known:
                found.append(f"`{step.name}` is no name of its own")
            found += [f"`{step.name}` uses `{name}`, which no step before it is" for name in used(step, known)]
            if isinstance(step, Use) and step.tool not in tools:
                found.append(f"`{step.name}` uses the tool `{step.tool}`, which there is not")
            known[step.name] = step
        for name in predicates:
            if name not in known:
                found.append(f"no step is named `{name}`")
            elif isinstance(known[name], Search):
                found.append(f"`{name}` is a search, and a search has no value")
        return found


def used(step: Step, known: Mapping[str, Step]) -> list[str]:
    """Names that a step uses and that are not known, or cannot be used so."""
    match step:
        case Check(uses=names) | Detect(uses=names):
            return [name for name in names if name not in known]
        case Verify(formula=text):
            if len(text) > LONGEST:
                return [f"a formula of {len(text)} characters"]
            try:
                return [name for name in atoms(parse(text)) if name not in known or isinstance(known[name], Search)]
            except FormulaError as error:
                return [f"{text}: {error.message}"]
        case Search() | Use():
            return []
