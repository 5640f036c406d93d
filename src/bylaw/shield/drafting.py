"""What the log is to keep of one attempt: events, decisions, approvals and places, in the order in which they came."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from bylaw.engine.conversation import Conversation
from bylaw.engine.door import DEEPEST, refuse_deep
from bylaw.errors import UsageError
from bylaw.pack import Pack
from bylaw.record.entry import Draft, Entry, Kind
from bylaw.record.stop import Stops
from bylaw.record.use import Use, use_entry
from bylaw.shield.decision import Decision
from bylaw.shield.history import decision_body, encode, event_body, opening_of
from bylaw.trace.event import Event, Result

OPENING = "opening:"
"""How the names of first entries begin."""


class Drafting:
    """The entries of one attempt, as they gather."""

    def __init__(self, conversation: Conversation, id: str, written: int, uses: Mapping[int, Sequence[Use]]) -> None:
        self._conversation = conversation
        self._id = id
        self.written = written
        """How many events of the conversation are written, with what gathered here."""
        self._uses = uses
        """By step of the call, the places that it took under limits."""
        self._bodies: list[tuple[Kind, bytes, str]] = []
        self._elsewhere: list[Draft] = []
        """What belongs to other conversations."""

    def open(self, pack: Pack, context: Mapping[str, Any] | None, by: str) -> None:
        """The conversation begins."""
        self._bodies.append(("opening", encode(opening_of(pack, context, by)), f"{OPENING}{uuid.uuid4().hex}"))

    def take_events(self) -> None:
        """All that has happened by now, and the places that calls give back which their tools refused."""
        events = self._conversation.since(self.written)
        for event in events:
            self._bodies.append(("event", event_body(event), ""))
            back = given_back(self._conversation, event, self._uses)
            self._bodies.extend(("use", *use_entry(replace(use, status="returned"))) for use in back)
        self.written += len(events)

    def decide(self, decision: Decision, name: str = "", uses: Iterable[Use] = ()) -> None:
        """A decision after all that has happened by now, and the places that it takes."""
        self.take_events()
        self._bodies.append(("decision", decision_body(decision), name))
        self._bodies.extend(("use", *use_entry(use)) for use in uses)

    def add(self, draft: Draft) -> None:
        """An entry that is made elsewhere, for this conversation or for another."""
        if draft.conversation == self._id:
            self._bodies.append((draft.kind, draft.body, draft.id))
        else:
            self._elsewhere.append(draft)

    def drafts(self, tenant: str, length: int, first: Entry | None, stops: Stops) -> list[Draft]:
        """The entries, after so many that the log has; `first` is the first of those."""
        for kind, body, _ in self._bodies:
            if kind in ("opening", "event"):
                _refuse_deep(body)
        found = [
            Draft(tenant, self._id, kind, body, name, place, stops.revision if kind == "decision" else None)
            for place, (kind, body, name) in enumerate(self._bodies, length)
        ]
        if found and length:
            found[0] = replace(found[0], first=first)
        return [*found, *self._elsewhere]


def given_back(conversation: Conversation, event: Event, uses: Mapping[int, Sequence[Use]]) -> Sequence[Use]:
    """The places that come back with an event: those of the call that it says was surely refused."""
    if not isinstance(event, Result) or event.call is None or event.call not in uses:
        return ()
    made = conversation.session.ledger.calls.get(event.call)
    is_refused = made is not None and made.result is event and made.is_surely_refused()
    return uses[event.call] if is_refused else ()


def _refuse_deep(body: bytes) -> None:
    """What messages or a context hold may be nested so deep that it could be written, and not be read again."""
    try:
        # The entry itself is a little deeper than what it tells of.
        refuse_deep(body, DEEPEST + 10)
    except ValueError as error:
        hint = "give the part of it that matters, or its text"
        raise UsageError(f"what the log is to keep is {error}", hint=hint) from None
