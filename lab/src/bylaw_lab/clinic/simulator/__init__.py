"""A seeded clinic: agents and users in conversation, tools on SQLite, and the truth about every write. Start with
`generate`. The simulator imports only `bylaw.trace`, so it judges calls independently.
"""

from bylaw_lab.clinic.simulator.generate import simulate, write

__all__ = ["simulate", "write"]
