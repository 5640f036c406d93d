"""RL turns where twin tasks part."""

from collections.abc import Iterable
from typing import Any

from bylaw.align.dataset import Row, turn_row
from bylaw.align.lesson import Lesson, LessonSeries


def parting_rows(pack: str, talks: Iterable[LessonSeries]) -> list[Row]:
    """The turns where twins part: what was right for both so far is right for one of them no longer.

    One of the two is mostly a refusal, so whoever learns from both learns neither to refuse nor to go on, but to see
    the fact that tells them apart. A twin that stands alone gives nothing.
    """
    pairs: dict[str, list[LessonSeries]] = {}
    for talk in talks:
        pairs.setdefault(talk.id.rpartition("-")[0], []).append(talk)
    rows: list[Row] = []
    for pair in pairs.values():
        if len(pair) == 2:
            turns = zip(*(talk.lessons for talk in pair), strict=False)
            parting = next((each for each in turns if _deed(each[0]) != _deed(each[1])), ())
            rows += [turn_row(pack, talk, lesson) for talk, lesson in zip(pair, parting, strict=False)]
    return rows


def _deed(lesson: Lesson) -> Any:
    """What a turn does; two texts do the same if they are of one purpose and say the same things."""
    return lesson.call or (lesson.purpose, lesson.slots)
