"""The code that all adapters share: named conversations, inner agents, pauses and decisions.

An inner agent is an agent that a tool runs. The outer agent, not the user, writes its input, and the user does not see
its text. Its calls are decided in the outer conversation, so that one confirmation covers one write.

If a call needs a confirmation or approval, it pauses the framework, with one prompt for each write. The user confirms a
card, and a reviewer approves by name. An approval is never the user's confirmation. After the answer, the framework
repeats the call with the same id and arguments.
"""

import asyncio
import copy
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar, Token
from pathlib import Path
from typing import Any, Self, cast

from msgspec import Struct
from msgspec.structs import replace

from bylaw.engine.door import PRINCIPAL, goes_on, is_of_one
from bylaw.errors import BylawError, UsageError
from bylaw.facts.value import alike
from bylaw.integrations.follower import Follower, log, tell, undecided
from bylaw.integrations.history import Asked, Heard, Part
from bylaw.pack import Pack
from bylaw.shield import Decision, LiveSession, Shield
from bylaw.shield.decision import Whom
from bylaw.shield.history import linked
from bylaw.trace.event import Call, Message


class Prompt(Struct, frozen=True):
    """A question that must be answered before a call can run."""

    whom: Whom
    """Who must answer: the `user` or a reviewer (`person`)."""
    text: str
    tool: str
    arguments: dict[str, Any]
    id: str
    """The id of the card or approval. The answer must contain this id, so that it cannot be taken for the answer to
    another prompt.
    """


class Paused(Exception):
    """Stops a call until its prompt has an answer."""

    def __init__(self, prompt: Prompt) -> None:
        super().__init__(f"`{prompt.tool}` waits for an answer")
        self.prompt = prompt


def once(answer: Any) -> Callable[[Prompt], Any]:
    """Return a function that stops the call and shows a prompt. When the call is repeated, it uses its answer once."""
    answers = [answer] if answer is not None else []

    def put(prompt: Prompt) -> Any:
        if not answers:
            raise Paused(prompt)
        return answers.pop()

    return put


def prompts(decision: Decision) -> list[Prompt]:
    """Return the prompts to answer before a call can run. The list is empty if the call may already run or can never
    run.
    """
    if not decision.is_put:
        return []
    found: list[Prompt] = []
    card, call = decision.card, (decision.tool, decision.arguments)
    if card is not None and any(each.puts_card and not each.stands_in for each in decision.grounds):
        found.append(Prompt("user", card.text, *call, card.id))
    if decision.answer == "ask" and decision.approval:
        found.append(Prompt("person", decision.for_person, *call, decision.approval))
    return found


def is_declined(session: LiveSession, decision: Decision) -> bool:
    """Whether the user declined a card for this call, however its arguments are written, and has said nothing since. If
    so, do not ask again.
    """
    if decision.card is None:
        return False
    events = session.trajectory().events
    made = decision.tool, alike(decision.arguments)
    cards = {
        event.card.id: event.card.digest
        for event in events
        if isinstance(event, Call) and event.card is not None and (event.tool, alike(event.arguments)) == made
    }
    for event in reversed(events):
        if isinstance(event, Message) and event.by == "user":
            if event.confirmation is None:
                return False
            digest = cards.get(event.confirmation.card)
            if digest is not None and (digest == decision.card.digest or not event.confirmation.yes):
                return not event.confirmation.yes
    return False


def confirm(session: LiveSession, prompt: Prompt, yes: bool, *, by: str = "") -> None:
    """Report the user's answer to a card. `by` says how the user answered, such as with a button."""
    if prompt.whom != "user":
        raise UsageError(f"`{prompt.tool}` waits for a reviewer, not for the user", hint="use `approve`")
    session.confirm(prompt.id, yes, by=by)


