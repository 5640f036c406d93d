"""The engine of a Ray cluster: the same rows, also where two of its workers are killed (lane `ray`)."""

import importlib.util
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from bylaw.audit.batch.run import audit_in_shards
from bylaw.audit.request import Request
from tests.audit.sharded import sharded, written

if importlib.util.find_spec("ray") is None:
    # Not imported here: the engine sets what Ray reads when it is imported.
    pytest.skip("Ray is not installed", allow_module_level=True)
pytest.importorskip("pyarrow")


def workers() -> list[int]:
    """The processes of our actors, as Ray names them."""
    found: list[int] = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if each.read_bytes().startswith(b"ray::RayWorker"):
                found.append(int(each.parent.name))
        except OSError:
            continue
    return found


@pytest.mark.skipif(not Path("/proc/self/cmdline").is_file(), reason="finds workers in /proc")
@pytest.mark.timeout(600)
def test_two_killed_workers_change_no_row(clinic: Path, tmp_path: Path) -> None:
    from bylaw.audit.batch.run import RayEngine

    world = clinic.with_name("clinic.sqlite")
    want = sharded([clinic], "clinic", tmp_path / "want", size=5000, world=world).out
    out, killed, others = tmp_path / "out", [], set(workers())
    ended = threading.Event()

    def kill_two() -> None:
        while len(killed) < 2 and not ended.is_set():
            done = len(list(out.glob(".run/parts/*")))
            if done > 2 * len(killed) and (
                own := [pid for pid in workers() if pid not in others and pid not in killed]
            ):
                os.kill(own[0], signal.SIGKILL)
                killed.append(own[0])
            time.sleep(0.02)

    killer = threading.Thread(target=kill_two)
    killer.start()
    try:
        request = Request((clinic,), "clinic", world)
        report = audit_in_shards(request, out, RayEngine(2), formats=("jsonl", "parquet"), size=5000)
    finally:
        ended.set()
        killer.join()
    assert len(killed) == 2
    assert report.skipped == ()
    assert written(out) == written(want)
