"""Attacks of the generator that the shield does not hold yet."""

PENDING = frozenset({"spoofed user", "late press", "hidden arguments", "unanswered call", "irrelevant argument"})
"""Attacks that are not held yet. Remove one here together with its fix."""


def is_held(attack: str) -> bool:
    """Whether an attack is among those that the shield is tested with."""
    return attack not in PENDING
