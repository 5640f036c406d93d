"""What was shown and what is stale, over the boxes. Slow on purpose: every question reads the whole history again."""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bylaw.facts.entity import ABSENT, UNSEEN
from bylaw.trace.event import Call, Event, Result
from tests.facts.boxes import CHANGED

FRESH_FOR = 100
ROUNDING = 1


class Sight(NamedTuple):
    """One field of one box, as one result showed it."""

    asked: int
    delivered: int
    to: str
    value: Any
    time: float | None


def call_at(events: Sequence[Event], step: int) -> Call:
    event = events[step]
    assert isinstance(event, Call)
    return event


def turn_start(events: Sequence[Event], step: int) -> int:
    """The first step of the turn a call belongs to; results belong to none."""
    start = step
    for earlier in range(step - 1, -1, -1):
        event = events[earlier]
        if isinstance(event, Result):
            continue
        if event.turn != call_at(events, step).turn:
            break
        start = earlier
    return start


def answer(events: Sequence[Event], step: int) -> tuple[int, Result] | None:
    """The first result of a call, and where it stands."""
    for at, event in enumerate(events):
        if isinstance(event, Result) and event.call == step:
            return at, event
    return None


def data(result: Result) -> Any:
    try:
        return json.loads(str(result.content))
    except ValueError:
        return result.content


def refused(result: Result) -> bool:
    found = data(result)
    return str(result.content).lower().startswith("error") or (isinstance(found, dict) and "error" in found)


def recipient(call: Call) -> str:
    return "the user" if call.by == "user" else call.agent


def shown(events: Sequence[Event], box: str, field: str) -> Iterator[Sight]:
    """Every value of the field of that box, in the order delivered."""
    for at, event in enumerate(events):
        if not isinstance(event, Result) or event.call is None or not event.captured:
            continue
        if answer(events, event.call) != (at, event) or at != next(i for i, e in enumerate(events) if e == event):
            continue
        call = call_at(events, event.call)
        for record in boxes_in(call, event):
            if record["box_id"] == box and field in record:
                yield Sight(event.call, at, recipient(call), record[field], event.time)


def boxes_in(call: Call, result: Result) -> Iterator[dict[str, Any]]:
    """The boxes a result speaks of; `exists` is always among their fields."""
    found = data(result)
    if call.tool == "look" and "no box" in str(result.content):
        yield {"box_id": call.arguments["box_id"], "exists": False}
        return
    if refused(result) or call.fault:
        return
    match call.tool:
        case "look" | "set_a":
            record = found if isinstance(found, dict) else {}
            yield {"box_id": str(call.arguments["box_id"]), **record, "exists": True}
        case "peek":
            yield {"box_id": call.arguments["box_id"], "exists": True}
            if isinstance(found, dict) and "top" in found:
                yield {"box_id": call.arguments["box_id"], "a": found["top"]}
        case "list":
            for record in found if isinstance(found, list) else []:
                yield {**record, "exists": True}
        case _:
            pass


def same(given: Any, box: Any) -> bool | None:
    """Whether a tool takes what it was given for that box; None where nobody knows."""
    if isinstance(given, list | dict) or str(given).strip().startswith(("[", "{")):
        return None
    if str(given) == str(box):
        return True
    rough = unicodedata.normalize("NFKC", str(given)).strip().removesuffix(".0")
    return None if rough == str(box) else False


def touches(call: Call, box: str, field: str) -> bool:
    """Whether a call may change the field of that box."""
    if call.tool == "unheard_of":
        return bool(call.fault) or box in re.findall(r"\w+", json.dumps(call.arguments))
    if field not in CHANGED.get(call.tool, set()):
        return False
    if call.fault:
        return True
    match call.tool:
        case "wipe":
            return True
        case "set_many":
            return box in call.arguments["ids"]
        case _:
            return same(call.arguments["box_id"], box) is not False


def may_have_happened(events: Sequence[Event], step: int, known_at: int | None) -> bool:
    """Whether a write took effect for all one can tell just before `known_at`, or at the very end."""
    found = answer(events, step)
    if found is None or (known_at is not None and found[0] >= known_at):
        return True
    return not found[1].captured or not refused(found[1])


def changed(events: Sequence[Event], box: str, field: str, after: int, before: int, known_at: int | None) -> bool:
    """Whether a write between two steps, both excluded, changed the field."""
    return any(
        isinstance(event, Call) and touches(event, box, field) and may_have_happened(events, step, known_at)
        for step, event in enumerate(events)
        if after < step < before
    )


