"""A seeded clinic: agents and users that talk, tools on SQLite, and the truth about every write. Start with `generate`.
The simulator imports only `bylaw.trace`, so that its judgement of a call is independent.
"""

from bylaw_lab.clinic.simulator.generate import simulate, write

__all__ = ["simulate", "write"]
