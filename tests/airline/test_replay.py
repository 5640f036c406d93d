"""Replaying the recorded calls gives back the recorded results."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data" / "tau-airline"

pytestmark = [pytest.mark.shared, pytest.mark.skipif(not DATA.is_dir(), reason="no recorded conversations here")]


@pytest.mark.parametrize("name", ["tau1/runs/gpt-4o.json.gz", "tau2/runs/gpt-4.1.json.gz"])
def test_recorded_results_come_out_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import airline_replay

    from bylaw.packs.tau_airline import open_world
    from bylaw.trace import Trajectory, read

    users, world = open_world(DATA).for_runs(DATA / name)
    assert users == ("users-gpt-4o-run.json" if "gpt-4o" in name else "db.json")
    results = [
        (call.tool, airline_replay.equal(recorded, answer))
        for trajectory in read(DATA / name)
        if isinstance(trajectory, Trajectory)
        for call, recorded, answer in airline_replay.differences(trajectory, world.fork())
    ]
    assert len(results) > 100
    assert [tool for tool, same in results if not same] == []
    sys.modules.pop("airline_replay")
