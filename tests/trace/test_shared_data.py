"""The published runs of real agents, where they are at hand."""

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from bylaw.trace import Call, Result, Trajectory, read, sniff

DATA = Path(__file__).parents[3] / "shared" / "data"
if not DATA.is_dir():
    pytest.skip("no recorded conversations here", allow_module_level=True)
pytestmark = pytest.mark.shared

RUNS = sorted(DATA.glob("tau-airline/tau?/runs/*.json.gz"))


def test_every_tau_simulation_is_read():
    found = [each for path in RUNS for each in read(path)]
    assert all(isinstance(each, Trajectory) for each in found)
    assert len(found) == 1541
    assert Counter(each.format for each in found) == {"tau1": 950, "tau2": 591}
    assert len({each.agent for each in found}) == 11
    assert "ft-gpt-4.1" in {each.agent for each in found}
    assert all(each.outcome is not None for each in found)
    assert all(each.events or each.format == "tau1" for each in found)


def test_every_tau_call_and_result_is_an_event_and_pairs():
    for path in RUNS[::7]:
        document = json.loads(gzip.decompress(path.read_bytes()))
        runs = document["simulations"] if isinstance(document, dict) else document
        for run, found in zip(runs, read(path), strict=True):
            messages = run.get("messages", run.get("traj"))
            made = [call for message in messages for call in message.get("tool_calls") or ()]
            calls = [event for event in found.events if isinstance(event, Call)]
            results = [event for event in found.events if isinstance(event, Result)]
            assert [call["id"] for call in made] == [call.id for call in calls]
            assert not any(call.fault for call in calls)
            assert [message["content"] for message in messages if message["role"] == "tool"] == [
                event.content for event in results
            ]
            answered = [event.call for event in results]
            assert None not in answered
            assert len(set(answered)) == len(answered)


def test_every_agentdojo_run_is_read():
    paths = sorted(DATA.glob("agentdojo/runs/*.jsonl.gz"))
    assert {sniff(path) for path in paths} == {"agentdojo"}
    found = [each for path in paths for each in read(path)]
    assert len(found) == 3423
    assert all(isinstance(each, Trajectory) for each in found)
    assert len({each.agent for each in found}) == 5
    assert sum(each.details["attack"] is None for each in found) == 485
    assert not any(event.call is None for each in found for event in each.events if isinstance(event, Result))


def test_a_truncated_results_file_gives_what_could_be_read(tmp_path):
    for kind in ("tau1", "tau2"):
        data = next(path for path in RUNS if path.parts[-3] == kind).read_bytes()
        path = tmp_path / f"{kind}.json.gz"
        path.write_bytes(data[: len(data) // 2])
        *found, fault = read(path)
        assert len(found) > 2
        assert all(isinstance(each, Trajectory) for each in found)
        assert "truncated" in str(fault)
