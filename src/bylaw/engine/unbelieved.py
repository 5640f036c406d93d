"""Removes claims that reported messages cannot prove, and disregards results that prove too little."""

from collections.abc import Collection

from msgspec.structs import replace

from bylaw.facts.call_record import accepted, declares_refusal
from bylaw.facts.schema import Schema
from bylaw.trace.event import Call, Event, Message, Result, tells_refusal
from bylaw.trace.transcript import Transcript


def disown(events: list[Event], start: int) -> None:
    """Remove claims that only a host or a shield can make: sign-ins, refusals, cards and answers to cards."""
    for step in range(start, len(events)):
        event = events[step]
        if isinstance(event, Call) and (event.context or event.card or (event.refused and not event.refused_by_result)):
            events[step] = replace(event, context=None, card=None, refused=event.refused_by_result)
        elif isinstance(event, Result) and event.refused:
            events[step] = replace(event, refused=None)
        elif isinstance(event, Message) and (event.handover is not None or event.confirmation is not None):
            events[step] = replace(event, handover=None, confirmation=None, captured=False)


def is_refused(event: Event) -> bool:
    return isinstance(event, Call) and event.refused


def disown_during(events: list[Event], start: int, running: Collection[int]) -> None:
    """Remove user messages that arrive while a call is running, because an agent inside that call may have written
    them.
    """
    left = set(running)
    for step in range(start, len(events)):
        event = events[step]
        if isinstance(event, Result):
            left.discard(-1 if event.call is None else event.call)
        elif left and isinstance(event, Message) and event.by == "user" and event.text:
            events[step] = replace(event, text="", captured=False)


def withhold_refusals(events: list[Event], start: int) -> None:
    """Disregard a shield's refusal that is reported as the result of an allowed call, because the call may have run."""
    for step in range(start, len(events)):
        event = events[step]
        call = events[event.call] if isinstance(event, Result) and event.call is not None else None
        if isinstance(event, Result) and isinstance(call, Call) and not call.refused and tells_refusal(event.text):
            events[step] = replace(event, captured=False, error=None, refused=False)


def withhold(events: list[Event], start: int) -> None:
    """Disregard every result from a step on."""
    for step in range(start, len(events)):
        event = events[step]
        if isinstance(event, Result):
            events[step] = replace(event, captured=False)


def withhold_old(events: list[Event], start: int, tools: Collection[str] | None = None) -> None:
    """In a changed history, disregard look-ups (of `tools`, if given) that may repeat earlier ones with the same
    results.
    """
    if tools is not None and not tools:
        return
    known = {told for step in range(start) if (told := _look_up(events, step)) is not None}
    for step in range(start, len(events)):
        event = events[step]
        told = _look_up(events, step)
        if not isinstance(event, Result) or told not in known or event.call is None or event.call < start:
            continue
        if tools is None or told[0] in tools:
            events[step] = replace(event, captured=False)


def _look_up(events: list[Event], step: int) -> tuple[str, str] | None:
    """Return the tool and content that identify a result. Arguments are left out, because they may differ when it is
    repeated.
    """
    event = events[step]
    call = events[event.call] if isinstance(event, Result) and event.call is not None else None
    if not isinstance(event, Result) or not isinstance(call, Call):
        return None
    return call.tool, event.text


def doubt(script: Transcript, start: int, schema: Schema) -> None:
    """Mark errors from writes as inconclusive, unless the pack or the host states that nothing changed."""
    if script.returned.isdisjoint(schema.writing):
        return
    events, tools = script.events, schema.tools
    for step in range(start, len(events)):
        event = events[step]
        if type(event) is not Result or event.call is None or not event.captured:
            continue
        call = events[event.call]
        tool = tools.get(call.tool) if isinstance(call, Call) and not call.refused else None
        if tool is None or tool.effect != "write":
            continue
        if event.refused or declares_refusal(tool, event):
            continue
        if accepted(tool, event) is False:
            events[step] = replace(event, refused=False)
