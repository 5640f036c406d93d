"""A choice among words of ours, however they are joined: `near-miss` is `near_miss`."""

import click


class Word(click.Choice[str]):
    """A choice that takes a hyphen for an underscore."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The word as it stands in our files."""
        return super().convert(value.replace("-", "_"), param, ctx)
