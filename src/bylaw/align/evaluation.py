"""Evaluates an agent on tasks: pass@1, words, the policies in its thoughts, and an audit of its writes."""

import random
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from msgspec import Struct

from bylaw.align.desk import Task, load_tasks
from bylaw.align.episode import Agent, Outcome, Watch, play
from bylaw.align.matcher import Matcher
from bylaw.align.prompt import PolicyPlace, pack_named
from bylaw.align.slot import values_in
from bylaw.engine.session import Session
from bylaw.engine.verdict import Verdict
from bylaw.facts.entity import ABSENT, Key, NoValue
from bylaw.facts.value import key_of
from bylaw.facts.world import Snapshot, WorldRecord
from bylaw.pack import Pack
from bylaw.trace.event import Call, Message, Result

ROUNDS = 2000
"""The number of bootstrap resamples for an interval."""


class Interval(Struct, frozen=True):
    """A mean and its 95% bootstrap interval."""

    mean: float
    low: float
    high: float


def interval(values: Mapping[str, Sequence[float]]) -> Interval:
    """Return the mean of all values and its bootstrap interval. Clusters are resampled as a whole."""
    clusters = [(sum(cluster), len(cluster)) for cluster in values.values() if cluster]
    if not clusters:
        return Interval(0.0, 0.0, 0.0)
    rng = random.Random(0)
    drawn = sorted(_mean_of(rng.choices(clusters, k=len(clusters))) for _ in range(ROUNDS))
    return Interval(_mean_of(clusters), drawn[int(0.025 * ROUNDS)], drawn[int(0.975 * ROUNDS) - 1])


def _mean_of(clusters: Sequence[tuple[float, int]]) -> float:
    return sum(total for total, _ in clusters) / sum(count for _, count in clusters)


class Score(Struct, frozen=True):
    task: str
    cluster: str
    """The cluster of the task. All variants of a task share a cluster."""
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
    """The number of policies stated in the thoughts."""
    made_up: int = 0


class Evaluation(Struct, frozen=True):
    """The results of an agent on a task set."""

    tasks: int
    passed: Interval
    database: float
    told: float
    turns: float
    words: float
    """The number of words in prompts and outputs, per task."""
    words_without_tools: float
    prompt_words: float
    output_words: float
    thought_words: float
    faults: float
    writes: int
    near_miss_rate: float
    """The number of near-misses per write."""
    violation_rate: float
    hallucinated: float
    """The share of the rules stated in thoughts that match no policy."""
    novel: float | None = None
    """pass@1 on the tasks whose combination of policies occurs in no training task."""
    seen: float | None = None


def score(task: Task, outcome: Outcome) -> Score:
    verdicts = judged_writes(task, outcome)
    recalled, made_up = recall(task.pack, outcome)
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
        len(verdicts),
        verdicts.count("near_miss"),
        verdicts.count("violation"),
        recalled,
        made_up,
    )


def evaluate(tasks: Sequence[Task], scores: Sequence[Score]) -> Evaluation:
    count = len(scores)
    writes = sum(one.writes for one in scores)
    made_up = sum(one.made_up for one in scores)
    stated = made_up + sum(one.recalled for one in scores)
    prompt, output = mean([one.prompt_words for one in scores]), mean([one.output_words for one in scores])
    groups: dict[bool, list[float]] = {True: [], False: []}
    for task, one in zip(tasks, scores, strict=True):
        groups[bool(getattr(task, "novel", False))].append(float(one.success))
    by_cluster: dict[str, list[float]] = {}
    for one in scores:
        by_cluster.setdefault(one.cluster, []).append(float(one.success))
    return Evaluation(
        count,
        interval(by_cluster),
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


def mean(values: Sequence[float]) -> float:
    """Return the mean, or 0 if there are no values."""
    return sum(values) / len(values) if values else 0.0


@cache
def matcher(pack: str) -> Matcher:
    return Matcher(pack_named(pack))


def recall(pack: str, outcome: Outcome) -> tuple[int, int]:
    """Return the number of policies that the thoughts in an episode state, and the number of made-up rules.

    A value from the user or a tool may be a fact of the case, so it is not treated as part of a rule.
    """
    shown: set[tuple[str, str]] = set()
    for event in outcome.events:
        match event:
            case Message("user", text) | Result(_, text):
                shown |= {value.key for value in values_in(str(text))}
            case _:  # The agent's own words are not a source.
                pass
    found = [matcher(pack).mentions(thought, shown) for thought in outcome.thoughts]
    return sum(len(one.recalled) for one in found), sum(len(one.made_up) for one in found)


def judged_writes(task: Task, outcome: Outcome) -> list[Verdict]:
    """Return the verdicts on the writes that an episode carried out, by the pack's own criterion."""
    pack = pack_named(task.pack)
    session = Session(pack, world=world_of(pack, task.rows))
    for event in outcome.events:
        if isinstance(event, Call) and not event.refused and pack.schema.tools[event.tool].effect == "write":
            session.judge(event)
        session.observe(event)
    return [verdict.determined if pack.criterion == "determined" else verdict.strict for verdict in session.settle()]


def world_of(pack: Pack, rows: dict[str, list[dict[str, Any]]]) -> Snapshot:
    """Return the records of a task as a ground-truth database, to which the writes are applied."""
    found: dict[tuple[str, Key], WorldRecord] = {}
    for name, records in rows.items():
        entity = pack.schema.entities[name]
        for record in records:
            found[name, key_of([record[part] for part in entity.key])] = record

    def read(entity: str, key: Key) -> WorldRecord | NoValue:
        return found.get((entity, key), ABSENT)

    return Snapshot(pack.schema, read)


def perform(
    agent: Agent, pack: str, part: str, policy: PolicyPlace, *, limit: int | None = None, watch: Watch | None = None
) -> tuple[list[Score], Evaluation]:
    """Play all tasks in one part. Return the score of each task and the overall results."""
    tasks = load_tasks(part, pack)[:limit]
    outcomes = play(tasks, agent, policy=policy, watch=watch)
    scores = [score(task, outcome) for task, outcome in zip(tasks, outcomes, strict=True)]
    return scores, evaluate(tasks, scores)
