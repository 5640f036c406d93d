"""The compiler's prompts."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bylaw.llm import Request
from bylaw.llm.prompt import render as render_file

_FOLDER = Path(__file__).parent / "prompts"


def prompt_text(name: str) -> str:
    """A part of a prompt that only some requests need."""
    return (_FOLDER / f"{name}.md").read_text(encoding="utf-8").strip()


def render(
    name: str,
    given: Mapping[str, str],
    *,
    schema: dict[str, Any] | None = None,
    attempt: int = 1,
    max_tokens: int = 4096,
) -> Request:
    """The request that a prompt makes with these values."""
    return render_file(_FOLDER, name, given, schema=schema, attempt=attempt, max_tokens=max_tokens)
