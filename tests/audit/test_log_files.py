"""Logs wherever they lie and however they are packed: patterns, folders, Parquet, gzip, zstd, URLs."""

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from bylaw.cli.logs import open_logs
from bylaw.errors import FormatError, RecordError, UsageError
from bylaw.trace import Trajectory, read
from bylaw.trace.source import Columns, RemoteFile, log_file
from tests.audit.logs import CAREFUL, HASTY, WRONG, Shop, record
from tests.audit.sharded import LINES, sharded

TALKS = [record(*parts, id=f"t{number}", agent="ann") for number, parts in enumerate((CAREFUL, HASTY, WRONG) * 5)]
LINED = "".join(json.dumps(talk) + "\n" for talk in TALKS).encode()


def events(file: Any, **options: Any) -> list[tuple[str, str, Any]]:
    found = list(read(file, **options))
    assert not [each for each in found if isinstance(each, RecordError)], found
    return [(each.id, each.agent, each.events) for each in found if isinstance(each, Trajectory)]


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    (tmp_path / "plain.jsonl").write_bytes(LINED)
    return tmp_path / "plain.jsonl"


def write_parquet(path: Path, rows: list[dict[str, Any]], group: int = 4) -> Path:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=group)
    return path


def test_parquet_with_messages_as_lists_reads_as_lines_do(tmp_path: Path, plain: Path) -> None:
    assert events(write_parquet(tmp_path / "t.parquet", TALKS)) == events(plain)


def test_parquet_with_messages_as_text_under_other_names(tmp_path: Path, plain: Path) -> None:
    rows = [{"key": talk["id"], "bot": "ann", "talk": json.dumps(talk["messages"]), "x": 1.5} for talk in TALKS]
    file = write_parquet(tmp_path / "t.parquet", rows)
    assert events(file, columns=Columns("talk", "key", "bot")) == events(plain)
    with pytest.raises(FormatError, match=r"no column of messages.*--messages-column.*`key`, `bot`, `talk`"):
        list(read(file))
    with pytest.raises(FormatError, match=r"no column `nope`"):
        list(read(file, columns=Columns("nope")))


def test_rows_without_messages_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    rows = [{"messages": json.dumps(TALKS[0]["messages"])}, {"messages": None}, {"messages": "{no"}]
    good, *bad = read(write_parquet(tmp_path / "t.parquet", rows))
    assert isinstance(good, Trajectory)
    assert good.id == "t.parquet#0"
    assert [fault.place.rpartition("/")[2] for fault in bad if isinstance(fault, RecordError)] == [
        "t.parquet#1",
        "t.parquet#2",
    ]


def test_a_damaged_parquet_file_is_told_in_a_line(tmp_path: Path) -> None:
    file = write_parquet(tmp_path / "t.parquet", TALKS)
    file.write_bytes(file.read_bytes()[:-30])
    with pytest.raises(FormatError, match="cannot read the Parquet file"):
        list(read(file))


def test_row_groups_are_shards(shop: Shop, plain: Path) -> None:
    file = write_parquet(shop.root / "plain.parquet", [{k: v for k, v in t.items() if k != "id"} for t in TALKS])
    few = sharded([file], str(shop.pack), shop.root / "few", size=1 << 30, world=shop.world).out
    many = sharded([file], str(shop.pack), shop.root / "many", size=1, world=shop.world).out
    for name in LINES:
        assert (few / name).read_bytes() == (many / name).read_bytes()
    assert b'"plain.parquet#13"' in (few / "calls.jsonl").read_bytes()


def zstd(data: bytes) -> bytes:
    return pytest.importorskip("zstandard").ZstdCompressor().compress(data)


@pytest.mark.parametrize("pack", [gzip.compress, zstd, lambda data: zstd(data[:900]) + zstd(data[900:])])
def test_packed_logs_read_as_plain_ones(tmp_path: Path, plain: Path, pack: Any) -> None:
    file = tmp_path / "plain.jsonl.zst"
    file.write_bytes(pack(LINED))
    assert events(file) == events(plain)


