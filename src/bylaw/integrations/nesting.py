"""Agents inside the tools of other agents: which calls are being carried out here, and so whose agent is at work.

What an inner agent is told was written by the outer one and is nobody's word; what it says is not said to the user. Its
calls are decided on in the outer conversation, so that one yes is one write, whoever makes it.
"""

from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import Any

from msgspec import Struct

from bylaw.integrations.follower import Follower


class Carried(Struct, eq=False):
    """A call that is being carried out."""

    tool: str
    id: str
    follower: Follower
    agent: str
    """The inner agent that makes it."""
    place: str = ""
    """Where in the framework it runs."""
    is_running: bool = False
    """Whether the tool itself was seen to begin."""


Carrying = tuple[Carried, ...]
_WITHIN: ContextVar[Carrying] = ContextVar("bylaw_within", default=())


def begin(tool: str, id: str, follower: Follower, place: str = "") -> Token[Carrying]:
    """From here on this task carries out a call: whatever agent is run in it is an inner one."""
    agent = inner_agent()
    follower.begin(id, tool, agent=agent)
    return _WITHIN.set((*_WITHIN.get(), Carried(tool, id, follower, agent, place)))


def end(token: Token[Carrying]) -> None:
    """The call is done."""
    done = _WITHIN.get()[-1]
    done.follower.finish(done.id, agent=done.agent)
    _WITHIN.reset(token)


def carried() -> Carried | None:
    """The call that this task carries out, the innermost of several."""
    return _WITHIN.get()[-1] if _WITHIN.get() else None


def is_begun(id: str) -> bool:
    found = carried()
    return found is not None and found.id == id


def inner_agent(id: str = "") -> str:
    """The name of the inner agent that is at work here, or that asked for a call; empty for the main one."""
    within = _WITHIN.get()
    if id and is_begun(id):
        within = within[:-1]
    return " > ".join(f"{each.tool} ({each.id})" for each in within)


def watch(owner: Any, name: str, watched: Callable[[Any], Any]) -> None:
    """See to it that a framework's own method puts the shield before the agents that run inside a call."""
    given = getattr(owner, name)
    if not hasattr(given, "bylaw"):
        made = watched(given)
        made.bylaw = given
        setattr(owner, name, made)
