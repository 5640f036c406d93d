"""The engine of worker processes: whoever is killed, and whenever, the rows come out the same."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bylaw.audit.batch.run import LocalEngine, audit_in_shards
from bylaw.audit.request import Request
from bylaw.audit.run import WorkerError
from tests.audit.logs import HASTY, Shop, record
from tests.audit.lost_workers import begin_fatal, begin_unable
from tests.audit.sharded import LINES, sharded, written

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.process

DRIVER = """
import sys
from pathlib import Path
from bylaw.audit.batch.run import LocalEngine
from bylaw.audit.batch.run import audit_in_shards
from bylaw.audit.request import Request

if __name__ == "__main__":
    logs, world, out = map(Path, sys.argv[1:])
    audit_in_shards(Request((logs,), "clinic", world), out, LocalEngine(2), formats=("jsonl", "parquet"), size=6000)
"""


def children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        found += map(int, task.read_text().split())
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds workers in /proc")
def test_a_run_killed_again_and_again_ends_with_the_same_files(clinic: Path, tmp_path: Path) -> None:
    world = clinic.with_name("clinic.sqlite")
    want = sharded([clinic], "clinic", tmp_path / "want", size=6000, world=world).out
    script, out = tmp_path / "driver.py", tmp_path / "out"
    script.write_text(DRIVER)
    draw = random.Random(7)
    kills = {"driver": 0, "worker": 0}
    deadline = time.monotonic() + 200
    while not (out / "summary.json").is_file():
        assert time.monotonic() < deadline
        before = len(list(out.glob(".run/parts/*"))) if out.is_dir() else 0
        driver = subprocess.Popen([sys.executable, str(script), str(clinic), str(world), str(out)])
        while driver.poll() is None:
            time.sleep(0.05)
            # Something must get done between two kills, or the run would never end.
            grown = len(list(out.glob(".run/parts/*"))) - before if out.is_dir() else 0
            if kills["driver"] + kills["worker"] >= 5 or grown < 1:
                continue
            before += grown
            workers = children(driver.pid)
            whom = "driver" if draw.random() < 0.4 or not workers else "worker"
            try:
                os.kill(driver.pid if whom == "driver" else draw.choice(workers), signal.SIGKILL)
            except ProcessLookupError:
                continue
            kills[whom] += 1
        assert driver.returncode in (0, -signal.SIGKILL)
    assert kills["driver"]
    assert kills["worker"]
    assert written(out) == written(want)


@pytest.mark.parametrize(
    ("name", "why"), [("crash", "the worker of this part was lost 3 times (status 9)"), ("fail", "MemoryError")]
)
@pytest.mark.usefixtures("quick_workers")
def test_a_shard_that_ends_its_worker_is_set_aside_and_the_others_are_judged(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, name: str, why: str
) -> None:
    monkeypatch.setattr("bylaw.audit.batch.run._begin", begin_fatal)
    logs = shop.logs(*(record(*HASTY, id=f"h{number}") for number in range(12)))
    report = audit_in_shards(
        Request((logs,), str(shop.pack)), shop.root / name, LocalEngine(2), formats=("jsonl", "parquet"), size=1024
    )
    assert len(report.skipped) == 1
    assert why in report.skipped[0].message
    calls = (shop.root / name / "calls.jsonl").read_bytes().splitlines()
    assert 6 <= len(calls) < 12
    assert json.loads((shop.root / name / "summary.json").read_bytes())["skipped"][0]["place"].endswith(")")


@pytest.mark.usefixtures("quick_workers")
def test_a_worker_that_cannot_begin_ends_the_run_and_says_why(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bylaw.audit.batch.run._begin", begin_unable)
    logs = shop.logs(record(*HASTY))
    with pytest.raises(WorkerError, match="workers exit before they finish starting"):
        audit_in_shards(Request((logs,), str(shop.pack)), shop.root / "out", LocalEngine(2))
    assert not (shop.root / "out" / "summary.json").exists()


def test_two_workers_write_what_one_process_writes(clinic: Path, tmp_path: Path) -> None:
    request = Request((clinic,), "clinic", clinic.with_name("clinic.sqlite"))
    formats = ("jsonl", "parquet")
    got = audit_in_shards(request, tmp_path / "two", LocalEngine(2), formats=formats, size=30_000).out
    want = sharded([clinic], "clinic", tmp_path / "one", size=1 << 30, world=request.world).out
    for name in LINES:
        assert (got / name).read_bytes() == (want / name).read_bytes()
