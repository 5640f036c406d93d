"""Recorded conversations, whatever format they came in. Start at `event`."""

from bylaw.trace.event import Call, Event, Message, Party, Result
from bylaw.trace.trajectory import Outcome, Trajectory

__all__ = ["Call", "Event", "Message", "Outcome", "Party", "Result", "Trajectory"]
