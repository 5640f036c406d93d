"""Writes a live conversation to the log and continues it from there. Without a log, nothing is stored.

Each entry has a position in the conversation. If another process has already written to that position, its entries are
read first, and the call is decided again.
"""

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct, field
from msgspec.structs import replace

from bylaw.engine.conversation import Conversation
from bylaw.engine.door import DEEPEST, PRINCIPAL, refuse_deep, writable
from bylaw.errors import UsageError
from bylaw.pack import Pack
from bylaw.record.approval import Change, fingerprint
from bylaw.record.entry import Conflict, Draft, Entry, Kind, is_altered
from bylaw.record.journal import Answers, LogError
from bylaw.record.log import Log
from bylaw.record.stop import NO_STOPS, Stops
from bylaw.record.use import Use, encode_use, read_use, use_id
from bylaw.shield.approving import lifted_by, rests_on
from bylaw.shield.decision import Decision
from bylaw.trace.event import Approved, Call, Event, Message, Result, Trajectory

NO_DATA = Raw(b"null")
_REQUEST = "request:"


class Opening(Struct, frozen=True, omit_defaults=True):
    """The first entry of a conversation. It fixes the pack for the whole conversation."""

    pack: str
    version: str
    digest: str
    context: dict[str, Any] = field(default_factory=dict[str, Any])
    agent: str = ""


class Named(Struct, frozen=True):
    """The idempotency key and hash of a request."""

    name: str
    digest: str

    def id(self, conversation: str) -> str:
        """Return the id of a request's first entry, by which the log detects that a request is repeated."""
        return f"{_REQUEST}{conversation}/{self.digest}/{self.name}"


class _Answer(Struct, frozen=True, omit_defaults=True, tag="result"):
    """A result as stored. Text and data are separate, so that text is never parsed as JSON."""

    call: int | None
    text: str | None = None
    data: Raw = NO_DATA
    error: bool | None = None
    captured: bool = True
    tool: str = ""
    agent: str = ""
    time: float | None = None
    refused: bool | None = None


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
    """What later decisions need to know besides the events."""

    length: int = 0
    events: int = 0
    decided: int = 0
    requests: dict[str, tuple[str, int]] = {}
    """For each idempotency key: the digest of the request, and the number of decisions before it."""
    interrupted: dict[str, Decision] = {}
    """Decisions on allowed calls that were interrupted, keyed by call id."""
    asked: dict[str, Decision] = {}
    """Decisions for which somebody was asked, keyed by call id."""
    uses: dict[int, list[Use]] = {}
    """Uses of limits, keyed by the step of the call."""
    yeses: dict[str, Approved] = {}
    """Reviewers' approvals by id, each with the policies that it covers."""
    handed_over: int = 0
    """The number of events before the last handover."""
    last_call: str = ""
    """The id of the last event, if it is a call."""

    def note(self, value: Any, time: float = 0.0) -> None:
        """Update the state with an entry that was read or written."""
        self.length += 1
        match value:
            case Message() | Call() | Result():
                self.events += 1
                self.last_call = value.id if isinstance(value, Call) else ""
                if isinstance(value, Message) and value.handover is not None:
                    self.handed_over = self.events
                    self.asked.clear()
            case Decision():
                self.decided += 1
                if value.repeats == "interrupted":
                    self.interrupted[value.call] = value
                elif value.repeats == "resumed":
                    self.interrupted.pop(value.call, None)
                elif value.is_put:
                    self.asked[self.last_call] = value
            case Use(status="taken"):
                self.uses.setdefault(self.events - 1, []).append(value)
            case Change(status="approved"):
                self.yeses[value.approval] = Approved(value.by, (), value.note, value.approval, time)
            case _:
                pass


