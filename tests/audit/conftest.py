"""A shop to audit, and the clinic's conversations."""

import bz2
from pathlib import Path

import pytest

from bylaw.policy.folder import READY
from bylaw_lab.clinic.simulator.world import build
from tests.audit.logs import Shop


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


@pytest.fixture(scope="session")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty of the clinic's demo conversations, one a line, beside its database."""
    folder = tmp_path_factory.mktemp("clinic")
    build(folder / "clinic.sqlite").close()
    logs = folder / "logs.jsonl"
    lines = bz2.decompress((READY / "clinic" / "demo" / "logs.jsonl.bz2").read_bytes()).splitlines(keepends=True)
    logs.write_bytes(b"".join(lines[:60]))
    return logs
