"""Verification detects every way of tampering with a decision log, even by an adversary who computes our hashes."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import service_tampering


def test_every_way_of_tampering_with_a_log_is_detected(tmp_path: Path) -> None:
    rows, undetected = service_tampering.table(tmp_path)
    assert (len(rows), undetected) == (50, 0)


@pytest.mark.parametrize("way", list(service_tampering.FORGERIES)[:12])
def test_a_forged_removal_or_fold_is_detected_without_anchors(way: str, tmp_path: Path) -> None:
    log, copy = tmp_path / "log.db", tmp_path / "copy.db"
    service_tampering.written(log)
    service_tampering.forged(log, copy, service_tampering.FORGERIES[way])
    assert service_tampering.faults(copy)
