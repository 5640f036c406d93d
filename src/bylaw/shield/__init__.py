"""What a live agent may do now: allow, deny, look this up first, ask. Start at `shield`, then `decision`."""

from bylaw.policy.posture import ApprovalTerms, Postures
from bylaw.shield.decision import Decision, Ground, LookUp, Question
from bylaw.shield.guarded import Guarded
from bylaw.shield.shield import Shield

__all__ = ["ApprovalTerms", "Decision", "Ground", "Guarded", "LookUp", "Postures", "Question", "Shield"]
