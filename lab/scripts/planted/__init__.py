"""Deliberate bugs, each a wrong line that the tests must detect. Start with `bug.py`. `plant_bugs.py` plants
each bug.
"""

from planted import adapters, align, audit, engine, facts, guard, live, reading, rule, served, written
from planted.bug import Bug

BUGS: tuple[Bug, ...] = tuple(
    bug
    for part in (facts, engine, rule, guard, audit, live, written, reading, served, adapters, align)
    for bug in part.BUGS
)

__all__ = ["BUGS", "Bug"]
