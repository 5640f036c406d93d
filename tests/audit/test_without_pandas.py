"""pyarrow imports pandas for nothing; workers spare themselves that."""

import subprocess
import sys

import pytest

SPARED = """
import sys
from bylaw.audit.batch.tables import spare_pandas
spare_pandas()
from bylaw.audit.batch.tables import arrow, arrow_schema
row = {"conversation": "a", "policies": [{"policy": "p", "severity": "high"}]}
assert arrow().Table.from_pylist([row], schema=arrow_schema("calls")).num_rows == 1
assert "pandas" not in sys.modules, "imported after all"
import pandas
assert pandas.DataFrame({"a": [1]}).shape == (1, 1)
"""


def test_a_process_that_spares_pandas_makes_tables_without_it_and_may_still_import_it() -> None:
    pytest.importorskip("pyarrow")
    pytest.importorskip("pandas")
    done = subprocess.run([sys.executable, "-c", SPARED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
