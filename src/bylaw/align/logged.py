"""Recorded conversations as lessons: one act a turn, whatever the log had side by side."""

from collections.abc import Iterator, Mapping, Sequence

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
    events = trajectory.events
    results = {event.call: event for event in events if isinstance(event, Result) and event.call is not None}
    lessons: list[Lesson] = []
    heard: list[tuple[str, str]] = []
    step = 0
    for span in acts(events):
        heard += [
            ("user", each.text) for each in events[step : span.start] if isinstance(each, Message) and each.by == "user"
        ]
        step = span.end
        thought: str | None = ""
        if thoughts is not None and not (thought := thoughts.get(place_of(trajectory, span))):
            break
        lessons.append(_lesson(pack, trajectory, span, heard, len(lessons), seed, thought))
        heard = []
        if isinstance(events[span.start], Call):
            result = results.get(span.start)
            heard = [("tool", _text(result) if result is not None else "")]
    return LessonSeries(trajectory.id, tuple(lessons))


def _lesson(
    pack: Pack,
    trajectory: Trajectory,
    span: Span,
    heard: Sequence[tuple[str, str]],
    turn: int,
    seed: int,
    thought: str,
) -> Lesson:
    events = trajectory.events
    act = events[span.start]
    before = tuple(events[: span.start])
    serving = next_write(pack, events, span.start)
    found = think(pack, events, span, serving, seed=f"{seed}/{trajectory.id}", working=True)
    call = (act.tool, act.arguments) if isinstance(act, Call) else None
    answer = write_call(*call) if call is not None else act.text if isinstance(act, Message) else ""
    return Lesson(
        turn,
        found.bearing.purpose,
        answer,
        call,
        thought or found.text,
        tuple(sorted(found.required)),
        told_slots(answer, before, found.bearing) if call is None else (),
        before,
        tuple(heard),
        found.bearing,
    )


def _text(result: Result) -> str:
    return result.content if isinstance(result.content, str) else bytes(result.content).decode("utf-8", "replace")
