"""No invented answer or question gets a call through without a yes."""

import runpy
from pathlib import Path


def test_nothing_made_up_is_a_yes() -> None:
    benchmark = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "consent_hostile.py"))
    assert len(benchmark["tries"]()) > 80
    assert benchmark["allowed"]() == []
