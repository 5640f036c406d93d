"""How many random examples a property test tries, where it is not as many as the profile says."""

from hypothesis import settings

QUICK = 50
THOROUGH = 1000


def examples(quick: int) -> settings:
    """So many in the quick profile, and in another as many times more as that profile has more."""
    return settings(max_examples=max(1, quick * settings.default.max_examples // QUICK))
