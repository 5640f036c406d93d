"""Guards: small functions that permit or deny one tool call under one policy. Start at `evaluate`."""

from bylaw.guard.answers import Answers, Question
from bylaw.guard.assumption import NOTHING, Assumptions
from bylaw.guard.evaluate import Completion, Outcome, evaluate
from bylaw.guard.inquiry import Inquiry
from bylaw.guard.language import Vocabulary
from bylaw.guard.lookup import History, Lookup, parse_lookups, run_lookup
from bylaw.guard.parse import Branch, Guard, parse_guards
from bylaw.guard.predicate import Predicate, compile_predicate, evaluate_predicate, judge_predicate

__all__ = [
    "NOTHING",
    "Answers",
    "Assumptions",
    "Branch",
    "Completion",
    "Guard",
    "History",
    "Inquiry",
    "Lookup",
    "Outcome",
    "Predicate",
    "Question",
    "Vocabulary",
    "compile_predicate",
    "evaluate",
    "evaluate_predicate",
    "judge_predicate",
    "parse_guards",
    "parse_lookups",
    "run_lookup",
]
