"""What was measured: predicates settled, calls ruled on."""

from typing import NamedTuple

from answers.sites import Site

SHOWN = 300
"""Characters of a tool's answer that the baselines are shown; what was said and called they are shown whole."""


class Settled(NamedTuple):
    """One predicate at one call."""

    site: Site
    predicate: str
    value: bool | None
    queries: int
    because: str


class Ruled(NamedTuple):
    """What a guard makes of a call."""

    site: Site
    stops: bool
    named: frozenset[str]
    queries: int


class Results(NamedTuple):
    """What was found, by memory and by guard."""

    settled: dict[str, list[Settled]]
    ruled: dict[str, list[Ruled]]
