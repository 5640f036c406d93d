"""Every bug that `scripts/mutate_*.py` plant has a line to be planted in.

Where a line has moved or changed, change the bug with it: a bug that can no longer be planted is a test less.
"""

import importlib.util
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "bylaw"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def stands(file: str, line: str) -> bool:
    path = SOURCE / file
    return path.is_file() and line in path.read_text(encoding="utf-8")


def test_every_bug_of_the_auditor_can_be_planted() -> None:
    bugs = script("mutate_audit").BUGS
    assert len(bugs) > 40
    assert [(bug.name, bug.file) for bug in bugs if not stands(bug.file, bug.old) or bug.old == bug.new] == []


def test_every_bug_of_the_rules_can_be_planted() -> None:
    bugs = script("mutate_rules").BUGS
    assert len(bugs) > 20
    assert [(name, file) for name, file, old, new in bugs if not stands(f"rule/{file}", old) or old == new] == []
