"""`bylaw-lab align-eval` and `bylaw-lab align-data`: side tests and ablated data sets on the clinic's tasks."""

from collections import Counter
from pathlib import Path
from typing import Any

import click
import msgspec


@click.command("align-eval")
@click.option("--agent", required=True, help="An endpoint, a checkpoint, or a script of the desk.")
@click.option("--model", default="", help="The model's name at the endpoint.")
@click.option("--policy", type=click.Choice(["context", "none"]), default="none", help="Put the policy in the prompt.")
@click.option("--test", type=click.Choice(["knowledge", "override"]), required=True)
@click.option("--limit", type=int, help="Only the first N questions or tasks.")
def align_eval(agent: str, model: str, policy: Any, test: str, limit: int | None) -> None:
    """Ask an agent questions on the clinic's policy, or play tasks under changed policies."""
    from bylaw.align.agents import open_agent
    from bylaw_lab.align.knowledge import know
    from bylaw_lab.align.override import obey

    played = open_agent(agent, model)
    _, summary = (know if test == "knowledge" else obey)(played, "clinic", policy, limit=limit)
    click.echo(msgspec.json.format(msgspec.json.encode(summary), indent=1))


@click.command("align-data")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Where to write the sets.")
@click.option("--times", type=int, default=1, help="Make N times as many training tasks.")
@click.option("--turns", type=int, default=900, help="Turns held out for RL.")
@click.option("--seed", type=int, default=0, help="Another seed gives the thoughts other words.")
@click.option("--parting", is_flag=True, help="Hold out the turns where twin tasks part.")
@click.option("--plant", default="", metavar="FAULT=SHARE,...", help="Write `unfiltered`: stage 2 with planted faults.")
def align_data(out: Path, times: int, turns: int, seed: int, parting: bool, plant: str) -> None:
    """Build the sets of `bylaw align data` for the clinic, with the ablations of the published experiment."""
    from bylaw.align.builder import gold_series, write_sets
    from bylaw.align.dataset import SHAPES, conversation_row, write_rows
    from bylaw.align.manifest import Source
    from bylaw.align.prompt import pack_named
    from bylaw_lab.align import planted
    from bylaw_lab.align.parting import parting_rows

    dropped: Counter[str] = Counter()
    training = gold_series("training", "clinic", times, seed, dropped)
    tried = gold_series("rl", "clinic", 1, seed, dropped)
    if plant:
        shares = {name: float(share) for name, _, share in (part.partition("=") for part in plant.split(","))}
        faults = msgspec.convert(shares, planted.Faults)
        out.mkdir(parents=True, exist_ok=True)
        spoilt = (planted.plant(pack_named("clinic"), talk, faults, seed=seed) for talk in training)
        write_rows(out / "unfiltered.jsonl", (conversation_row("clinic", talk, SHAPES["stage2"]) for talk in spoilt))
    source = Source("Gold conversations of the clinic's tasks.", "bylaw-lab align-data", dropped)
    click.echo(write_sets("clinic", out, training, tried, turns=turns, seed=seed, source=source))
    if parting:
        write_rows(out / "rl.jsonl", parting_rows("clinic", tried)[:turns])
