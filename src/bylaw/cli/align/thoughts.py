"""`bylaw align thoughts`: a thought for each turn, from the guards or from a model."""

import sys
from pathlib import Path
from typing import Annotated, Any

import click

from bylaw.cli.command import Count, File, Folder, PackOption, command
from bylaw.cli.logs import open_logs
from bylaw.errors import UsageError


@command("thoughts")
def thoughts_command(
    logs: Annotated[tuple[Path, ...], "Recorded conversations: files or folders."],
    *,
    pack: PackOption,
    out: Annotated[File, "Where to write; by default standard output."] = None,
    seed: Annotated[int, "--seed N", "Seed for the wording."] = 1,
    limit: Annotated[Count | None, "Stop after this many turns."] = None,
    written: Annotated[bool, "Let a model write and refine thoughts, instead of deriving them from guards."] = False,
    llm: Annotated[str, "--llm MODEL", "A model at OPENAI_BASE_URL, batch:DIR, or recorded."] = "",
    kept: Annotated[Folder, "Folder that keeps questions and answers."] = None,
    thresholds: Annotated[str, "--thresholds RUBRIC=N,...", "The score that each rubric must reach."] = "",
    rounds: Annotated[int, "--rounds N", click.IntRange(min=0), "Refinements before a thought is dropped."] = 4,
    whole_policy: Annotated[bool, "Show the model the whole document, not one sentence per policy."] = False,
    dry_run: Annotated[bool, "Print the number and cost of requests, and exit."] = False,
) -> int:
    """Write a thought for each recorded turn, from the guards or a model."""
    from bylaw.align.thoughts import Options, make_thoughts
    from bylaw.pack import load_pack

    held = load_pack(pack)
    if not written and (llm or dry_run):
        raise UsageError("verified thoughts ask no model", hint="add --written, or leave out --llm and --dry-run")
    chosen = Options(seed, limit, written, llm, kept, _thresholds(thresholds), rounds, whole_policy, dry_run)
    with open_logs(list(logs)) as opened:
        lines = make_thoughts(held, opened.readable(), chosen)
        if out is None:
            for line in lines:
                sys.stdout.buffer.write(line)
        else:
            out.write_bytes(b"".join(lines))
            print(f"wrote {out}")
    return opened.report_faults()


def _thresholds(said: str) -> dict[Any, int]:
    from bylaw.align.thoughts import RUBRICS, THRESHOLDS

    found: dict[Any, int] = dict(THRESHOLDS)
    for part in filter(None, said.split(",")):
        name, _, number = part.partition("=")
        if name not in RUBRICS or not number.isdigit() or not 1 <= int(number) <= 10:
            hint = f"write {RUBRICS[0]}=10,{RUBRICS[1]}=9; the rubrics are {', '.join(RUBRICS)}"
            raise UsageError(f"`{part}` is not a threshold", hint=hint)
        found[name] = int(number)
    return found
