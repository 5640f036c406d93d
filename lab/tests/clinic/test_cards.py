"""The clinic's scripted agents with cards only: every task is done, and nothing runs without a yes."""

from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(name="cards", scope="module")
def benchmark() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "lab" / "benchmarks"))
        import clinic_cards

        yield clinic_cards


def test_every_task_is_done_and_nothing_runs_without_a_yes(cards: Any) -> None:
    cells = cards.table([1], 8)
    assert list(cards.faults(cells)) == []
    assert all(cell.writes >= 4 and cell.stuck == 0 for cell in cells.values())
    assert all(cell.answers["ask user"] >= 4 for cell in cells.values())


def test_the_page_is_of_the_benchmark_and_says_that_it_holds(cards: Any) -> None:
    page = (ROOT / "lab" / "results" / "pages" / "cards.md").read_text(encoding="utf-8")
    assert page.startswith(cards.PAGE)
    assert "every task is done, and nothing ran without a yes" in page
