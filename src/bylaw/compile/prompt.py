"""The compiler's prompts."""

from functools import partial
from pathlib import Path

from bylaw.llm.prompt import render as render_file

_FOLDER = Path(__file__).parent / "prompts"

render = partial(render_file, _FOLDER)
"""The request that a prompt makes with the values given."""


def prompt_text(name: str) -> str:
    """A part of a prompt that only some requests need."""
    return (_FOLDER / f"{name}.md").read_text(encoding="utf-8").strip()
