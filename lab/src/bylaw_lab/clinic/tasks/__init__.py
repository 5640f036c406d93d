"""The clinic's tasks for training and testing agents: twin scenarios, a caller who answers, and a careful agent.

Like the simulator, these modules do not use guards. The simulator's ground truth says what is right. Start with `sets`.
"""

from bylaw_lab.clinic.tasks.scenario import Scenario
from bylaw_lab.clinic.tasks.sets import PARTS, Part, scenarios

__all__ = ["PARTS", "Part", "Scenario", "scenarios"]
