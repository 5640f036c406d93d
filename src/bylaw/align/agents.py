"""From what a user names to an agent: an OpenAI-compatible endpoint, a local checkpoint, or a script."""

from importlib import import_module
from pathlib import Path
from typing import Any, cast, get_args

from bylaw.align.rollout import Agent
from bylaw.align.scripted import Script, Scripted
from bylaw.errors import UsageError


def open_agent(said: str, model: str = "") -> Agent:
    """`https://...` with a model's name, a folder with a checkpoint, or the name of a script."""
    if said in get_args(Script):
        return Scripted(cast(Script, said))
    if Path(said).is_dir():
        try:
            opened: Any = import_module("bylaw.align.training.checkpoint")
        except ModuleNotFoundError as error:
            raise UsageError(f"a checkpoint needs `{error.name}`", hint="install `bylaw[train]`") from None
        return opened.open_checkpoint(Path(said))
    hint = f"a folder, or one of {', '.join(get_args(Script))}"
    raise UsageError(f"`{said}` is no agent", hint=hint)
