"""`bylaw align data`: the data sets of the three stages, from logs or from practice tasks."""

from pathlib import Path
from typing import Annotated, Any

import click

from bylaw.cli.align.sources import EarlierAudit, SomeLogs, SomePack, command_line, sources
from bylaw.cli.command import Count, File, GivenFile, command
from bylaw.cli.logs import open_logs
from bylaw.errors import UsageError


@command("data")
def data_command(
    logs: SomeLogs = (),
    *,
    pack: SomePack = None,
    world: Annotated[
        File,
        click.Path(path_type=Path, exists=True),
        "The database at the start of the logs, for the audit that filters them.",
    ] = None,
    audit: EarlierAudit = None,
    thoughts: Annotated[GivenFile, "Thoughts from `bylaw align thoughts --written`, instead of verified ones."] = None,
    out: Annotated[Path, "--out DIR", "Folder for the data sets."],
    document: Annotated[GivenFile, "The text of the policy, if the pack does not contain it."] = None,
    turns: Annotated[Count, "Turns to hold out for RL."] = 900,
    times: Annotated[Count, "Without logs: multiply the training tasks by N."] = 1,
    rl_times: Annotated[Count, "Without logs: multiply the tasks for RL turns by N."] = 1,
    seed: Annotated[int, "--seed N", "Seed for the wording of thoughts."] = 0,
    keep_open: Annotated[bool, "Keep logs with undecided calls."] = False,
    keep_all: Annotated[bool, "Keep undecided, failed and flagged logs."] = False,
    for_judge: Annotated[bool, "Keep RL texts that only a judge model can grade (`train --judge`)."] = False,
    parquet: Annotated[bool, "Also write Parquet files (needs the extra `parquet`)."] = False,
) -> int:
    """Build the data sets of the three stages, with a data card.

    Uses LOGS or, without them, the practice tasks of the pack.
    """
    from bylaw.align.builder import build_from_logs, build_from_tasks
    from bylaw.align.dataset import write_parquet
    from bylaw.align.thoughts import read_thoughts

    pack = pack or (None if audit is not None else "clinic")
    given: dict[str, Any] = {"--pack": pack, "--world": world, "--audit": audit, "--thoughts": thoughts}
    given |= {"--turns": turns, "--seed": seed, "--document": document}
    given |= {"--times": times if times > 1 else None, "--rl-times": rl_times if rl_times > 1 else None}
    given |= {"--keep-open": keep_open, "--keep-all": keep_all, "--for-judge": for_judge}
    typed = command_line("data", logs, given)
    if logs or audit is not None:
        if times > 1 or rl_times > 1:
            raise UsageError("logs cannot be multiplied", hint="leave out --times and --rl-times, or the logs")
        wanted = sources(logs, pack, world, audit, document)
        with open_logs(list(wanted.logs), without=out) as opened:
            card = build_from_logs(
                wanted.pack,
                out,
                wanted.checked(opened.placed(agent=wanted.agent)),
                auditor=wanted.auditor,
                thoughts=read_thoughts(thoughts) if thoughts is not None else None,
                keep=("failed", "flagged", "open") if keep_all else ("open",) if keep_open else (),
                turns=turns,
                seed=seed,
                command=typed,
                document=document.read_text(encoding="utf-8") if document is not None else "",
                for_judge=for_judge,
            )
        if not (out / "rl.jsonl").stat().st_size:
            click.echo("`rl.jsonl` (stage 3) is empty: too few conversations, or no turn that can be graded", err=True)
    else:
        if any((document, keep_open, keep_all, for_judge, world, thoughts)):
            names = "--document, --world, --thoughts, --keep-open, --keep-all and --for-judge"
            raise UsageError(f"{names} need logs", hint="name the logs, or leave these out")
        card = build_from_tasks(
            pack or "clinic",
            out,
            turns=turns,
            times=times,
            rl_times=rl_times,
            seed=seed,
            command=typed,
            watch=_say,
        )
    if parquet:
        write_parquet(out)
    print(f"wrote {card}")
    return 0


def _say(part: str, done: int, count: int) -> None:
    if done % 500 == 0 or done == count:
        click.echo(f"{part}: {done} of {count} conversations", err=True)
