"""Every bug of `lab/scripts/plant_bugs.py` applies to the source and has tests that should detect it.

If a line has moved or changed, adapt the bug. A bug that no longer applies is a lost test.
"""

from collections import Counter
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
    assert len(bugs) >= 180
    assert [(bug.name, bug.file) for bug in bugs if bug.old == bug.new or bug.place(ROOT / "src") is None] == []
    assert len({bug.name for bug in bugs}) == len(bugs)


def test_the_tests_that_are_for_a_bug_are_there(bugs: Sequence[Any]) -> None:
    assert [test for bug in bugs for test in bug.tests if not (ROOT / test).is_file()] == []
    assert all(bug.tests for bug in bugs)


def test_every_area_that_a_user_meets_has_bugs_of_its_own(bugs: Sequence[Any]) -> None:
    counts = Counter(bug.file.partition("/")[0] for bug in bugs)
    areas = ("console", "align", "scan", "service", "integrations", "trace")
    assert {area: counts[area] for area in areas if counts[area] < 8} == {}
