"""The clinic's tasks for training and testing agents: scenarios in twins, a caller who answers, a careful agent.

Like the simulator they stand on, these modules know nothing of guards: what is right comes from the simulator's truth.
Start at `sets`.
"""

from bylaw_lab.clinic.tasks.scenario import Scenario
from bylaw_lab.clinic.tasks.sets import PARTS, Part, scenarios

__all__ = ["PARTS", "Part", "Scenario", "scenarios"]
