"""A file read in shards gives what it gives as a whole, wherever it is cut."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bylaw.audit.batch.shard import cut
from bylaw.trace import read
from bylaw.trace.reader import read_source
from bylaw.trace.source import Source
from tests.audit.logs import CAREFUL, HASTY, WRONG, record

TALKS = [json.dumps(record(*parts)).encode() for parts in (CAREFUL, HASTY, WRONG) * 4]
"""Without ids: each is named by where it stands, which a shard must know."""
NEXT = b",\n"
FILES = {
    "lines.jsonl": b"\n".join(TALKS),
    "odd.jsonl": b"\xef\xbb\xbf"
    + b"\n".join(
        [*TALKS[:3], b"", b"  ", b"[%s, %s]" % (TALKS[3], TALKS[4]), TALKS[5] + TALKS[6], b"{bad", b"x", *TALKS]
    )
    + b"\n\n",
    "list.json": b"\xef\xbb\xbf[\n" + NEXT.join(TALKS) + b"]\n",
    "lists.json": json.dumps([json.loads(talk)["messages"] for talk in TALKS]).encode(),
    "brackets.json": json.dumps([record([{"role": "user", "content": '][}{ \\" ]' * 9}]) for _ in range(30)]).encode(),
    "damaged.json": b"[" + NEXT.join([*TALKS[:5], b'{"messages": [}', *TALKS[5:]]) + b"]",
    "cut.json": (b"[" + NEXT.join(TALKS))[:-20],
    "strays.json": b"[" + NEXT.join([*TALKS, b"null", b'"text"', b"3"]) + b"]",
    "two.json": b"[" + NEXT.join(TALKS[:5]) + b"][" + NEXT.join(TALKS[5:]) + b"]",
    "commas.json": b"[" + b" ".join(TALKS) + b"]",
    "one.json": TALKS[0],
    "empty.jsonl": b"",
}


def in_shards(file: Path, size: int) -> tuple[list[str], int]:
    source = Source(file)
    shards = list(cut([source], size, [file.name]))
    assert [shard.number for shard in shards] == list(range(len(shards)))
    assert len({shard.key for shard in shards}) == len(shards)
    found: list[str] = []
    for shard in shards:
        try:
            found += map(repr, read_source(Source(file, span=shard.span), shard.look))
        except Exception as error:
            found.append(repr(error))
    return found, len(shards)


def whole(file: Path) -> list[str]:
    try:
        return list(map(repr, read(file)))
    except Exception as error:
        return [repr(error)]


@pytest.mark.parametrize("size", [1, 700, 1500, 1 << 30])
@pytest.mark.parametrize("name", FILES)
def test_a_file_in_shards_reads_as_the_whole(tmp_path: Path, name: str, size: int) -> None:
    file = tmp_path / name
    file.write_bytes(FILES[name])
    assert in_shards(file, size)[0] == whole(file)


@pytest.mark.parametrize("name", ["lines.jsonl", "odd.jsonl", "list.json", "lists.json", "brackets.json"])
def test_large_files_are_cut(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_bytes(FILES[name])
    assert in_shards(file, 1000)[1] > 3


PIECES = st.lists(
    st.one_of(
        st.sampled_from(TALKS),
        st.sampled_from(
            [b"", b" ", b"{", b"}", b"[]", b"[[]]", b"null", b'"', b"\\", b'{"messages":[]}', b"{}{}", b"]["]
        ),
        st.text(max_size=8).map(lambda text: json.dumps(record([{"role": "user", "content": text}])).encode()),
    ),
    max_size=12,
)


@settings(max_examples=150, deadline=None)
@given(PIECES, st.sampled_from([b"\n", b",", b"\n,\n", b" "]), st.booleans(), st.integers(1, 4000))
def test_whatever_stands_in_a_file_is_read_alike(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], joint: bytes, in_list: bool, size: int
) -> None:
    data: Any = joint.join(pieces)
    file = tmp_path_factory.mktemp("any") / "any.json"
    file.write_bytes(b"[" + data + b"]" if in_list else data)
    assert in_shards(file, size)[0] == whole(file)


def test_a_shard_is_known_by_its_file_and_place(tmp_path: Path) -> None:
    file = tmp_path / "lines.jsonl"
    file.write_bytes(FILES["lines.jsonl"])
    before = [shard.key for shard in cut([Source(file)], 1000, ["a"])]
    assert [shard.key for shard in cut([Source(file)], 1000, ["a"])] == before
    file.write_bytes(FILES["lines.jsonl"].replace(b"PAID", b"OPEN"))
    assert not set(before) & {shard.key for shard in cut([Source(file)], 1000, ["a"])}
