"""`bylaw align thoughts`: what to think before each turn, from the guards or from a model."""

import sys
from pathlib import Path
from typing import Annotated, Any

import click

from bylaw.cli.command import Count, File, Folder, PackOption, command
from bylaw.cli.logs import open_logs
from bylaw.errors import BylawError, UsageError


@command("thoughts")
def thoughts_command(
    logs: Annotated[tuple[Path, ...], "Files or folders of recorded conversations."],
    *,
    pack: PackOption,
    out: Annotated[File, "Where to write; by default standard output."] = None,
    seed: Annotated[int, "--seed N", "Another seed gives other words."] = 1,
    limit: Annotated[Count | None, "Stop after this many turns."] = None,
    written: Annotated[bool, "Thoughts that a model writes and refines, instead of verified ones."] = False,
    llm: Annotated[str, "--llm MODEL", "A model at OPENAI_BASE_URL, batch:DIR, or recorded."] = "",
    kept: Annotated[Folder, "Folder that keeps each answer with its question."] = None,
    thresholds: Annotated[str, "--thresholds RUBRIC=N,...", "What each rubric must reach."] = "",
    rounds: Annotated[int, "--rounds N", click.IntRange(min=0), "Refinements before a thought is dropped."] = 4,
    whole_policy: Annotated[bool, "Show the model the whole document, not each policy in a sentence."] = False,
    dry_run: Annotated[bool, "Say what asking would take, and stop."] = False,
) -> int:
    """Write what to think before each turn of recorded conversations, from the guards or a model."""
    from bylaw.align.thoughts import Options, make_thoughts
    from bylaw.pack import load_pack

    held = load_pack(pack)
    if not written and (llm or dry_run):
        raise UsageError("verified thoughts ask no model", hint="add --written")
    chosen = Options(seed, limit, written, llm, kept, _thresholds(thresholds), rounds, whole_policy, dry_run)
    faults: list[BylawError] = []
    with open_logs(list(logs)) as opened:
        lines = make_thoughts(held, opened.readable(faults), chosen)
        if out is None:
            for line in lines:
                sys.stdout.buffer.write(line)
        else:
            out.write_bytes(b"".join(lines))
            print(f"wrote {out}")
    return opened.tell(faults)


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
