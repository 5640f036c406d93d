"""What new checks say of recorded conversations, for the reviewer to read beside each sentence."""

from collections.abc import Mapping, Sequence
from typing import Any

from bylaw.engine.finished import verdicts
from bylaw.pack import Pack
from bylaw.trace import Trajectory

_SHOWN = 3
_TOLD = ("violation", "near_miss", "inconclusive")


def flagged(files: Mapping[str, str], trajectories: Sequence[Trajectory]) -> dict[str, dict[str, Any]]:
    """By policy how often it speaks against a recorded act, and the first few: conversation, step and why."""
    if not trajectories:
        return {}
    pack = Pack.from_files(files)
    found: dict[str, dict[str, Any]] = {}

    def note(policy: str, verdict: str, trajectory: Trajectory, step: int, why: str) -> None:
        body = found.setdefault(policy, {}).setdefault(verdict, {"calls": 0, "first": []})
        body["calls"] += 1
        if len(body["first"]) < _SHOWN:
            body["first"].append({"conversation": trajectory.id, "step": step, "why": why})

    for trajectory in trajectories:
        said = verdicts(pack, trajectory)
        for call in said.calls:
            for each in call.policies:
                if each.determined in _TOLD:
                    note(each.policy.id, each.determined, trajectory, call.made.step, each.because)
        for finding in said.findings:
            note(finding.rule.policy, "broken", trajectory, finding.step, finding.because)
    return found
