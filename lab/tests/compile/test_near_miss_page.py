"""The clinic's part of the Near-Miss paper's table agrees with the recorded answers."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from bylaw.llm.recorded import Recorded, Recordings

ROOT = Path(__file__).parents[3]


@pytest.fixture(name="benchmark")
def load() -> Iterator[ModuleType]:
    sys.path.insert(0, str(ROOT / "lab" / "benchmarks"))
    try:
        import near_miss_search  # pyright: ignore[reportMissingImports]

        yield near_miss_search
    finally:
        sys.path.remove(str(ROOT / "lab" / "benchmarks"))


def test_the_page_says_what_the_recorded_answers_come_to(benchmark: ModuleType, tmp_path: Path) -> None:
    # Without a model behind the recordings, a changed question is an error.
    chat = Recorded(Recordings(ROOT / "lab" / "benchmarks" / "recorded" / "near-miss-search"))
    rows = list(benchmark.rows(benchmark.clinic(tmp_path), chat))
    assert len(rows) == 6
    page = (ROOT / "lab" / "results" / "pages" / "near-miss-search.md").read_text(encoding="utf-8").splitlines()
    assert set(rows) <= set(page)
