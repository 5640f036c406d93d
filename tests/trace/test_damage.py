"""Of a damaged file everything that can be read is read, and the rest is named."""

import bz2
import gzip
import json
import tracemalloc
import zlib

import pytest

from bylaw.errors import RecordError
from bylaw.trace import Trajectory, read
from bylaw.trace import source as sources

CUT = "not JSON: it seems to be cut off; export the conversation again"


def talk(name: str) -> str:
    return json.dumps({"id": name, "messages": [{"role": "user", "content": f"}}{{ ][ {name}"}]})


def found_in(tmp_path, content: str, name: str = "x.json") -> list[str]:
    path = tmp_path / name
    path.write_text(content)
    return [each.id if isinstance(each, Trajectory) else f"! {each.message}" for each in read(path)]


@pytest.mark.parametrize(
    ("content", "want"),
    [
        (f"[{talk('a')}] [{talk('b')}]", ["a", "b"]),
        (f"[{talk('a')}]\n[{talk('b')}]\n", ["a", "b"]),
        (f"[{talk('a')}, {talk('b')}]\n[{talk('c')}]\n[{talk('d')}]", ["a", "b", "c", "d"]),
        (f"[{talk('a')}]{talk('b')}", ["a", "b"]),
        (f"{talk('a')}{talk('b')}", ["a", "b"]),
        (f"{talk('a')}{talk('b')}\n{talk('c')}\n", ["a", "b", "c"]),
        (f"{talk('a')} and more\n{talk('b')}\n", ["a", "! text outside any record: `and more`", "b"]),
        (f"[{talk('a')}] and more", ["a", "! text outside any record: `and more`"]),
        (f"[{talk('a')}, 5, {talk('b')}]", ["a", "! expected `object`, got `int`", "b"]),
        (f"[5, {talk('a')}]", ["! expected `object`, got `int`", "a"]),
        (
            f'[{talk("a")}, "x", {talk("b")}] [null]',
            ["a", '! text outside any record: `"x"`', "b", "! text outside any record: `null`"],
        ),
        (
            f"[{talk('a')}, {talk('b')[:20]}",
            ["a", f"! {CUT}"],
        ),
        (
            f"[{talk('a')}]\n[{talk('b')[:20]}",
            ["a", f"! {CUT}"],
        ),
    ],
)
def test_what_follows_a_document_or_stands_between_its_records_is_read_or_named(tmp_path, content, want):
    assert found_in(tmp_path, content) == want


def test_a_scalar_in_the_one_conversation_of_a_file_is_named_and_the_rest_read(tmp_path):
    path = tmp_path / "x.json"
    path.write_text('[{"role": "user", "content": "hi"}, 5, {"role": "assistant", "content": "hello"}]')
    found, fault = read(path)
    assert [event.text for event in found.events] == ["hi", "hello"]
    assert "5" in str(fault)


def test_two_results_of_tau2_in_one_file_are_both_read(tmp_path):
    def results(name: str) -> str:
        info = {"agent_info": {"llm": name}}
        return json.dumps({"info": info, "simulations": [{"id": name, "messages": [{"role": "user", "content": "x"}]}]})

    for joint in ("", "\n", " "):
        path = tmp_path / "x.json"
        path.write_text(results("a") + joint + results("b"))
        assert [(each.id, each.agent) for each in read(path)] == [("a", "a"), ("b", "b")]
        path.write_text(results("a") + joint + "tail")
        first, fault = read(path)
        assert first.id == "a"
        assert isinstance(fault, RecordError)


def test_a_damaged_simulation_is_named_once(tmp_path):
    path = tmp_path / "x.json"
    path.write_text('{"info": {}, "simulations": [{"id": "a", "messages": []}, {"id": }, {"id": "c", "messages": []}]}')
    assert [type(each) for each in read(path)] == [Trajectory, RecordError, Trajectory]


