"""A newcomer's pack for a new handbook agrees with the labels, and the page says so."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_park_is_judged_as_it_was_labelled() -> None:
    benchmark = runpy.run_path(str(ROOT / "lab" / "benchmarks" / "unseen_handbook.py"))
    counts, places = benchmark["counted"]()
    assert places == []
    assert dict(counts) == {(True, True): 120, (False, False): 45}
    page = (ROOT / "lab" / "results" / "pages" / "unseen-handbook.md").read_text(encoding="utf-8")
    assert page == benchmark["page"](counts)
