"""`bylaw-lab theorems`."""

import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import click

from bylaw_lab.theorems.generator import STORIES
from bylaw_lab.theorems.planted import Verdict, plant
from bylaw_lab.theorems.run import Report, check_conversations, seeds_of, told


@click.command()
@click.option("--conversations", default=3000, show_default=True, help="Number of conversations.")
@click.option("--seed", default=1, show_default=True, help="Seed of the run.")
@click.option("--only", default="", metavar="SEED", help="Replay one conversation, by the seed in its rejection.")
@click.option("--planted", is_flag=True, help="Search for the bugs planted in copies of the shield instead.")
@click.option("--bug", "bugs", multiple=True, metavar="NAME", help="With --planted: only this bug.")
@click.option("--stop-after", default=0, help="Stop after this many rejections.")
@click.option("--story", type=click.Choice(list(STORIES)), help="Play one kind of conversation.")
@click.option("--jobs", default=1, show_default=True, help="Processes.")
def theorems(
    conversations: int,
    seed: int,
    only: str,
    planted: bool,
    bugs: tuple[str, ...],
    stop_after: int,
    story: str | None,
    jobs: int,
) -> None:
    """Search for an allowed call that the guarantees do not permit; exit status 1 if there is one."""
    if planted:
        sys.exit(_plant(conversations, seed, bugs))
    begin = time.perf_counter()
    seeds = [only] if only else seeds_of(seed, conversations)
    report = _in_processes(seeds, jobs) if jobs > 1 else check_conversations(seeds, stop_after, story or "")
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


def _plant(conversations: int, seed: int, bugs: tuple[str, ...]) -> int:
    verdicts: list[Verdict] = []
    with tempfile.TemporaryDirectory() as folder:
        for each in plant(conversations, seed, Path(folder), bugs):
            click.echo(f"{'found' if each.is_found else 'MISSED'}: {each.bug.name} ({each.output.strip()})")
            verdicts.append(each)
    found = sum(each.is_found for each in verdicts)
    click.echo(f"found {found} of {len(verdicts)} bugs")
    return 0 if found == len(verdicts) else 1
