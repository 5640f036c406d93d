"""Attacks of the generator that the shield does not hold yet."""

PENDING = frozenset(
    {
        "late press after another spelling",
        "thanks for an old yes",
        "withdrawal during a call",
    }
)
"""Remove an attack here together with its fix."""


def is_held(attack: str) -> bool:
    """Whether an attack is among those that the shield is tested with."""
    return attack not in PENDING
