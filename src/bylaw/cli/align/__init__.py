"""`bylaw align`: from recorded conversations to a model that recalls the right policy. Each command is its own file."""

import importlib

import click

COMMANDS = {
    "thoughts": "What to think before each turn, from the guards or from a model.",
    "data": "Build the three stages' sets, with a data card.",
    "score": "Score turns by the paper's rewards, as JSON lines on stdin.",
    "train": "Train one of the three stages.",
    "eval": "Play tasks with an agent: pass@1, words, near-misses.",
}
"""Each is `NAME_command` in the module of its name, imported when it is asked for."""


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            raise click.NoSuchCommand(cmd_name, possibilities=COMMANDS, ctx=ctx)
        return getattr(importlib.import_module(f"bylaw.cli.align.{cmd_name}"), f"{cmd_name}_command")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command("align", cls=_Commands)
def align_command() -> None:
    """Teach a model to recall the right policy, and measure it."""
