"""The simulator's truth is independent: it shares no code with the engine."""

import ast
from pathlib import Path

import yaml

import bylaw_lab.clinic.simulator as simulator
from bylaw.pack import load_pack
from bylaw.policy.folder import READY
from bylaw_lab.clinic.simulator.desk import READS, WRITES
from bylaw_lab.clinic.simulator.needs import ALTERS
from bylaw_lab.clinic.simulator.truth import POLICIES

FOLDER = Path(simulator.__file__).parent
PACK = READY / "clinic"
OWN = "bylaw_lab.clinic.simulator"


def imported(source: str) -> set[str]:
    """Return every module that a source file imports, even inside functions."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide what is imported"
            names |= {node.module or ""} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "__import__":
            raise AssertionError("hidden import")
    return names


def test_the_simulator_imports_nothing_of_bylaw_but_trace():
    for file in sorted(FOLDER.rglob("*.py")):
        for name in imported(file.read_text()):
            if name.split(".")[0] in ("bylaw", "bylaw_lab"):
                assert name.startswith((OWN, "bylaw.trace")), f"{file.name} imports {name}"
            assert not name.startswith("importlib"), f"{file.name} imports {name}"


def test_the_import_walk_sees_late_and_indirect_imports():
    assert "bylaw.guard" in imported("def f():\n    from bylaw.guard import evaluate")
    assert "bylaw.engine" in imported("if True:\n    from bylaw import engine")


def test_no_file_of_the_simulator_reads_the_guards():
    for file in sorted(FOLDER.rglob("*.py")):
        assert "guards/" not in file.read_text()
        assert "entities.yaml" not in file.read_text()


def test_every_guard_policy_has_its_truth_on_the_same_tools():
    guards = {policy.id: policy.tools for policy in load_pack("clinic").policies.values() if policy.kind == "guard"}
    assert {policy.id: policy.tools for policy in POLICIES.values()} == guards
    assert 34 <= len(guards) <= 40


def test_every_policy_quotes_the_handbook_word_for_word():
    handbook = (PACK / "policy.md").read_text()
    for policy in yaml.safe_load((PACK / "policies.yaml").read_text())["policies"]:
        for span in policy["spans"]:
            assert handbook.count(span["quote"] if isinstance(span, dict) else span) == 1, policy["id"]


def test_the_desk_has_the_tools_of_the_catalogue():
    tools = yaml.safe_load((PACK / "tools.yaml").read_text())["tools"]
    assert {name for name, tool in tools.items() if tool["effect"] == "read"} == set(READS)
    assert {name for name, tool in tools.items() if tool["effect"] == "write"} == set(WRITES) == set(ALTERS)
