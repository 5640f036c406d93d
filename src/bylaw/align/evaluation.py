"""pass@1 of an agent on tasks, the words it took, and what the audit says of its writes."""

from collections.abc import Sequence

from msgspec import Struct

from bylaw.align.bootstrap import Interval, interval
from bylaw.align.episode import Outcome
from bylaw.align.near_miss import Writes, audit_writes
from bylaw.align.recall import recall
from bylaw.align.scene import Task


class Score(Struct, frozen=True):
    """What became of one task."""

    task: str
    cluster: str
    """Twins stand in one cluster."""
    success: bool
    database: bool
    told: bool
    turns: int
    faults: int
    prompt_words: int
    schema_words: int
    output_words: int
    thought_words: int
    writes: int
    near_misses: int
    violations: int
    recalled: int = 0
    """Policies that its thoughts state, and rules that they make up."""
    made_up: int = 0


class Evaluation(Struct, frozen=True):
    """An agent's results over a set of tasks."""

    tasks: int
    passed: Interval
    database: float
    told: float
    turns: float
    words: float
    """Per task: in prompts and outputs."""
    words_without_tools: float
    prompt_words: float
    output_words: float
    thought_words: float
    faults: float
    writes: int
    near_miss_rate: float
    """Per write."""
    violation_rate: float
    hallucinated: float
    """Share of the policies that thoughts state which there are not."""
    novel: float | None = None
    """pass@1 on tasks of groups of policies never seen together."""
    seen: float | None = None


def score(task: Task, outcome: Outcome) -> Score:
    """One task's line."""
    audited: Writes = audit_writes(task, outcome)
    stated = recall(task.pack, outcome)
    return Score(
        task.id,
        task.id.rsplit("-", 1)[0],
        outcome.success,
        outcome.database,
        outcome.told,
        outcome.turns,
        outcome.faults,
        outcome.words.prompt,
        outcome.words.schema,
        outcome.words.output,
        sum(len(thought.split()) for thought in outcome.thoughts),
        audited.writes,
        audited.near_misses,
        audited.violations,
        stated.recalled,
        stated.made_up,
    )


def evaluate(tasks: Sequence[Task], scores: Sequence[Score]) -> Evaluation:
    """All tasks together."""
    count = len(scores)
    writes = sum(one.writes for one in scores)
    made_up = sum(one.made_up for one in scores)
    stated = made_up + sum(one.recalled for one in scores)
    prompt, output = mean([one.prompt_words for one in scores]), mean([one.output_words for one in scores])
    groups: dict[bool, list[float]] = {True: [], False: []}
    for task, one in zip(tasks, scores, strict=True):
        groups[bool(getattr(task, "novel", False))].append(float(one.success))
    return Evaluation(
        count,
        interval(clusters(scores)),
        mean([one.database for one in scores]),
        mean([one.told for one in scores]),
        mean([one.turns for one in scores]),
        prompt + output,
        prompt + output - mean([one.schema_words for one in scores]),
        prompt,
        output,
        mean([one.thought_words for one in scores]),
        mean([one.faults for one in scores]),
        writes,
        sum(one.near_misses for one in scores) / writes if writes else 0.0,
        sum(one.violations for one in scores) / writes if writes else 0.0,
        made_up / stated if stated else 0.0,
        mean(groups[True]) if groups[True] else None,
        mean(groups[False]) if groups[True] else None,
    )


def clusters(*runs: Sequence[Score]) -> dict[str, list[float]]:
    """Successes by cluster, for intervals and paired differences; several seeds of one arm go together."""
    found: dict[str, list[float]] = {}
    for scores in runs:
        for one in scores:
            found.setdefault(one.cluster, []).append(float(one.success))
    return found


def mean(values: Sequence[float]) -> float:
    """The mean; 0 of nothing."""
    return sum(values) / len(values) if values else 0.0
