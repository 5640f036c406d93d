"""Draws calls of the desks' scripted agents, with what the desk's judge and Bylaw say of each.

    python lab/benchmarks/guardagent/cases.py

Writes cases.jsonl.gz. A call is a violation if the desk's judge finds a new violation after it ran, and legitimate if
the task needs it.
"""

import gzip
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from msgspec import Struct

from bylaw import Shield
from bylaw.pack import Pack
from bylaw.policy.folder import find_folder
from bylaw_lab.desks import desk as desks
from bylaw_lab.desks.command import DESKS, open_desk
from bylaw_lab.desks.desk import Act, Agent, Desk, Task, Worker, injected_text

FILE = Path(__file__).parent / "cases.jsonl.gz"
SEED = 50
KINDS: tuple[tuple[bool, Agent], ...] = (
    (True, "careful"),
    (True, "attacked"),
    (False, "hasty"),
    (False, "attacked"),
)
"""Whether the calls are legitimate, and which kind of agent makes them."""
EACH = 5
"""The number of calls of each kind to draw at each desk."""

PACKS = {
    "reporting database": ("sql-analyst", "reporting"),
    "repository": ("coding-agent", "repository"),
    "shop": ("browser", "shop"),
}
"""The starter pack of each desk, and the desk's own folder."""
_BLOCK = re.compile(r"(?m)^((?:#.*\n)*(\w+):.*\n?(?:[ ].*\n?)*)")
"""A top-level block in a YAML file, with the comment before it."""


class Past(Struct, frozen=True):
    tool: str
    arguments: dict[str, Any]
    result: str


class Judged(Struct, frozen=True):
    """Whether a call ran in the end, and the number of questions to the user."""

    ran: bool
    questions: int = 0


class Case(Struct, frozen=True):
    """A call, and the conversation before it."""

    desk: str
    agent: Agent
    task: str
    request: str
    category: str
    """The category of the violation. Empty for a legitimate call."""
    history: tuple[Past, ...]
    tool: str
    arguments: dict[str, Any]
    policy: str
    lists: str
    bylaw: Judged


class Wanted(Struct, frozen=True):
    """A place in an episode."""

    agent: Agent
    task: Task
    at: int
    category: str = ""
    injected: str = ""


def read_cases() -> list[Case]:
    with gzip.open(FILE, "rb") as lines:
        return [msgspec.json.decode(line, type=Case) for line in lines]


def policy(desk: str) -> str:
    """Return the policy of a desk: the policy of the starter pack, and the desk's own."""
    base, own = PACKS[desk]
    files = (find_folder(base) / "policy.md", Path(desks.__file__).with_name(own) / "policy.md")
    return "\n".join(file.read_text(encoding="utf-8") for file in files).strip()


def lists(desk: str) -> str:
    """Return what the owner of a desk lists for its pack, as in the pack's files."""
    base, own = PACKS[desk]
    found: list[str] = []
    for file, keys in (
        (find_folder(base) / "tools.yaml", ("ordinary", "runs")),
        (Path(desks.__file__).with_name(own) / "tools.yaml", ("pages", "tables")),
    ):
        found += [block.strip() for block, key in _BLOCK.findall(file.read_text(encoding="utf-8")) if key in keys]
    return "\n".join(found)


def places(desk: Desk, *, is_legitimate: bool, agent: Agent) -> list[Wanted]:
    """Return the places of one kind in random order, one per task or attack category in turn."""
    chance = Random(f"{SEED} {desk.name} {agent} {is_legitimate}")
    if agent == "hasty":
        found = [Wanted(agent, task, at) for task in desk.tasks for at in task.shortcuts]
        return chance.sample(found, len(found))
    if agent == "careful":
        found = [Wanted(agent, task, chance.randrange(1, len(task.acts))) for task in desk.tasks if len(task.acts) > 1]
        return chance.sample(found, len(found))
    found: list[Wanted] = []
    for category in chance.sample([*desk.injections], len(desk.injections)):
        task = chance.choice([task for task in desk.tasks if len(task.acts) > 1])
        at = chance.randrange(1, len(task.acts)) if is_legitimate else 1
        found.append(Wanted(agent, task, at, category, injected_text(desk.injections[category])))
    return found


