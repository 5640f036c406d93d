"""Logs in an S3-compatible storage: moto's server on loopback, by way of s3fs (lane `s3`)."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bylaw.audit.batch.run import LocalEngine, audit_in_shards
from bylaw.audit.request import Request
from bylaw.cli.logs import open_logs
from bylaw.errors import UsageError
from bylaw.trace.source import log_file
from tests.audit.logs import Shop, record
from tests.audit.sharded import LINES
from tests.audit.test_log_files import LINED, TALKS, write_parquet, zstd
from tests.command import bylaw

boto3 = pytest.importorskip("boto3")
s3fs = pytest.importorskip("s3fs")
moto = pytest.importorskip("moto.server")


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in (
        ("AWS_ENDPOINT_URL", f"http://{host}:{port}"),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
    ):
        monkeypatch.setenv(name, value)
    # Kept from the test before, they would ask its server.
    s3fs.S3FileSystem.clear_instance_cache()
    client = boto3.client("s3")
    client.create_bucket(Bucket="talks")
    yield client
    server.stop()


def test_logs_in_a_bucket_are_cut_and_audited_by_workers_as_files_are(shop: Shop, bucket: object) -> None:
    rows = write_parquet(shop.root / "t.parquet", TALKS).read_bytes()
    listed = json.dumps([record(*[[m] for m in talk["messages"]]) for talk in TALKS]).encode()
    kinds = {"a.jsonl": LINED, "b.jsonl.gz": gzip.compress(LINED), "c.jsonl.zst": zstd(LINED), "d.json": listed}
    local: list[Path] = []
    for name, data in (kinds | {"e.parquet": rows}).items():
        bucket.put_object(Bucket="talks", Key=f"may/{name}", Body=data)  # type: ignore[attr-defined]
        (shop.root / name).write_bytes(data)
        local.append(shop.root / name)
    bucket.put_object(Bucket="talks", Key="may/notes.txt", Body=b"not a log")  # type: ignore[attr-defined]
    with open_logs([log_file("s3://talks/may")]) as logs:
        remote = logs.files
    assert [str(file) for file in remote] == [f"s3://talks/may/{file.name}" for file in local]
    out: dict[str, Path] = {}
    for name, files in (("remote", remote), ("local", tuple(local))):
        request = Request(files, str(shop.pack), shop.world)
        out[name] = audit_in_shards(
            request, shop.root / name, LocalEngine(2), formats=("jsonl", "parquet"), size=1500
        ).out
    for name in LINES:
        assert (out["remote"] / name).read_bytes() == (out["local"] / name).read_bytes()
    assert json.loads((out["remote"] / "summary.json").read_bytes())["skipped"] == []


def test_the_command_takes_a_pattern_of_objects(shop: Shop, bucket: object) -> None:
    for day in ("01", "02"):
        bucket.put_object(Bucket="talks", Key=f"day-{day}.jsonl", Body=LINED)  # type: ignore[attr-defined]
    done = bylaw(shop.root, "audit", "s3://talks/day-*.jsonl", "--pack", "pack", "--world", "world.json")
    assert done.returncode == 0, done.stderr
    assert json.loads((shop.root / "out" / "summary.json").read_bytes())["files"] == ["day-01.jsonl", "day-02.jsonl"]


def test_a_bucket_that_is_not_there_is_told_in_a_line(bucket: object) -> None:
    with pytest.raises(UsageError, match="cannot read"), open_logs([log_file("s3://nobody/none.jsonl")]):
        pass