class History(Struct):
    """What the log contains about one conversation."""

    opening: Opening
    events: list[Event] = []
    decisions: list[Decision] = []
    approvals: list[Change] = []
    state: LiveState = field(default_factory=LiveState)
    steps: list[int] = []
    """For each decision, the step of its call. The call is the last event before the decision."""
    before: int = 0
    """The number of approval changes that came before the last handover."""

    def trajectory(self, id: str) -> Trajectory:
        return Trajectory(id, self.events, self.opening.agent, context=self.opening.context)


def opening_of(pack: Pack, context: Mapping[str, Any] | None, agent: str) -> Opening:
    return Opening(pack.name, pack.version, pack.pin, dict(context or {}), agent)


def event_body(event: Event) -> bytes:
    if isinstance(event, Message):
        return encode(event if event.text.isascii() else replace(event, text=writable(event.text)))
    if isinstance(event, Call):
        # The decision already contains these look-ups.
        event = replace(event, looked_up=()) if event.looked_up else event
        try:
            return encode(event)
        except (TypeError, ValueError, OverflowError, RecursionError):
            unsaid = Call(writable(event.tool), {}, writable(event.id), event.by, event.turn)
            return encode(
                replace(unsaid, fault="arguments are not valid JSON data", time=event.time, refused=event.refused)
            )
    content = event.content
    text, data = (content, NO_DATA) if isinstance(content, str) else (None, content)
    told = (event.error, event.captured, event.tool, event.agent, event.time, event.refused)
    return encode(_Answer(event.call, text, data, *told))


def added_context(body: bytes) -> dict[str, Any]:
    """Return the context that an entry adds to the initial context."""
    if b'"context"' not in body and b'"handover"' not in body:
        return {}
    told = _with_context(body)
    return told.context or told.handover or {}


def decision_body(decision: Decision) -> bytes:
    """Return a decision as stored, without the citations of policies that permit the call."""
    grounds = [replace(each, citations=()) if each.answer == "allow" else each for each in decision.grounds]
    return encode(replace(decision, grounds=tuple(grounds)))


def read_history(entries: Iterable[Entry], history: History | None = None) -> History | None:
    """Extend a history with later entries of the conversation. Return None if there are no entries at all."""
    for entry in entries:
        body = entry.body
        if body is None or (entry.position or 0) != (history.state.length if history is not None else 0):
            gone = f"entry {entry.number} or an earlier entry is empty"
            raise LogError(f"conversation `{entry.conversation}` is incomplete: {gone}")
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
    if entry.kind == "opening":
        history = History(read_opening(body))
    if history is None:
        raise UsageError(f"the log has no opening entry for conversation `{entry.conversation}`")
    state = history.state
    if entry.id and entry.id.startswith(_REQUEST):
        digest, _, name = entry.id.removeprefix(f"{_REQUEST}{entry.conversation}/").partition("/")
        state.requests[name] = (digest, state.decided)
    value: Any = None
    match entry.kind:
        case "event":
            history.events.append(value := _read_event(body))
        case "decision":
            value = read_decision(body)
            history.decisions.append(value)
            history.steps.append(state.events - 1)
            if history.events and not value.repeats:
                history.events[-1] = marked(history.events[-1], value, state.yeses)
        case "approval":
            history.approvals.append(value := _change(body))
        case "use":
            value = read_use(body)
        case "opening" | "removal" | "stop" | "attestation":
            pass
    state.note(value, entry.time)
    if entry.kind == "event" and state.handed_over == state.events:
        history.before = len(history.approvals)
    return history


def marked(call: Event, decision: Decision, yeses: Mapping[str, Approved]) -> Event:
    """Return the call with the approval and the look-ups of its decision."""
    yes = (yeses.get(decision.approval) or _yes_of(decision)) if decision.allowed else None
    if not isinstance(call, Call) or (yes is None and not decision.resolved):
        return call
    if yes is not None:
        policies = tuple(dict.fromkeys(each.policy for each in decision.grounds if rests_on(each, yes.by)))
        yes = replace(yes, policies=policies)
    return replace(call, approved=yes, looked_up=decision.resolved)


