"""The reference page says what is so."""

import io
import json
import re
from pathlib import Path

import pytest

from bylaw.rule.lines import margin_lines

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "circuits.md").read_text()


def test_the_pages_python_runs(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(code, "circuits.md", "exec"), {})
    first, second, third = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"ask 0\.\d+ \(-0\.76159\d+, 0\.0\) manager", first)
    assert 0.4 < float(second) < 0.5
    assert third == "allow"


def test_the_pages_line_gives_the_pages_answer():
    question, answer = (json.loads(line) for line in re.findall(r"^    (\{.*\})$", PAGE, re.MULTILINE))
    out = io.BytesIO()
    assert margin_lines(io.BytesIO(json.dumps(question).encode()), out) == 0
    reply = json.loads(out.getvalue())
    assert reply.keys() == answer.keys()
    for key in ("p_action", "margin", "interval"):
        assert reply[key] == pytest.approx(answer[key], abs=1e-3)
    assert (reply["safe"], reply["decision"]) == (answer["safe"], answer["decision"])
