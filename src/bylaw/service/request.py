"""What goes into the service and what comes out: records, read strictly where bytes enter."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import replace

from bylaw.engine.conversation import Mutation
from bylaw.engine.door import seconds, writable
from bylaw.errors import BylawError
from bylaw.pack import Pack
from bylaw.record.approval import Approval, fingerprint
from bylaw.record.stop import Stopped, Target
from bylaw.shield.decision import Answer, Decision, Ground, LookUp, Question
from bylaw.shield.history import Named
from bylaw.shield.instructions import WriteInstruction
from bylaw.shield.stopping import check_target
from bylaw.trace.event import Card
from bylaw.trace.recorded_value import plain_text

NAME = 300
"""Characters in a name at most."""
MANY = 1000
"""Events or requests in one request at most."""
MESSAGES = 1000
"""Messages in one request at most."""
LONGEST = 200_000
"""Characters in a message at most."""

Name = msgspec.Meta(min_length=1, max_length=NAME)


class BadRequest(BylawError):
    """A request that says nothing we can act on."""

    code = "BY703"


class Event(Struct, frozen=True, forbid_unknown_fields=True):
    """Something that happened: exactly one of `user`, `agent`, `result` and `messages` is said."""

    user: str | UnsetType = UNSET
    agent: str | UnsetType = UNSET
    result: Any = UNSET
    """What a tool answered, or what the agent was told in its place."""
    messages: list[dict[str, Any]] | UnsetType = UNSET
    """Whole messages, in any shape that logs may have."""
    call: str = ""
    """The id of the call that a result answers; it may be left out where one call waits."""
    tool: str = ""
    """The tool whose result it is, where no id says so."""
    error: bool | None = None
    time: float | None = None

    def mutation(self, now: float) -> Mutation:
        """What it changes in a conversation."""
        at = now if self.time is None else seconds(self.time)
        said = [name for name in ("user", "agent", "result", "messages") if getattr(self, name) is not UNSET]
        if len(said) != 1:
            raise BadRequest("an event says one of `user`, `agent`, `result`, `messages`")
        if isinstance(self.user, str):
            return Mutation("user", {"text": writable(self.user), "time": at})
        if isinstance(self.agent, str):
            return Mutation("agent", {"text": writable(self.agent), "time": at})
        if isinstance(self.messages, list):
            return Mutation("messages", {"messages": self.messages, "asks": True, "time": at})
        given = {"content": self.result, "id": self.call, "error": self.error, "captured": self.result is not None}
        return Mutation("result", {**given, "time": at, "tool": writable(self.tool)})


class AskedCall(Struct, frozen=True, forbid_unknown_fields=True):
    """A call that an agent wants to make."""

    tool: str
    arguments: dict[str, Any] | str
    id: str = ""


class DecideRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """One call, `tool` and `arguments`, or a turn of several, `calls`; `events` happened before."""

    conversation: str = ""
    """Without one nothing is known of what came before, and no call that a policy binds is allowed."""
    tool: str = ""
    arguments: dict[str, Any] | str = field(default_factory=dict[str, Any])
    id: str = ""
    calls: list[AskedCall] = field(default_factory=list[AskedCall])
    events: list[Event] = field(default_factory=list[Event])
    messages: list[dict[str, Any]] | None = None
    """All messages so far, where the caller keeps the history itself and names no conversation. Where the last of them
    asks for the very same call twice, `id` says which one is meant; without it, it is the second."""
    context: dict[str, Any] | None = None
    agent: str = ""
    """The name of the agent whose call it is: stops and limits go by it, also where another began the conversation."""
    request: str = ""
    """Your own name for this request, unlike that of any other of its conversation: sent again, because no answer
    came, it happens once and is answered as it was, unless something speaks against that by now."""

    def asked(self) -> list[tuple[str, dict[str, Any] | str, str]]:
        """The calls to decide on, in order."""
        if bool(self.tool) == bool(self.calls):
            raise BadRequest("say either `tool` and `arguments`, or `calls`")
        _check(self.conversation, self.events, self.calls, self.request, self.agent)
        if self.messages is not None and (self.conversation or self.events or self.calls):
            raise BadRequest("`messages` are the whole history: with them, give `tool` and `arguments` alone")
        if self.messages is not None and len(self.messages) > MESSAGES:
            raise BadRequest(f"more than {MESSAGES} messages in one request")
        _check_size(_contents(self.messages or ()))
        if self.tool:
            return [(self.tool, self.arguments, self.id)]
        return [(call.tool, call.arguments, call.id) for call in self.calls]


class EventsRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """What happened in a conversation."""

    conversation: str
    events: list[Event]
    context: dict[str, Any] | None = None
    agent: str = ""
    request: str = ""
    """As for a decision."""

    def check(self) -> None:
        """A conversation must be named."""
        if not self.conversation:
            raise BadRequest("`conversation` is empty")
        _check(self.conversation, self.events, (), self.request, self.agent)


def _check(
    conversation: str, events: Sequence[Event], calls: Sequence[AskedCall], request: str, agent: str = ""
) -> None:
    if max(len(conversation), len(request), len(agent)) > NAME:
        raise BadRequest(f"`conversation`, `request` and `agent` have {NAME} characters at most")
    if "\0" in conversation or "\0" in request:
        raise BadRequest("`conversation` and `request` are names, which cannot contain the character U+0000")
    if request and not conversation:
        raise BadRequest("a request that may be sent again must name its `conversation`")
    if len(events) > MANY or len(calls) > MANY:
        raise BadRequest(f"more than {MANY} events or calls in one request")
    for event in events:
        messages = event.messages if isinstance(event.messages, list) else ()
        _check_size([event.user, event.agent, *_contents(messages)])
    if sum(len(event.messages) for event in events if isinstance(event.messages, list)) > MESSAGES:
        raise BadRequest(f"more than {MESSAGES} messages in one request")


def _contents(messages: Iterable[dict[str, Any]]) -> Iterator[Any]:
    """What messages say. A tool's results may be longer."""
    return (each.get("content") for each in messages if each.get("role") != "tool")


