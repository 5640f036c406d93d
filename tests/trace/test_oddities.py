"""Whatever is wrong with a record, reading goes on and never ends in an exception of another kind."""

import contextlib
import gzip
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from bylaw.errors import BylawError, RecordError
from bylaw.trace import Trajectory, read
from tests.examples import examples

FOLDER = Path(__file__).parents[1] / "fixtures" / "traces"
CHAT = [
    {"role": "system", "content": "s"},
    {"role": "user", "content": [{"type": "text", "text": "hi"}]},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "a", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "1", "content": "{}"},
]
TAU2 = [{**CHAT[2], "tool_calls": [{"id": "1", "name": "a", "arguments": {}, "requestor": "assistant"}]}]
DOJO = [{"role": "assistant", "content": None, "tool_calls": [{"function": "a", "args": {}, "id": "1"}]}]


def documents() -> dict[str, list[Any]]:
    """A few records of every format."""
    found: dict[str, list[Any]] = {
        "openai": [{"messages": CHAT, "id": "a", "tools": [{"function": {"name": "a"}}]}] * 2,
        "tau1": [[{"task_id": 1, "trial": 0, "reward": 1.0, "traj": CHAT}] * 2],
        "tau2": [
            {"info": {"agent_info": {"llm": "x"}}, "tasks": [], "simulations": [{"id": "a", "messages": TAU2}] * 2}
        ],
        "agentdojo": [{"suite_name": "s", "user_task_id": "u", "messages": DOJO}] * 2,
        "langfuse": [
            {
                "id": "g",
                "traceId": "t",
                "type": "GENERATION",
                "startTime": "2025-01-01",
                "input": CHAT,
                "output": CHAT[2],
            },
            {
                "id": "u",
                "traceId": "t",
                "type": "TOOL",
                "name": "a",
                "input": {},
                "output": "x",
                "parentObservationId": "g",
            },
        ],
    }
    for path in FOLDER.iterdir():
        data = path.read_bytes()
        if path.suffix == ".gz":
            data = gzip.decompress(data)
        if path.suffix != ".eval":
            found[path.name] = (
                [json.loads(line) for line in data.splitlines()] if b"\n{" in data.strip() else [json.loads(data)]
            )
    return found


DOCUMENTS = documents()
oddities = some.sampled_from(
    [None, 0, -1.5, "", "x", "{", "[]", '{"a": 1}', True, [], [None], [1], {}, {"type": "text"}, {"a": []}]
)


def spoil(value: Any, data: Any) -> Any:
    """`value` with something somewhere in it replaced or taken away."""
    if isinstance(value, dict) and value and data.draw(some.integers(0, 9)):
        key = data.draw(some.sampled_from(sorted(value)))
        if not data.draw(some.integers(0, 9)):
            return {name: each for name, each in value.items() if name != key}
        return {**value, key: spoil(value[key], data)}
    if isinstance(value, list) and value and data.draw(some.integers(0, 9)):
        at = data.draw(some.integers(0, len(value) - 1))
        return [*value[:at], spoil(value[at], data), *value[at + 1 :]]
    if isinstance(value, str) and value[:1] in ("[", "{") and data.draw(some.booleans()):
        try:
            return json.dumps(spoil(json.loads(value), data))
        except ValueError:
            pass
    return data.draw(oddities)


@examples(100)
@given(some.sampled_from(sorted(DOCUMENTS)), some.data())
def test_no_oddity_stops_the_reading(tmp_path_factory, name, data):
    records = list(DOCUMENTS[name])
    for _ in range(data.draw(some.integers(1, 3))):
        at = data.draw(some.integers(0, len(records) - 1))
        records[at] = spoil(records[at], data)
    path = tmp_path_factory.mktemp("odd") / "x"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    try:
        for each in read(path):
            assert isinstance(each, Trajectory | RecordError)
    except BylawError:
        pass


@examples(60)
@given(some.sampled_from(sorted(DOCUMENTS)), some.data(), some.booleans())
def test_no_damaged_byte_stops_the_reading(tmp_path_factory, name, data, packed):
    content = bytearray("".join(json.dumps(record) + "\n" for record in DOCUMENTS[name]).encode())
    if packed:
        content = bytearray(gzip.compress(content))
    for _ in range(data.draw(some.integers(1, 3))):
        content[data.draw(some.integers(0, len(content) - 1))] = data.draw(some.integers(0, 255))
    path = tmp_path_factory.mktemp("odd") / "x"
    path.write_bytes(content[: data.draw(some.integers(len(content) // 2, len(content)))])
    try:
        for each in read(path):
            assert isinstance(each, Trajectory | RecordError)
    except BylawError:
        pass


@pytest.mark.parametrize("at", range(0, 10_000, 400))
def test_a_damaged_zip_is_reported(tmp_path, at):
    content = bytearray((FOLDER / "inspect-deflate.eval").read_bytes())
    content[at : at + 8] = b"\xff" * 8
    path = tmp_path / "x.eval"
    path.write_bytes(content)
    with contextlib.suppress(BylawError):
        list(read(path))


def test_an_eval_log_with_one_bad_sample_keeps_the_others(tmp_path):
    good = zipfile.ZipFile(FOLDER / "inspect-deflate.eval").read("samples/conv-1_epoch_1.json")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("samples/a_epoch_1.json", b"{")
        archive.writestr("samples/b_epoch_1.json", good)
    path = tmp_path / "x.eval"
    path.write_bytes(buffer.getvalue())
    assert [type(each) for each in read(path)] == [RecordError, Trajectory]


def test_a_gzip_with_a_wrong_checksum_gives_all_it_holds_and_says_that_it_is_damaged(tmp_path: Path) -> None:
    for count in (1, 5_000):
        lines = b"".join(b'{"id": "%d", "messages": [], "pad": "%d"}\n' % (n, n * 7919) for n in range(count))
        packed = bytearray(gzip.compress(lines))
        packed[-8] ^= 1
        path = tmp_path / "logs.jsonl.gz"
        path.write_bytes(packed)
        *found, last = read(path)
        assert len(found) == count
        assert isinstance(last, RecordError)
        assert "damaged: " in str(last)
        assert "data check" in str(last)


def test_a_gzip_damaged_from_the_start_is_not_called_empty(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(b'{"messages": []}\n'))
    packed[10] ^= 0xFF
    path = tmp_path / "logs.jsonl.gz"
    path.write_bytes(packed)
    with pytest.raises(BylawError, match="damaged: "):
        list(read(path))


@pytest.mark.parametrize(
    "end", ['{"id": "b", "messages": [{"role": "user", "content": "cut o', '{"id": "b", "mess', "{"]
)
def test_a_last_line_that_breaks_off_is_said_to_look_cut_off(tmp_path: Path, end: str) -> None:
    for last_byte in ("", "\n"):
        path = tmp_path / "logs.jsonl"
        path.write_text('{"id": "a", "messages": []}\n' + end + last_byte)
        _, fault = read(path)
        assert str(fault) == f"{path}:2: not JSON: it seems to be cut off; export the conversation again"


def test_a_line_that_is_wrong_in_the_middle_is_not_said_to_look_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "logs.jsonl"
    path.write_text('{"id": "a", "messages": []}\n{"id": b, "messages": []}\n')
    _, fault = read(path)
    assert "cut off" not in str(fault)
