"""A live conversation as the log keeps it: what is written of it, and how it continues. Without a log, nothing is kept.

Each entry has its position in the conversation: if another process has gone on with it meanwhile, nothing is written,
what it wrote is read first, and the call is decided anew.
"""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct, field
from msgspec.structs import astuple, replace

from bylaw.engine.conversation import Conversation
from bylaw.engine.door import DEEPEST, PRINCIPAL, refuse_deep, writable
from bylaw.errors import UsageError
from bylaw.pack import Pack
from bylaw.record.approval import Change, fingerprint
from bylaw.record.entry import Conflict, Draft, Entry, Kind, is_altered
from bylaw.record.journal import Answers, LogError
from bylaw.record.log import Log
from bylaw.record.stop import NO_STOPS, Stops
from bylaw.record.use import Use, read_use, use_entry
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


OPENING = "opening:"
"""How the names of first entries begin."""
TRIES = 200
"""How often a call is decided anew because others have gone on with the conversation."""
MISFITS = 3
"""How often something may not fit a log in which nothing was added."""


class ConversationJournal:
    """What the log has of one conversation."""

    first: Entry | None = None
    """Its first entry. If it was removed, somebody else may have begun it anew."""
    is_unsettled = False
    """What was read may not be on disk yet, and nothing was written after it."""
    _conflicts = (0, 0)
    """The length at which a draft last did not fit, and how many times in a row."""

    def __init__(self, log: Log | None, tenant: str, id: str) -> None:
        self.log = log
        self.tenant = tenant
        self.state = LiveState()
        self.id = id or (uuid.uuid4().hex if log is not None else "")
        self._may_be_known = self._may_be_new = log is not None and bool(id)
        """Whether the log may have the conversation, and whether it may not."""

    @property
    def may_be_known(self) -> bool:
        """Whether the log may have entries of the conversation."""
        return self._may_be_known or self.state.length > 0

    @property
    def others_may_have_written(self) -> bool:
        """Whether the log may have more than was read."""
        return self.log is not None and self.log.others_may_have_written(self.tenant, self.id)

    @property
    def stops_are_stale(self) -> bool:
        """Whether stops were made or lifted that were not read yet."""
        return self.log is not None and self.log.must_read_stops(self.tenant)

    @property
    def stops(self) -> Stops:
        """The stops that were read last."""
        return self.log.stops(self.tenant) if self.log is not None else NO_STOPS

    def read_stops(self) -> None:
        """Read the stops that stand now."""
        if self.log is not None:
            self.log.read_stops(self.tenant)

    def take_for_new(self) -> bool:
        """Begin without reading the log, if nothing suggests that it has the conversation; whether it may be begun so.

        If the log has it after all, the first decision does not fit and is not written.
        """
        if self.log is None or self.state.length or not self._may_be_new or self.stops_are_stale:
            return False
        self._may_be_known = self.log.was_written_to(self.tenant, self.id)
        return not self._may_be_known

    def read(self, *, after: int = 0, settled: bool) -> list[Entry]:
        """The entries after so many; unless `settled`, they may not be on disk yet."""
        if self.log is None:
            return []
        entries = self.log.conversation(self.tenant, self.id, after=after, settled=settled)
        self.is_unsettled = self.is_unsettled or bool(entries and not settled)
        return entries

    def settle(self) -> None:
        """Wait until all that was read is on disk: nobody may be told of it before, nor may it be kept for later."""
        if self.log is not None and self.is_unsettled:
            self.log.settle()
            self.is_unsettled = False

    def forget(self) -> None:
        """Everything is to be read again."""
        self._may_be_known, self._may_be_new = True, False
        self.is_unsettled = False

    def accepts(self, drafts: Sequence[Draft], answers: Answers) -> bool:
        """Whether drafts were written; if others were faster, none was."""
        conflict = next((answer for answer in answers if isinstance(answer, Conflict)), None)
        if conflict is not None:
            if conflict.about == "stops" and self.log is not None:
                self.log.stops_changed(self.tenant)
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
        """Others who are faster add to the conversation. If nothing was added, another try would end as this one."""
        length, times = self._conflicts
        entries = self.state.length
        self._conflicts = (entries, times + 1 if length == entries else 1)
        if self._conflicts[1] > MISFITS:
            self._conflicts = (0, 0)
            counts = f"{entries} entries of it are there, and the log has counted others"
            raise LogError(f"conversation `{self.id}` is not whole: {counts}; see `bylaw log verify`")

    @property
    def overtaken(self) -> LogError:
        """The error if others have been faster each time."""
        return LogError(f"others keep writing to conversation `{self.id}`: tried {TRIES} times")


