"""A log of requests has all messages so far on every line: of one conversation the last line counts."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bylaw.trace import read
from bylaw.trace.document import Record
from bylaw.trace.event import Trajectory
from bylaw.trace.readers import openai

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


def test_lines_of_other_conversations_may_stand_between(tmp_path: Path):
    lines = [
        line("a", 1),
        line("b", 1),
        line("c", 3),
        line("a", 2),
        line("", 1),
        line("b", 3),
        line("a", 4),
        line("d", 1),
    ]
    assert found(tmp_path, *lines) == [("c", 3), ("log.jsonl#4", 1), ("b", 3), ("a", 4), ("d", 1)]
    assert found(tmp_path, *lines, share=(1, 2)) == [("log.jsonl#4", 1), ("a", 4)]


@pytest.mark.parametrize(
    "keys", [("time", "id", "messages"), ("id", "messages", "tags"), ("messages", "id"), ("id", "time", "messages")]
)
def test_whatever_the_keys_and_their_order(tmp_path: Path, keys: tuple[str, ...]):
    def told(id: str, count: int) -> dict[str, Any]:
        fields: dict[str, Any] = {"time": count, "tags": ["prod", str(count)], **line(id, count)}
        return {name: fields[name] for name in keys}

    lines = [told("a", 1), told("b", 1), told("a", 2), told("a", 3), told("b", 4)]
    assert found(tmp_path, *lines) == [("a", 3), ("b", 4)]


@pytest.mark.parametrize("name", ["context", "agent"])
def test_another_person_or_agent_has_a_conversation_of_their_own(tmp_path: Path, name: str):
    one, other = ({name: {"principal": who} if name == "context" else who} for who in ("ann", "ben"))
    assert len(found(tmp_path, line("a", 1, **one), line("a", 2, **other))) == 2
    assert len(found(tmp_path, line("a", 1, **one), line("a", 2, **one))) == 1


def test_only_so_many_records_are_kept_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    given = [Record(json.dumps(line(f"c{number % 50}", 1 + number // 50)).encode(), number) for number in range(200)]
    taken: list[int] = []

    def pieces() -> Iterator[Record]:
        for each in given:
            taken.append(each.index)
            yield each

    monkeypatch.setattr(openai, "MOST", 20)
    told: list[int] = []
    for each in openai.without_beginnings(pieces()):
        assert isinstance(each, Record)
        told.append(each.index)
        assert len(taken) - len(told) <= 21
    # None is lost, whether or not it could be told to be the beginning of another.
    assert told == list(range(200))
    monkeypatch.setattr(openai, "MOST", 60)
    assert [each.index for each in openai.without_beginnings(iter(given)) if isinstance(each, Record)] == list(
        range(150, 200)
    )
    monkeypatch.setattr(openai, "MOST_BYTES", 100)
    assert len(list(openai.without_beginnings(iter(given)))) == 200
