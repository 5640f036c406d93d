"""A live conversation as the log keeps it: what is written of it, and how it is taken up again from that."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct, field
from msgspec.structs import astuple, replace

from bylaw.engine.context import PRINCIPAL
from bylaw.engine.door import writable
from bylaw.errors import UsageError
from bylaw.pack import Pack
from bylaw.record.approval import Change, fingerprint
from bylaw.record.entry import Entry, is_altered
from bylaw.record.journal import LogError
from bylaw.record.use import Use, read_use
from bylaw.shield.approving import lifted_by, rests_on
from bylaw.shield.decision import Decision, Ground
from bylaw.trace.event import Approved, Call, Event, Message, Result
from bylaw.trace.trajectory import Trajectory

NO_DATA = Raw(b"null")
_REQUEST = "request:"


class Opening(Struct, frozen=True, omit_defaults=True):
    """What a conversation began with: its first entry. The pack stays the same to its end."""

    pack: str
    version: str
    digest: str
    context: dict[str, Any] = field(default_factory=dict[str, Any])
    """What the host vouched for."""
    agent: str = ""


class Named(Struct, frozen=True):
    """A request that may be sent again: its sender's name for it, and a hash of all that it says."""

    name: str
    digest: str

    def id(self, conversation: str) -> str:
        """What its first entry is called: the log then knows the name, and what was asked under it."""
        return f"{_REQUEST}{conversation}/{self.digest}/{self.name}"


class _Answer(Struct, frozen=True, omit_defaults=True, tag="result"):
    """A result: text and data lie apart, so that what was text stays text."""

    call: int | None
    text: str | None = None
    data: Raw = NO_DATA
    error: bool | None = None
    captured: bool = True
    tool: str = ""
    agent: str = ""
    time: float | None = None
    refused: bool | None = None


class _Ground(Ground, frozen=True, omit_defaults=True):
    """As it is written."""


class _Decision(Decision, frozen=True, omit_defaults=True):
    """As it is written."""


class _WithContext(Struct, frozen=True):
    context: dict[str, Any] | None = None
    handover: dict[str, Any] | None = None


_with_context = msgspec.json.Decoder(_WithContext).decode
encode = msgspec.json.Encoder(enc_hook=str, decimal_format="string").encode
read_opening = msgspec.json.Decoder(Opening).decode
_event = msgspec.json.Decoder(Message | Call | _Answer).decode
read_decision = msgspec.json.Decoder(Decision).decode
_change = msgspec.json.Decoder(Change).decode


class LiveState(Struct):
    """What the next decisions need of what was written before them, besides the events."""

    length: int = 0
    """The number of entries in the log."""
    events: int = 0
    """The number of events among them."""
    decided: int = 0
    """The number of decisions so far."""
    requests: dict[str, tuple[str, int]] = {}
    """By the names that senders gave their requests, the digest of each and how many decisions came before it."""
    interrupted: dict[str, Decision] = {}
    """By call id, decisions on allowed calls that were interrupted and not resumed yet."""
    asked: dict[str, Decision] = {}
    """By call id, decisions that somebody was asked about."""
    uses: dict[int, list[Use]] = {}
    """By step of the call, the places that it took under limits."""
    yeses: dict[str, Approved] = {}
    """By approval, what a person said yes to; a decision says which policies that answers."""
    handed_over: int = 0
    """The number of events before the last handover."""

    def note_event(self, event: Event) -> None:
        """The conversation has one more event."""
        self.events += 1
        if isinstance(event, Message) and event.handover is not None:
            self.handed_over = self.events
            self.asked.clear()

    def note_decision(self, decision: Decision, call: str) -> None:
        """There is a decision on the call of this id. An interrupted call that is resumed is interrupted no longer."""
        self.decided += 1
        match decision.repeats:
            case "interrupted":
                self.interrupted[decision.call] = decision
            case "resumed":
                self.interrupted.pop(decision.call, None)
            case "" if decision.is_put:
                self.asked[call] = decision
            case "":
                pass


class History(Struct):
    """What the log holds of one conversation."""

    opening: Opening
    events: list[Event] = []
    decisions: list[Decision] = []
    approvals: list[Change] = []
    """Every step in the life of every approval, in order."""
    state: LiveState = field(default_factory=LiveState)
    steps: list[int] = []
    """For each decision, the step of the event that came last before it: of the call that it is on."""
    before: int = 0
    """The number of the approvals' steps before the last handover."""

    def trajectory(self, id: str) -> Trajectory:
        """The conversation as an audit reads it."""
        return Trajectory(id, self.events, self.opening.agent, context=self.opening.context)


def opening_of(pack: Pack, context: Mapping[str, Any] | None, agent: str) -> Opening:
    """What to write of a conversation that begins now."""
    return Opening(pack.name, pack.version, pack.pin, dict(context or {}), agent)


