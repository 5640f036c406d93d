"""Measures the questions about consent that an audit of recorded airline runs asks a model: number, length and content.

    uv run python lab/benchmarks/consent_questions.py FOLDER

FOLDER contains the runs (`tau1/runs`, `tau2/runs`). A token is counted as four characters, including instructions.
"""

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles

from consent import runs
from consent_answers import Collect
from msgspec import Struct

from bylaw import Call, Message, Pack, Trajectory, verdicts
from bylaw.audit.request import Shelf
from bylaw.facts.ledger import Ledger
from bylaw.llm.chat import LETTERS_PER_TOKEN

PIECE = re.compile(r"^\[(\d+)\] (user|agent|tool)", re.MULTILINE)


class Question(Struct):
    """What was measured about one question."""

    id: str
    tokens: int
    has_user: bool
    has_answer: bool
    """Whether the question contains the user's last message before the call, and the agent's message before that."""
    is_refused: bool
    is_done: bool
    """Whether the call was refused, and whether a call with the same arguments had run before."""
    is_repeat: bool
    """Whether exactly the same question was asked before."""
    from_tools: float
    """The share of the question's text that quotes results."""


def questions(folder: Path) -> Iterator[Question]:
    """Yield every question that an audit of the runs asks."""
    shelf, asked = Shelf("tau-airline"), set[str]()
    for name, trajectory in runs(folder):
        pack = shelf.pack_for(trajectory)
        yield from _of_one(pack, name, trajectory, asked)


def _of_one(pack: Pack, name: str, trajectory: Trajectory, asked: set[str]) -> Iterator[Question]:
    collect = Collect(pack, trajectory)
    verdicts(pack, trajectory, answer=collect)
    ledger = Ledger(pack.schema)
    ledger.observe_all(0, trajectory.events)
    writes = {made.step: made for made in ledger.writes}
    for step, (_, _, request) in collect.asked.items():
        system, user = (message.content for message in request.messages)
        pieces = {int(number): by for number, by in PIECE.findall(user)}
        put, answered = _exchange(trajectory, step)
        earlier = [made for at, made in writes.items() if at < step and made.accepted is not False]
        same = _text(trajectory.events[step])
        yield Question(
            f"{name}/{step}",
            (len(system) + len(user)) // LETTERS_PER_TOKEN,
            "user" in pieces.values(),
            answered in pieces and (put in pieces or put < 0),
            writes[step].accepted is False,
            any(_text(made.call) == same for made in earlier),
            request.key in asked,
            sum(len(part) for part in re.split(r"\n(?=\[\d+\] )", user) if re.match(r"\[\d+\] tool", part)) / len(user),
        )
        asked.add(request.key)


def _exchange(trajectory: Trajectory, step: int) -> tuple[int, int]:
    """Return the steps of the user's last message before a call, and of the agent's last message before that. A missing
    message has step -1.
    """
    said = [(at, each.by) for at, each in enumerate(trajectory.events[:step]) if isinstance(each, Message)]
    answered = max((at for at, by in said if by == "user"), default=-1)
    return max((at for at, by in said if by == "agent" and at < answered), default=-1), answered


def _text(call: object) -> str:
    assert isinstance(call, Call)
    return json.dumps([call.tool, call.arguments], sort_keys=True, default=str)


def table(found: list[Question]) -> str:
    tokens = [each.tokens for each in found]

    def share(name: str) -> str:
        count = sum(getattr(each, name) for each in found)
        return f"{count:,} ({count / len(found):.1%})"

    rows = {
        "questions": f"{len(found):,}",
        "tokens, median": f"{median(tokens):,.0f}",
        "tokens, 90th percentile": f"{quantiles(tokens, n=10)[-1]:,.0f}",
        "tokens in all": f"{sum(tokens):,}",
        "without a user message": f"{len(found) - sum(each.has_user for each in found):,}",
        "without the last answer, or what it answers": f"{len(found) - sum(each.has_answer for each in found):,}",
        "about a refused call": share("is_refused"),
        "about a call carried out before": share("is_done"),
        "asked before, letter for letter": share("is_repeat"),
        "text that quotes results": f"{sum(each.from_tools for each in found) / len(found):.0%}",
    }
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    print(table(list(questions(parser.parse_args().folder))))
