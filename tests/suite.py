"""How the tests run: on several cores, never for ever, and with few random examples unless many are asked for."""

import gc
import os
from collections.abc import Callable, Generator
from pathlib import Path
from typing import NamedTuple

import pytest
from filelock import FileLock

MOST_WORKERS = 4
"""Each worker makes the shared fixtures anew, so that more of them save little."""
LONGEST = "test_installing.py"
SPARE = 1
"""Workers beyond the number of cores: tests also wait, for processes, disks and clocks."""


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Workers for all tests, none for a few: starting workers takes longer than a few tests."""
    if config.args_source is not config.ArgsSource.TESTPATHS:
        return 0
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(MOST_WORKERS, cores + SPARE)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays to the end: it is not searched for garbage again and again, neither while
    it is made, nor later. What tests make goes when they end, so that it is searched seldom."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()
        gc.set_threshold(20_000, 20, 20)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest by itself begins first, so that nobody waits for it alone at the end."""
    items.sort(key=lambda item: item.path.name != LONGEST)


class Demo(NamedTuple):
    """What `bylaw demo` left and said."""

    folder: Path
    shown: str


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """`bylaw demo`, run once for all who only read what it wrote."""
    from tests.command import bylaw

    def make(folder: Path) -> None:
        ran = bylaw(folder, "demo")
        assert ran.returncode == 0, ran.stderr
        (folder / "shown.txt").write_text(ran.stdout, encoding="utf-8")

    folder = made_once(tmp_path_factory, "demo", make)
    return Demo(folder, (folder / "shown.txt").read_text(encoding="utf-8"))


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that the first worker to want it makes, for all workers."""
    shared = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    with FileLock(shared / f"{name}.lock"):
        folder, is_made = shared / name, shared / f"{name}.made"
        if not is_made.exists():
            folder.mkdir(exist_ok=True)
            make(folder)
            is_made.touch()
    return folder
