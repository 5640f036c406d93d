"""How the tests run: on several cores, never for ever, and with few random examples unless many are asked for."""

import os
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, settings

from tests.command import bylaw
from tests.examples import QUICK, THOROUGH

pytest_plugins = ["tests.cpu_time", "tests.stores"]

MOST_WORKERS = 4
"""Each worker makes the shared fixtures anew, so that more of them save little."""

_SETTINGS = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.filter_too_much]}
# The same examples on every run: what the gate says depends on the change alone.
settings.register_profile("quick", max_examples=QUICK, derandomize=True, database=None, **_SETTINGS)
settings.register_profile("thorough", max_examples=THOROUGH, **_SETTINGS)
settings.load_profile("quick")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """A worker for each core for all tests, none for a few: starting workers takes longer than a few tests."""
    if config.args_source is not config.ArgsSource.TESTPATHS:
        return 0
    return min(MOST_WORKERS, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def _keep_bytecode() -> None:
    """Where no bytecode may be written beside the sources, keep it elsewhere: each child would compile everything."""
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
        kept = os.environ.setdefault("PYTHONPYCACHEPREFIX", str(Path(__file__).parents[1] / ".pytest_cache/bytecode"))
        sys.pycache_prefix = kept
        sys.dont_write_bytecode = False


_keep_bytecode()


class Demo(NamedTuple):
    """What `bylaw demo` left and said."""

    folder: Path
    shown: str


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """`bylaw demo`, run once for all who only read what it wrote."""
    folder = tmp_path_factory.mktemp("demo")
    ran = bylaw(folder, "demo")
    assert ran.returncode == 0, ran.stderr
    return Demo(folder, ran.stdout)