def overlapped(events: Sequence[Event], box: str, field: str, asked: int, known_at: int | None) -> bool:
    """Whether a write that was asked for before a look-up may have changed the field after it.

    Its answer came only after the look-up was asked for; or none came yet, and both are of one turn.
    """
    for step, event in enumerate(events[:asked]):
        if not isinstance(event, Call) or not touches(event, box, field):
            continue
        found = answer(events, step)
        came = found[0] if found is not None and (known_at is None or found[0] < known_at) else None
        is_beside = event.turn == call_at(events, asked).turn if came is None else came > asked
        if is_beside and may_have_happened(events, step, known_at):
            return True
    return False


def latest(events: Sequence[Event], box: str, field: str, judged: int) -> Sight | None:
    """The last value delivered to the judged call's agent before its turn, and not stale since."""
    call = call_at(events, judged)
    fresh = [
        sight
        for sight in shown(events, box, field)
        if sight.delivered < turn_start(events, judged)
        and sight.to == recipient(call)
        and not changed(events, box, field, sight.asked, judged, judged)
        and not overlapped(events, box, field, sight.asked, judged)
    ]
    if not fresh:
        return None
    return None if is_old(events, fresh[-1], judged) else fresh[-1]


def is_old(events: Sequence[Event], sight: Sight, judged: int) -> bool:
    """Whether what was shown is, or may be, too old; without any time so far nobody asks."""
    now = call_at(events, judged).time
    stamps = [(step, event.time) for step, event in enumerate(events[:judged]) if event.time is not None]
    if now is None and not stamps:
        return False
    shown = sight.time
    if shown is None:
        shown = next((time for step, time in reversed(stamps) if step <= sight.delivered), None)
    if now is None or shown is None:
        return True
    since = [shown, *(time for step, time in stamps if step > sight.delivered)]
    return now - shown > FRESH_FOR or any(now < time - ROUNDING for time in since)


def seen(events: Sequence[Event], box: str, field: str, judged: int) -> Any:
    """What the agent had seen of a field when it made a call."""
    found = latest(events, box, field, judged)
    if field != "exists":
        existence = latest(events, box, "exists", judged)
        if existence is not None and existence.value is False and (found is None or found.asked < existence.asked):
            return ABSENT
    return UNSEEN if found is None else found.value


def hindsight(events: Sequence[Event], box: str, field: str, judged: int) -> Any:
    """What the whole conversation tells of a field as it was when a call was made."""
    found = _told(events, box, field, judged)
    if field != "exists" and found is UNSEEN and _told(events, box, "exists", judged) is False:
        return ABSENT
    return found


def _told(events: Sequence[Event], box: str, field: str, judged: int) -> Any:
    start = turn_start(events, judged)
    before = [sight for sight in shown(events, box, field) if sight.delivered < start]
    after = [sight for sight in shown(events, box, field) if sight.delivered >= start]
    if before:
        newest = max(before, key=lambda sight: sight.asked)
        is_over = not overlapped(events, box, field, newest.asked, None)
        if is_over and not changed(events, box, field, newest.asked, judged, None):
            return newest.value
    if after:
        soonest = min(after, key=lambda sight: sight.asked)
        is_over = not overlapped(events, box, field, soonest.asked, None)
        if is_over and not changed(events, box, field, min(soonest.asked, judged) - 1, len(events), None):
            return soonest.value
    return UNSEEN


def done(events: Sequence[Event], tool: str, match: Mapping[str, Any], judged: int, known_at: int | None) -> Any:
    """How many earlier writes of a tool took effect with those arguments; UNSEEN where one may have."""
    count = 0
    for step, event in enumerate(events[:judged]):
        if not isinstance(event, Call) or event.tool != tool:
            continue
        found = answer(events, step)
        at = events[judged]
        is_open = found is None or (known_at is not None and found[0] >= known_at)
        if is_open and known_at is not None and isinstance(at, Call) and event.turn == at.turn:
            took_effect = True
        elif found is None or is_open or not found[1].captured:
            took_effect = None
        else:
            took_effect = not refused(found[1])
        parts = [took_effect, *(had(event, name, value) for name, value in match.items())]
        if False in parts:
            continue
        if None in parts:
            return UNSEEN
        count += 1
    return count


def had(call: Call, name: str, value: Any) -> bool | None:
    """Whether a call had that argument."""
    if call.fault:
        return None
    return same(call.arguments[name], value) if name in call.arguments else False
