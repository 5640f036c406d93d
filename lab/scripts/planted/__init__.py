"""Deliberate bugs, each a wrong line that the tests must notice. Start at `bug.py`; `plant_bugs.py` tries them."""

from planted import audit, engine, facts, guard, live, rule, written
from planted.bug import Bug

BUGS: tuple[Bug, ...] = (*facts.BUGS, *engine.BUGS, *rule.BUGS, *guard.BUGS, *audit.BUGS, *live.BUGS, *written.BUGS)

__all__ = ["BUGS", "Bug"]
