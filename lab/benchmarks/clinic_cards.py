"""Runs the clinic's scripted agents with cards only: no agent asks for a yes in its own words.

    uv run python lab/benchmarks/clinic_cards.py [--count 100] [--seeds 2] [--show 10] [--page FILE]

The pack is the clinic's with `consented: card`. When an agent gets a card, the agent or its host shows the card, and
the caller says yes. Success is measured by the clinic's database. The script that plays the conversation knows whether
the caller agreed to a write that ran.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from clinic_shielded import Asked, ShieldedPlay
from shield_clinic import Cell, play

from bylaw.pack import Pack, load_pack
from bylaw.shield import Decision
from bylaw.trace.event import Card
from bylaw_lab.clinic.simulator import dialogue
from bylaw_lab.clinic.simulator.agents import AGENTS, Agent
from bylaw_lab.clinic.simulator.dialogue import pick
from bylaw_lab.clinic.simulator.wants import Want

PACKS = Path(__file__).parents[2] / "src" / "bylaw" / "packs"
TOLD = "consented: told"
PAGE = """# Cards on scripted clinic agents

<!-- Written by lab/benchmarks/clinic_cards.py --page; do not edit by hand. -->

The clinic's pack with `consented: card`: a change runs only after the caller's answer to a card. No agent asks for a
yes in its own words. `talk`: the agent's message ends with the card's text, and the caller's next message is a yes.
`host`: the host shows the card and reports the answer (`session.confirm`). `good` are conversations that end with the
database as it should be; `no yes` are changes that ran without the caller's yes; `stuck` are wishes that were given up
although nothing denied them.
"""


@cache
def pack() -> Pack:
    """Return the clinic's pack, in which only cards can give consent."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(PACKS / "clinic", folder, dirs_exist_ok=True)
        rules = Path(folder, "rules.yaml")
        text = rules.read_text(encoding="utf-8")
        assert TOLD in text
        rules.write_text(text.replace(TOLD, "consented: card"), encoding="utf-8")
        return load_pack(folder)


class CardPlay(ShieldedPlay):
    """An agent that asks for a yes only by showing the cards that it receives."""

    def confirm(self, want: Want) -> None:
        pass

    def _heed(self, want: Want, decision: Decision) -> Want | None:
        if decision.card is None:
            return super()._heed(want, decision)
        self.put(decision.card)
        self.live.approved.add(dialogue.do(want))
        if decision.approval:
            self.approver.answer(decision.approval, want)
        return want

    def _see_through(self, want: Want, asked: Asked | None) -> None:
        # If a call was refused because of another call in its turn, retry it once the other call has been made.
        is_stale = asked is not None and not asked.ran and asked not in self.live.last
        super()._see_through(want, None if is_stale else asked)

    def put(self, card: Card) -> None:
        self.talk.agent(card.text)
        self.talk.user(pick(self.rng, dialogue.YES))


class HostPlay(CardPlay):
    """Like `CardPlay`, but the host shows the cards and reports the answers."""

    def put(self, card: Card) -> None:
        assert self.live.session is not None
        self.live.session.confirm(card, True, by="button")


WAYS: dict[str, type[CardPlay]] = {"talk": CardPlay, "host": HostPlay}


def table(seeds: Iterable[int], count: int, agents: Iterable[Agent] = AGENTS) -> dict[tuple[str, str], Cell]:
    """Return the counts for each way and agent."""
    agents, seeds = list(agents), list(seeds)
    cells: dict[tuple[str, str], Cell] = {}
    for way, plays in WAYS.items():
        for agent in agents:
            cell = cells[way, agent.name] = Cell()
            for seed in seeds:
                for number in range(count):
                    play(cell, "enforce", agent, seed, number, under=pack(), plays=plays)
    return cells


HEADS = {"talks": 6, "good": 6, "writes": 6, "violation": 9, "near-miss": 9, "no yes": 6, "stuck": 5}


def lines(cells: dict[tuple[str, str], Cell]) -> Iterator[str]:
    yield " ".join((f"{'way':5}{'agent':11}", *(f"{head:>{width}}" for head, width in HEADS.items())))
    for (way, agent), cell in cells.items():
        found = cell.verdicts
        numbers = (cell.conversations, cell.good, cell.writes, found["violation"], found["near_miss"])
        texts = zip((*numbers, cell.no_yes, cell.stuck), HEADS.values(), strict=True)
        yield " ".join((f"{way:5}{agent:11}", *(f"{number:>{width},}" for number, width in texts)))


def faults(cells: dict[tuple[str, str], Cell]) -> Iterator[str]:
    """Yield the guarantees of cards that were violated."""
    for (way, agent), cell in cells.items():
        wrong = cell.verdicts["violation"] + cell.verdicts["near_miss"]
        for what, number in (
            ("conversations that ended otherwise than they should", cell.conversations - cell.good),
            ("changes without a yes", cell.no_yes),
            ("violations and near-misses", wrong),
        ):
            if number:
                yield f"{agent} by {way}: {number} {what}"


def main() -> int:
    """Print the table. Return 1 if a task was not done or a change ran without a yes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help="conversations of each seed, in every cell")
    parser.add_argument("--seeds", type=int, default=2, help="how many seeds, counted from 1")
    parser.add_argument("--show", type=int, default=0, help="how many notes to print of each cell")
    parser.add_argument("--page", type=Path, help="also write the table as a page of the documentation")
    given = parser.parse_args()
    cells = table(range(1, given.seeds + 1), given.count)
    wrong = list(faults(cells))
    text = "\n".join([*lines(cells), "", *(wrong or ["every task is done, and nothing ran without a yes"])])
    print(text)
    for (way, agent), cell in cells.items():
        for note in cell.notes[: given.show]:
            print(f"  {way} {agent}: {note}")
    if given.page is not None:
        command = f"    uv run python lab/benchmarks/clinic_cards.py --count {given.count} --seeds {given.seeds}"
        given.page.write_text(f"{PAGE}\n{command}\n\n```\n{text}\n```\n", encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
