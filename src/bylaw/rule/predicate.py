"""Predicates: booleans over an act, and the ways to find their value, cheap ones first.

Code in the guard language and guards' verdicts come in compiled: this area is the guards' sibling, and imports none.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, Protocol

import msgspec

from bylaw.errors import CircuitError
from bylaw.rule.circuit import Assessment, Value
from bylaw.rule.detectors import DETECTORS, matches
from bylaw.rule.inference import Inference
from bylaw.rule.table import Table


class AnyAct(Protocol):
    """What a predicate is asked of: one message or one call of the agent."""

    @property
    def tool(self) -> str | None:
        """The tool called; None for a message."""
        ...

    @property
    def arguments(self) -> Mapping[str, object]:
        """The call's arguments."""
        ...

    @property
    def text(self) -> str:
        """The message's text, or the arguments as text."""
        ...


Finder = Callable[[AnyAct], Value]
"""Finds a predicate's value for an act; None where it cannot."""


class Tool(msgspec.Struct, frozen=True, tag="tool"):
    """True of a call of this tool, whose arguments meet the condition where one is given."""

    tool: str
    condition: str = ""
    """Guard-language code over the call."""


class Code(msgspec.Struct, frozen=True, tag="code"):
    """Guard-language code over facts and events."""

    code: str


class Pattern(msgspec.Struct, frozen=True, tag="pattern"):
    """A regular expression, searched in the act's text without regard to case."""

    pattern: str


class Detector(msgspec.Struct, frozen=True, tag="detector"):
    """A detector by name: a built-in one, or any callable that was passed in."""

    detector: str


class GuardVerdict(msgspec.Struct, frozen=True, tag="guard"):
    """True where the guard of this policy gives this verdict."""

    policy: str
    verdict: Literal["permit", "deny"] = "deny"


class Model(msgspec.Struct, frozen=True, tag="model"):
    """A question for the model that is passed in, which answers with a probability (the paper's Binary-Check)."""

    question: str


Way = Tool | Code | Pattern | Detector | GuardVerdict | Model

COSTS: dict[type, float] = {Tool: 1.0, Pattern: 2.0, Detector: 3.0, Code: 3.0, GuardVerdict: 5.0, Model: 1000.0}
"""What a way costs where the predicate does not say, in about microseconds."""


class CircuitPredicate(msgspec.Struct, frozen=True, kw_only=True):
    """A boolean over an act."""

    name: str
    kind: Literal["action", "state"] = "state"
    description: str = ""
    keywords: tuple[str, ...] = ()
    way: Way | None = None
    """How its value is found; None: nobody can, and it stays unknown."""
    cost: float | None = None

    @property
    def price(self) -> float:
        """What finding the value costs."""
        if self.cost is not None:
            return self.cost
        return COSTS[type(self.way)] if self.way is not None else 0.0

    @property
    def text(self) -> str:
        """The predicate in words, for embeddings."""
        return " ".join([self.name.replace("_", " "), self.description, *self.keywords])


class Means(msgspec.Struct, frozen=True, kw_only=True):
    """What finding values rests on, passed in by those who have it."""

    code: Callable[[str], Finder] | None = None
    """Compiles guard-language code."""
    guard: Callable[[str], Callable[[AnyAct], Literal["permit", "deny", "undetermined"]]] | None = None
    """A policy's guard, by id."""
    model: Callable[[str, AnyAct], float] | None = None
    """Answers a yes-or-no question about an act with the probability of yes."""
    detectors: Mapping[str, Finder] = {}


def finder(predicate: CircuitPredicate, means: Means) -> Finder:
    """The predicate's way, ready to be asked; one that needs what was not passed in finds nothing."""
    way = predicate.way
    match way:
        case Tool():
            return _tool(way, means)
        case Code():
            return means.code(way.code) if means.code else _nothing
        case Pattern():
            return matches(way.pattern)
        case Detector():
            return _detector(way.detector, predicate.name, means)
        case GuardVerdict():
            return _guard(way, means)
        case Model():
            return _model(way.question, means)
        case None:
            return _nothing


def cheapest_first(predicates: Iterable[CircuitPredicate]) -> list[CircuitPredicate]:
    """In the order in which to try them."""
    return sorted(predicates, key=lambda each: (each.price, each.name))


def settle(
    inference: Inference,
    act: AnyAct,
    predicates: Mapping[str, CircuitPredicate],
    means: Means,
    *,
    known: Mapping[str, Value] | None = None,
    tables: Mapping[str, Table] | None = None,
) -> tuple[Assessment, dict[str, Value]]:
    """Finds values until the interval answers, or none is left to find.

    Of the predicates that can still move the answer the cheapest goes first, among equals the most telling.
    """
    evidence = dict(known or {})
    tried = {name for name, value in evidence.items() if value is not None}
    while True:
        found = inference.assess(evidence, tables=tables)
        open_ = [name for name in found.influence if name in predicates and name not in tried]
        if found.decision != "ask" or not open_:
            return found, evidence
        name = min(open_, key=lambda each: (predicates[each].price, -found.influence[each], each))
        tried.add(name)
        evidence[name] = finder(predicates[name], means)(act)


def _nothing(act: AnyAct) -> None:
    return None


def _tool(way: Tool, means: Means) -> Finder:
    if not way.condition:
        return lambda act: act.tool == way.tool
    if means.code is None:
        return lambda act: False if act.tool != way.tool else None
    condition = means.code(way.condition)
    return lambda act: act.tool == way.tool and condition(act)


def _detector(name: str, predicate: str, means: Means) -> Finder:
    found = means.detectors.get(name) or DETECTORS.get(name)
    if found is None:
        raise CircuitError(
            f"predicate `{predicate}` names the detector `{name}`, which nobody passed in",
            hint=f"built in are {', '.join(f'`{each}`' for each in DETECTORS)}",
        )
    return found


def _guard(way: GuardVerdict, means: Means) -> Finder:
    if means.guard is None:
        return _nothing
    judge = means.guard(way.policy)

    def find(act: AnyAct) -> bool | None:
        verdict = judge(act)
        return None if verdict == "undetermined" else verdict == way.verdict

    return find


def _model(question: str, means: Means) -> Finder:
    model = means.model
    if model is None:
        return _nothing

    def find(act: AnyAct) -> float:
        # A model is never certain: an answer of 0 or 1 would count as known and leave the interval unsound.
        return min(max(float(model(question, act)), 1e-6), 1.0 - 1e-6)

    return find
