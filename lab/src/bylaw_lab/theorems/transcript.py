"""Writes true events as readable lines."""

from bylaw_lab.theorems.truth import (
    Allowed,
    CallKey,
    HandedOver,
    Issued,
    Lifted,
    ModelAnswered,
    Note,
    PersonAnswered,
    PersonAsked,
    Pressed,
    Ran,
    Said,
    Shown,
    Stopped,
    True_,
)


def line(event: True_, begin: float) -> str:
    """Return one event as text. Times are in seconds since the beginning."""
    match event:
        case Said():
            shown = ", ".join(map(_call, event.shows))
            shown = f"{shown} with fees {', '.join(event.fees)}" if any(event.fees) else shown
            marks = [f"means {event.meaning}"] if event.by == "user" else [f"shows {shown}"] if shown else []
            whose = f"{event.by} {event.principal}".strip()
            return f"{whose}: {event.text!r} {' '.join(marks)} @{event.at - begin:.0f}"
        case Issued():
            fee = f" with fee {event.fee}" if event.fee else ""
            return f"card {event.card} issued for {_call(event.call)}{fee} @{event.at - begin:.0f}"
        case Pressed():
            answer = "yes" if event.yes else "no"
            return f"{event.principal} pressed {answer} on card {event.card} before event {event.seen}"
        case Ran():
            return f"{_call(event.call)}: {event.outcome}"
        case HandedOver():
            return f"conversation continues with {event.principal}"
        case Allowed():
            return f"ALLOWED {_call(event.call)} {event.principal} @{event.at - begin:.0f}"
        case ModelAnswered():
            return f"model asked about {_call(event.call)}: {event.yes}"
        case PersonAsked():
            return f"{event.approval} waits for a person: {_call(event.call)} on {event.facts} @{event.at - begin:.0f}"
        case PersonAnswered():
            return f"{event.approval} {'approved' if event.yes else 'rejected'} @{event.at - begin:.0f}"
        case Stopped():
            return f"{event.stop} stops {event.tool or 'all'} until @{event.until - begin:.0f}"
        case Lifted():
            return f"{event.stop} lifted"
        case Shown():
            return f"look-up after event {event.since} shows {event.order}: {event.left}"
        case Note():
            return f"({event.text})"


def _call(call: CallKey) -> str:
    return f"{call.tool}{call.arguments}"
