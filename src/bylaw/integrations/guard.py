"""What the adapters of all frameworks share: conversations by their names, inner agents, and one way to a decision.

An inner agent is run by a tool of another. Its messages were written by the outer agent, so they are nobody's word; its
own words are not said to the user. Its calls are decided on in the outer conversation, so that one yes is one write.
"""

import asyncio
import copy
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar, Token
from pathlib import Path
from typing import Any, Self

from msgspec import Struct
from msgspec.structs import replace

from bylaw.engine.door import PRINCIPAL, is_of_one
from bylaw.errors import UsageError
from bylaw.integrations.follower import Follower
from bylaw.integrations.history import Asked, Heard, Part
from bylaw.integrations.pausing import Prompt, decide
from bylaw.pack import Pack
from bylaw.shield import Decision, LiveSession, Shield
from bylaw.shield.history import linked

MOST = 1_000
"""Conversations kept at once."""
Vouched = Mapping[str, Any] | None
Context = Vouched | Callable[[Any], Vouched]
"""What the host vouches for: the same for all conversations, or a function of what the framework knows of the run."""


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
    """From here on this task carries out a call: every agent that it runs is an inner one."""
    agent = inner_agent()
    follower.begin(id, tool, agent=agent)
    return _WITHIN.set((*_WITHIN.get(), Carried(tool, id, follower, agent, place)))


def end(token: Token[Carrying]) -> None:
    """The call is done."""
    done = _WITHIN.get()[-1]
    done.follower.finish(done.id, agent=done.agent)
    _WITHIN.reset(token)


class Execution:
    """A call that was allowed, while this task carries it out: a context manager, for coroutines too.

    After an exception in `held`, the framework makes the call again. After one in `reported`, its history tells what
    became of the call. After any other, the call may have been carried out or not.
    """

    def __init__(
        self,
        follower: Follower,
        call: Asked,
        decision: Decision,
        agent: str,
        *,
        place: str = "",
        held: tuple[type[BaseException], ...] = (),
        reported: tuple[type[BaseException], ...] = (),
    ) -> None:
        self._follower, self._call, self._decision, self._agent = follower, call, decision, agent
        self._place, self._held, self._reported = place, held, reported

    def __enter__(self) -> None:
        self._token = begin(self._call.tool, self._call.id, self._follower, self._place)

    def __exit__(self, _: Any, error: BaseException | None, __: Any) -> None:
        try:
            if error is not None:
                self._broken_off(error)
        finally:
            end(self._token)

    async def __aenter__(self) -> None:
        self.__enter__()

    async def __aexit__(self, _: Any, error: BaseException | None, __: Any) -> None:
        try:
            if error is not None:
                await asyncio.shield(asyncio.to_thread(self._broken_off, error))
        finally:
            end(self._token)

    def _broken_off(self, error: BaseException) -> None:
        if isinstance(error, self._held):
            self._follower.interrupted(self._call.id, self._decision, agent=self._agent)
        elif not isinstance(error, self._reported):
            self._follower.answered(self._call.id, "", captured=False, agent=self._agent)


def carried() -> Carried | None:
    """The call that this task carries out, the innermost of several."""
    return _WITHIN.get()[-1] if _WITHIN.get() else None


def is_begun(id: str) -> bool:
    """Whether this task carries out the call of this id."""
    found = carried()
    return found is not None and found.id == id


def inner_agent(id: str = "") -> str:
    """The name of the inner agent that is at work here, or that asked for a call; empty for the main one."""
    within = _WITHIN.get()
    if id and is_begun(id):
        within = within[:-1]
    return " > ".join(f"{each.tool} ({each.id})" for each in within)


def watch(owner: Any, name: str, watched: Callable[[Any], Any]) -> None:
    """Put the shield before the agents that run inside a call, by way of a framework's own method.

    No framework reports that a tool runs an agent of its own, and an inner agent without the shield must not act.
    """
    given = getattr(owner, name)
    if not hasattr(given, "bylaw"):
        made = watched(given)
        made.bylaw = given
        setattr(owner, name, made)


class Followers:
    """The conversations of a framework that hands over the history each time: one let go is simply read again.

    What a host vouches for may differ from one run to the next. The principal is whoever `signed_in_as` names. If
    another one goes on in the same thread, a conversation of their own begins, linked by its name: what the first has
    agreed to, given as a reason or had approved is not theirs.
    """

    def __init__(self, shield: Shield | Pack | str | Path, context: Context = None) -> None:
        self.shield = shield if isinstance(shield, Shield) else Shield(shield)
        self._context = context
        self._kept: OrderedDict[str, Follower] = OrderedDict()
        self._speaking: dict[str, Follower] = {}
        """By the key of a history, whose conversation had the word last."""
        self._lock = threading.Lock()

    def get(self, key: str, run: Any = None, *, unnamed: str = "") -> Follower:
        """The follower of a conversation; without a key it is one of its own, in which the user's answers do not count.

        `run` is what the framework knows of the run, for a context that is told by it. `unnamed` tells conversations
        without a key apart.
        """
        context = self._context(run) if callable(self._context) else self._context
        if not key:
            follower = self._kept.get(unnamed) or Follower(self.shield.session(context=context), answers="none")
            return self._keep(unnamed, follower) if unnamed else follower
        with self._lock:
            follower = first = self._kept_or_new(key, context)
            passes_on = first.session.may_be_handed_over
            if not passes_on and not _is_same(first.session.context, context):
                first.leave()
                follower = self._kept_or_new(linked(key, context), context, is_linked=True)
            known = follower.session.context
            if passes_on or {**known, **(context or {})} != known:
                follower.hear(context)
            before = self._speaking.get(key)
            if before is not None and before is not follower:
                before.leave()
            self._speaking[key] = follower
            return follower

    def _kept_or_new(self, name: str, context: Vouched, *, is_linked: bool = False) -> Follower:
        follower = self._kept.get(name)
        return self._keep(name, follower or Follower(self._session(name, context), is_linked=is_linked))

    def _keep(self, name: str, follower: Follower) -> Follower:
        self._kept[name] = follower
        self._kept.move_to_end(name)
        if len(self._kept) > MOST:
            gone, _ = self._kept.popitem(last=False)
            self._speaking.pop(gone, None)
        return follower

    def _session(self, name: str, context: Vouched) -> LiveSession:
        """The conversation of this name, whoever it belongs to."""
        session = self.shield.session(name, context=context)
        try:
            session.trajectory()
        except UsageError:
            # It was opened with another context, which stays its own.
            session = self.shield.session(name)
            session.trajectory()
        return session

    def known(self, key: str) -> Follower | None:
        """The follower of a conversation, if there is one."""
        return self._kept.get(key)


