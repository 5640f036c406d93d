"""Determines the rule predicates that code cannot decide, using plans of typed operations and a model's checked
answers.

This is ShieldAgent's pipeline (section 3.3), for use by a shield or an audit. Start at `answerer`.
"""

from bylaw.answering.answerer import Answerer
from bylaw.answering.history import Plans
from bylaw.answering.operation import Plan
from bylaw.answering.request import RequestReader

__all__ = ["Answerer", "Plan", "Plans", "RequestReader"]
