"""Reports of the folders in `audit_folders`, each written once."""

from pathlib import Path

import pytest

from bylaw.audit.report import write_report
from tests.report import audit_folders


@pytest.fixture(scope="session")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(audit_folders.clinic(tmp_path_factory.mktemp("clinic")))


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(audit_folders.hostile(tmp_path_factory.mktemp("hostile")))


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(audit_folders.clinic(tmp_path_factory.mktemp("large"), conversations=5000, always_bad=True))


@pytest.fixture(scope="session")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a real audit of simulated clinic conversations."""
    from bylaw.audit.request import Request
    from bylaw.audit.run import audit
    from bylaw_lab.clinic.simulator.generate import write

    folder = tmp_path_factory.mktemp("audited")
    write(folder, seeds=(1,), count=120)
    out = folder / "out"
    audit(Request((folder / "logs.jsonl.gz",), "clinic", folder / "clinic.sqlite"), out)
    return write_report(out)
