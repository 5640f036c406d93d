"""Guards: small functions that permit or deny one tool call under one policy. Start at `evaluate`."""

from bylaw.guard.evaluate import (
    Completion,
    Condition,
    GuardOutcome,
    Inquiry,
    compile_condition,
    compile_expression,
    compile_value,
    compute_value,
    evaluate,
    evaluate_condition,
    judge_predicate,
)
from bylaw.guard.language import Vocabulary
from bylaw.guard.lookup import LookupFunction, ShownResults, parse_lookups, run_lookup
from bylaw.guard.parse import Branch, Guard, compared_with_none, parse_guard_files, parse_guards
from bylaw.guard.run import NO_ASSUMPTIONS, Assumptions, no_such

__all__ = [
    "NO_ASSUMPTIONS",
    "Assumptions",
    "Branch",
    "Completion",
    "Condition",
    "Guard",
    "GuardOutcome",
    "Inquiry",
    "LookupFunction",
    "ShownResults",
    "Vocabulary",
    "compared_with_none",
    "compile_condition",
    "compile_expression",
    "compile_value",
    "compute_value",
    "evaluate",
    "evaluate_condition",
    "judge_predicate",
    "no_such",
    "parse_guard_files",
    "parse_guards",
    "parse_lookups",
    "run_lookup",
]
