"""What a live agent may do now: allow, deny, look this up first, ask. Start at `shield`, then `decision`."""

from bylaw.shield.decision import Decision, Ground, LookUp, Question
from bylaw.shield.guarded import Guarded
from bylaw.shield.shield import Shield

__all__ = ["Decision", "Ground", "Guarded", "LookUp", "Question", "Shield"]
