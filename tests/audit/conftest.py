"""A shop to audit."""

from pathlib import Path

import pytest

from tests.audit.logs import Shop


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)
