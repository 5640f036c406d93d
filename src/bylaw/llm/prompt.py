"""Prompts are files: instructions, a line of `=`, then the question with `{{names}}` to fill in."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from bylaw.llm.chat import ModelMessage, Request

_NAME = re.compile(r"\{\{(\w+)\}\}")


@cache
def _parts(folder: Path, name: str) -> tuple[str, str]:
    instructions, _, question = (folder / f"{name}.md").read_text(encoding="utf-8").partition("\n======\n")
    return _included(folder, instructions).strip(), question.strip()


def _included(folder: Path, text: str) -> str:
    """`{{include: name}}` on a line of its own is another file."""
    return re.sub(
        r"^\{\{include: (\w+)\}\}$",
        lambda match: (folder / f"{match[1]}.md").read_text(encoding="utf-8").strip(),
        text,
        flags=re.MULTILINE,
    )


def render(
    folder: Path,
    name: str,
    given: Mapping[str, str],
    *,
    schema: dict[str, Any] | None = None,
    attempt: int = 1,
    max_tokens: int = 4096,
) -> Request:
    """The request that a prompt of a folder makes with these values."""
    instructions, question = _parts(folder, name)
    filled = _NAME.sub(lambda match: given[match[1]], question)
    messages = (ModelMessage("system", instructions), ModelMessage("user", filled))
    return Request(messages, schema=schema, name=name, attempt=attempt, max_tokens=max_tokens)
