"""Recorded answers contain positions in the requests, and none of their words."""

from pathlib import Path

import pytest

from bylaw.engine.request import Allowance, Deed, Span
from bylaw.errors import UsageError
from bylaw_lab.bench.recorded import read_allowances, read_meanings, write_allowances, write_meanings


def test_answers_are_read_as_they_were_written(tmp_path: Path):
    allowances = {"a": Allowance((Deed("pay", (Span(0, 3),)),), faults=("`plumber` is no tool",))}
    write_allowances(tmp_path / "requests.jsonl", allowances)
    assert "plumber" not in (tmp_path / "requests.jsonl").read_text()
    assert read_allowances(tmp_path / "requests.jsonl")["a"].deeds == allowances["a"].deeds
    write_meanings(tmp_path / "calls.jsonl", {"a": {"account": True}})
    assert read_meanings(tmp_path / "calls.jsonl") == {"a": {"account": True}}


def test_a_damaged_line_is_an_error_with_its_place(tmp_path: Path):
    file = tmp_path / "kept.jsonl"
    file.write_text('{"key": "a"}\n')
    with pytest.raises(UsageError, match="not an allowance") as caught:
        read_allowances(file)
    assert caught.value.place == f"{file}:1"