class Attempt:
    """Decisions, and the entries that have to be written before they hold; without a log, none."""

    drafts: Sequence[Draft] = ()
    mutations = 0
    """How many of the unwritten mutations are among the entries."""

    def __init__(self, journal: ConversationJournal, conversation: Conversation) -> None:
        self._journal = journal
        self.conversation = conversation
        self.stops = journal.stops
        self.decisions: list[Decision] = []
        self.uses: dict[int, list[Use]] = {}
        """By step of the call, the places that the decisions take under limits."""
        self.events: list[Event] = []
        self._calls: list[str] = []
        """The id of each decision's call."""
        self._bodies: list[tuple[Kind, bytes, str]] = []
        self._elsewhere: list[Draft] = []
        """Entries of other conversations."""

    def open(self, opening: Opening) -> None:
        """The conversation begins."""
        self._bodies.append(("opening", encode(opening), f"{OPENING}{uuid.uuid4().hex}"))

    def add_events(self) -> None:
        """Add all that has happened by now, and the places that calls give back if their tools refused them."""
        if self._journal.log is None:
            return
        state = self._journal.state
        events = self.conversation.since(state.events + len(self.events))
        for event in events:
            self._bodies.append(("event", event_body(event), ""))
            back = given_back(self.conversation, event, state.uses)
            self._bodies.extend(("use", *use_entry(replace(use, status="returned"))) for use in back)
        self.events += events

    def decide(self, decision: Decision, call: Call | None = None, name: str = "", uses: Sequence[Use] = ()) -> None:
        """Add a decision after all that has happened by now, and the places that it takes."""
        self.decisions.append(decision)
        self._calls.append(call.id if call is not None else "")
        if self._journal.log is None:
            return
        self.add_events()
        self._bodies.append(("decision", decision_body(decision), name))
        self._bodies.extend(("use", *use_entry(use)) for use in uses)
        if uses:
            self.uses[self._journal.state.events + len(self.events) - 1] = list(uses)

    def add(self, draft: Draft) -> None:
        """Add an entry that was made elsewhere, for this conversation or for another."""
        if draft.conversation == self._journal.id:
            self._bodies.append((draft.kind, draft.body, draft.id))
        else:
            self._elsewhere.append(draft)

    def close(self, named: Named | None = None) -> None:
        """Add the rest of what has happened. The first entry bears the name of the request. Without a log, all of it
        holds now."""
        if self._journal.log is None:
            self.note()
            return
        self.add_events()
        for kind, body, _ in self._bodies:
            if kind in ("opening", "event"):
                _refuse_deep(body)
        journal, revision = self._journal, self.stops.revision
        found = [
            Draft(journal.tenant, journal.id, kind, body, name, at, revision if kind == "decision" else None)
            for at, (kind, body, name) in enumerate(self._bodies, journal.state.length)
        ]
        if found and journal.state.length:
            found[0] = replace(found[0], first=journal.first)
        if found and named is not None:
            found[0] = replace(found[0], id=named.id(journal.id))
        self.drafts = [*found, *self._elsewhere]

    def note(self) -> None:
        """The entries are written: what they say counts for the next decisions."""
        state = self._journal.state
        for event in self.events:
            state.note_event(event)
        for decision, call in zip(self.decisions, self._calls, strict=True):
            state.note_decision(decision, call)
        state.uses |= self.uses
        state.length += len(self._bodies)


def given_back(conversation: Conversation, event: Event, uses: Mapping[int, Sequence[Use]]) -> Sequence[Use]:
    """The places that an event gives back: those of the call that it says was surely refused."""
    if not isinstance(event, Result) or event.call is None or event.call not in uses:
        return ()
    made = conversation.session.ledger.calls.get(event.call)
    is_refused = made is not None and made.result is event and made.is_surely_refused()
    return uses[event.call] if is_refused else ()


def _refuse_deep(body: bytes) -> None:
    """Messages or a context may be nested so deep that they could be written, and not be read again."""
    try:
        # The entry itself is a little deeper than what it holds.
        refuse_deep(body, DEEPEST + 10)
    except ValueError as error:
        hint = "give the part of it that matters, or its text"
        raise UsageError(f"what the log is to keep is {error}", hint=hint) from None