def test_a_time_beyond_all_times_is_one_bad_span(tmp_path):
    def request(trace: str, start: object) -> str:
        said = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "hi"}]}])
        attributes = [
            {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
            {"key": "gen_ai.input.messages", "value": {"stringValue": said}},
        ]
        span = {"traceId": trace, "spanId": trace, "name": "chat", "startTimeUnixNano": start, "attributes": attributes}
        return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})

    for time in (10**400, -1, "nan", "inf", str(10**30)):
        path = tmp_path / "x.jsonl"
        path.write_text(request("a", time) + "\n" + request("b", "1740000000000000000") + "\n")
        fault, found = read(path)
        assert isinstance(fault, RecordError)
        assert "span `a`" in str(fault)
        assert found.id == "b"


def test_a_line_beyond_the_limit_is_named_and_its_neighbours_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "LONGEST_LINE", 4096)
    path = tmp_path / "x.jsonl"
    path.write_text(f"{talk('a')}\n{talk('b' * 5000)}\n{talk('c')}\n")
    first, fault, last = read(path)
    assert (first.id, last.id) == ("a", "c")
    assert str(fault).startswith(f"{path}:2: longer than")


@pytest.mark.parametrize("start", ["[", ""])
def test_a_gzip_bomb_is_named_takes_little_memory_and_costs_no_neighbour(tmp_path, monkeypatch, start):
    monkeypatch.setattr(sources, "LONGEST_LINE", 1 << 20)
    monkeypatch.setattr(sources, "LARGEST_UNPACKED", 1 << 20)
    path = tmp_path / "x.json.gz"
    pack = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    pieces = [pack.compress(f"{start}{talk('a')}{',' if start else ''}\n".encode() + b'{"id": "')]
    pieces += [pack.compress(b"x" * (1 << 20)) for _ in range(64)]
    pieces += [
        pack.compress(b'"}\n' if not start else b'"}]'),
        pack.compress(b"" if start else f"{talk('c')}\n".encode()),
    ]
    path.write_bytes(b"".join([*pieces, pack.flush()]))
    assert path.stat().st_size < 1 << 20
    tracemalloc.start()
    found = list(read(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 40 << 20
    assert found[0].id == "a"
    assert "than" in str(found[1])
    assert "MiB" in str(found[1])
    assert [each.id for each in found[2:]] == ([] if start else ["c"])


def test_lines_of_packed_logs_are_not_limited_by_how_well_they_pack(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "LARGEST_UNPACKED", 1 << 10)
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress((talk("a") + "\n").encode() * 5000))
    assert sum(isinstance(each, Trajectory) for each in read(path)) == 5000


def test_a_log_packed_with_bzip2_is_read_and_one_that_is_cut_off_or_damaged_is_named(tmp_path):
    path = tmp_path / "x.jsonl.bz2"
    packed = bz2.compress((talk("a") + "\n").encode()) + bz2.compress((talk("b") + "\n").encode())
    path.write_bytes(packed)
    assert [(each.id, each.agent) for each in read(path)] == [("a", "x"), ("b", "x")]
    path.write_bytes(packed[:-8])
    *found, fault = read(path)
    assert [each.id for each in found] == ["a", "b"]
    assert fault.message == "truncated: the bzip2 stream ends before its end marker"
    damaged = bytearray(packed)
    damaged[-20] ^= 1
    path.write_bytes(damaged)
    first, fault = read(path)
    assert first.id == "a"
    assert fault.message.startswith("damaged: bzip2: ")


@pytest.mark.parametrize("role", ["system", "developer", "tool", "function"])
def test_calls_of_a_message_that_makes_none_are_not_lost_silently(tmp_path, role: str) -> None:
    calls = [{"id": "1", "type": "function", "function": {"name": "refund", "arguments": "{}"}}]
    said = {"role": role, "content": "x", "tool_calls": calls, "tool_call_id": "0"}
    log = json.dumps({"id": "a", "messages": [{"role": "user", "content": "Refund it."}, said]})
    assert found_in(tmp_path, f"{log}\n{talk('b')}\n") == [
        f"! message 1 has tool calls, but its role is `{role}`",
        "b",
    ]
