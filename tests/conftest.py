"""How the tests run: on several cores, never for ever, and with few random examples unless many are asked for."""

import gc
import os
from pathlib import Path
from typing import NamedTuple

import pytest

pytest_plugins = ["tests.bytecode", "tests.examples", "tests.cpu_time", "tests.stores", "tests.lacking"]

MOST_WORKERS = 4
"""Each worker makes the shared fixtures anew, so that more of them save little."""


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """A worker for each core for all tests, none for a few: starting workers takes longer than a few tests."""
    if config.args_source is not config.ArgsSource.TESTPATHS:
        return 0
    return min(MOST_WORKERS, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end: it is not searched for garbage again and again."""
    gc.collect()
    gc.freeze()


class Demo(NamedTuple):
    """What `bylaw demo` left and said."""

    folder: Path
    shown: str


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """`bylaw demo`, run once for all who only read what it wrote."""
    from tests.command import bylaw

    folder = tmp_path_factory.mktemp("demo")
    ran = bylaw(folder, "demo")
    assert ran.returncode == 0, ran.stderr
    return Demo(folder, ran.stdout)
