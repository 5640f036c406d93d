"""The clinic's tasks for training and testing agents: twin scenarios, a caller who answers, a careful agent.

Like the simulator, these modules know nothing of guards. The simulator's truth tells what is right. Start at `sets`.
"""

from bylaw_lab.clinic.tasks.scenario import Scenario
from bylaw_lab.clinic.tasks.sets import PARTS, Part, scenarios

__all__ = ["PARTS", "Part", "Scenario", "scenarios"]
