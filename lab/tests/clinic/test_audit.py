"""The audit agrees with the simulator's truth about the clinic's conversations: a part of `clinic_truth.py`."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def test_audit_and_simulator_agree_on_every_call_policy_world_and_criterion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "lab" / "benchmarks"))
    score = importlib.import_module("clinic_truth").run(seeds=1, count=150, folder=tmp_path)
    assert score.differences == []
    assert sum(score.pairs.values()) > 3_000
