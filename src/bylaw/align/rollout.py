"""Playing tasks with an agent: many episodes side by side, a turn of all of them at a time or each at its own pace."""

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from bylaw.align.desk import Task
from bylaw.align.episode import ChatMessage, Episode, Outcome
from bylaw.align.prompt import PolicyPlace

Generate = Callable[[Sequence[list[ChatMessage]]], list[str]]
"""A model: for each conversation, what it writes next."""
SIDE_BY_SIDE = 500
Watch = Callable[[int, int], None]
"""Hears the turn, or how often the agent was looked at, and how many episodes are still on."""


class Agent(Protocol):
    """Whoever plays: a model behind an endpoint, a local checkpoint, a script."""

    def answer(self, episodes: Sequence[Episode]) -> list[str]:
        """The next output in each episode."""
        ...


@runtime_checkable
class Steady(Protocol):
    """An agent that plays episodes to their ends by itself, none waiting for another."""

    def converse(self, episodes: Sequence[Episode], watch: Watch | None = None) -> None:
        """Play on until every episode is done."""
        ...


class Model:
    """An agent that sees the messages and nothing else."""

    def __init__(self, generate: Generate) -> None:
        self.generate = generate

    def answer(self, episodes: Sequence[Episode]) -> list[str]:
        """One call for all of them."""
        return self.generate([episode.messages for episode in episodes])


def play(
    tasks: Sequence[Task],
    agent: Agent,
    *,
    policy: PolicyPlace,
    overrides: Sequence[tuple[str, str]] | None = None,
    side_by_side: int = SIDE_BY_SIDE,
    watch: Watch | None = None,
    begin: Callable[[Task], Episode] | None = None,
) -> list[Outcome]:
    """How each task went, in order. `begin` opens an episode otherwise than plainly, as under a shield."""
    outcomes: list[Outcome] = []
    for start in range(0, len(tasks), side_by_side):
        batch = [
            begin(task)
            if begin is not None
            else Episode(task, policy=policy, override=overrides[start + place] if overrides else None)
            for place, task in enumerate(tasks[start : start + side_by_side])
        ]
        if isinstance(agent, Steady):
            agent.converse(batch, watch)
        turn = 0
        while live := [episode for episode in batch if not episode.done]:
            turn += 1
            if watch is not None:
                watch(turn, len(live))
            for episode, output in zip(live, agent.answer(live), strict=True):
                episode.step(output)
        outcomes += [episode.outcome() for episode in batch]
    return outcomes