def test_what_stands_before_the_damage_of_a_zstd_file_is_read(tmp_path: Path) -> None:
    draw = random.Random(1)
    said = ["".join(draw.choices("abcdefgh", k=3000)) for _ in range(400)]
    packed = zstd("".join(json.dumps(record([{"role": "user", "content": each}])) + "\n" for each in said).encode())
    (tmp_path / "cut.jsonl.zst").write_bytes(packed[: len(packed) // 2])
    *before, last = read(tmp_path / "cut.jsonl.zst")
    assert 150 < sum(isinstance(each, Trajectory) for each in before) < 210
    assert "truncated: the zstd stream ends" in str(last)
    (tmp_path / "bad.jsonl.zst").write_bytes(zstd(LINED) + b"no zstd at all" * 9)
    found = list(read(tmp_path / "bad.jsonl.zst"))
    assert sum(isinstance(each, Trajectory) for each in found) == len(TALKS)
    assert [str(each) for each in found if isinstance(each, RecordError) and "damaged: zstd" in str(each)]


def test_a_zstd_bomb_takes_little_memory(tmp_path: Path) -> None:
    import resource

    file = tmp_path / "bomb.json.zst"
    file.write_bytes(zstd(b"[" + b" " * (1 << 29)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(FormatError):
        list(read(file))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 700 << 10


def test_patterns_folders_and_urls_name_the_same_files(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl.zst", "c.parquet", "notes.txt"):
        (tmp_path / name).write_bytes(b"")
    with open_logs([tmp_path / "*.jsonl*"]) as logs:
        assert [file.name for file in logs.files] == ["a.jsonl", "b.jsonl.zst"]
    with open_logs([tmp_path]) as logs:
        assert [file.name for file in logs.files] == ["a.jsonl", "b.jsonl.zst", "c.parquet"]
    with open_logs([log_file(f"file://{tmp_path}/?.jsonl*")]) as logs:
        assert [file.name for file in logs.files] == ["a.jsonl", "b.jsonl.zst"]
    with open_logs([log_file(f"file://{tmp_path}")]) as logs:
        assert [file.name for file in logs.files] == ["a.jsonl", "b.jsonl.zst", "c.parquet"]
    for missing in (tmp_path / "x*.jsonl", log_file(f"file://{tmp_path}/none.jsonl")):
        with pytest.raises(UsageError), open_logs([missing]):
            pass


@pytest.fixture
def memory() -> Any:
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    system.store.clear()
    yield system
    system.store.clear()


def test_logs_in_memory_are_cut_packed_and_audited_as_files_are(shop: Shop, plain: Path, memory: Any) -> None:
    rows = write_parquet(shop.root / "t.parquet", TALKS).read_bytes()
    local: list[Path] = []
    for name, data in (("a.jsonl", LINED), ("b.jsonl.gz", gzip.compress(LINED)), ("c.parquet", rows)):
        memory.pipe_file(f"/logs/{name}", data)
        (shop.root / name).write_bytes(data)
        local.append(shop.root / name)
    with open_logs([RemoteFile("memory://logs")]) as logs:
        remote: Any = list(logs.files)
    assert [str(file) for file in remote] == [
        "memory:///logs/a.jsonl",
        "memory:///logs/b.jsonl.gz",
        "memory:///logs/c.parquet",
    ]
    got = sharded(remote, str(shop.pack), shop.root / "remote", size=1500, world=shop.world).out
    want = sharded(local, str(shop.pack), shop.root / "local", size=1500, world=shop.world).out
    for name in LINES:
        assert (got / name).read_bytes() == (want / name).read_bytes()


def test_what_a_storage_raises_is_told_in_a_line(memory: Any) -> None:
    with pytest.raises(UsageError, match="cannot read"), open_logs([log_file("memory://none.jsonl")]):
        pass
    with pytest.raises(UsageError, match="unsupported storage"), open_logs([log_file("nosuch://a/b.jsonl")]):
        pass
