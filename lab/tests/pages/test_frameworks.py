"""The results for frameworks: each of them rests on an existing test."""

from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
INTEGRATIONS = ROOT / "tests" / "integrations"


@pytest.fixture(scope="module")
def matrix() -> Any:
    import frameworks

    return frameworks


def test_every_cell_names_a_test(matrix: Any) -> None:
    shared = "".join(path.read_text("utf-8") for path in INTEGRATIONS.glob("*.py"))
    for framework, cells in matrix.CELLS.items():
        assert set(cells) <= set(matrix.ROWS), framework
        for row, test in cells.items():
            file, *within = test.split("::")
            text = (INTEGRATIONS / file).read_text("utf-8")
            assert not within or f"def {within[-1]}(" in text + shared, (framework, row)


def test_the_page_has_every_row_and_few_cells_without_a_yes(matrix: Any) -> None:
    columns = matrix.read_page(ROOT / "docs" / "reference" / "frameworks.md")
    assert list(columns) == list(matrix.CELLS)
    for framework, cells in columns.items():
        lacking = [row for row in matrix.ROWS if cells.get(row) != "yes"]
        assert len(lacking) <= (0 if framework in ("mcp", "langchain", "openai-agents") else 2), (framework, lacking)
