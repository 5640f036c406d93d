"""The three measurements of an agent: playing tasks, answering questions, following a changed policy."""

from collections.abc import Callable
from typing import Any

from bylaw.align.agents import leanings
from bylaw.align.evaluation import Evaluation, Score, evaluate, score
from bylaw.align.knowledge import Known, examine, prompt, questions
from bylaw.align.override import Obedience, load_overrides, obedience, play_overrides
from bylaw.align.prompt import PolicyPlace
from bylaw.align.rollout import Agent, play
from bylaw.align.tasks import load_tasks

Watch = Callable[[int, int], None]
Line = dict[str, Any]


def perform(
    agent: Agent, pack: str, part: str, policy: PolicyPlace, *, limit: int | None = None, watch: Watch | None = None
) -> tuple[list[Score], Evaluation]:
    """pass@1 on a part of a pack's tasks, task by task and as a whole."""
    tasks = load_tasks(part, pack)[:limit]
    outcomes = play(tasks, agent, policy=policy, watch=watch)
    scores = [score(task, outcome) for task, outcome in zip(tasks, outcomes, strict=True)]
    return scores, evaluate(tasks, scores)


def know(agent: Agent, pack: str, policy: PolicyPlace, *, limit: int | None = None) -> tuple[list[Line], Known]:
    """What an agent knows, question by question and as a whole."""
    asked = questions(pack)[:limit]
    found = leanings(agent, [prompt(pack, question.text, policy) for question in asked])
    lines = [
        {"policy": question.policy, "text": question.text, "answer": question.answer, "leaning": leaning}
        for question, leaning in zip(asked, found, strict=True)
    ]
    return lines, examine(asked, found)


def obey(
    agent: Agent, pack: str, policy: PolicyPlace, *, limit: int | None = None, watch: Watch | None = None
) -> tuple[list[Line], Obedience]:
    """Whether an agent follows a changed policy, task by task and as a whole."""
    cases = load_overrides(pack)[:limit]
    outcomes = play_overrides(cases, agent, policy=policy, watch=watch)
    lines = [
        {"task": case.task.id, "policy": case.policy, "new": case.new, "success": outcome.success}
        for case, outcome in zip(cases, outcomes, strict=True)
    ]
    return lines, obedience(cases, outcomes)
