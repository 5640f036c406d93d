"""The journal of one live conversation: what the log has of it, and what one attempt adds. Without a log, nothing is
kept.

Each entry has its position in the conversation: if another process has gone on with it meanwhile, nothing is written,
what it wrote is read first, and the call is decided anew.
"""

import uuid
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from bylaw.engine.conversation import Conversation
from bylaw.engine.door import DEEPEST, refuse_deep
from bylaw.errors import UsageError
from bylaw.record.entry import Conflict, Draft, Entry, Kind
from bylaw.record.journal import Answers, LogError
from bylaw.record.log import Log
from bylaw.record.stop import NO_STOPS, Stops
from bylaw.record.use import Use, use_entry
from bylaw.shield.decision import Decision
from bylaw.shield.history import LiveState, Named, Opening, decision_body, encode, event_body
from bylaw.trace.event import Call, Event, Result

OPENING = "opening:"
"""How the names of first entries begin."""
TRIES = 200
"""How often a call is decided anew because others have gone on with the conversation."""
MISFITS = 3
"""How often something may not fit a log in which nothing was added."""


class Journal:
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

    def __init__(self, journal: Journal, conversation: Conversation) -> None:
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
