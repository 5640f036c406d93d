"""What several commands take, declared once."""

import re
from pathlib import Path
from typing import Annotated, Any

import click

from bylaw.errors import UsageError


class Word(click.Choice[str]):
    """A choice among words of ours, however they are joined: `near-miss` is `near_miss`."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return super().convert(value.replace("-", "_"), param, ctx)


def _once(ctx: click.Context, param: click.Parameter, value: tuple[Any, ...]) -> Any:
    """An option that may be given once: of two, one would be taken without a word."""
    if len(value) > 1:
        raise UsageError(f"{param.opts[0]} was given {len(value)} times", hint="give it once")
    return value[0] if value else None


def pack_name(out: Path) -> str:
    """What a pack is called after its folder."""
    return re.sub(r"[^a-z0-9]+", "-", out.resolve().name.lower()).strip("-") or "pack"


File = Annotated[Path | None, "FILE"]
GivenFile = Annotated[File, click.Path(path_type=Path, exists=True, dir_okay=False)]
Folder = Annotated[Path | None, "DIR"]
Name = Annotated[str, "NAME"]
Count = Annotated[int, "N", click.IntRange(min=1)]
Port = Annotated[int, click.IntRange(0, 65535), "Port to listen on; 0 takes a free one."]
Json = Annotated[bool, "--json", "Print JSON."]
Audited = Annotated[Path, "The folder an audit wrote."]
PackOption = Annotated[str, "--pack PACK", "A pack's folder, or the name of one that comes with Bylaw."]
PackArgument = Annotated[str, "A pack's folder, or the name of one that comes with Bylaw."]
DocumentOption = Annotated[
    File, "The policy document, where the pack only names it.", {"callback": _once, "multiple": True}
]
EarlierPacks = Annotated[tuple[str, ...], "--earlier PACK", "An older version that open conversations may still use."]
