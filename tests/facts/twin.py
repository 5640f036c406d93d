"""What was shown and what is stale, over the boxes. Slow on purpose: every question reads the whole history again."""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bylaw.facts.entity import ABSENT, UNSEEN, Between, OneOf
from bylaw.trace.event import Call, Event, Result
from tests.facts.boxes import CHANGED, schema

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


def fresh(events: Sequence[Event], box: str, field: str, judged: int) -> list[Sight]:
    """The values delivered to the judged call's agent before its turn, and not changed since."""
    call = call_at(events, judged)
    return [
        sight
        for sight in shown(events, box, field)
        if sight.delivered < turn_start(events, judged)
        and sight.to == recipient(call)
        and not changed(events, box, field, sight.asked, judged, judged)
        and not overlapped(events, box, field, sight.asked, judged)
    ]


def latest(events: Sequence[Event], box: str, field: str, judged: int) -> Sight | None:
    """The last of these, unless it is old."""
    found = fresh(events, box, field, judged)
    return None if not found or is_old(events, found[-1], judged) else found[-1]


def at_once(sight: Sight, sights: Sequence[Sight]) -> list[Sight]:
    """Those of which neither was asked for after the answer of the other had come."""
    return [other for other in sights if not (other.delivered <= sight.asked or sight.delivered <= other.asked)]


def told(sights: Sequence[Sight]) -> Any:
    """What they all tell, or that it is one of several."""
    values = list(dict.fromkeys(sight.value for sight in sights))
    return values[0] if len(values) == 1 else OneOf(tuple(values))


def there(sights: Sequence[Sight]) -> Any:
    """Whether there is a box: None where one that was shown is no longer there, or was shown both ways at once."""
    newest = max(sights, key=lambda sight: sight.asked)
    if newest.value is False:
        return None if any(sight.value for sight in sights) else False
    return None if any(not sight.value for sight in at_once(newest, sights)) else True


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
    if latest(events, box, "exists", judged) is not None:
        exists = there(fresh(events, box, "exists", judged))
        if field == "exists" or exists is None:
            return UNSEEN if exists is None else exists
        if exists is False:
            return ABSENT
    found = latest(events, box, field, judged)
    return UNSEEN if found is None else told(at_once(found, fresh(events, box, field, judged)))


def hindsight(events: Sequence[Event], box: str, field: str, judged: int) -> Any:
    """What the whole conversation tells of a field as it was when a call was made."""
    start = turn_start(events, judged)
    known = [sight for sight in before(events, box, "exists", judged) if sight.delivered < start]
    exists = there(known) if known else after(events, box, "exists", judged)
    if exists is None or isinstance(exists, OneOf):
        return UNSEEN
    if field == "exists":
        return exists
    found: Any = UNSEEN
    if exists is not False:
        newest = max(
            (sight for sight in shown(events, box, field) if sight.delivered < start),
            key=lambda sight: sight.asked,
            default=None,
        )
        known = before(events, box, field, judged)
        if newest in known:
            found = told(at_once(newest, known))
    if found is UNSEEN:
        found = after(events, box, field, judged)
    return ABSENT if found is UNSEEN and exists is False else found


def before(events: Sequence[Event], box: str, field: str, judged: int) -> list[Sight]:
    """What was shown to anybody before the call's turn, and was so until the call."""
    return [
        sight
        for sight in shown(events, box, field)
        if sight.delivered < turn_start(events, judged)
        and not overlapped(events, box, field, sight.asked, None)
        and not changed(events, box, field, sight.asked, judged, None)
    ]


def after(events: Sequence[Event], box: str, field: str, judged: int) -> Any:
    """What the first look after the call's turn began tells, if it was so from the call on."""
    later = [sight for sight in shown(events, box, field) if sight.delivered >= turn_start(events, judged)]
    if not later:
        return UNSEEN
    kept = [
        sight
        for sight in later
        if not overlapped(events, box, field, sight.asked, None)
        and not changed(events, box, field, min(sight.asked, judged) - 1, len(events), None)
    ]
    soonest = min(later, key=lambda sight: sight.asked)
    return told(at_once(soonest, kept)) if soonest in kept else UNSEEN


def done(events: Sequence[Event], tool: str, match: Mapping[str, Any], judged: int, known_at: int | None) -> Any:
    """How many earlier writes of a tool took effect with those arguments; `Between` where others may have."""
    count = maybe = 0
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
            maybe += 1
        else:
            count += 1
    return Between(count, count + maybe) if maybe else count


def had(call: Call, name: str, value: Any) -> bool | None:
    """Whether a call had that argument."""
    if call.fault:
        return None
    if name in call.arguments:
        return same(call.arguments[name], value)
    tool = schema().tools.get(call.tool)
    return None if tool is not None and name in tool.required else False
