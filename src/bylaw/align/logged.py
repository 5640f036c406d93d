"""Recorded conversations as lessons: one act a turn, whatever the log had side by side."""

from collections.abc import Sequence

from bylaw.align.bearing import Span, next_write
from bylaw.align.lesson import Lesson, LessonSeries
from bylaw.align.output import write_call
from bylaw.align.thought import think
from bylaw.engine.pack import Pack
from bylaw.trace.event import Call, Event, Message, Result
from bylaw.trace.trajectory import Trajectory


def lessons_of(pack: Pack, trajectory: Trajectory, *, seed: int = 0) -> LessonSeries:
    """A recorded conversation, with a verified thought for every turn.

    Calls made at once are told one after the other, each with its result; what an agent says beside a call is left out.
    """
    events = trajectory.events
    results = {event.call: event for event in events if isinstance(event, Result) and event.call is not None}
    calling = {event.turn for event in events if isinstance(event, Call)}
    lessons: list[Lesson] = []
    heard: list[tuple[str, str]] = []
    for step, event in enumerate(events):
        match event:
            case Message(by="user", text=text):
                heard.append(("user", text))
            case Message(text=text, turn=turn) if turn not in calling:
                lessons.append(_lesson(pack, trajectory, step, text, None, heard, len(lessons), seed))
                heard = []
            case Call(tool=tool, arguments=arguments):
                answer = write_call(tool, arguments)
                lessons.append(_lesson(pack, trajectory, step, answer, (tool, arguments), heard, len(lessons), seed))
                result = results.get(step)
                heard = [("tool", _text(result) if result is not None else "")]
            case _:
                pass
    return LessonSeries(trajectory.id, tuple(lessons))


def _lesson(
    pack: Pack,
    trajectory: Trajectory,
    step: int,
    answer: str,
    call: tuple[str, dict[str, object]] | None,
    heard: Sequence[tuple[str, str]],
    turn: int,
    seed: int,
) -> Lesson:
    events: Sequence[Event] = trajectory.events
    serving = next_write(pack, events, step)
    found = think(pack, events, Span(step, step + 1), serving, seed=f"{seed}/{trajectory.id}")
    return Lesson(
        turn,
        found.bearing.purpose,
        answer,
        call,
        found.text,
        tuple(sorted(found.required)),
        (),
        tuple(events[:step]),
        tuple(heard),
        found.bearing,
    )


def _text(result: Result) -> str:
    return result.content if isinstance(result.content, str) else bytes(result.content).decode("utf-8", "replace")