def approve(session: LiveSession, prompt: Prompt, yes: bool, *, by: str, note: str = "") -> None:
    """Report a reviewer's answer. `by` is the reviewer's name for the log."""
    if prompt.whom != "person":
        hint = "show them the card, and use `confirm`"
        raise UsageError(f"`{prompt.tool}` waits for the user, and no one else can answer for them", hint=hint)
    assert session.shield.log is not None
    answer = session.shield.log.approve if yes else session.shield.log.reject
    answer(prompt.id, by=by, note=note, tenant=session.shield.tenant)


def decide(
    follower: Follower, call: Asked, put: Callable[[Prompt], Any] | None, *, agent: str = "", replays: bool = False
) -> Decision:
    """Decide a call after asking its prompts.

    `put` shows a prompt, and returns the answer or ends the run for now. Without `put`, no question is asked. Each
    prompt is shown once. A framework that `replays` runs this whole function again after an answer, and expects the
    same prompts in the same order.
    """
    session, made = follower.session, (call.id, call.tool, call.arguments)
    if put is None:
        return follower.decide(*made, agent=agent)
    was_put: set[tuple[Whom, str]] = set()
    try:
        decision = follower.asked(*made, agent=agent)
        earlier = follower.asked_before(call.id) if replays else []
    except Exception as error:
        return undecided(session.shield, call.tool, call.arguments, error)
    for before in earlier:
        if (prompt := _next(before, was_put)) is not None:
            _answer(prompt, put)
    if decision is None:
        decision = follower.decide(*made, agent=agent)
    while not is_declined(session, decision) and (prompt := _next(decision, was_put)) is not None:
        is_yes = _take(session, prompt, _answer(prompt, put))
        decision = follower.decide(*made, agent=agent)
        if is_yes is False:
            break
    return decision


def _next(decision: Decision, was_put: set[tuple[Whom, str]]) -> Prompt | None:
    """Return the next prompt and mark it as shown. A call's card and approval may have the same id."""
    found = next((each for each in prompts(decision) if (each.whom, each.id) not in was_put), None)
    if found is not None:
        was_put.add((found.whom, found.id))
    return found


def _answer(prompt: Prompt, put: Callable[[Prompt], Any]) -> Mapping[str, Any]:
    """Return the answer to this prompt. Answers to other prompts are ignored."""
    while True:
        given = put(prompt)
        if isinstance(given, Mapping):
            answer = cast("Mapping[str, Any]", given)
            if answer.get("id") == prompt.id and _is_signed(prompt, answer):
                return answer
        holds = f'"id": "{prompt.id}"' + (', "by": NAME' if prompt.whom == "person" else "")
        log.warning("not an answer to `%s` about `%s`: an answer contains {%s}", prompt.whom, prompt.tool, holds)


def _is_signed(prompt: Prompt, answer: Mapping[str, Any]) -> bool:
    """Whether the answer names its author, if a name is required. If a reviewer's name is missing, the prompt stays
    unanswered.
    """
    return prompt.whom != "person" or "approve" not in answer or bool(str(answer.get("by") or "").strip())


def _take(session: LiveSession, prompt: Prompt, answer: Mapping[str, Any]) -> bool | None:
    """Process an answer: `{"id": ..., "confirm": True, "by": "app"}`, or `{"id": ..., "approve": False, "by": "ann"}`.

    Return None if the answer does not fit the prompt. For example, an approval does not answer a card for the user.
    """
    by, note = str(answer.get("by") or ""), str(answer.get("note") or "")
    yes = answer.get("confirm" if prompt.whom == "user" else "approve")
    if not isinstance(yes, bool):
        return None
    try:
        if prompt.whom == "user":
            confirm(session, prompt, yes, by=by)
        else:
            approve(session, prompt, yes, by=by, note=note)
    except BylawError as error:
        # The next decision on the call takes into account any changes made in the meantime.
        tell(error, f"an answer about `{prompt.tool}` does not count")
        return None
    return yes


MOST = 1_000
"""The number of conversations to keep in memory."""
NO_KEY = "the call does not say which conversation it belongs to, so earlier look-ups are unknown"
FORGOTTEN = "the conversation was idle for so long that its look-ups are no longer known"
Vouched = Mapping[str, Any] | None
Context = Vouched | Callable[[Any], Vouched]
"""The host's context: a fixed value, or a function that takes the framework's run."""


