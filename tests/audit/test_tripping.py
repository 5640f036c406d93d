"""A conversation the audit trips over is reported; its neighbours are judged."""

from pathlib import Path
from typing import Any

import pytest

from bylaw.audit.request import Request
from bylaw.audit.run import Examiner, audit


def test_a_fault_of_ours_costs_one_conversation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"id": "a", "messages": [{"role": "user", "content": "x"}]}\n' * 3)
    examine = Examiner.examine
    seen: list[str] = []

    def trip(self: Examiner, trajectory: Any, file: Path) -> Any:
        seen.append(trajectory.id)
        if len(seen) == 2:
            raise KeyError("secret")
        return examine(self, trajectory, file)

    monkeypatch.setattr(Examiner, "examine", trip)
    report = audit(Request((log,), "clinic"), tmp_path / "out")
    assert [fault.message for fault in report.skipped] == ["could not be judged (KeyError)"]
    assert report.summary["agents"][0]["trajectories"] == 2
    assert "secret" not in str(report.skipped[0])
