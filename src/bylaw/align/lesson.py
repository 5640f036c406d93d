"""What a model learns from: conversations taken apart into turns, each with its thought and what bears on it."""

from typing import Any

from msgspec import Struct

from bylaw.align.bearing import Bearing, Purpose
from bylaw.align.slot import Slot
from bylaw.trace.event import Event


class Lesson(Struct, frozen=True):
    """One turn to be learned."""

    turn: int
    purpose: Purpose
    answer: str
    """The turn as it should be written, without its thought: a text, or a call."""
    call: tuple[str, dict[str, Any]] | None
    thought: str
    """Empty where the turn is not what the guards would have had."""
    required: tuple[str, ...]
    """The policies that bear on the next write and that this turn serves."""
    slots: tuple[Slot, ...]
    """What the text must say, where that is known."""
    before: tuple[Event, ...]
    """The conversation up to this turn, as an audit reads it."""
    heard: tuple[tuple[str, str], ...]
    """Role and content of what the agent got since its last turn."""
    bearing: Bearing
    """What the thought rests on."""


class LessonSeries(Struct, frozen=True):
    """A whole conversation to learn from."""

    id: str
    lessons: tuple[Lesson, ...]


def messages_of(
    system: str, lessons: tuple[Lesson, ...], *, thoughts: bool, upto: int | None = None
) -> list[dict[str, Any]]:
    """A conversation as chat messages; `upto` ends it before that turn."""
    found = [{"role": "system", "content": system}]
    for lesson in lessons:
        found += [{"role": role, "content": content} for role, content in lesson.heard]
        if lesson.turn == upto:
            return found
        found.append({"role": "assistant", "content": written(lesson) if thoughts else lesson.answer})
    return found


def written(lesson: Lesson) -> str:
    """A turn as a model should write it: its thought, where it has one, and what it says or does."""
    return f"<think>{lesson.thought}</think>\n{lesson.answer}" if lesson.thought else lesson.answer
