"""The requests and responses of the service. Requests are decoded strictly."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from bylaw.engine.conversation import Mutation
from bylaw.engine.door import seconds, writable
from bylaw.errors import BylawError
from bylaw.pack import Pack
from bylaw.record.approval import Approval, fingerprint
from bylaw.record.stop import Stopped, Target
from bylaw.shield.decision import Answer, Decision, Ground, LookUp, PerformedAction, Question
from bylaw.shield.history import Named
from bylaw.shield.instructions import WriteInstruction
from bylaw.shield.stopping import check_target
from bylaw.trace.event import Card
from bylaw.trace.recorded_value import plain_text

NAME = 300
"""The maximum length of a name in characters."""
MANY = 1000
"""The maximum number of events, or of requests in a batch, that one request may contain."""
MESSAGES = 1000
"""The maximum number of messages that one request may contain."""
LONGEST = 200_000
"""The maximum length of a message in characters."""

_few = msgspec.Meta(max_length=MANY)


class BadRequest(BylawError):
    """The request is not valid."""

    code = "BY703"


class Event(Struct, frozen=True, forbid_unknown_fields=True):
    """An event. Exactly one of `user`, `agent`, `result` and `messages` must be set."""

    user: str | UnsetType = UNSET
    agent: str | UnsetType = UNSET
    result: Any = UNSET
    """The result of a tool, or the text that the agent received in place of a result."""
    messages: list[dict[str, Any]] | UnsetType = UNSET
    """Complete messages, in any supported log format."""
    call: str = ""
    """The id of the call to which the result belongs. Optional if only one call is waiting."""
    tool: str = ""
    """The tool to which the result belongs, if there is no call id."""
    error: bool | None = None
    time: float | None = None

    def mutation(self, now: float) -> Mutation:
        """Return the event as a change to the conversation."""
        at = now if self.time is None else seconds(self.time)
        if (self.user, self.agent, self.result, self.messages).count(UNSET) != 3:
            raise BadRequest("an event must have exactly one of `user`, `agent`, `result`, `messages`")
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
    """One call (`tool` and `arguments`) or one turn of several calls (`calls`). The calls follow after `events`."""

    conversation: str = ""
    """The name of the conversation. If it is empty, the history is unknown, and calls to which a policy applies are not
    allowed.
    """
    tool: str = ""
    arguments: dict[str, Any] | str = field(default_factory=dict[str, Any])
    id: str = ""
    calls: Annotated[list[AskedCall], _few] = field(default_factory=list[AskedCall])
    events: Annotated[list[Event], _few] = field(default_factory=list[Event])
    messages: list[dict[str, Any]] | None = None
    """The whole history, if the caller keeps it and names no conversation.

    If the last message contains the same call twice, `id` selects one of them. The default is the second.
    """
    context: dict[str, Any] | None = None
    agent: str = ""
    """The name of the calling agent, for stops and limits. It may differ from the agent that started the conversation.
    """
    request: str = ""
    """An idempotency key, unique within the conversation. A repeated request takes effect once and gets the same
    response, unless a call has been forbidden in the meantime.
    """

    def asked(self) -> list[tuple[str, dict[str, Any] | str, str]]:
        if bool(self.tool) == bool(self.calls):
            raise BadRequest("pass either `tool` and `arguments`, or `calls`")
        _check(self.conversation, self.events, self.request, self.agent)
        if self.messages is not None and (self.conversation or self.events or self.calls):
            raise BadRequest("`messages` is the whole history; combine it only with `tool` and `arguments`")
        if self.messages is not None:
            _check_size(self.messages)
        if self.tool:
            return [(self.tool, self.arguments, self.id)]
        return [(call.tool, call.arguments, call.id) for call in self.calls]


class EventsRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Events in a conversation."""

    conversation: str
    events: Annotated[list[Event], _few]
    context: dict[str, Any] | None = None
    agent: str = ""
    request: str = ""
    """An idempotency key, as in `DecideRequest`."""

    def check(self) -> None:
        if not self.conversation:
            raise BadRequest("`conversation` is empty")
        _check(self.conversation, self.events, self.request, self.agent)


def _check(conversation: str, events: Sequence[Event], request: str, agent: str) -> None:
    if max(len(conversation), len(request), len(agent)) > NAME:
        raise BadRequest(f"`conversation`, `request` and `agent` are limited to {NAME} characters")
    if "\0" in conversation or "\0" in request:
        raise BadRequest("`conversation` and `request` cannot contain the character U+0000")
    if request and not conversation:
        raise BadRequest("a request with an idempotency key must name its `conversation`")
    messages: list[dict[str, Any]] = []
    for event in events:
        _check_length(event.user)
        _check_length(event.agent)
        if isinstance(event.messages, list):
            messages += event.messages
    _check_size(messages)


def _check_size(messages: Sequence[dict[str, Any]]) -> None:
    if len(messages) > MESSAGES:
        raise BadRequest(f"more than {MESSAGES} messages in one request")
    for each in messages:
        if each.get("role") != "tool":
            _check_length(plain_text(each.get("content")))


def _check_length(text: str | UnsetType) -> None:
    if isinstance(text, str) and len(text) > LONGEST:
        raise BadRequest(f"a message has more than {LONGEST:,} characters")


class DecideBatch(Struct, frozen=True, forbid_unknown_fields=True):
    """Several requests, handled in order. For each conversation, requests take effect in this order."""

    requests: Annotated[list[DecideRequest], _few]


class EventsBatch(Struct, frozen=True, forbid_unknown_fields=True):
    """Several requests, handled in order."""

    requests: Annotated[list[EventsRequest], _few]


class ApprovalAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """A person's answer to an approval."""

    id: str
    answer: Literal["approve", "reject"]
    by: str = ""
    """The reviewer's name, if the service has no keys. With keys, the name of the key is used."""
    note: str = ""


class StopRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A request to add a stop or to lift one."""

    what: Target | None = None
    name: str = ""
    """The name of the agent, tool or policy. It is empty if `what` is `all`."""
    answer: Literal["ask", "deny"] = "deny"
    """What is decided about the stopped writes."""
    seconds: float = 0.0
    """The duration of the stop in seconds."""
    lift: str = ""
    """The id of the stop to lift. The fields that describe a new stop must then be empty."""
    reason: str = ""
    by: str = ""
    """The reviewer's name, if the service has no keys. With keys, the name of the key is used."""

    def check(self, pack: Pack) -> None:
        """Raise an error unless the request adds or lifts a stop. A new stop must apply to something in the pack."""
        if bool(self.lift) == (self.what is not None):
            raise BadRequest("a request about stops needs either `what`, or `lift` with a stop's id")
        if self.what is not None:
            check_target(pack, self.what, self.name)


class Instructions(Struct, frozen=True):
    """Text for an agent's system prompt."""

    pack: str
    version: str
    writes: tuple[WriteInstruction, ...]
    text: str
    """The instructions as Markdown."""


class StopList(Struct, frozen=True):
    """A tenant's stops."""

    stops: list[Stopped]


class ConfirmRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """The user's own answer to a card. An approver cannot answer for the user."""

    card: str
    """The `id` of a decision's `card`."""
    answer: Literal["yes", "no"]
    conversation: str = ""
    """The conversation in which the decision was made. Optional for hosts that send `messages`."""
    by: str = ""
    """How the user answered, such as the label of the button pressed."""
    at: float | None = None
    """The time of the user's answer, in seconds since 1970.

    If the user has written since the card was shown, a yes requires both `at` and `after`, unless that message was
    itself a yes or a courtesy.
    """
    after: int | None = None
    """The number of user and agent messages that the user had seen. It is the `position` in a response from
    `/v1/events`.
    """
    context: dict[str, Any] | None = None
    """The principal who answers, as in `DecideRequest`. An answer from any other principal is rejected."""
    agent: str = ""
    request: str = ""
    """An idempotency key, as in `DecideRequest`."""

    def check(self) -> None:
        if not self.home:
            raise BadRequest(f"`{self.card}` is not the `id` of a card")
        _check(self.conversation or self.home, (), self.request, self.agent)

    @property
    def home(self) -> str:
        """The conversation in which the card was shown."""
        return self.card.rpartition("/")[0]


def named(request: DecideRequest | EventsRequest | ConfirmRequest) -> Named | None:
    """Return the key by which a repeated request is recognised, or None if the request has none."""
    return Named(request.request, fingerprint(request)) if request.request else None


class Sentence(Struct, frozen=True):
    """A sentence of the policy document, and where it is."""

    place: str
    text: str | None


class Decided(Struct, frozen=True):
    """A decision in a response."""

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
    """The name, version and digest of the conversation's pack."""
    is_over: bool = False
    """Whether the request was repeated and its call has already returned a result. If so, do not run the call again."""
    card: Card | None = None
    """The card for the user. Either end the agent's message with the card's text, or display the card and report the
    answer.
    """
    actions: Sequence[PerformedAction] = ()
    """The actions that a call to a generic tool performs, with their arguments."""


class DecideAnswer(Struct, frozen=True):
    """One decision for each call."""

    decisions: list[Decided]


class ConfirmAnswer(Struct, frozen=True):
    """The answer that was recorded. It is on disk."""

    conversation: str
    card: str
    answer: Literal["yes", "no"]


class EventsAnswer(Struct, frozen=True):
    """The number of events that were recorded. They are on disk."""

    conversation: str
    taken: int
    position: int = 0
    """The number of user and agent messages so far. Send it as `after` when you confirm a card."""


class Complaint(Struct, frozen=True):
    """An error message."""

    code: str
    message: str


class Failure(Struct, frozen=True):
    """An error response. No decision was made or written, so the calls must not run."""

    error: Complaint


def refusal(message: str) -> Failure:
    """Return the response to a request that was rejected."""
    return Failure(Complaint("BY703", message))


class DecideOutcome(Struct, frozen=True, omit_defaults=True):
    """The outcome of one request in a batch: its decisions or an error."""

    decisions: list[Decided] = field(default_factory=list[Decided])
    error: Complaint | None = None


class EventsOutcome(Struct, frozen=True, omit_defaults=True):
    """The outcome of one request in a batch: the recorded events or an error."""

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
    """Requested approvals that match the log's entries."""

    approvals: list[Approval]
    unsupported: dict[str, str] = field(default_factory=dict[str, str])
    """Approvals that contradict the log's entries, each with an explanation. Somebody has edited the database."""


def decided(decision: Decision, conversation: str, pack: str) -> Decided:
    made = decision
    reasons: tuple[Any, Any, Any, Any, Any, Any] = (), [], (), (), (), ()
    if any(map(_speaks, made.grounds)):
        sentences = [Sentence(str(each), each.text) for each in made.sentences]
        reasons = (made.policies, sentences, made.missing, made.look_ups, made.retries, made.questions)
    return Decided(
        made.id,
        conversation,
        made.tool,
        made.answer,
        made.allowed,
        made.enforced,
        *reasons,
        made.feedback,
        made.for_person,
        made.approval,
        made.unguarded,
        made.probability,
        made.interval,
        made.seconds,
        made.model_queries,
        pack,
        made.is_over,
        made.card,
        made.actions,
    )


def _speaks(ground: Ground) -> bool:
    """Whether a ground is worth reporting. Most grounds are not, because they only permit the call."""
    return bool(ground.answer != "allow" or ground.missing or ground.look_ups or ground.questions or ground.retries)
