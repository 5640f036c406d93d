"""`bylaw align data`: the three stages' sets, from logs or from the pack's own tasks."""

from pathlib import Path
from typing import Any

import click
import msgspec

from bylaw.cli.logs import open_logs
from bylaw.errors import UsageError


@click.command("data")
@click.argument("logs", nargs=-1, type=click.Path(path_type=Path), metavar="[LOGS]...")
@click.option(
    "--pack", default="clinic", metavar="PACK", help="A pack's folder, or the name of one that comes with Bylaw."
)
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="DIR", help="Where to write the sets.")
@click.option(
    "--document",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="The policy's text, for logs of a pack that does not bring it.",
)
@click.option("--turns", default=900, type=click.IntRange(min=1), metavar="N", help="Turns held out for RL.")
@click.option(
    "--times",
    default=1,
    type=click.IntRange(min=1),
    metavar="N",
    help="Make N times as many training tasks (without logs).",
)
@click.option(
    "--rl-times",
    default=1,
    type=click.IntRange(min=1),
    metavar="N",
    help="Make N times as many tasks to draw RL turns from (without logs).",
)
@click.option("--parting", is_flag=True, help="Hold out the turns where twin tasks part (without logs).")
@click.option("--seed", default=0, metavar="N", help="Another seed gives the thoughts other words.")
@click.option("--keep-all", is_flag=True, help="Keep logs that failed or that the audit flags.")
@click.option(
    "--plant",
    default="",
    metavar="FAULT=SHARE,...",
    help="A fifth set with faults in its thoughts: omission, invention, irrelevancy.",
)
@click.option("--parquet", is_flag=True, help="Write Parquet files too (needs the extra `parquet`).")
def data_command(
    logs: tuple[Path, ...],
    pack: str,
    out: Path,
    document: Path | None,
    turns: int,
    times: int,
    rl_times: int,
    parting: bool,
    seed: int,
    keep_all: bool,
    plant: str,
    parquet: bool,
) -> int:
    """Build the three stages' sets from LOGS, or, without logs, from the tasks that come with the pack."""
    from bylaw.align.builder import build_from_logs, build_from_tasks
    from bylaw.align.parquet import write_parquet

    said = ["bylaw align data", *map(str, logs), f"--pack {pack}", f"--turns {turns}", f"--seed {seed}"]
    said += [f"--times {times}"] if times > 1 else []
    said += [f"--rl-times {rl_times}"] if rl_times > 1 else []
    said += ["--parting"] if parting else []
    said += [f"--document {document}"] if document is not None else []
    command = " ".join([*said, *(["--keep-all"] if keep_all else []), *([f"--plant {plant}"] if plant else [])])
    faults = _faults(plant) if plant else None
    if logs:
        if parting:
            raise UsageError("logs have no twins", hint="leave out --parting, or the logs")
        if times > 1 or rl_times > 1:
            raise UsageError("logs cannot be multiplied", hint="leave out --times and --rl-times, or the logs")
        if faults is not None:
            raise UsageError("faults are planted in gold conversations", hint="leave out the logs")
        with open_logs(list(logs), without=out) as opened:
            card = build_from_logs(
                pack,
                out,
                opened.trajectories(),
                turns=turns,
                seed=seed,
                command=command,
                keep_all=keep_all,
                document=document.read_text(encoding="utf-8") if document is not None else "",
            )
        if not (out / "rl.jsonl").stat().st_size:
            click.echo("only one conversation is left to learn from: no turns for stage 3 (`rl.jsonl`)", err=True)
    else:
        if document is not None or keep_all:
            raise UsageError("--document and --keep-all are for logs", hint="name the logs, or leave these out")
        card = build_from_tasks(
            pack,
            out,
            turns=turns,
            times=times,
            rl_times=rl_times,
            parting=parting,
            seed=seed,
            command=command,
            faults=faults,
            watch=_say,
        )
    if parquet:
        write_parquet(out)
    print(f"wrote {card}")
    return 0


def _faults(said: str) -> Any:
    from bylaw.align.planted import Faults

    pairs = [part.partition("=")[::2] for part in said.split(",")]
    try:
        return msgspec.convert({name: float(share) for name, share in pairs}, Faults)
    except (ValueError, msgspec.ValidationError):
        hint = "as in --plant omission=0.3,invention=0.1,irrelevancy=0.2"
        raise UsageError(f"`{said}` cannot be read as shares of faults", hint=hint) from None


def _say(part: str, done: int, count: int) -> None:
    if done % 500 == 0 or done == count:
        click.echo(f"{part}: {done} of {count} conversations", err=True)
