"""`bylaw align score`: the rewards of turns, line by line."""

import sys
from math import isfinite

import click
import msgspec

from bylaw.errors import UsageError


@click.command("score")
@click.option(
    "--mismatch",
    type=click.Choice(["paper", "floor"]),
    default="paper",
    help="A call where text was due, or the reverse: 0, or -3.",
)
@click.option(
    "--compliance",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="WEIGHT",
    help="What a write costs that the line's `verdict` finds fault with.",
)
def score_command(mismatch: str, compliance: float) -> int:
    """Score turns by the paper's rewards, as JSON lines on stdin."""
    from bylaw.align.lines import score_lines
    from bylaw.align.reward import Switches

    if not isfinite(compliance):
        raise UsageError(f"`{compliance}` is no weight", hint="a number from 0 on, as in --compliance 1")
    switches = msgspec.convert({"mismatch": mismatch, "compliance": compliance}, Switches)
    return score_lines(sys.stdin.buffer, sys.stdout.buffer, switches)
