"""`bylaw align data`: the three stages' sets, from logs or from the pack's own tasks."""

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
        "The database the logs started from; what an audit flags over it is left out.",
    ] = None,
    audit: EarlierAudit = None,
    thoughts: Annotated[
        GivenFile, "Thoughts that `bylaw align thoughts --written` let through, instead of verified ones."
    ] = None,
    out: Annotated[Path, "--out DIR", "Where to write the sets."],
    document: Annotated[GivenFile, "The policy's text, for logs of a pack that does not bring it."] = None,
    turns: Annotated[Count, "Turns held out for RL."] = 900,
    times: Annotated[Count, "Make N times as many training tasks (without logs)."] = 1,
    rl_times: Annotated[Count, "Make N times as many tasks to draw RL turns from (without logs)."] = 1,
    seed: Annotated[int, "--seed N", "Another seed gives the thoughts other words."] = 0,
    keep_open: Annotated[bool, "Keep logs in which the audit could not settle something."] = False,
    keep_all: Annotated[bool, "Keep those, and logs that failed or that the audit flags."] = False,
    for_judge: Annotated[bool, "Keep RL texts that only a judge model can mark (`train --judge`)."] = False,
    parquet: Annotated[bool, "Write Parquet files too (needs the extra `parquet`)."] = False,
) -> int:
    """Build the three stages' sets from LOGS, or, without logs, from the tasks that come with the pack."""
    from bylaw.align.builder import build_from_logs, build_from_tasks
    from bylaw.align.dataset import write_parquet
    from bylaw.align.thoughts import read_thoughts

    pack = pack or (None if audit is not None else "clinic")
    told: dict[str, Any] = {"--pack": pack, "--world": world, "--audit": audit, "--thoughts": thoughts}
    told |= {"--turns": turns, "--seed": seed, "--document": document}
    told |= {"--times": times if times > 1 else None, "--rl-times": rl_times if rl_times > 1 else None}
    told |= {"--keep-open": keep_open, "--keep-all": keep_all, "--for-judge": for_judge}
    said_line = command_line("data", logs, told)
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
                command=said_line,
                document=document.read_text(encoding="utf-8") if document is not None else "",
                for_judge=for_judge,
            )
        if not (out / "rl.jsonl").stat().st_size:
            click.echo("nothing is left for stage 3 (`rl.jsonl`): too few conversations, or no turn to grade", err=True)
    else:
        if any((document, keep_open, keep_all, for_judge, world, thoughts)):
            names = "--document, --world, --thoughts, --keep-open, --keep-all and --for-judge"
            raise UsageError(f"{names} are for logs", hint="name the logs, or leave these out")
        card = build_from_tasks(
            pack or "clinic",
            out,
            turns=turns,
            times=times,
            rl_times=rl_times,
            seed=seed,
            command=said_line,
            watch=_say,
        )
    if parquet:
        write_parquet(out)
    print(f"wrote {card}")
    return 0


def _say(part: str, done: int, count: int) -> None:
    if done % 500 == 0 or done == count:
        click.echo(f"{part}: {done} of {count} conversations", err=True)
