"""`bylaw align eval`: what an agent can do, with the policy in its prompt or without."""

from pathlib import Path
from typing import Any

import click
import msgspec


@click.command("eval")
@click.option(
    "--agent", required=True, metavar="URL|DIR|SCRIPT", help="An endpoint, a checkpoint, or careful, comply, refuse."
)
@click.option("--model", default="", metavar="NAME", help="The model's name at the endpoint.")
@click.option(
    "--policy", type=click.Choice(["context", "none"]), default="none", help="Whether the prompt contains the policy."
)
@click.option("--pack", default="clinic", metavar="PACK", help="The pack whose tasks are played.")
@click.option("--part", default="development", metavar="PART", help="The tasks to play: development or test.")
@click.option(
    "--test",
    "measure",
    type=click.Choice(["tasks", "knowledge", "override"]),
    default="tasks",
    help="Play tasks, ask questions about the policy, or play under changed policies.",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Play only the first N tasks.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Write a line per task there.")
@click.option("--name", default="eval", metavar="NAME", help="What to call the files there.")
def eval_command(
    agent: str,
    model: str,
    policy: Any,
    pack: str,
    part: str,
    measure: str,
    limit: int | None,
    out: Path | None,
    name: str,
) -> int:
    """Measure an agent on a pack's tasks: pass@1, words, near-misses; what it knows; whether it follows a change."""
    from bylaw.align.agents import open_agent
    from bylaw.align.measure import know, obey, perform

    played = open_agent(agent, model)
    match measure:
        case "knowledge":
            lines, summary = know(played, pack, policy, limit=limit)
        case "override":
            lines, summary = obey(played, pack, policy, limit=limit, watch=_say)
        case _:
            lines, summary = perform(played, pack, part, policy, limit=limit, watch=_say)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / f"{name}.jsonl").write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
        (out / f"{name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(summary), indent=1) + b"\n")
    print(msgspec.json.format(msgspec.json.encode(summary), indent=1).decode())
    return 0


def _say(turn: int, live: int) -> None:
    click.echo(f"turn {turn}: {live} conversations", err=True)
