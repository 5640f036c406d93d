"""The handbooks for Algorithm 2: each rule quotes a sentence, loads, and has two conversations."""
# pyright: basic, reportMissingImports=false

import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


@pytest.mark.parametrize("name", ["hotel", "helpdesk"])
def test_a_handbook_has_thirty_rules_and_more_that_load_and_can_be_tried(name: str) -> None:
    import algorithm2

    from bylaw.compile.refine import Ruleset, rules_of

    book = algorithm2.read_handbook(name)
    rules = Ruleset(book.bench, book.checks)
    assert len(rules.book.rules) >= 30
    for check in book.checks.values():
        _, wrong = rules.tried(check, rules_of(check))
        assert all("wanted" in each for each in wrong), "a draft may miss its sentence, and must run"
    assert sys.modules.pop("algorithm2")
