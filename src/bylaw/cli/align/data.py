"""`bylaw align data`: the three stages' sets, from logs or from the pack's own tasks."""

from pathlib import Path

import click

from bylaw.cli.logs import open_logs


@click.command("data")
@click.argument("logs", nargs=-1, type=click.Path(path_type=Path), metavar="[LOGS]...")
@click.option(
    "--pack", default="clinic", metavar="PACK", help="A pack's folder, or the name of one that comes with Bylaw."
)
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="DIR", help="Where to write the sets.")
@click.option("--turns", default=900, type=click.IntRange(min=1), metavar="N", help="Turns held out for RL.")
@click.option("--seed", default=0, metavar="N", help="Another seed, other words in the thoughts.")
@click.option("--keep-all", is_flag=True, help="Keep logs that failed or that the audit flags.")
@click.option("--parquet", is_flag=True, help="Write Parquet files too (needs the extra `parquet`).")
def data_command(
    logs: tuple[Path, ...], pack: str, out: Path, turns: int, seed: int, keep_all: bool, parquet: bool
) -> int:
    """Build the three stages' sets from LOGS, or, without logs, from the tasks that come with the pack."""
    from bylaw.align.builder import build_from_logs, build_from_tasks
    from bylaw.align.parquet import write_parquet

    command = " ".join(["bylaw align data", *map(str, logs), f"--pack {pack}", f"--turns {turns}", f"--seed {seed}"])
    if logs:
        with open_logs(list(logs), without=out) as opened:
            card = build_from_logs(
                pack, out, opened.trajectories(), turns=turns, seed=seed, command=command, keep_all=keep_all
            )
    else:
        card = build_from_tasks(pack, out, turns=turns, seed=seed, command=command, watch=_say)
    if parquet:
        write_parquet(out)
    print(f"wrote {card}")
    return 0


def _say(part: str, done: int, count: int) -> None:
    if done % 500 == 0 or done == count:
        click.echo(f"{part}: {done} of {count} conversations", err=True)
