"""`bylaw align score`: the rewards of turns, line by line, or of answers to the rows of `rl.jsonl`."""

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
        GivenFile, 'Grade answers, {"answer": ..., "row": 1} a line, against these rows of `rl.jsonl`.'
    ] = None,
    pack: Annotated[
        str | None, "--pack PACK", "With --rows: the pack to grade by, unless `data.json` beside them tells."
    ] = None,
    judge: Annotated[
        str | None, "--judge MODEL", "With --rows: a model at OPENAI_BASE_URL, or batch:DIR, marks texts."
    ] = None,
    mismatch: Annotated[
        str | None,
        click.Choice(["paper", "floor"]),
        "A call where text was due, or the reverse: 0, or -3 (by default with --rows).",
    ] = None,
    compliance: Annotated[
        float,
        "--compliance WEIGHT",
        click.FloatRange(min=0),
        "What a write costs that the line's `verdict`, or with --rows the guards, find fault with.",
    ] = 0.0,
) -> int:
    """Score turns by the paper's rewards, as JSON lines on stdin."""
    from bylaw.align.grader import Grader
    from bylaw.align.lines import score_answers, score_lines
    from bylaw.align.reward import Switches
    from bylaw.align.training.data import pack_of, training_rows
    from bylaw.align.training.scoring import graded, open_judge

    if not isfinite(compliance):
        raise UsageError(f"`{compliance}` is no weight", hint="a number from 0 on, as in --compliance 1")
    chosen = mismatch or ("paper" if rows is None else "floor")
    switches = msgspec.convert({"mismatch": chosen, "compliance": compliance}, Switches)
    if rows is None:
        if pack is not None or judge is not None:
            raise UsageError("--pack and --judge grade answers", hint="name the rows with --rows data/rl.jsonl")
        return score_lines(sys.stdin.buffer, sys.stdout.buffer, switches)
    found = training_rows(rows, 3)
    held = pack_of(rows, pack)
    graded(found, held.name, has_judge=True)
    grader = Grader(held.pack, judge=open_judge(judge), switches=switches)
    return score_answers(sys.stdin.buffer, sys.stdout.buffer, found, grader)
