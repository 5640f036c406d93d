"""The override test: one policy is replaced by its contrary in the prompt, and the agent must follow the new one.

After the paper's appendix C. What is right under the contrary is computed, and judged like any task: by the records.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from bylaw.align.bootstrap import Interval, interval
from bylaw.align.desk import Task
from bylaw.align.episode import Outcome
from bylaw.align.prompt import PolicyPlace, pack_named
from bylaw.align.rollout import Agent, Watch, play
from bylaw_lab.clinic.tasks.overrides import overrides


class Overridden(Struct, frozen=True):
    """A task under a changed policy."""

    task: Task
    policy: str
    old: str
    new: str


class Obedience(Struct, frozen=True):
    """How often an agent followed the changed policy."""

    tasks: int
    policies: int
    followed: Interval
    by_policy: dict[str, float]


def load_overrides(pack: str = "clinic") -> list[Overridden]:
    """The tasks of a pack's desk under changed policies, each with the sentence that no longer holds."""
    policies = pack_named(pack).policies
    return [
        Overridden(each.task, each.policy, " ".join(cited_by(policies[each.policy].citations)), each.words)
        for each in overrides()
    ]


def cited_by(citations: Sequence[object]) -> list[str]:
    """The sentences of the document that a policy cites."""
    return [text for citation in citations if (text := getattr(citation, "text", None))]


def play_overrides(
    cases: Sequence[Overridden],
    agent: Agent,
    *,
    policy: PolicyPlace,
    watch: Watch | None = None,
) -> list[Outcome]:
    """How each went. With `policy` none the prompt holds the change alone."""
    changes = [(case.old, case.new) for case in cases]
    return play([case.task for case in cases], agent, policy=policy, overrides=changes, watch=watch)


def obedience(cases: Sequence[Overridden], outcomes: Sequence[Outcome]) -> Obedience:
    """All tasks together; those of one policy are resampled together."""
    found: dict[str, list[float]] = {}
    for case, outcome in zip(cases, outcomes, strict=True):
        found.setdefault(case.policy, []).append(float(outcome.success))
    by_policy = {policy: sum(values) / len(values) for policy, values in sorted(found.items())}
    return Obedience(len(cases), len(found), interval(found), by_policy)


def obey(
    agent: Agent, pack: str, policy: PolicyPlace, *, limit: int | None = None, watch: Watch | None = None
) -> tuple[list[dict[str, Any]], Obedience]:
    """Whether an agent follows a changed policy, task by task and as a whole."""
    cases = load_overrides(pack)[:limit]
    outcomes = play_overrides(cases, agent, policy=policy, watch=watch)
    lines = [
        {"task": case.task.id, "policy": case.policy, "new": case.new, "success": outcome.success}
        for case, outcome in zip(cases, outcomes, strict=True)
    ]
    return lines, obedience(cases, outcomes)
