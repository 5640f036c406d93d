"""The benchmark's tasks. A conversation went well if it left the database as the task's gold actions would."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from bylaw.errors import UsageError, WorldError
from bylaw.packs.tau_airline import tools
from bylaw.packs.tau_airline.database import Record, content
from bylaw.packs.tau_airline.world import AirlineWorld, AirlineWorlds
from bylaw.trace import TaskOutcome, Trajectory


class Action(Struct):
    """One gold action."""

    name: str
    arguments: dict[str, Any] = {}


class Criteria(Struct):
    """The task's criteria about the database."""

    actions: list[Action] | None = None


class Task(Struct):
    """One task of tau2-bench."""

    id: str | int
    evaluation_criteria: Criteria | None = None

    @property
    def actions(self) -> list[Action]:
        return (self.evaluation_criteria.actions if self.evaluation_criteria else None) or []


class AirlineTasks:
    """The tasks of one file, with the state after their gold actions."""

    def __init__(self, tasks: Mapping[str, Task]) -> None:
        self.tasks = tasks
        self._gold: dict[str, AirlineWorld] = {}

    def outcome(self, trajectory: Trajectory, world: AirlineWorld) -> TaskOutcome | None:
        """Whether `world` after the conversation equals the gold state; None for an unknown task."""
        task = str(trajectory.details.get("task_id"))
        if trajectory.format != "tau2" or task not in self.tasks:
            return None
        return TaskOutcome(same_state(world, self.gold(task, world)), "gold actions")

    def gold(self, task: str, world: AirlineWorld) -> AirlineWorld:
        """Return the state after the task's gold actions, starting from `world`'s initial state."""
        if task not in self._gold:
            gold = self._gold[task] = world.fork()
            for action in self.tasks[task].actions:
                tools.answer(gold, action.name, action.arguments)
        return self._gold[task]


def open_tasks(path: Path, worlds: AirlineWorlds | None = None) -> AirlineTasks:
    """Open a tau2-bench file of tasks, plain or gzip. The tasks are replayed on `worlds`."""
    if worlds is not None and "tau2" not in worlds.held:
        raise UsageError(
            f"--tasks requires a database of tau2-bench, but `{worlds.path}` contains none",
            hint="remove --tasks: the outcome of a tau-bench run is its reward",
        )
    try:
        tasks = msgspec.json.decode(content(path), type=list[Task])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as fault:
        raise WorldError(f"not a list of tasks of tau2-bench: {fault}", place=str(path)) from fault
    return AirlineTasks({str(task.id): task for task in tasks})


def same_state(one: AirlineWorld, other: AirlineWorld) -> bool:
    """Whether two forks of one database are equal."""
    return (
        all(one.user(key) == other.user(key) for key in one.users.keys() | other.users.keys())
        and all(
            plain(one.reservation(key)) == plain(other.reservation(key))
            for key in one.reservations.keys() | other.reservations.keys()
        )
        and all(one.day(*key) == other.day(*key) for key in one.days.keys() | other.days.keys())
    )


def plain(reservation: Record | None) -> Record | None:
    """Return a reservation with an explicit status."""
    return None if reservation is None else {"status": None, **reservation}
