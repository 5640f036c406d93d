"""Preference pairs from a model's own play, as in run 17: a turn like the expert's is preferred to another turn.

Both turns have a thought, so a model learns which turn is right instead of whether to think.
"""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from bylaw.align.episode import ChatMessage, Outcome, Task
from bylaw.align.evaluation import judged_writes
from bylaw.align.lesson import CannotPassError, Lesson, LessonSeries, gold, written
from bylaw.align.output import read_output

Row = dict[str, Any]
_VALUE = re.compile(r"[A-Z]\d+|\$[\d.]*\d|\d{4}-\d\d-\d\d")


def expert_pair(task: Task, messages: Sequence[ChatMessage], outcome: Outcome) -> Row | None:
    """Return a row for DPO in which the expert's turn is preferred to the first turn that differs from it.

    Return None if nothing went wrong, or if the expert cannot play the task.
    """
    verdicts = judged_writes(task, outcome)
    fault = next((each for each in ("violation", "near_miss") if each in verdicts), "failed")
    if fault == "failed" and outcome.success:
        return None
    try:
        found = turning_point(messages, gold(task))
    except CannotPassError:
        return None
    if found is None:
        return None
    place, lesson = found
    return {
        "prompt": list(messages[:place]),
        "chosen": [{"role": "assistant", "content": written(lesson)}],
        "rejected": [messages[place]],
        "id": task.id,
        "verdict": fault,
        "purpose": lesson.evidence.purpose,
    }


def turning_point(messages: Sequence[ChatMessage], expert: LessonSeries) -> tuple[int, Lesson] | None:
    """Return the place of the agent's first message that differs from the expert's turn, and that turn.

    Two texts are the same if the user gives the same reply.
    """
    place = 1
    for lesson, following in zip(expert.lessons, [*expert.lessons[1:], None], strict=True):
        place += len(lesson.heard)
        if place >= len(messages):
            return None
        said = read_output(messages[place]["content"])
        call = None if said.tool is None else (said.tool, said.arguments)
        heard = following.heard if following is not None else ()
        reply = [(each["role"], each["content"]) for each in messages[place + 1 : place + 1 + len(heard)]]
        if said.fault or call != lesson.call or (call is None and reply != list(heard)):
            return place, lesson
        place += 1
    return None


def own_pair(row: Row, turns: Sequence[str]) -> Row | None:
    """Return an expert's pair with two of the model's own turns for its prompt: one that does the same as the expert's
    and one that does not. Return None if either is missing.
    """
    wanted = move_of(row["chosen"][0]["content"])
    alike = [turn for turn in turns if move_of(turn) == wanted]
    unlike = [turn for turn in turns if move_of(turn) != wanted]
    if not alike or not unlike:
        return None
    sides = {"chosen": alike[0], "rejected": unlike[0]}
    return row | {side: [{"role": "assistant", "content": turn}] for side, turn in sides.items()}


def move_of(turn: str) -> tuple[str, ...] | None:
    """Return what a turn does, without its thought and wording: a call, a refusal with its reason, or a text with its
    values. Return None if the turn cannot be read.
    """
    said = read_output(turn)
    if said.fault:
        return None
    if said.tool is not None:
        return "call", said.tool, msgspec.json.encode(said.arguments, order="sorted").decode()
    if "can't" in said.text:
        return "refuse", said.text.partition(":")[2].partition(". ")[0].rstrip(".")
    return ("ask" if said.text.endswith("?") else "say"), *sorted(set(_VALUE.findall(said.text)))