class Carried(Struct, eq=False):
    """A call that is running."""

    tool: str
    id: str
    follower: Follower
    agent: str
    place: str = ""
    """The position of the call in the framework."""
    is_running: bool = False
    """Whether the tool has started."""


Carrying = tuple[Carried, ...]
_WITHIN: ContextVar[Carrying] = ContextVar("bylaw_within", default=())


def begin(tool: str, id: str, follower: Follower, place: str = "") -> Token[Carrying]:
    """Record that this task runs a call. Agents started within the task are inner agents."""
    agent = inner_agent()
    follower.begin(id, tool, agent=agent)
    return _WITHIN.set((*_WITHIN.get(), Carried(tool, id, follower, agent, place)))


def end(token: Token[Carrying]) -> None:
    done = _WITHIN.get()[-1]
    done.follower.finish(done.id, agent=done.agent)
    _WITHIN.reset(token)


class Execution:
    """A context manager for running an allowed call, which also works in coroutines.

    After an exception of a type in `held`, the framework repeats the call. After an exception of a type in `reported`,
    the history shows the outcome. After other exceptions, the call may or may not have taken effect.
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
    """Return the innermost call that is running in this task."""
    return _WITHIN.get()[-1] if _WITHIN.get() else None


def is_begun(id: str) -> bool:
    """Whether this task is running the call with this id."""
    found = carried()
    return found is not None and found.id == id


def inner_agent(id: str = "") -> str:
    """Return the name of the inner agent that runs in this task or requested a call. Empty for the main agent."""
    within = _WITHIN.get()
    if id and is_begun(id):
        within = within[:-1]
    return " > ".join(f"{each.tool} ({each.id})" for each in within)


def watch(owner: Any, name: str, watched: Callable[[Any], Any]) -> None:
    """Wrap a framework method to shield agents that run inside a call.

    A framework does not report that a tool runs an agent, but inner agents must be shielded too.
    """
    given = getattr(owner, name)
    if not hasattr(given, "bylaw"):
        made = watched(given)
        made.bylaw = given
        setattr(owner, name, made)


class Followers:
    """The conversations of a host, by key.

    Conversations that are no longer in memory are read from the log or the history again. The context may differ
    between runs, and its `signed_in_as` names the principal. If another principal continues the thread, a separate,
    linked conversation begins. Consent, statements and approvals from the first principal are not valid there.
    """

    def __init__(
        self,
        shield: Shield | Pack | str | Path,
        context: Context = None,
        *,
        most: int = MOST,
        passes_history: bool = True,
    ) -> None:
        """Set `passes_history` to False if the host passes only new messages, and runs the calls elsewhere. At most
        `most` conversations stay in memory.
        """
        self.shield = shield if isinstance(shield, Shield) else Shield(shield)
        self._context = context
        self._most = most
        self._passes_history = passes_history
        self._kept: OrderedDict[str, Follower] = OrderedDict()
        self._forgotten: set[str] = set()
        """Conversations dropped from memory whose earlier calls are neither in a log nor in the host's history."""
        self._speaking: dict[str, Follower] = {}
        """The conversation of the principal who spoke last, by history key."""
        self._lock = threading.Lock()

    def get(self, key: str, run: Any = None, *, unnamed: str = "") -> Follower:
        """Return the follower of a conversation.

        Without a key, the conversation is separate, and the user's answers are ignored in it. If the context is a
        function, it is called with `run`, the framework's run. `unnamed` distinguishes conversations that have no key.
        """
        context = self._context(run) if callable(self._context) else self._context
        if not key and not self._passes_history:
            return Follower(self.shield.session(context=context, lacks=NO_KEY), makes_calls=False)
        if not key:
            follower = self._kept.get(unnamed) or Follower(self.shield.session(context=context), answers="none")
            return self._keep(unnamed, follower) if unnamed else follower
        with self._lock:
            follower = first = self._kept_or_new(key, context)
            passes_on = first.session.may_be_handed_over
            if not passes_on and not self._is_same(first.session.context, context):
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
        if follower is None:
            session = self._session(name, context)
            follower = Follower(session, is_linked=is_linked, makes_calls=self._passes_history)
        return self._keep(name, follower)

    def _keep(self, name: str, follower: Follower) -> Follower:
        self._kept[name] = follower
        self._kept.move_to_end(name)
        if len(self._kept) > self._most:
            gone, _ = self._kept.popitem(last=False)
            self._speaking.pop(gone, None)
            if not self._passes_history and self.shield.log is None:
                self._forgotten.add(gone)
        return follower

    def _session(self, name: str, context: Vouched) -> LiveSession:
        """Return the conversation with this name, for any principal."""
        lacks = FORGOTTEN if name in self._forgotten else ""
        session = self.shield.session(name, context=context, lacks=lacks)
        try:
            session.trajectory()
        except UsageError:
            # The conversation already has another context, which stays in force.
            session = self.shield.session(name, lacks=lacks)
            session.trajectory()
        return session

    def _is_same(self, ours: Mapping[str, Any], theirs: Vouched) -> bool:
        """Whether two contexts have the same principal.

        If neither context has a principal, compare the whole contexts. A host that passes only new messages may name
        the principal just once.
        """
        if theirs is None or not self._passes_history:
            return goes_on(ours, theirs or {})
        return is_of_one(ours, theirs) and (PRINCIPAL in ours or ours == theirs)

    def known(self, key: str) -> Follower | None:
        return self._kept.get(key)


