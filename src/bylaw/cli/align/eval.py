"""`bylaw align eval`: evaluate an agent, with or without the policy in its prompt."""

from typing import Annotated, Any

import click
import msgspec

from bylaw.cli.command import Count, Folder, Name, command


@command("eval")
def eval_command(
    *,
    agent: Annotated[str, "--agent URL|DIR|SCRIPT", "An endpoint, a checkpoint, or a script from the practice tasks."],
    model: Annotated[Name, "Name of the model at the endpoint."] = "",
    policy: Annotated[Any, click.Choice(["context", "none"]), "Where the agent gets the policy."] = "none",
    pack: Annotated[str, "--pack PACK", "The pack with the practice tasks."] = "clinic",
    part: Annotated[str, "--part PART", "The tasks to run: development or test."] = "development",
    limit: Annotated[Count | None, "Run only the first N tasks."] = None,
    out: Annotated[Folder, "Folder for a file with a line per task."] = None,
    name: Annotated[Name, "Name of the files in it."] = "eval",
) -> int:
    """Evaluate an agent on practice tasks: pass@1, near-misses."""
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
