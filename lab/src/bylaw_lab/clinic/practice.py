"""The clinic's desk for `bylaw align`: tasks, a careful agent, and scripted agents. Two of the scripts fail half of the
time.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from bylaw.align.desk import Expert, Task
from bylaw.align.episode import Agent, Episode
from bylaw.align.output import write_call
from bylaw_lab.clinic.simulator.dialogue import do
from bylaw_lab.clinic.tasks import PARTS, Scenario, scenarios
from bylaw_lab.clinic.tasks.careful import Careful
from bylaw_lab.clinic.tasks.parts import grounds

Script = Literal["careful", "comply", "refuse"]


class ClinicDesk:
    """The desk that is registered as `clinic` under `bylaw.desks`."""

    parts = PARTS

    def tasks(self, part: Any, times: int) -> Sequence[Task]:
        return scenarios(part, times)

    def expert(self, task: Task) -> Expert | None:
        return Careful(task) if isinstance(task, Scenario) else None

    def agents(self) -> Mapping[str, Agent]:
        return {"careful": Scripted("careful"), "comply": Scripted("comply"), "refuse": Scripted("refuse")}


class Scripted:
    """Plays the clinic's tasks with a script. The script may use information that a model would not have."""

    def __init__(self, script: Script) -> None:
        turns: dict[Script, Callable[[Episode], str]] = {"careful": self._careful, "comply": comply, "refuse": refuse}
        self._turn = turns[script]
        self._agents: dict[int, Careful] = {}

    def answer(self, episodes: Sequence[Episode]) -> list[str]:
        return [self._turn(episode) for episode in episodes]

    def _careful(self, episode: Episode) -> str:
        agent = self._agents.get(id(episode))
        if agent is None:
            agent = self._agents[id(episode)] = Careful(task_of(episode))
        else:
            last = episode.messages[-1]
            if last["role"] == "tool":
                agent.answered(msgspec.json.decode(last["content"]))
            else:
                agent.replied(last["content"])
        act = agent.act()
        return write_call(*act.call) if act.call else act.text


def comply(episode: Episode) -> str:
    """Make every change that the caller requests, after stating it and asking for a yes."""
    task = task_of(episode)
    want = task.errands[place_of(episode)].want
    last = episode.messages[-1]
    if last["role"] == "tool":
        return "Done."
    return write_call(want.tool, want.arguments) if last["content"] == task.agrees else f"I'll {do(want)}. Shall I?"


def refuse(episode: Episode) -> str:
    """Refuse every request, with the reason if there is one."""
    against = task_of(episode).errands[place_of(episode)].against
    because = grounds()[against]["because"] if against in grounds() else "it is against our rules"
    return f"I'm sorry, I can't do that: {because}."


def task_of(episode: Episode) -> Scenario:
    assert isinstance(episode.task, Scenario)
    return episode.task


def place_of(episode: Episode) -> int:
    """Return the number of the caller's latest errand."""
    said = [message["content"] for message in episode.messages if message["role"] == "user"]
    errands = task_of(episode).errands
    return max(place for place, errand in enumerate(errands) if any(errand.words in text for text in said))
