"""A log of requests has all messages so far on every line: of one conversation the last line counts."""

import json
from pathlib import Path
from typing import Any

import pytest

from bylaw.trace import read
from bylaw.trace.trajectory import Trajectory

SAID = [{"role": "user", "content": f"part {number}"} for number in range(4)]


def line(id: str, count: int, **more: Any) -> dict[str, Any]:
    return {**({"id": id} if id else {}), "messages": SAID[:count], **more}


def found(tmp_path: Path, *lines: dict[str, Any], share: tuple[int, int] = (0, 1)) -> list[tuple[str, int]]:
    file = tmp_path / "log.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in lines))
    each = list(read(file, share=share))
    return [(one.id, len(one.events)) for one in each if isinstance(one, Trajectory)]


@pytest.mark.parametrize("more", [{}, {"model": "m", "usage": 7}])
def test_only_the_last_of_lines_that_grow_is_a_conversation(tmp_path: Path, more: dict[str, Any]):
    lines = [line("a", 1, **more), line("a", 2, **more), line("a", 4, **more), line("b", 1), line("b", 3), line("c", 2)]
    assert found(tmp_path, *lines) == [("a", 4), ("b", 3), ("c", 2)]


def test_workers_share_the_conversations_that_are_left(tmp_path: Path):
    lines = [line("a", 1), line("a", 2), line("b", 1), line("b", 2), line("c", 2)]
    assert found(tmp_path, *lines, share=(0, 2)) == [("a", 2), ("c", 2)]
    assert found(tmp_path, *lines, share=(1, 2)) == [("b", 2)]


@pytest.mark.parametrize(
    "second",
    [
        pytest.param({"id": "b", "messages": SAID[:2]}, id="another id"),
        pytest.param({"id": "a", "messages": SAID[1:3]}, id="other messages"),
        pytest.param({"id": "a", "messages": SAID[:1]}, id="no more messages"),
        pytest.param({"id": "a", "messages": [{"role": "user", "content": "part 0, and more"}]}, id="a longer message"),
    ],
)
def test_what_does_not_go_on_is_a_conversation_of_its_own(tmp_path: Path, second: dict[str, Any]):
    assert len(found(tmp_path, line("a", 1), second)) == 2


def test_lines_without_an_id_are_conversations_of_their_own(tmp_path: Path):
    assert len(found(tmp_path, line("", 1), line("", 2))) == 2