def _yes_of(decision: Decision) -> Approved | None:
    """Return the approval under which a decision allowed its call, if another conversation requested the approval."""
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
    """Return the name of the separate conversation that another principal begins. Consent and approvals do not carry
    over.
    """
    given = dict(context or {})
    return f"{name} > {fingerprint(given.get(PRINCIPAL, given))[:16]}"


OPENING = "opening:"
"""The prefix of the id of a conversation's first entry."""
TRIES = 200
"""How often a call is decided again because another writer wrote first."""
MISFITS = 3
"""How often the log may reject an entry although it has no new entries."""


class ConversationJournal:
    first: Entry | None = None
    """The first entry of the conversation. If it changes, the conversation was deleted and started anew."""
    is_unsettled = False
    """Whether entries that were read may not be on disk yet. A successful write settles them too."""
    _conflicts = (0, 0)
    """The number of entries at the last rejection, and the number of consecutive rejections."""

    def __init__(self, log: Log | None, tenant: str, id: str) -> None:
        self.log = log
        self.tenant = tenant
        self.state = LiveState()
        self.id = id or (uuid.uuid4().hex if log is not None else "")
        self._may_be_known = log is not None and bool(id)
        """Whether the log may contain the conversation."""

    @property
    def may_be_known(self) -> bool:
        return self._may_be_known or self.state.length > 0

    @property
    def others_may_have_written(self) -> bool:
        return self.log is not None and self.log.others_may_have_written(self.tenant, self.id)

    @property
    def must_read_stops(self) -> bool:
        return self.log is not None and self.log.must_read_stops(self.tenant)

    @property
    def stops(self) -> Stops:
        return self.log.stops(self.tenant) if self.log is not None else NO_STOPS

    def forget_stops(self) -> None:
        """Read the stops again for the next decision."""
        if self.log is not None:
            self.log.forget_stops(self.tenant)

    def read(self, *, after: int = 0) -> list[Entry]:
        """Return the entries after a position. They may not be on disk yet. Call `settle` before reporting them."""
        if self.log is None:
            return []
        entries = self.log.conversation(self.tenant, self.id, after=after, settled=False)
        self.is_unsettled = self.is_unsettled or bool(entries)
        return entries

    def has_more_than(self, entries: int) -> bool:
        """Whether the conversation has more than this many entries. The log is not asked if it did not know the
        conversation.
        """
        if self.log is None or not self.may_be_known:
            return False
        length = self.log.length_if_known(self.tenant, self.id)
        self._may_be_known = length is not None
        return (length or 0) > entries

    def settle(self) -> None:
        """Wait until all entries read so far are on disk. Before that, they must not be reported or stored."""
        if self.log is not None and self.is_unsettled:
            self.log.settle()
            self.is_unsettled = False

    def forget(self) -> None:
        self._may_be_known = True

    def accepts(self, drafts: Sequence[Draft], answers: Answers) -> bool:
        """Process the answers. Return whether the drafts were written. If another writer wrote first, none were."""
        for conflict in answers:
            if isinstance(conflict, Conflict):
                if conflict.about == "stops":
                    self.forget_stops()
                elif not conflict.about:
                    self._refuse_misfit()
                return False
        self._conflicts = (0, 0)
        if drafts:
            self.is_unsettled = False
            if drafts[0].kind == "opening" and isinstance(answers[0], Entry):
                self.first = answers[0]
        return True

    def _refuse_misfit(self) -> None:
        """Raise an error if the log rejects drafts without new entries, as another attempt would fail too."""
        length, times = self._conflicts
        entries = self.state.length
        self._conflicts = (entries, times + 1 if length == entries else 1)
        if self._conflicts[1] > MISFITS:
            self._conflicts = (0, 0)
            counts = f"it has {entries} entries, but the log counted a different number"
            raise LogError(f"conversation `{self.id}` is incomplete: {counts}; see `bylaw log verify`")

    @property
    def overtaken(self) -> LogError:
        """The error for a call that was decided `TRIES` times because other writers wrote first each time."""
        return LogError(f"other processes keep writing to conversation `{self.id}`: gave up after {TRIES} tries")


