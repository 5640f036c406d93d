"""Decides the calls of live agents: allow the call, deny it, require a look-up first, or ask a person. Start at
`shield`, then read `decision`.
"""

from bylaw.policy.tool import ApprovalTerms, Postures
from bylaw.shield.decision import Decision, Ground, LookUp, Question
from bylaw.shield.session import LiveSession
from bylaw.shield.shield import Shield

Guarded = LiveSession
"""Deprecated. Use `LiveSession`."""

__all__ = ["ApprovalTerms", "Decision", "Ground", "Guarded", "LiveSession", "LookUp", "Postures", "Question", "Shield"]
