"""The matrix of frameworks: each of its cells rests on a test that is there."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
INTEGRATIONS = ROOT / "tests" / "integrations"


@pytest.fixture(scope="module")
def matrix() -> Any:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        spec = importlib.util.spec_from_file_location("matrix_of_frameworks", ROOT / "benchmarks" / "frameworks.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


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