def _check_size(said: Iterable[Any]) -> None:
    """No message is longer than anybody would write."""
    if any(len(plain_text(content)) > LONGEST for content in said):
        raise BadRequest(f"a message has more than {LONGEST:,} characters")


class DecideBatch(Struct, frozen=True, forbid_unknown_fields=True):
    """Several requests, answered in order; those of one conversation take effect in that order."""

    requests: list[DecideRequest]


class EventsBatch(Struct, frozen=True, forbid_unknown_fields=True):
    """Several requests, taken in order."""

    requests: list[EventsRequest]


class ApprovalAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """A person's answer."""

    id: str
    answer: Literal["approve", "reject"]
    by: str = ""
    """Who answers, where the service has no keys; else the key says it."""
    note: str = ""


class StopRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """What to stop, or which stop to lift."""

    what: Target | None = None
    name: str = ""
    """The agent, the tool or the policy; empty for `all`."""
    answer: Literal["ask", "deny"] = "deny"
    """What becomes of its writes."""
    seconds: float = 0.0
    """How long it stands."""
    lift: str = ""
    """The id of a stop that ends now, in place of all of these."""
    reason: str = ""
    by: str = ""
    """Who does it, where the service has no keys; else the key says it."""

    def check(self, pack: Pack) -> None:
        """Refuse what is not one of the two, and names that the pack does not know."""
        if bool(self.lift) == (self.what is not None):
            raise BadRequest("a request about stops has either `what`, or `lift` with the id of one")
        if self.what is not None:
            check_target(pack, self.what, self.name)


class Instructions(Struct, frozen=True):
    """What belongs in the system prompt of an agent."""

    pack: str
    version: str
    writes: tuple[WriteInstruction, ...]
    text: str
    """The same as Markdown."""


class StopList(Struct, frozen=True):
    """The stops of a tenant."""

    stops: list[Stopped]


class ConfirmRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """The user's own answer to a card, which the host showed them. A person who approves a call does not answer for the
    user."""

    card: str
    """The `id` of the `card` of a decision."""
    answer: Literal["yes", "no"]
    conversation: str = ""
    """That of the decision; a host that sends `messages` may leave it out."""
    by: str = ""
    """How it was given, such as the button that was pressed."""
    at: float | None = None
    """When the user answered, in seconds since 1970. If the user has written anything but a yes or a courtesy since the
    card was shown, a yes counts only with `at` and `after`."""
    after: int | None = None
    """How many messages of user and agent the user had seen; the answers of `/v1/events` have it as `position`."""
    context: dict[str, Any] | None = None
    """As for a decision: who is said to answer. Another principal's answer is refused."""
    agent: str = ""
    request: str = ""
    """As for a decision."""

    def check(self) -> None:
        """A card must be named."""
        if not self.home:
            raise BadRequest(f"`{self.card}` is not the `id` of a card")
        _check(self.conversation or self.home, (), (), self.request, self.agent)

    @property
    def home(self) -> str:
        """The conversation that the card was put in."""
        return self.card.rpartition("/")[0]


def named(request: DecideRequest | EventsRequest | ConfirmRequest) -> Named | None:
    """How to know a request if it is sent again; None where it has no name."""
    return Named(request.request, fingerprint(request)) if request.request else None


class Sentence(Struct, frozen=True):
    """Where the document says it."""

    place: str
    text: str | None


class Decided(Struct, frozen=True):
    """A decision, as it is answered."""

    id: str
    conversation: str
    tool: str
    answer: Answer
    allowed: bool
    enforced: str
    policies: Sequence[str]
    sentences: list[Sentence]
    missing: Sequence[str]
    look_ups: Sequence[LookUp]
    retries: Sequence[LookUp]
    questions: Sequence[Question]
    feedback: str
    for_person: str
    approval: str
    unguarded: bool
    probability: float | None
    interval: tuple[float, float] | None
    seconds: float
    model_queries: int
    pack: str
    """Name, version and digest of the pack that the conversation is under."""
    is_over: bool = False
    """The request was sent again, and the call has had its result since: it is not to run a second time."""
    card: Card | None = None
    """What to put to the user: the agent's message ends with its text, or you show it and report the answer."""


class DecideAnswer(Struct, frozen=True):
    """One decision for each call."""

    decisions: list[Decided]


class ConfirmAnswer(Struct, frozen=True):
    """The answer that stands; it is on disk."""

    conversation: str
    card: str
    answer: Literal["yes", "no"]


class EventsAnswer(Struct, frozen=True):
    """How many events were taken; they are on disk."""

    conversation: str
    taken: int
    position: int = 0
    """How many messages of user and agent the conversation has, for the `after` of a confirmation."""


class Complaint(Struct, frozen=True):
    """Why there is no answer."""

    code: str
    message: str


class Failure(Struct, frozen=True):
    """Nothing was decided and nothing was written: a call that was asked about must not run."""

    error: Complaint


class DecideOutcome(Struct, frozen=True, omit_defaults=True):
    """What became of one request of a batch: decisions, or why there are none."""

    decisions: list[Decided] = field(default_factory=list[Decided])
    error: Complaint | None = None


class EventsOutcome(Struct, frozen=True, omit_defaults=True):
    """What became of one request of a batch: events taken, or why not."""

    conversation: str = ""
    taken: int = 0
    error: Complaint | None = None


class DecideBatchAnswer(Struct, frozen=True):
    """One outcome for each request, in order."""

    responses: list[DecideOutcome]


class EventsBatchAnswer(Struct, frozen=True):
    """One outcome for each request, in order."""

    responses: list[EventsOutcome]


class Approvals(Struct, frozen=True):
    """The approvals that were asked for, as the entries of the log bear them out."""

    approvals: list[Approval]
    unsupported: dict[str, str] = field(default_factory=dict[str, str])
    """Rows that the entries contradict, by id, each with what is wrong: somebody has edited the database."""


def decided(decision: Decision, conversation: str, pack: str) -> Decided:
    """A decision as it is answered."""
    if not any(map(_speaks, decision.grounds)):
        decision = replace(decision, grounds=())
    told = {name: getattr(decision, name) for name in _TOLD}
    sentences = [Sentence(str(each), each.text) for each in decision.sentences]
    return Decided(conversation=conversation, sentences=sentences, pack=pack, **told)


_TOLD = frozenset(Decided.__struct_fields__) - {"conversation", "sentences", "pack"}
"""What is answered as the decision has it."""


def _speaks(ground: Ground) -> bool:
    """Whether an answer has anything to tell of it: most permit, and say no more."""
    return bool(ground.answer != "allow" or ground.missing or ground.look_ups or ground.questions or ground.retries)