class Guard:
    def __init__(self, shield: Shield | Pack | str | Path, context: Context = None) -> None:
        self.followers = Followers(shield, context)
        self.shield = self.followers.shield
        self._agent = ""

    def inner(self, agent: str) -> Self:
        """Return a guard for an inner agent. The input of an inner agent does not come from the user."""
        other = copy.copy(self)
        other._agent = agent
        return other

    @property
    def agent(self) -> str:
        """The name of the inner agent in this task, or an empty string for the main agent."""
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
        """Decide a call. Return the conversation, the inner agent and the decision.

        `key` is the framework's name for the conversation, `parts` is its history, and `put` asks the user.
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
        """Return the outer conversation, and the name of the inner agent in it.

        If the outer conversation is unknown or uses another pack, the agent gets a separate conversation without a user
        or a name.
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
        """Report the end of a run, with the agent's final message."""
        if not self.agent:
            follower = self.followers.get(key, run, unnamed=unnamed)
            follower.follow(parts)
            follower.end()


class Adapter:
    """The shield for a framework that passes the history. Each adapter connects this class to its framework's hooks."""

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
        """Return a shield for an inner agent in the same conversations. Its messages come from your code or from
        another agent.

        An agent that a tool runs in its own task or thread does not need this, because the shield detects it. Give each
        inner agent a name.
        """
        other = copy.copy(self)
        other._guard = self._guard.inner(agent)
        return other

    @property
    def instructions(self) -> str:
        """The text to add to the system prompt. Empty without `instruct`, and for inner agents, because they cannot ask
        the user.
        """
        return "" if self._guard.agent else self._instructions

    def follower(self, conversation: str) -> Follower | None:
        """Return the follower of the conversation with this framework name."""
        return self._guard.followers.known(conversation)


def joined(prompt: str | None, instructions: str) -> str:
    """Append the instructions to a system prompt, unless it already contains them."""
    if not prompt or not instructions:
        return prompt or instructions
    return prompt if instructions in prompt else f"{prompt}\n\n{instructions}"


def disowned(parts: Sequence[Part]) -> list[Part]:
    """Mark the user messages in a history as not written by the user."""
    return [replace(part, text="", whole=False) if isinstance(part, Heard) else part for part in parts]
