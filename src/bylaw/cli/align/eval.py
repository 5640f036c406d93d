"""`bylaw align eval`: what an agent can do, with the policy in its prompt or without."""

from pathlib import Path
from typing import Any

import click
import msgspec

from bylaw.errors import UsageError


@click.command("eval")
@click.option(
    "--agent", required=True, metavar="URL|DIR|SCRIPT", help="An endpoint, a checkpoint, or careful, comply, refuse."
)
@click.option("--model", default="", metavar="NAME", help="The model's name at the endpoint.")
@click.option("--policy", type=click.Choice(["context", "none"]), default="none", help="Whether the prompt holds it.")
@click.option("--pack", default="clinic", metavar="PACK", help="The pack whose tasks are played.")
@click.option("--part", default="development", metavar="PART", help="The tasks to play: development or test.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Play only the first N tasks.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Write a line per task there.")
@click.option("--name", default="eval", metavar="NAME", help="What to call the files there.")
def eval_command(
    agent: str,
    model: str,
    policy: Any,
    pack: str,
    part: str,
    limit: int | None,
    out: Path | None,
    name: str,
) -> int:
    """Play a pack's tasks with an agent: pass@1, words, and what the audit says of its writes."""
    from bylaw.align.agents import open_agent
    from bylaw.align.evaluation import evaluate, score, write_results
    from bylaw.align.rollout import play
    from bylaw.align.tasks import load_tasks

    tasks = load_tasks(part, pack)[:limit]
    if not tasks:
        raise UsageError("there is nothing to play")
    outcomes = play(tasks, open_agent(agent, model), policy=policy, watch=_say)
    scores = [score(task, outcome) for task, outcome in zip(tasks, outcomes, strict=True)]
    summary = evaluate(tasks, scores)
    if out is not None:
        write_results(out, name, scores, summary)
    print(msgspec.json.format(msgspec.json.encode(summary), indent=1).decode())
    return 0


def _say(turn: int, live: int) -> None:
    click.echo(f"turn {turn}: {live} conversations", err=True)
