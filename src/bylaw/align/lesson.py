"""Splits conversations into turns for learning, each with a thought and the policies that it serves."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from bylaw.align.desk import Act, Task, open_desk
from bylaw.align.episode import Episode, Outcome
from bylaw.align.output import write_call
from bylaw.align.prompt import pack_named
from bylaw.align.slot import Slot, recorded_slots
from bylaw.align.thought import think
from bylaw.align.turn_evidence import TargetWrite, TurnEvidence, next_write
from bylaw.errors import UsageError
from bylaw.pack import Pack
from bylaw.rule.monitor import TurnSpan
from bylaw.trace.event import Call, Event, Message, Result, Trajectory


class Lesson(Struct, frozen=True):
    """A turn for a model to learn."""

    turn: int
    answer: str
    """The correct text or call, without the thought."""
    call: tuple[str, dict[str, Any]] | None
    thought: str
    """The thought. Empty if the guards do not call for this turn."""
    slots: tuple[Slot, ...]
    """The values that the text must state, if known."""
    before: tuple[Event, ...]
    """The conversation before this turn, as trace events."""
    heard: tuple[tuple[str, str], ...]
    """The role and content of each message since the agent's last turn."""
    evidence: TurnEvidence
    """The evidence for the thought: the purpose of the turn, and the policies it serves."""


class LessonSeries(Struct, frozen=True):
    id: str
    lessons: tuple[Lesson, ...]


def messages_of(
    system: str, turns: "Sequence[Lesson | Turn]", *, thoughts: bool = False, upto: int | None = None
) -> list[dict[str, Any]]:
    """Return a conversation as chat messages. With `upto`, it ends with the messages before that turn."""
    found = [{"role": "system", "content": system}]
    for number, turn in enumerate(turns):
        found += [{"role": role, "content": content} for role, content in turn.heard]
        if number == upto:
            return found
        answer = written(turn) if thoughts and isinstance(turn, Lesson) else turn.answer
        found.append({"role": "assistant", "content": answer})
    return found


def written(lesson: Lesson) -> str:
    """Return a turn as a model should write it: the thought, if any, and the text or call."""
    return f"<think>{lesson.thought}</think>\n{lesson.answer}" if lesson.thought else lesson.answer


class CannotPassError(Exception):
    """Raised if the expert cannot pass a task because the user's statements contradict each other."""


class Played(Struct, frozen=True):
    """A turn that was played: its event, the position of its first event, and the agent's input before it."""

    act: Act
    start: int
    heard: tuple[tuple[str, str], ...]


def play_careful(task: Task) -> tuple[list[Played], Outcome]:
    """Return the outcome of a task and the turns of the expert."""
    agent = open_desk(task.pack).expert(task)
    if agent is None:
        raise UsageError(f"the desk has no expert for task `{task.id}`", hint="return one from its `expert`")
    episode = Episode(task, policy="none")
    played: list[Played] = []
    read = 1
    while not episode.done:
        act = agent.act()
        heard = tuple((message["role"], message["content"]) for message in episode.messages[read:])
        played.append(Played(act, len(episode.events), heard))
        episode.step(write_call(*act.call) if act.call else act.text)
        read = len(episode.messages) - (0 if episode.done and not act.call else 1)
        if act.call:
            agent.answered(msgspec.json.decode(episode.messages[-1]["content"]))
        elif not episode.done:
            agent.replied(episode.messages[-1]["content"])
    return played, episode.outcome()


def gold(task: Task, *, seed: int = 0) -> LessonSeries:
    """Return the correct conversation for a task, with a verified thought for every turn."""
    pack = pack_named(task.pack)
    played, outcome = play_careful(task)
    if not outcome.success:
        raise CannotPassError(task.id)
    lessons: list[Lesson] = []
    for turn, one in enumerate(played):
        act = one.act
        assert act.write is not None
        target = TargetWrite(Call(act.write.tool, act.write.arguments), is_made=not act.refused)
        span = TurnSpan(one.start, one.start + 1)
        known = None if act.purpose == "other" else target
        found = think(pack, outcome.events, span, known, seed=f"{seed}/{task.id}", purpose=act.purpose)
        lessons.append(
            Lesson(
                turn,
                write_call(*act.call) if act.call else act.text,
                act.call,
                found.text,
                tuple(Slot(*slot) for slot in act.slots),
                outcome.events[: one.start],
                one.heard,
                found.evidence,
            )
        )
    return LessonSeries(task.id, tuple(lessons))


Thoughts = Mapping[str, str | None]
"""Thoughts from a model, keyed by the location of their turn (`place_of`). None means that the thought is
inadequate.
"""


def acts(events: Sequence[Event]) -> Iterator[TurnSpan]:
    """Yield the agent's calls, and its texts without a call, in order."""
    calling = {event.turn for event in events if isinstance(event, Call) and event.by == "agent"}
    for step, event in enumerate(events):
        if (isinstance(event, Call) and event.by == "agent") or (
            isinstance(event, Message) and event.by == "agent" and event.turn not in calling
        ):
            yield TurnSpan(step, step + 1)


def place_of(trajectory: Trajectory, span: TurnSpan) -> str:
    """Return a name for a turn, made of the conversation and the step."""
    return f"{trajectory.id}@{span.start}"


def lessons_of(pack: Pack, trajectory: Trajectory, *, seed: int = 0, thoughts: Thoughts | None = None) -> LessonSeries:
    """Return a recorded conversation with a thought for every turn, either a verified thought or one from a model.

    Parallel calls are written one after another, each with its result. Text that accompanies a call is left out. The
    conversation ends before the first turn for which the model gave no adequate thought.
    """
    lessons: list[Lesson] = []
    events = trajectory.events
    for turn in turns_of(trajectory):
        thought = thoughts.get(place_of(trajectory, turn.span)) or "" if thoughts is not None else ""
        if thoughts is not None and not thought:
            break
        before = tuple(events[: turn.span.start])
        target = next_write(pack, events, turn.span.start)
        found = think(pack, events, turn.span, target, seed=f"{seed}/{trajectory.id}")
        slots = recorded_slots(turn.answer, before, found.evidence) if turn.call is None else ()
        thought = thought or found.text
        lessons.append(Lesson(len(lessons), turn.answer, turn.call, thought, slots, before, turn.heard, found.evidence))
    return LessonSeries(trajectory.id, tuple(lessons))


class Turn(NamedTuple):
    span: TurnSpan
    heard: tuple[tuple[str, str], ...]
    """The role and content of each message since the agent's last turn."""
    answer: str
    """The text, or the call as a model writes it."""
    call: tuple[str, dict[str, Any]] | None


def turns_of(trajectory: Trajectory) -> Iterator[Turn]:
    """Yield the agent's calls and texts, each with the messages before it.

    Thoughts are left out because they are slow to make.
    """
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
