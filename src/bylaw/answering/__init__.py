"""Settles rule predicates that code cannot: plans of typed operations, with a model's answers checked word for word.

ShieldAgent's pipeline (3.3), passed into a shield or an audit. Start at `answerer`.
"""

from bylaw.answering.answerer import Answerer
from bylaw.answering.history import Plans
from bylaw.answering.operation import Plan
from bylaw.answering.request import RequestReader

__all__ = ["Answerer", "Plan", "Plans", "RequestReader"]
