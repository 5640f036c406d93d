"""Episodes under a shield: nothing runs that it stops, and the agent reads why."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest

from bylaw.align.desk import load_tasks
from bylaw.align.episode import Agent, Episode, Outcome, ShieldedEpisode, finish
from bylaw.align.evaluation import score
from bylaw.policy.tool import Resolve
from bylaw.trace.event import Call, Result, tells_refusal
from bylaw_lab.clinic.practice import Scripted, comply
from bylaw_lab.clinic.tasks import Scenario


@cache
def some() -> Sequence[Any]:
    """Tasks to play."""
    return load_tasks("development")[:16]


def shielded(agent: Agent, resolve: Resolve) -> tuple[list[Outcome], list[ShieldedEpisode]]:
    episodes = [ShieldedEpisode(task, policy="none", resolve=resolve) for task in some()]
    return finish(episodes, agent), episodes


@pytest.mark.parametrize("resolve", ["agent", "live", "show"])
def test_the_careful_agent_is_never_stopped(resolve: Resolve) -> None:
    outcomes, episodes = shielded(Scripted("careful"), resolve)
    assert all(outcome.success for outcome in outcomes)
    assert [each.stopped for each in episodes] == [[]] * len(some())


def test_whatever_words_a_scripted_caller_says_yes_in_the_shield_takes_them_for_one() -> None:
    tasks = [task for part in ("test", "development") for task in load_tasks(part) if isinstance(task, Scenario)]
    able = {task.agrees: task for task in tasks if all(errand.right is not None for errand in task.errands)}
    assert len(able) >= 6
    for task in able.values():
        episode = ShieldedEpisode(task, policy="none", resolve="show")
        finish([episode], Scripted("careful"))
        assert (task.agrees, episode.stopped) == (task.agrees, [])


@pytest.mark.parametrize("resolve", ["agent", "live", "show"])
def test_no_write_that_runs_breaks_a_policy(resolve: Resolve) -> None:
    outcomes, episodes = shielded(Scripted("comply"), resolve)
    audited = [score(task, outcome) for task, outcome in zip(some(), outcomes, strict=True)]
    assert sum(len(each.stopped) for each in episodes) >= 8
    assert sum(each.violations for each in audited) == 0
    assert sum(each.writes for each in audited) == sum(
        isinstance(event, Call) and not event.refused and event.tool not in reads(outcome)
        for outcome in outcomes
        for event in outcome.events
    )
    if resolve != "live":
        assert sum(each.near_misses for each in audited) == 0


def reads(outcome: Outcome) -> set[str]:
    """The tools that only read."""
    tools = {event.tool for event in outcome.events if isinstance(event, Call)}
    return {tool for tool in tools if tool.startswith(("get_", "find_"))}


def test_what_is_a_near_miss_where_the_shield_looks_up_rests_on_its_look_ups() -> None:
    outcomes, _ = shielded(Scripted("comply"), "live")
    near = looked = 0
    for task, outcome in zip(some(), outcomes, strict=True):
        near += score(task, outcome).near_misses
        looked += sum(isinstance(event, Call) and bool(event.looked_up) for event in outcome.events)
    assert near
    assert near <= looked


def test_a_call_that_was_stopped_did_not_reach_its_tool_and_the_agent_reads_why() -> None:
    _, episodes = shielded(Scripted("comply"), "agent")
    stopped = 0
    for episode in episodes:
        told = [message["content"] for message in episode.messages if message["role"] == "tool"]
        for place, event in enumerate(episode.events):
            if isinstance(event, Call) and event.refused:
                result = episode.events[place + 1]
                assert isinstance(result, Result)
                assert tells_refusal(str(result.content))
                assert result.content in told
                stopped += 1
    assert stopped == sum(len(each.stopped) for each in episodes) > 0


class Insistent:
    """Looks nothing up, and makes a call again where it is told that it may."""

    def answer(self, episodes: Sequence[Episode]) -> list[str]:
        return [
            episode.messages[-2]["content"]
            if "Make the call again" in str(episode.messages[-1]["content"])
            else comply(episode)
            for episode in episodes
        ]


def test_an_agent_that_is_shown_the_look_ups_makes_the_call_again_and_no_near_miss() -> None:
    outcomes, episodes = shielded(Insistent(), "show")
    audited = [score(task, outcome) for task, outcome in zip(some(), outcomes, strict=True)]
    assert sum(each.writes for each in audited) >= 4
    assert sum(each.near_misses + each.violations for each in audited) == 0
    assert sum(each.stopped.count("look_up") for each in episodes) >= 4
    live, _ = shielded(Scripted("comply"), "live")
    assert [outcome.success for outcome in outcomes] == [outcome.success for outcome in live]