def event_body(event: Event) -> bytes:
    """An event, to be written."""
    if isinstance(event, Message):
        return encode(event if event.text.isascii() else replace(event, text=writable(event.text)))
    if isinstance(event, Call):
        # What was looked up for it stands in the decision.
        event = replace(event, looked_up=()) if event.looked_up else event
        try:
            return encode(event)
        except (TypeError, ValueError, OverflowError, RecursionError):
            unsaid = Call(writable(event.tool), {}, writable(event.id), event.by, event.turn)
            return encode(replace(unsaid, fault="arguments are not plain data", time=event.time, refused=event.refused))
    content = event.content
    text, data = (content, NO_DATA) if isinstance(content, str) else (None, content)
    told = (event.error, event.captured, event.tool, event.agent, event.time, event.refused)
    return encode(_Answer(event.call, text, data, *told))


def added_context(body: bytes) -> dict[str, Any]:
    """What the host vouched for with the event of an entry, beside or after what the conversation began with."""
    if b'"context"' not in body and b'"handover"' not in body:
        return {}
    told = _with_context(body)
    return told.context or told.handover or {}


def decision_body(decision: Decision) -> bytes:
    """A decision, to be written without what it does not say and without the citations of policies that permit."""
    told = (replace(each, citations=()) if each.answer == "allow" else each for each in decision.grounds)
    return encode(_Decision(*astuple(replace(decision, grounds=tuple(_Ground(*astuple(each)) for each in told)))))


def read_history(entries: Iterable[Entry], history: History | None = None) -> History | None:
    """What entries of one conversation say, after a history that is known; None if there are none."""
    for entry in entries:
        body = entry.body
        if body is None or (entry.position or 0) != (history.state.length if history is not None else 0):
            gone = f"what entry {entry.number} said, or one before it, is gone"
            raise LogError(f"conversation `{entry.conversation}` is not whole: {gone}")
        if is_altered(entry):
            raise LogError(
                f"entry {entry.number} of conversation `{entry.conversation}` was altered: see `bylaw log verify`"
            )
        try:
            history = _read(entry, body, history)
        except (msgspec.MsgspecError, RecursionError) as error:
            where = f"entry {entry.number} of conversation `{entry.conversation}`"
            raise LogError(f"{where} cannot be read: {error}") from error
    return history


def _read(entry: Entry, body: bytes, history: History | None) -> History:
    """What is known of a conversation after one more entry."""
    if entry.kind == "opening":
        history = History(read_opening(body))
    if history is None:
        raise UsageError(f"nothing in the log says how conversation `{entry.conversation}` began")
    state = history.state
    if entry.id and entry.id.startswith(_REQUEST):
        digest, _, name = entry.id.removeprefix(f"{_REQUEST}{entry.conversation}/").partition("/")
        state.requests[name] = (digest, state.decided)
    match entry.kind:
        case "event":
            history.events.append(event := _read_event(body))
            state.note_event(event)
            if state.handed_over == state.events:
                history.before = len(history.approvals)
        case "decision":
            decision = read_decision(body)
            history.decisions.append(decision)
            history.steps.append(state.events - 1)
            call = history.events[-1] if history.events else None
            if call is not None and not decision.repeats:
                call = history.events[-1] = marked(call, decision, state.yeses)
            state.note_decision(decision, call.id if isinstance(call, Call) else "")
        case "approval":
            change = _change(body)
            history.approvals.append(change)
            if change.status == "approved":
                state.yeses[change.approval] = Approved(change.by, (), change.note, change.approval, entry.time)
        case "use":
            use: Use = read_use(body)
            if use.status == "taken":
                state.uses.setdefault(state.events - 1, []).append(use)
        case "opening" | "removal" | "stop" | "attestation":
            pass
    state.length = (entry.position or 0) + 1
    return history


def marked(call: Event, decision: Decision, yeses: Mapping[str, Approved]) -> Event:
    """The call that a decision is about, with what that rests on beside what the agent had seen: the person's yes that
    let it run, and what the shield looked up itself."""
    yes = (yeses.get(decision.approval) or _yes_of(decision)) if decision.allowed else None
    if not isinstance(call, Call) or (yes is None and not decision.resolved):
        return call
    if yes is not None:
        policies = tuple(dict.fromkeys(each.policy for each in decision.grounds if rests_on(each, yes.by)))
        yes = replace(yes, policies=policies)
    return replace(call, approved=yes, looked_up=decision.resolved)


def _yes_of(decision: Decision) -> Approved | None:
    """The yes that a decision rests on, where it was given in another conversation."""
    by = next((name for each in decision.grounds if (name := lifted_by(each))), "") if decision.approval else ""
    return Approved(by, (), "", decision.approval) if by else None


def _read_event(body: bytes) -> Event:
    event = _event(body)
    if not isinstance(event, _Answer):
        return event
    content = event.text if event.text is not None else event.data
    told = (event.error, event.captured, event.tool, event.agent, event.time, event.refused)
    return Result(event.call, content, *told)


def linked(name: str, context: Mapping[str, Any] | None) -> str:
    """The name of the conversation that another principal begins instead of continuing one: nothing that was agreed to,
    given as a reason or approved in one of them counts in the other."""
    given = dict(context or {})
    return f"{name} > {fingerprint(given.get(PRINCIPAL, given))[:16]}"
