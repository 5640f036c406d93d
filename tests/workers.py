"""Worker processes that begin as copies of one which has imported what they need: a worker of an audit begins from
nothing, and spends half a second on imports.

They are processes all the same, with what they are given pickled, and are lost and ended alike.
"""

import multiprocessing
from collections.abc import Iterator
from multiprocessing import forkserver, util
from multiprocessing.context import BaseContext

import pytest

IMPORTED = ["bylaw.audit.run", "bylaw.audit.batch.run", "pyarrow.dataset", "pyarrow.parquet"]


@pytest.fixture(scope="session")
def _copies() -> Iterator[BaseContext]:
    if "forkserver" not in multiprocessing.get_all_start_methods():
        yield multiprocessing.get_context()
        return
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    # Its socket lies where temporary files lie now, and not in a test's own folder, whose path may be too long for one.
    util.get_temp_dir()
    forkserver.ensure_running()
    yield context
    # Its end is waited for, so that what its workers took is counted.
    getattr(forkserver, "_forkserver")._stop()  # noqa: B009


@pytest.fixture
def quick_workers(_copies: BaseContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of this test begin so. Those of `tests/audit/test_jobs.py` begin as in a real audit."""

    def copies(_method: str) -> BaseContext:
        return _copies

    monkeypatch.setattr(multiprocessing, "get_context", copies)
