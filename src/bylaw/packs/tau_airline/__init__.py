"""The pack for the airline of tau-bench and tau2-bench, with its world. Start at `world`."""

from bylaw.packs.tau_airline.tasks import open_tasks
from bylaw.packs.tau_airline.world import open_world

__all__ = ["open_tasks", "open_world"]
