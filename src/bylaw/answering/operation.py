"""The typed operations in a plan (ShieldAgent, section 3.3).

Each step has a name, by which later steps refer to it. A plan belongs to a rule, not to a conversation, so `{argument}`
in a plan is replaced by that argument of the call.
"""

from collections.abc import Collection, Mapping
from typing import Literal

from msgspec import Struct

from bylaw.errors import FormulaError
from bylaw.rule.formula import atoms, parse

By = Literal["user", "agent", "tool", "anyone"]
MOST_STEPS = 12
LONGEST = 400
"""The maximum length of a formula."""


class Search(Struct, frozen=True, tag_field="operation", tag="search"):
    """Searches the history for words, without a model."""

    name: str
    words: str
    by: By = "anyone"
    last: int = 0
    """The number of latest pieces to include, whatever they contain."""


class Check(Struct, frozen=True, tag_field="operation", tag="binary_check"):
    """Asks a model a yes-or-no question about search results."""

    name: str
    question: str
    uses: tuple[str, ...] = ()


class Detect(Struct, frozen=True, tag_field="operation", tag="detect"):
    """Checks whether search results contain content of the given kind, with the detector of that name or, without one,
    with a model.
    """

    name: str
    kind: str
    uses: tuple[str, ...] = ()


class Verify(Struct, frozen=True, tag_field="operation", tag="formal_verify"):
    """Evaluates a formula over earlier answers, like a rule.

    A formula with temporal operators is evaluated over the steps of the history. An answer holds at the steps that it
    quotes.
    """

    name: str
    formula: str


class Argument(Struct, frozen=True):
    """An argument of a user-defined tool."""

    name: str
    value: str
    """The value, in which `{history}` and `{call}` are replaced by the full history and the full call, as data."""


class Use(Struct, frozen=True, tag_field="operation", tag="use"):
    """Calls a user-defined operation, such as a tool of an MCP server."""

    name: str
    tool: str
    arguments: tuple[Argument, ...] = ()


Step = Search | Check | Detect | Verify | Use


class Plan(Struct, frozen=True):
    """Steps in the order in which they run. A step with a predicate's name determines the value of that predicate."""

    steps: tuple[Step, ...]

    def by_name(self) -> dict[str, Step]:
        return {step.name: step for step in self.steps}

    def faults(self, predicates: Collection[str], tools: Collection[str] = ()) -> list[str]:
        """Return why the plan cannot be run for these predicates. Empty if it can be run."""
        found: list[str] = []
        known: dict[str, Step] = {}
        if not 0 < len(self.steps) <= MOST_STEPS:
            found.append(f"a plan has 1 to {MOST_STEPS} steps, this one {len(self.steps)}")
        for step in self.steps:
            if not step.name.isidentifier() or step.name in known:
                found.append(f"`{step.name}` is not a unique name")
            found += [f"`{step.name}` uses {fault}" for fault in _faults(step, known, tools)]
            known[step.name] = step
        found += [f"no step is named `{name}`" for name in predicates if name not in known]
        searches = (name for name in predicates if isinstance(known.get(name), Search))
        return found + [f"`{name}` is a search, and a search has no value" for name in searches]


def _faults(step: Step, known: Mapping[str, Step], tools: Collection[str]) -> list[str]:
    """Return the unknown or unsuitable steps and operations to which a step refers."""
    match step:
        case Check(uses=names) | Detect(uses=names):
            wrong = [name for name in names if name not in known]
        case Verify(formula=text):
            if len(text) > LONGEST:
                return [f"a formula of {len(text)} characters"]
            try:
                wrong = [name for name in atoms(parse(text)) if isinstance(known.get(name), Search | None)]
            except FormulaError as error:
                return [f"an invalid formula: {text}: {error.message}"]
        case Use(tool=tool):
            return [] if tool in tools else [f"the unknown tool `{tool}`"]
        case Search():
            return []
    return [f"`{name}`, which is not an earlier step" for name in wrong]
