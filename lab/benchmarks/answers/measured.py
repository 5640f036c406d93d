"""Records of what was measured: decided predicates and judged calls."""

from typing import NamedTuple

from answers.sites import Site

SHOWN = 300
"""The number of characters of a tool result in the prompts of the baselines. Messages and calls are never cut."""


class Settled(NamedTuple):
    """One predicate at one call."""

    site: Site
    predicate: str
    value: bool | None
    queries: int
    because: str


class Ruled(NamedTuple):
    """A guardrail's result for a call."""

    site: Site
    stops: bool
    named: frozenset[str]
    queries: int


class Results(NamedTuple):
    """The results, by memory and by guardrail."""

    settled: dict[str, list[Settled]]
    ruled: dict[str, list[Ruled]]