def drawn(desk: Desk, pack: Pack) -> Iterator[Case]:
    for is_legitimate, agent in KINDS:
        count = 0
        for place in places(desk, is_legitimate=is_legitimate, agent=agent):
            case = legitimate(desk, pack, place) if is_legitimate else violating(desk, pack, place)
            if case is not None and count < EACH:
                count += 1
                yield case


def performed(desk: Desk, acts: Sequence[Act]) -> tuple[Past, ...]:
    done: list[Past] = []
    for act in acts:
        act = desk.resolved(act)
        done.append(Past(act.tool, act.arguments, desk.perform(act)))
    return tuple(done)


def legitimate(desk: Desk, pack: Pack, place: Wanted) -> Case | None:
    desk.reset(place.injected)
    history = performed(desk, place.task.acts[: place.at])
    case = _case(desk, pack, place, history, place.task.acts[place.at], "")
    desk.reset(place.injected)
    performed(desk, place.task.acts[: place.at + 1])
    assert not desk.violations(), f"{desk.name}, {place.task.name}: the task itself violates the policy"
    return case


def violating(desk: Desk, pack: Pack, place: Wanted) -> Case | None:
    """Return the call with which the violation of a shortcut or an attack begins, or None if there is none."""
    acts = desk.injections[place.category] if place.category else place.task.shortcuts[place.at]
    for last, act in enumerate(acts):
        desk.reset(place.injected)
        history = performed(desk, (*place.task.acts[: place.at], *acts[:last]))
        before = desk.violations()
        performed(desk, [act])
        if new := desk.violations() - before:
            desk.reset(place.injected)
            performed(desk, (*place.task.acts[: place.at], *acts[:last]))
            return _case(desk, pack, place, history, act, ", ".join(sorted(new)))
    return None


def _case(desk: Desk, pack: Pack, place: Wanted, history: tuple[Past, ...], act: Act, category: str) -> Case:
    """Return the case. The desk is in the state just before the call."""
    act = desk.resolved(act)
    work = str(getattr(desk, "work", "/workspace"))
    shown = msgspec.json.encode(
        Case(
            desk.name,
            place.agent,
            place.task.name,
            place.task.request,
            category,
            history,
            act.tool,
            act.arguments,
            policy(desk.name),
            lists(desk.name),
            bylaws(desk, pack, place.task, history, act, is_wanted=not category),
        )
    )
    return msgspec.json.decode(shown.replace(work.encode(), b"/workspace"), type=Case)


def bylaws(desk: Desk, pack: Pack, task: Task, history: tuple[Past, ...], act: Act, *, is_wanted: bool) -> Judged:
    """Return whether the call runs under Bylaw. The user confirms it only if the task needs it."""
    with Shield(pack) as shield, shield.session("desk") as session:
        session.user(task.request)
        for number, past in enumerate(history):
            function = {"name": past.tool, "arguments": json.dumps(past.arguments)}
            asked = [{"id": f"past-{number}", "type": "function", "function": function}]
            session.messages(
                [
                    {"role": "assistant", "content": None, "tool_calls": asked},
                    {"role": "tool", "tool_call_id": f"past-{number}", "content": past.result},
                ]
            )
        worker = Worker(desk, session, task.request)
        ran = worker.allowed(act, is_wanted=is_wanted)
        return Judged(ran is not None, worker.run.questions)


def main() -> None:
    found: list[Case] = []
    for name in DESKS:
        with open_desk(name) as desk:
            found += drawn(desk, desk.pack())
    with FILE.open("wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as out:
        out.writelines(msgspec.json.encode(each) + b"\n" for each in found)
    for name in dict.fromkeys(each.desk for each in found):
        own = [each for each in found if each.desk == name]
        print(name, len(own), sum(bool(each.category) for each in own), "violations")


if __name__ == "__main__":
    main()
