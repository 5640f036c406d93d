"""Resolves calls to generic tools, such as `click`, into actions.

Each action has its own tool, arguments and record. Either all actions of a call run, or none.
"""

from collections.abc import Container, Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bylaw.actions.action import Actions
from bylaw.actions.performing import Performed, Performing
from bylaw.engine.judgement import Judgement
from bylaw.facts.call_record import CallRecord, record_of
from bylaw.facts.schema import Schema
from bylaw.trace.event import Call, Event


class ActedCall(Struct):
    call: Call
    step: int
    performed: Performed
    plain: CallRecord
    """The record of the call itself. If the call's actions are known, the call has no effect beyond those of its
    actions.
    """
    actions: tuple[CallRecord, ...]
    is_named: bool = False
    """Whether a rule names the call's tool."""
    judged: tuple[Judgement, ...] = ()
    ahead: Any = None
    """The state of the rules after the call has been made."""

    @property
    def acts(self) -> tuple[CallRecord, ...]:
        """The records that the rules see. These are the actions and, if a rule names the call's tool or no action is
        known, the call itself.
        """
        return (self.plain, *self.actions) if self.is_named else self.actions or (self.plain,)

    def become(self, call: Call) -> None:
        """Replace the call with a changed version, for example after a refusal or an approval."""
        self.call = call
        for made in (self.plain, *self.actions):
            made.call = as_of(made.call, call)

    @property
    def put(self) -> Call:
        """What a card shows: the writing action, if there is exactly one, otherwise the call itself."""
        writes = [made for made in self.actions if made.tool is not None and made.tool.effect == "write"]
        return replace(writes[0].call, card=self.call.card) if len(writes) == 1 else self.call


def as_of(action: Call, call: Call) -> Call:
    """Return the action with the status (refused, approved) of the call that performs it."""
    return replace(
        action, refused=call.refused, refused_by_result=call.refused_by_result, approved=call.approved,
        looked_up=call.looked_up,
    )  # fmt: skip


class Acting:
    """Tracks generic-tool calls and their actions in one conversation."""

    def __init__(self, actions: Actions, schema: Schema, named: Container[str]) -> None:
        self._actions = actions
        self._named = named
        self._schema = schema
        self._performing = Performing(actions)
        self._last: ActedCall | None = None
        self.put: dict[int, Call] = {}
        """The calls as shown on cards, keyed by step."""
        self.made: dict[int, ActedCall] = {}

    def of(self, call: Call, step: int, start: int) -> ActedCall | None:
        """Return the actions of the call at `step`, or None if the tool declares no actions."""
        last = self._last
        if (
            last is not None
            and last.step == step
            and last.call.arguments is call.arguments
            and last.call.tool == call.tool
        ):
            if last.call is not call:
                last.become(call)
            return last
        performed = self._performing.of(call)
        if performed is None:
            return None
        self._last = ActedCall(
            call, step, performed, *self._records(call, step, start, performed), is_named=call.tool in self._named
        )
        return self._last

    def _records(
        self, call: Call, step: int, start: int, performed: Performed
    ) -> tuple[CallRecord, tuple[CallRecord, ...]]:
        tools = self._schema.tools
        if performed.unresolved:
            unknown = record_of(performed.shown or call, step, start, tools.get(call.tool))
            unknown.may_be = frozenset(each.name for each in self._actions.by_tool[call.tool])
            return unknown, ()
        actions = tuple([record_of(as_of(each, call), step, start, tools.get(each.tool)) for each in performed.calls])
        for made, untold in zip(actions, performed.untold, strict=True):
            made.called, made.untold, made.is_evidence = call.tool, untold, performed.is_evidence
        plain = record_of(call, step, start, self._actions.plain.get(call.tool))
        plain.is_beside = bool(actions)
        return plain, actions

    def afresh(self, acted: ActedCall, call: Call, start: int) -> ActedCall:
        """Return a copy of the call in the ledger of the principal who takes over."""
        records = self._records(call, acted.step, start, acted.performed)
        return ActedCall(call, acted.step, acted.performed, *records, is_named=acted.is_named)

    def calls(self, call: Call) -> Sequence[Call]:
        """Return the actions that a call would perform now. If no action is known, return the call itself."""
        performed = self._performing.of(call)
        return performed.calls or (call,) if performed is not None else (call,)

    def page_tool(self, step: int) -> str:
        """Return the name of the tool that shows the page on which the call at `step` acts. Empty if the call acts on
        no page.
        """
        acted = self._at(step)
        if acted is None or not any(each.on is not None for each in self._actions.by_tool[acted.call.tool]):
            return ""
        return self._actions.pages.snapshot

    def is_same_on(self, step: int, snapshot: str) -> bool:
        """Whether, on the page in this snapshot, the call at `step` would still do what it did when it was judged."""
        acted = self._at(step)
        now = self._performing.on_snapshot(acted.call, snapshot) if acted is not None else None
        if acted is None or now is None:
            return False
        before = acted.performed
        if before.unresolved or any(made.tool is None or made.tool.effect == "write" for made in acted.actions):
            return now.compared == before.compared
        # A read-only call stays read-only, whatever else the page shows.
        return not now.unresolved and now.calls == before.calls

    def _at(self, step: int) -> ActedCall | None:
        last = self._last
        return last if last is not None and last.step == step else self.made.get(step)

    def observe(self, step: int, event: Event) -> None:
        self._performing.observe(step, event)

    def read_ahead(self) -> None:
        """Parse the latest snapshot in advance."""
        self._performing.read_ahead()

    def note(self, acted: ActedCall) -> None:
        self.made[acted.step], self.put[acted.step] = acted, acted.put


def performed_events(actions: Actions, events: Sequence[Event]) -> Iterator[tuple[int, Event]]:
    """Yield each event with its step. A call to a generic tool is replaced by the actions that it performs."""
    performing = Performing(actions)
    for step, event in enumerate(events):
        performed = performing.of(event) if isinstance(event, Call) else None
        if isinstance(event, Call) and performed is not None and performed.calls:
            for each in performed.calls:
                yield step, replace(as_of(each, event), context=event.context)
        else:
            yield step, event
        performing.observe(step, event)
