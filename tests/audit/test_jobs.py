"""An audit by several workers writes the same bytes as one by a single worker."""

import bz2
import multiprocessing
import threading
import time
from pathlib import Path

import pytest

from bylaw.audit.request import Request
from bylaw.audit.run import WorkerError, audit
from bylaw.policy.folder import READY
from bylaw_lab.clinic.simulator.world import build

WRITTEN = ("calls.jsonl", "conversations.jsonl", "findings.jsonl", "summary.json", "policies.json")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files of conversations under the same ids, one of them broken in the middle and at its end."""
    import gzip

    folder = tmp_path_factory.mktemp("logs")
    build(folder / "clinic.sqlite").close()
    lines = bz2.decompress((READY / "clinic" / "demo" / "logs.jsonl.bz2").read_bytes()).splitlines(keepends=True)
    (folder / "whole.jsonl").write_bytes(b"".join(lines[:23]))
    broken = b"".join([*lines[:9], b"{not JSON\n", *lines[9:30]])
    (folder / "broken.jsonl.gz").write_bytes(gzip.compress(broken, mtime=0)[:-9])
    return folder


def audited(logs: Path, out: Path, jobs: int) -> dict[str, bytes]:
    files = (logs / "whole.jsonl", logs / "broken.jsonl.gz")
    audit(Request(files, "clinic", world=logs / "clinic.sqlite", jobs=jobs), out)
    return {name: (out / name).read_bytes() for name in WRITTEN}


@pytest.fixture(scope="module")
def alone(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What a single worker writes."""
    return audited(logs, tmp_path_factory.mktemp("alone"), 1)


@pytest.mark.parametrize("jobs", [2, *(pytest.param(jobs, marks=pytest.mark.slow) for jobs in (3, 5))])
def test_any_number_of_workers_writes_the_same_bytes(
    logs: Path, alone: dict[str, bytes], tmp_path: Path, jobs: int
) -> None:
    assert audited(logs, tmp_path, jobs) == alone
    assert b'~2"' in alone["calls.jsonl"]


def test_an_audit_whose_worker_is_ended_from_outside_says_so(logs: Path, tmp_path: Path) -> None:
    ended = threading.Event()

    def end_one() -> None:
        while not (workers := multiprocessing.active_children()):
            time.sleep(0.01)
        workers[0].kill()
        ended.set()

    threading.Thread(target=end_one, daemon=True).start()
    with pytest.raises(WorkerError, match="a worker stopped"):
        audit(Request(tuple(sorted(logs.glob("*.jsonl*"))), "clinic", jobs=2), tmp_path)
    assert ended.is_set()
    assert not multiprocessing.active_children()
