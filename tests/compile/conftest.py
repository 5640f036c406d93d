"""How many calls generated guards are tried on: fewer than a compile does, unless many examples are asked for."""

import pytest
from hypothesis import settings

from tests.examples import QUICK

FEW = 80


@pytest.fixture(autouse=True)
def few_worlds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if settings.default.max_examples == QUICK:
        monkeypatch.setattr("bylaw.compile.inputs.WORLDS", FEW)
