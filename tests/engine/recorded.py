"""Recorded runs of the airline, for tests of the engine; where they are not at hand, their tests are skipped."""

from functools import cache
from pathlib import Path

import pytest

from bylaw.trace import Trajectory, read

DATA = Path(__file__).parents[3] / "shared" / "data" / "tau-airline"
recorded = [pytest.mark.shared, pytest.mark.skipif(not DATA.is_dir(), reason="no recorded conversations here")]


@cache
def runs() -> tuple[tuple[Path, Trajectory], ...]:
    """Every eighteenth run, each with its file."""
    return tuple(
        (file, run)
        for file in sorted(DATA.glob("tau*/runs/*"))
        for position, run in enumerate(read(file))
        if position % 18 == 0 and isinstance(run, Trajectory)
    )
