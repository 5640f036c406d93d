"""A choice among words of ours, however they are joined: `near-miss` is `near_miss`."""

from typing import Any

import click

from bylaw.errors import UsageError


def once(ctx: click.Context, param: click.Parameter, value: tuple[Any, ...]) -> Any:
    """An option that may be given once: of two, one would be taken without a word."""
    if len(value) > 1:
        raise UsageError(f"{param.opts[0]} was given {len(value)} times", hint="give it once")
    return value[0] if value else None


class Word(click.Choice[str]):
    """A choice that takes a hyphen for an underscore."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The word as it stands in our files."""
        return super().convert(value.replace("-", "_"), param, ctx)
