"""Every example of docs/reference/python.md runs, in order, and prints what stands under it."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "python.md"
_BLOCK = re.compile(r"^```(python run|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_example_prints_what_the_page_shows() -> None:
    scope: dict[str, Any] = {}
    shown, examples = "", 0
    for kind, body in _BLOCK.findall(PAGE.read_text()):
        if kind == "text":
            assert body == shown
            examples += 1
        else:
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(body, str(PAGE), "exec"), scope)
            shown = output.getvalue()
    assert examples >= 8
