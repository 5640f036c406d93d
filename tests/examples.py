"""How many random examples a property test tries: few, and the same on every run, unless many are asked for."""

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

QUICK = 30
THOROUGH = 1000
_USUAL = 50
"""What `examples` counts from."""

_ALWAYS: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.filter_too_much],
}
# The same examples on every run: what the gate says depends on the change alone.
settings.register_profile("quick", max_examples=QUICK, derandomize=True, database=None, **_ALWAYS)
settings.register_profile("thorough", max_examples=THOROUGH, **_ALWAYS)
settings.load_profile("quick")


def pytest_sessionstart() -> None:
    """Examples that are the same on every run hold no constants from the code at hand: those depend on which modules a
    worker has imported, and looking for them parses every file of the package and of its tests, in each worker."""
    if settings.default.derandomize:
        none = providers._local_constants
        providers._get_local_constants = lambda: none


def examples(quick: int) -> settings:
    """More or fewer than usual: as many times as this is of 50."""
    return settings(max_examples=max(1, quick * settings.default.max_examples // _USUAL))
