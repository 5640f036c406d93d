"""`bylaw align eval`: what an agent can do, with the policy in its prompt or without."""

from typing import Annotated, Any

import click
import msgspec

from bylaw.cli.command import Count, Folder, Name, command


@command("eval")
def eval_command(
    *,
    agent: Annotated[str, "--agent URL|DIR|SCRIPT", "An endpoint, a checkpoint, or a script of the desk."],
    model: Annotated[Name, "The model's name at the endpoint."] = "",
    policy: Annotated[Any, click.Choice(["context", "none"]), "Whether the prompt contains the policy."] = "none",
    pack: Annotated[str, "--pack PACK", "The pack whose tasks are played."] = "clinic",
    part: Annotated[str, "--part PART", "The tasks to play: development or test."] = "development",
    limit: Annotated[Count | None, "Play only the first N tasks."] = None,
    out: Annotated[Folder, "Write a line per task there."] = None,
    name: Annotated[Name, "What to call the files there."] = "eval",
) -> int:
    """Measure an agent on a pack's practice tasks: pass@1, words, near-misses."""
    from bylaw.align.desk import open_agent
    from bylaw.align.evaluation import perform

    played = open_agent(agent, model, pack)
    lines, summary = perform(played, pack, part, policy, limit=limit, watch=_say)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / f"{name}.jsonl").write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
        (out / f"{name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(summary), indent=1) + b"\n")
    print(msgspec.json.format(msgspec.json.encode(summary), indent=1).decode())
    return 0


def _say(turn: int, live: int) -> None:
    click.echo(f"turn {turn}: {live} conversations", err=True)
