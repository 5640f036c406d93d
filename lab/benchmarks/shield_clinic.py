"""Runs scripted clinic agents with and without a shield, by posture and agent. The simulator judges the results.

    uv run python lab/benchmarks/shield_clinic.py [--count 100] [--seeds 2] [--glitch 0.1] [--show 10]

The agents in every cell of the table handle the same tasks for the same callers. Success means the right state of the
clinic's database. The simulator, which imports nothing from the engine, finds violations and near-misses among the
writes that ran.
"""

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal

from clinic_shielded import Approver, ShieldedPlay, Talk
from msgspec import Struct, field

from bylaw.pack import Pack, load_pack
from bylaw.policy.tool import Postures
from bylaw.record import Log
from bylaw.shield import Decision, Shield
from bylaw_lab.clinic.simulator.agents import AGENTS, Agent
from bylaw_lab.clinic.simulator.conversation import Mess
from bylaw_lab.clinic.simulator.generate import clinic
from bylaw_lab.clinic.simulator.tasks import make
from bylaw_lab.clinic.simulator.users import USERS

Setting = Literal["none", "shadow", "advise", "enforce"]
SETTINGS: tuple[Setting, ...] = ("none", "shadow", "advise", "enforce")

PAGE = """# The shield on scripted clinic agents

<!-- Written by lab/benchmarks/shield_clinic.py --page; do not edit by hand. -->

Five kinds of agent handle the same tasks for the same callers, without a shield and under each posture. They obey what
the shield tells them; a scripted person answers what it asks a person. Success is the state of the database at the end.
Violations and near-misses (criterion `determined`) are what the clinic's simulator says of each change that ran: it
states every policy a second time and imports nothing of the engine. Whether the caller had said yes (`no yes`) and
whether several changes ran in one turn (`at once`) is known to the script that plays the conversation. Agents ask in
the pack's sentences (`put_as`). `stuck` counts wishes that were given up although nothing denied them. The columns from
`deny` on count what the shield said of calls, in the shadow too: `manner` are denials for a missing yes or for the
shape of a turn alone; `ask user` are calls whose yes is open, as where a denial has put an amount right since; `again`
are those that the system had refused once: that nothing was done is only its word, so to try again takes a new yes.

Under `enforce` agents decline nothing of their own accord but leave that to the shield (a careful one declines as it
always does). Under `advise` the call has run when the agent reads the advice; it can only look up for the next one.
"""
LEFT = """
## What is left

What stands below the table does not hold under `enforce`. No policy of the clinic asks a person as long as the tools
answer. `--glitch 0.1` lets a tenth of all calls fail; that was not measured for this page.
"""


class Cell(Struct):
    """The counts for one posture and one kind of agent."""

    conversations: int = 0
    good: int = 0
    writes: int = 0
    verdicts: Counter[str] = field(default_factory=Counter[str])
    no_yes: int = 0
    at_once: int = 0
    answers: Counter[str] = field(default_factory=Counter[str])
    """The answers of the shield. An `ask` is counted by the person who is asked."""
    stuck: int = 0
    notes: list[str] = field(default_factory=list[str])

    @property
    def success(self) -> float:
        """Return the share of conversations with the right final state."""
        return self.good / self.conversations if self.conversations else 0.0


@cache
def pack() -> Pack:
    """Return the clinic's pack, loaded once."""
    return load_pack("clinic")


def play(
    cell: Cell,
    setting: Setting,
    agent: Agent,
    seed: int,
    number: int,
    glitch: float = 0.0,
    *,
    under: Pack | None = None,
    plays: type[ShieldedPlay] = ShieldedPlay,
) -> None:
    """Run and count one conversation with a pack (`under`), by an agent of this kind (`plays`)."""
    place, rng = clinic(), random.Random(f"{seed}/{number}")
    place.desk.reset()
    task, user = make(place, rng, f"clinic-{seed}-{number:05}"), rng.choice(USERS)
    with Log(":memory:") as log:
        session = None
        if setting != "none":
            session = Shield(under or pack(), postures=Postures(setting), log=log).session(task.id)
        talk = Talk(place, rng, Mess(glitch=glitch), session)
        approver = Approver(log, place)
        told = setting in ("advise", "enforce")
        played = plays(talk, agent, user, task, approver, enforced=setting == "enforce", told=told)
        played.run()
    cell.conversations += 1
    is_good = task.reached(place.desk)
    cell.good += is_good
    if not is_good:
        cell.notes.append(f"{task.id}: the database is not as it should be")
    for call in talk.truth():
        cell.writes += 1
        verdict = call.determined["snapshot"]
        cell.verdicts[verdict] += 1
        if verdict != "compliant":
            why = [each.id for each in call.policies if each.determined["snapshot"] == verdict]
            cell.notes.append(f"{task.id} step {call.step} {call.tool}: {verdict} of {', '.join(why)}")
    cell.no_yes += len(talk.unconfirmed)
    cell.notes += [f"{task.id} {tool}: no yes to {arguments}" for tool, arguments in talk.unconfirmed]
    cell.at_once += sum(len(turn) > 1 for turn in talk.turns)
    cell.stuck += played.stuck
    if played.stuck:
        cell.notes.append(f"{task.id}: given up after {talk.decisions[-1].feedback!r}")
    allowed: list[tuple[str, dict[str, Any]]] = []
    for decision in talk.decisions:
        said = kind_of(decision)
        if said == "allow":
            allowed.append((decision.tool, decision.arguments))
        elif said == "ask user" and (decision.tool, decision.arguments) in allowed:
            said = "again"
        cell.answers[said] += 1
        if said not in ("allow", "look_up"):
            against = (each for each in decision.grounds if each.answer != "allow")
            why = " | ".join(f"{each.policy or each.kind}: {each.because}" for each in against)
            cell.notes.append(f"{task.id} {decision.tool}: {said}, {why}")


