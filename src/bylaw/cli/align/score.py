"""`bylaw align score`: the rewards of turns, or of answers to the rows of `rl.jsonl`."""

import sys
from math import isfinite
from typing import Annotated

import click
import msgspec

from bylaw.cli.command import GivenFile, command
from bylaw.errors import UsageError


@command("score")
def score_command(
    *,
    rows: Annotated[
        GivenFile, 'Grade answers ({"answer": ..., "row": 1} per line) against these rows of `rl.jsonl`.'
    ] = None,
    pack: Annotated[
        str | None, "--pack PACK", "With --rows: the pack to grade by; by default the one in `data.json`."
    ] = None,
    judge: Annotated[
        str | None,
        "--judge MODEL",
        "With --rows: the model that grades texts, at OPENAI_BASE_URL or batch:DIR.",
    ] = None,
    mismatch: Annotated[
        str | None,
        click.Choice(["paper", "floor"]),
        "Reward of a call instead of text, or the reverse: 0, or -3 (default with --rows).",
    ] = None,
    compliance: Annotated[
        float,
        "--compliance WEIGHT",
        click.FloatRange(min=0),
        "Penalty for a write with a bad `verdict` or, with --rows, that a guard flags.",
    ] = 0.0,
) -> int:
    """Compute the rewards of turns: JSON lines on stdin."""
    from bylaw.align.grader import Grader
    from bylaw.align.lines import score_answers, score_lines
    from bylaw.align.reward import Switches
    from bylaw.align.training.data import pack_of, training_rows
    from bylaw.align.training.scoring import graded, open_judge

    if not isfinite(compliance):
        raise UsageError(f"`{compliance}` is not a weight", hint="give a number of 0 or more, as in --compliance 1")
    chosen = mismatch or ("paper" if rows is None else "floor")
    switches = msgspec.convert({"mismatch": chosen, "compliance": compliance}, Switches)
    if rows is None:
        if pack is not None or judge is not None:
            raise UsageError("--pack and --judge need --rows", hint="name the rows with --rows data/rl.jsonl")
        return score_lines(sys.stdin.buffer, sys.stdout.buffer, switches)
    found = training_rows(rows, 3)
    held = pack_of(rows, pack)
    graded(found, held.name, has_judge=True)
    grader = Grader(held.pack, judge=open_judge(judge), switches=switches)
    return score_answers(sys.stdin.buffer, sys.stdout.buffer, found, grader)
