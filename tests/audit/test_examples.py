"""The examples for build servers and hooks do what they say: their very commands are run on a small log."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.ready import begin

from .desk import looked_up, talk, write_desk, write_logs
from .test_baseline import careless
from .test_waiver import SIGNED, waivers

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.fixture
def tools(tmp_path: Path) -> dict[str, str]:
    """An environment in which `pip install` has nothing to do and `uv run` runs this `bylaw`."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, script in {
        "pip": "exit 0",
        "uv": 'shift; exec "$@"',
        "bylaw": f'exec {shlex.join(begin("bylaw"))} "$@"',
    }.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    return {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def action() -> dict[str, Any]:
    return yaml.safe_load((EXAMPLES / "github-action/action.yml").read_text())


def audit(folder: Path, tools: dict[str, str], **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run the action's audit step as a runner would: inputs and defaults in its variables, the script by bash."""
    given = {name: str(spec.get("default", "")) for name, spec in action()["inputs"].items()}
    given |= {name.replace("_", "-"): value for name, value in inputs.items()}
    (step,) = [step for step in action()["runs"]["steps"] if "run" in step]
    assert "${{" not in step["run"], "inputs must not stand inside the script"
    variables = {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda match: given[match[1]], value)
        for name, value in step["env"].items()
    }
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder, env={**tools, **variables}, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.process
def test_the_action_fails_on_new_findings_only(tmp_path: Path, tools: dict[str, str]) -> None:
    bad = talk("new", "Close C1.", ("close_account", {"customer_id": "C2"}, "ok"))
    write_desk(tmp_path, [careless("known")])
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs.jsonl").rename(tmp_path / "logs/a.jsonl")
    wanted = {"logs": "logs", "pack": "pack", "world": "world.json", "fail_on": "near_miss rule"}
    first = audit(tmp_path, tools, **wanted)
    assert first.returncode == 1, first.stderr
    (tmp_path / "bylaw-out").rename(tmp_path / "bylaw-baseline")
    second = audit(tmp_path, tools, **wanted)
    assert second.returncode == 0, second.stdout + second.stderr
    write_logs(tmp_path / "logs/b.jsonl", [bad])
    assert audit(tmp_path, tools, **wanted).returncode == 1
    waivers(tmp_path, f"policy: no-partner, {SIGNED}", f"policy: ask-first, {SIGNED}")
    assert audit(tmp_path, tools, waivers="waivers.yaml", **wanted).returncode == 0
    for name in ("bylaw.sarif", "bylaw.xml", "report.html", "comparison.json"):
        assert (tmp_path / "bylaw-out" / name).is_file()
    log = json.loads((tmp_path / "bylaw-out/bylaw.sarif").read_text())
    assert {
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in log["runs"][0]["results"]
    } == {
        "logs/a.jsonl",
        "logs/b.jsonl",
    }


@pytest.mark.process
def test_the_action_takes_no_order_from_a_file_name(tmp_path: Path, tools: dict[str, str]) -> None:
    write_desk(tmp_path, [])
    audit(tmp_path, tools, logs="logs.jsonl; touch owned", pack="$(touch owned)")
    assert not (tmp_path / "owned").exists()


def test_the_workflow_calls_the_action_with_inputs_it_has() -> None:
    workflow = yaml.safe_load((EXAMPLES / "github-action/workflow.yml").read_text())
    steps = workflow["jobs"]["audit"]["steps"]
    (call,) = [step for step in steps if step.get("uses") == "./.github/actions/bylaw"]
    inputs = action()["inputs"]
    assert call["with"].keys() <= inputs.keys()
    assert {name for name, spec in inputs.items() if spec.get("required")} <= call["with"].keys()
    assert workflow["permissions"]["security-events"] == "write"
    (upload,) = [step for step in action()["runs"]["steps"] if "upload-sarif" in step.get("uses", "")]
    assert upload["with"]["sarif_file"] == "${{ inputs.out }}/bylaw.sarif"


@pytest.mark.process
def test_the_workflow_makes_the_audit_the_next_baseline(tmp_path: Path, tools: dict[str, str]) -> None:
    steps = yaml.safe_load((EXAMPLES / "github-action/workflow.yml").read_text())["jobs"]["audit"]["steps"]
    write_desk(tmp_path, [careless("known")])
    audit(tmp_path, tools, logs="logs.jsonl", pack="pack")
    for command in (step["run"] for step in steps if "run" in step):
        subprocess.run(["bash", "-e", "-c", command], cwd=tmp_path, env=tools, check=True)
    assert "--baseline" not in action()["inputs"]["baseline"]["default"]
    assert audit(tmp_path, tools, logs="logs.jsonl", pack="pack", fail_on="near_miss rule").returncode == 0


@pytest.mark.process
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not there")
def test_the_hook_lets_only_sound_packs_pass(tmp_path: Path, tools: dict[str, str]) -> None:
    pytest.importorskip("pre_commit")
    write_desk(tmp_path, [talk("look", "Hello.", ("get_customer", {"customer_id": "C1"}, looked_up()))])
    shutil.copy(EXAMPLES / "pre-commit/.pre-commit-config.yaml", tmp_path)
    tools |= {"HOME": str(tmp_path / "home"), "PRE_COMMIT_HOME": str(tmp_path / "home"), "GIT_CONFIG_NOSYSTEM": "1"}

    def git(*arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=tmp_path, env=tools, check=True, capture_output=True)

    def hook() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pre_commit", "run"]
        return subprocess.run(command, cwd=tmp_path, env=tools, capture_output=True, text=True, check=False)

    git("init", "-q")
    git("add", "logs.jsonl", ".pre-commit-config.yaml")
    assert "Skipped" in hook().stdout
    git("add", "pack")
    passed = hook()
    assert passed.returncode == 0, passed.stdout
    assert "Passed" in passed.stdout
    (tmp_path / "pack/guards/desk.py").write_text("def no_partner(call, facts):\n    import os\n")
    git("add", "pack")
    failed = hook()
    assert failed.returncode == 1
    assert "BY201" in failed.stdout