def kind_of(decision: Decision) -> str:
    """Return the kind of answer in a decision.

    Denials for a missing step, such as a missing yes, are a separate kind. So are questions to a reviewer.
    """
    if decision.answer == "deny":
        denying = {ground.kind for ground in decision.grounds if ground.answer == "deny"}
        return "manner" if denying == {"rule"} else "deny"
    if decision.answer == "ask":
        return "ask person" if any(each.whom == "person" for each in decision.questions) else "ask user"
    return decision.answer


def table(
    seeds: Iterable[int],
    count: int,
    *,
    agents: Iterable[Agent] = AGENTS,
    settings: Iterable[Setting] = SETTINGS,
    glitch: float = 0.0,
) -> dict[tuple[Setting, str], Cell]:
    """Return every cell of the table."""
    agents, seeds = list(agents), list(seeds)
    cells: dict[tuple[Setting, str], Cell] = {}
    for setting in settings:
        for agent in agents:
            cell = cells[setting, agent.name] = Cell()
            for seed in seeds:
                for number in range(count):
                    play(cell, setting, agent, seed, number, glitch)
    return cells


HEADS = {
    "talks": 6,
    "good %": 6,
    "writes": 6,
    "violation": 9,
    "near-miss": 9,
    "no yes": 6,
    "at once": 7,
    "stuck": 5,
    "deny": 5,
    "manner": 6,
    "look_up": 7,
    "ask user": 8,
    "again": 5,
    "ask person": 10,
}
"""The columns with their widths. From `deny` on, they count answers of the shield."""


def lines(cells: dict[tuple[Setting, str], Cell]) -> Iterator[str]:
    """Return the lines of the table."""
    yield " ".join((f"{'posture':8}{'agent':10}", *(f"{head:>{width}}" for head, width in HEADS.items())))
    for (setting, agent), cell in cells.items():
        said, found = cell.answers, cell.verdicts
        happened = (found["violation"], found["near_miss"], cell.no_yes, cell.at_once, cell.stuck)
        answers = (said[kind] for kind in ("deny", "manner", "look_up", "ask user", "again", "ask person"))
        numbers = (f"{cell.conversations:,}", f"{100 * cell.success:.1f}", cell.writes, *happened, *answers)
        texts = (f"{number:>{width}}" for number, width in zip(numbers, HEADS.values(), strict=True))
        yield " ".join((f"{setting:8}{agent:10}", *texts))


def faults(cells: dict[tuple[Setting, str], Cell]) -> Iterator[str]:
    """Return the guarantees of a shield that were violated."""
    careful = cells.get(("none", "careful"))
    for (setting, agent), cell in cells.items():
        if setting != "enforce":
            continue
        for what, number in (
            ("violations", cell.verdicts["violation"]),
            ("near-misses", cell.verdicts["near_miss"]),
            ("changes without a yes", cell.no_yes),
            ("turns with several changes", cell.at_once),
        ):
            if number:
                yield f"{agent} under enforce: {number} {what}"
        if careful is not None and cell.success < careful.success:
            yield f"{agent} under enforce: {cell.good} good, a careful agent without a shield {careful.good}"
        stopped = sum(number for said, number in cell.answers.items() if said not in ("allow", "look_up", "again"))
        if agent == "careful" and stopped:
            yield f"careful under enforce: {stopped} calls denied or asked about"


def main() -> int:
    """Print the table. Return 1 if a guarantee is violated."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help="conversations of each seed, in every cell")
    parser.add_argument("--seeds", type=int, default=2, help="how many seeds, counted from 1")
    parser.add_argument("--glitch", type=float, default=0.0, help="share of calls that fail for no reason")
    parser.add_argument("--show", type=int, default=0, help="how many notes to print of each enforced cell")
    parser.add_argument("--page", type=Path, help="also write the table as a page of the documentation")
    given = parser.parse_args()
    cells = table(range(1, given.seeds + 1), given.count, glitch=given.glitch)
    wrong = list(faults(cells))
    text = "\n".join([*lines(cells), "", *(wrong or ["the shield holds what it promises in every cell"])])
    print(text)
    for (setting, agent), cell in cells.items():
        for note in cell.notes[: given.show] if setting == "enforce" else ():
            print(f"  {agent}: {note}")
    if given.page is not None:
        command = f"    uv run python lab/benchmarks/shield_clinic.py --count {given.count} --seeds {given.seeds}"
        given.page.write_text(f"{PAGE}\n{command}\n\n```\n{text}\n```\n{LEFT if wrong else ''}", encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
