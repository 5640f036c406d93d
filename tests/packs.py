"""Packs that many tests ask for, each made once: nothing in a pack changes."""

from collections.abc import Mapping
from functools import cache

from bylaw.pack import Pack


def made(files: Mapping[str, str]) -> Pack:
    """The pack of these texts."""
    return _made(tuple(files.items()))


@cache
def _made(files: tuple[tuple[str, str], ...]) -> Pack:
    return Pack.from_files(dict(files))
