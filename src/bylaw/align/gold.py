"""Gold conversations: a task played by the desk's expert, each turn with its thought and what bears on it."""

from collections.abc import Callable

import msgspec
from msgspec import Struct

from bylaw.align.bearing import Serving, Span
from bylaw.align.desk import Act, Expert, Task, open_desk
from bylaw.align.episode import Episode, Outcome
from bylaw.align.lesson import Lesson, LessonSeries
from bylaw.align.output import write_call
from bylaw.align.prompt import pack_named
from bylaw.align.slot import Slot
from bylaw.align.thought import Thought, think
from bylaw.errors import UsageError
from bylaw.pack import Pack
from bylaw.trace.event import Call


class CannotPassError(Exception):
    """The expert does not pass a task: its caller contradicts themselves."""


class Played(Struct, frozen=True):
    """One turn as it was played: what was done, where its events begin, and what the agent had got before it."""

    act: Act
    start: int
    heard: tuple[tuple[str, str], ...]


def play_careful(task: Task, agent: Expert | None = None) -> tuple[list[Played], Outcome]:
    """The turns of the desk's expert, and the outcome."""
    agent = agent or open_desk(task.pack).expert(task)
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


def gold(
    task: Task,
    *,
    seed: int = 0,
    working: bool = True,
    pack: Pack | None = None,
    agent: Expert | None = None,
    tell: Callable[[Thought, int], str] = lambda thought, _: thought.text,
) -> LessonSeries:
    """The gold conversation of a task, with a verified thought for every turn, and its working if that is wanted.

    Under a changed policy, `pack` is the changed one, `agent` keeps to it, and `tell` puts a turn's thought into words.
    """
    pack = pack or pack_named(task.pack)
    played, outcome = play_careful(task, agent)
    if not outcome.success:
        raise CannotPassError(task.id)
    lessons: list[Lesson] = []
    for turn, one in enumerate(played):
        act = one.act
        assert act.write is not None
        serving = Serving(Call(act.write.tool, act.write.arguments), is_made=not act.refused)
        span = Span(one.start, one.start + 1)
        purpose = act.purpose
        known = None if purpose == "other" else serving
        found = think(pack, outcome.events, span, known, seed=f"{seed}/{task.id}", purpose=purpose, working=working)
        lessons.append(
            Lesson(
                turn,
                purpose,
                write_call(*act.call) if act.call else act.text,
                act.call,
                tell(found, turn),
                tuple(sorted(found.required)),
                tuple(Slot(*slot) for slot in act.slots),
                outcome.events[: one.start],
                one.heard,
                found.bearing,
            )
        )
    return LessonSeries(task.id, tuple(lessons))