class Attempt:
    """Decisions and the log entries to write for them. Without a log, nothing is encoded."""

    drafts: Sequence[Draft] = ()
    mutations = 0

    def __init__(self, journal: ConversationJournal, conversation: Conversation) -> None:
        self._journal = journal
        self.conversation = conversation
        self.stops = journal.stops
        self.decisions: list[Decision] = []
        self._events = 0
        self._entries: list[tuple[Any, Kind, bytes, str]] = []
        """For each entry of this conversation: its value, kind, body and id."""
        self._elsewhere: list[Draft] = []

    @property
    def uses(self) -> list[Use]:
        """The uses of limits by these decisions."""
        return [value for value, *_ in self._entries if isinstance(value, Use) and value.status == "taken"]

    def open(self, opening: Opening) -> None:
        self._add(opening, "opening", encode, f"{OPENING}{uuid.uuid4().hex}")

    def add_events(self) -> None:
        """Add all events so far. Calls that were refused no longer count towards limits."""
        state = self._journal.state
        for event in self.conversation.since(state.events + self._events):
            self._events += 1
            self._add(event, "event", event_body)
            for use in given_back(self.conversation, event, state.uses):
                self._add_use(replace(use, status="returned"))

    def decide(self, decision: Decision, name: str = "", uses: Sequence[Use] = ()) -> None:
        """Add a decision and its uses of limits, after all events so far."""
        self.decisions.append(decision)
        self.add_events()
        self._add(decision, "decision", decision_body, name)
        for use in uses:
            self._add_use(use)

    def add(self, draft: Draft) -> None:
        if draft.conversation == self._journal.id:
            self._entries.append((None, draft.kind, draft.body, draft.id))
        else:
            self._elsewhere.append(draft)

    def _add_use(self, use: Use) -> None:
        self._add(use, "use", encode_use, use_id(use))

    def _add(self, value: Any, kind: Kind, encoded: Callable[[Any], bytes], id: str = "") -> None:
        self._entries.append((value, kind, encoded(value) if self._journal.log is not None else b"", id))

    def close(self, named: Named | None = None) -> None:
        """Add the remaining events. The first entry gets the idempotency key. Without a log, everything is valid
        immediately.
        """
        self.add_events()
        if self._journal.log is None:
            self.note()
            return
        journal, revision = self._journal, self.stops.revision
        tenant, id, length, drafts = journal.tenant, journal.id, journal.state.length, list[Draft]()
        first = journal.first if length else None
        begun = named.id(id) if named is not None else ""
        try:
            for at, (_, kind, body, name) in enumerate(self._entries, length):
                if kind in ("opening", "event"):
                    # An entry is nested a few levels deeper than its content.
                    refuse_deep(body, DEEPEST + 10)
                under = revision if kind == "decision" else None
                drafts.append(Draft(tenant, id, kind, body, begun or name, at, under, first))
                first, begun = None, ""
        except ValueError as error:
            hint = "report only the part that matters, or report it as text"
            raise UsageError(f"the log cannot store this value: it is {error}", hint=hint) from None
        self.drafts = drafts + self._elsewhere

    def note(self) -> None:
        """Apply the written entries to the state."""
        for value, *_ in self._entries:
            self._journal.state.note(value)


def given_back(conversation: Conversation, event: Event, uses: Mapping[int, Sequence[Use]]) -> Sequence[Use]:
    """Return the uses of limits that an event cancels because it shows that its call was certainly refused."""
    if not isinstance(event, Result) or event.call is None or event.call not in uses:
        return ()
    made = conversation.session.ledger.calls.get(event.call)
    is_refused = made is not None and made.result is event and made.is_surely_refused()
    return uses[event.call] if is_refused else ()
