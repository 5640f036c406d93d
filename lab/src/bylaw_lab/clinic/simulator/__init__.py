"""A seeded clinic: agents and users that talk, tools that work on SQLite, and the truth about every write.

It imports nothing of bylaw but `bylaw.trace`, so that what it says of a call is a second opinion. Start at `generate`.
"""

from bylaw_lab.clinic.simulator.generate import simulate, write

__all__ = ["simulate", "write"]
