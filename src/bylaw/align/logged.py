"""Recorded conversations as lessons: one act a turn, whatever the log had side by side."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bylaw.align.bearing import Span, next_write
from bylaw.align.lesson import Lesson, LessonSeries
from bylaw.align.output import write_call
from bylaw.align.thought import think
from bylaw.align.told import told_slots
from bylaw.pack import Pack
from bylaw.trace.event import Call, Event, Message, Result
from bylaw.trace.trajectory import Trajectory

Thoughts = Mapping[str, str | None]
"""Thoughts that a model wrote, by the place of their turn (`place_of`); None for one that was not good enough."""


def acts(events: Sequence[Event]) -> Iterator[Span]:
    """What an agent did, one act after the other: each call, and each text that stands beside none."""
    calling = {event.turn for event in events if isinstance(event, Call) and event.by == "agent"}
    for step, event in enumerate(events):
        if (isinstance(event, Call) and event.by == "agent") or (
            isinstance(event, Message) and event.by == "agent" and event.turn not in calling
        ):
            yield Span(step, step + 1)


def place_of(trajectory: Trajectory, span: Span) -> str:
    """The name of a turn: its conversation and its step."""
    return f"{trajectory.id}@{span.start}"


def lessons_of(pack: Pack, trajectory: Trajectory, *, seed: int = 0, thoughts: Thoughts | None = None) -> LessonSeries:
    """A recorded conversation, with a verified thought for every turn, or with those that a model wrote.

    Calls made at once are told one after the other, each with its result; what an agent says beside a call is left out.
    Where a written thought was not good enough or is not there, the conversation ends before its turn.
    """
    lessons: list[Lesson] = []
    for turn in turns_of(trajectory):
        thought: str | None = ""
        if thoughts is not None and not (thought := thoughts.get(place_of(trajectory, turn.span))):
            break
        lessons.append(_lesson(pack, trajectory, turn, len(lessons), seed, thought))
    return LessonSeries(trajectory.id, tuple(lessons))


class Turn(NamedTuple):
    """One act of an agent, as it was recorded."""

    span: Span
    heard: tuple[tuple[str, str], ...]
    """Role and content of what the agent got since its last turn."""
    answer: str
    """The text, or the call as a model writes it."""
    call: tuple[str, dict[str, Any]] | None


def turns_of(trajectory: Trajectory) -> Iterator[Turn]:
    """What an agent did, and what it got before each; thoughts take far longer and are not made."""
    events = trajectory.events
    results = {event.call: event for event in events if isinstance(event, Result) and event.call is not None}
    heard: list[tuple[str, str]] = []
    step = 0
    for span in acts(events):
        heard += [
            ("user", each.text) for each in events[step : span.start] if isinstance(each, Message) and each.by == "user"
        ]
        step = span.end
        act = events[span.start]
        call = (act.tool, act.arguments) if isinstance(act, Call) else None
        answer = write_call(*call) if call is not None else act.text if isinstance(act, Message) else ""
        yield Turn(span, tuple(heard), answer, call)
        heard = []
        if call is not None:
            result = results.get(span.start)
            heard = [("tool", result.text if result is not None else "")]


def _lesson(pack: Pack, trajectory: Trajectory, turn: Turn, place: int, seed: int, thought: str) -> Lesson:
    events = trajectory.events
    before = tuple(events[: turn.span.start])
    serving = next_write(pack, events, turn.span.start)
    found = think(pack, events, turn.span, serving, seed=f"{seed}/{trajectory.id}", working=True)
    return Lesson(
        place,
        found.bearing.purpose,
        turn.answer,
        turn.call,
        thought or found.text,
        tuple(sorted(found.required)),
        told_slots(turn.answer, before, found.bearing) if turn.call is None else (),
        before,
        turn.heard,
        found.bearing,
    )
