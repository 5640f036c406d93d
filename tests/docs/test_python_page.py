"""Every example in Python of a page runs, in order, and prints what stands under it."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

from tests.suite import Demo

from .walkthrough import ROOT, walk

_BLOCK = re.compile(r"^```(python run|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def examples_of(page: Path) -> int:
    """Run the examples of a page; how many printed what it shows."""
    scope: dict[str, Any] = {}
    shown, examples = "", 0
    text = re.sub(r"^<!-- file: [^\n]*\n```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for kind, body in _BLOCK.findall(text):
        if kind == "text":
            assert body == shown
            examples += 1
        else:
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(body, str(page), "exec"), scope)
            shown = output.getvalue()
    return examples


def test_every_example_prints_what_the_page_shows() -> None:
    assert examples_of(ROOT / "docs" / "reference" / "python.md") >= 8


@pytest.mark.parametrize(("guide", "examples"), [("cards", 6), ("actions", 1)])
def test_a_guide_prints_what_it_shows(
    guide: str, examples: int, tmp_path: Path, demo: Demo, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = ROOT / "docs" / "guides" / f"{guide}.md"
    walk(page, tmp_path, demo)
    monkeypatch.chdir(tmp_path)
    assert examples_of(page) == examples
