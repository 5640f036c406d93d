"""Command groups that keep the order of their commands and show their help without importing any command."""

import importlib
from collections.abc import Mapping
from typing import Any

import click

HELP_NAMES = ["-h", "--help"]


class InOrder(click.Group):
    """A group whose commands are all in one file."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return _plain(super().get_command(ctx, cmd_name))


class OneFileEach(click.Group):
    """A group that imports a command on first use.

    The command NAME is the function `NAME_command` in the module NAME.
    """

    def __init__(self, *arguments: Any, package: str, groups: Mapping[str, Mapping[str, str]], **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._package = package
        self._groups = groups
        self._summaries = {name: text for group in groups.values() for name, text in group.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._summaries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._summaries:
            raise click.NoSuchCommand(cmd_name, possibilities=self._summaries, ctx=ctx)
        return _plain(getattr(importlib.import_module(f"{self._package}.{cmd_name}"), f"{cmd_name}_command"))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, self._summaries))
        for title, group in self._groups.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), text) for name, text in group.items()])


def _plain(command: click.Command | None) -> click.Command | None:
    """Remove `[default: ]` from the help of options whose default is empty."""
    for option in command.params if command is not None else ():
        if isinstance(option, click.Option) and option.default in ("", 0) and not option.is_flag:
            option.show_default = False
    return command
