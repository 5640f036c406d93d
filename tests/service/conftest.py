"""The shop's service on a new log, for all tests of the service."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bylaw.record import Log
from tests.shield.scenes import shop


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log(str(tmp_path / "decisions.db")) as opened:
        yield opened


@pytest.fixture
def app(log: Log) -> Any:
    from bylaw.service.app import Service
    from bylaw.service.desk import Desk

    return Service(Desk(shop(), log), {})