def _is_same(one: Vouched, other: Vouched) -> bool:
    """Whether two contexts are of one principal; if neither names one, whether they are equal."""
    ours, theirs = dict(one or {}), dict(other or {})
    return other is None or (is_of_one(ours, theirs) and (PRINCIPAL in ours or ours == theirs))


class Guard:
    """The shield before the tools of one framework's agents."""

    def __init__(self, shield: Shield | Pack | str | Path, context: Context = None) -> None:
        self.followers = Followers(shield, context)
        self.shield = self.followers.shield
        self._agent = ""

    def inner(self, agent: str) -> Self:
        """The same, before an agent whose messages are not the user's."""
        other = copy.copy(self)
        other._agent = agent
        return other

    @property
    def agent(self) -> str:
        """The inner agent that is at work here; empty for the main one."""
        return self._agent or inner_agent()

    def decide(
        self,
        key: str,
        run: Any,
        parts: Sequence[Part],
        call: Asked,
        put: Callable[[Prompt], Any] | None = None,
        *,
        replays: bool = False,
        unnamed: str = "",
    ) -> tuple[Follower, str, Decision]:
        """The conversation that a call belongs to, the inner agent that makes the call, and the decision.

        `key` names the conversation that the framework keeps, `parts` is its history, `put` asks the user.
        """
        if agent := self.agent:
            follower, agent = self.outer(key, run, agent)
            if agent:
                follower.plan_last(parts, call.id, agent)
            else:
                follower.follow(disowned(parts))
            return follower, agent, decide(follower, call, None, agent=agent)
        follower = self.followers.get(key, run, unnamed=unnamed)
        follower.follow(parts)
        return follower, "", decide(follower, call, put, replays=replays)

    def outer(self, key: str, run: Any, agent: str) -> tuple[Follower, str]:
        """The conversation that an inner agent works for, and its name there.

        If nobody knows which one that is, or it is under another pack, the agent has a conversation of its own, in
        which no user speaks; there it has no name.
        """
        found = carried()
        if found is not None and found.follower.session.pack.pin == self.shield.pack.pin:
            return found.follower, agent
        if found is None and key and self._knows(key):
            return self.followers.get(key, run), agent
        base = found.follower.session.id if found is not None else key
        return self.followers.get(f"{base} > {agent}" if base else "", run), ""

    def _knows(self, key: str) -> bool:
        if self.followers.known(key) is not None:
            return True
        return self.shield.log is not None and self.shield.session(key).has_begun

    def end(self, key: str, run: Any, parts: Sequence[Part], *, unnamed: str = "") -> None:
        """A run is over: what the agent said in the end belongs to the conversation too."""
        if not self.agent:
            follower = self.followers.get(key, run, unnamed=unnamed)
            follower.follow(parts)
            follower.end()


class Adapter:
    """The shield in a framework that hands over the history. Each adapter maps the framework's hooks to it."""

    def __init__(
        self,
        shield: Shield | Pack | str | Path,
        *,
        context: Context = None,
        pauses: bool = False,
        instruct: bool = False,
        **more: Any,
    ) -> None:
        super().__init__(**more)
        self._pauses = pauses
        self._guard = Guard(shield, context)
        self.shield = self._guard.shield
        self._instructions = self.shield.instructions() if instruct else ""

    def inner(self, agent: str) -> Self:
        """The shield for an agent whose messages your code or another agent writes, in the same conversations.

        Not needed for an agent that a tool runs in its own task or thread: that is seen. Name each such agent.
        """
        other = copy.copy(self)
        other._guard = self._guard.inner(agent)
        return other

    @property
    def instructions(self) -> str:
        """What to add to the system prompt; empty without `instruct`, and for an inner agent, which asks no user."""
        return "" if self._guard.agent else self._instructions

    def follower(self, conversation: str) -> Follower | None:
        """What the shield knows of a conversation, by the name that the framework gives it."""
        return self._guard.followers.known(conversation)


def joined(prompt: str | None, instructions: str) -> str:
    """A system prompt followed by instructions, once."""
    if not prompt or not instructions:
        return prompt or instructions
    return prompt if instructions in prompt else f"{prompt}\n\n{instructions}"


def disowned(parts: Sequence[Part]) -> list[Part]:
    """A history in which the messages in the user's name are not theirs."""
    return [replace(part, text="", whole=False) if isinstance(part, Heard) else part for part in parts]
