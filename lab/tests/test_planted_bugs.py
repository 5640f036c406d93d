"""Every bug that `lab/scripts/plant_bugs.py` plants has a line to be planted in, and tests that are for it.

Where a line has moved or changed, change the bug with it: a bug that can no longer be planted is a test less.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bugs(monkeypatch: pytest.MonkeyPatch) -> Sequence[Any]:
    monkeypatch.syspath_prepend(ROOT / "lab" / "scripts")
    from planted import BUGS

    return BUGS


def test_every_bug_can_be_planted(bugs: Sequence[Any]) -> None:
    def stands(bug: Any) -> bool:
        path = ROOT / "src" / "bylaw" / bug.file
        return bug.old != bug.new and path.is_file() and bug.old in path.read_text(encoding="utf-8")

    assert len(bugs) > 90
    assert [(bug.name, bug.file) for bug in bugs if not stands(bug)] == []
    assert len({bug.name for bug in bugs}) == len(bugs)


def test_the_tests_that_are_for_a_bug_are_there(bugs: Sequence[Any]) -> None:
    assert [test for bug in bugs for test in bug.tests if not (ROOT / test).is_file()] == []
    assert all(bug.tests for bug in bugs)
