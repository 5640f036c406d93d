"""`bylaw-lab theorems`."""

import sys
import time
from concurrent.futures import ProcessPoolExecutor

import click

from bylaw_lab.theorems.run import Report, check_conversations, seeds_of, told


@click.command()
@click.option("--conversations", default=1000, show_default=True, help="Number of conversations.")
@click.option("--seed", default=1, show_default=True, help="Seed of the run.")
@click.option("--only", default="", metavar="SEED", help="Replay one conversation, by the seed in its rejection.")
@click.option("--jobs", default=1, show_default=True, help="Processes.")
def theorems(conversations: int, seed: int, only: str, jobs: int) -> None:
    """Search for an allowed call that the guarantees do not permit; exit status 1 if there is one."""
    begin = time.perf_counter()
    seeds = [only] if only else seeds_of(seed, conversations)
    report = _in_processes(seeds, jobs) if jobs > 1 else check_conversations(seeds)
    seconds = time.perf_counter() - begin
    click.echo("\n".join(told(report)))
    click.echo(f"seed: {only or seed}; {len(seeds) / seconds:.0f} conversations/s")
    sys.exit(1 if report.rejected else 0)


def _in_processes(seeds: list[str], jobs: int) -> Report:
    report = Report()
    with ProcessPoolExecutor(jobs) as pool:
        for part in pool.map(check_conversations, [seeds[job::jobs] for job in range(jobs)]):
            report.add(part)
    return report
