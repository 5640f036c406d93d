"""Finds what a guard's cases leave out: enumeration values that it reads, and bounds that no case reaches.

Both are found among generated calls: one whose record has such a value, and one on which the guard differs from a
variant with `<` instead of `<=`. A referee interprets the sentences. The owner is asked about what they leave
undecided.
"""

import ast
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, cast

from msgspec import Struct

from bylaw.compile.bench import Bench, Case
from bylaw.compile.inputs import Trial, arguments_read
from bylaw.policy.python import parse_python

_OTHER: Mapping[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}


class Gap(Struct, frozen=True):
    """A situation without a case."""

    about: str
    """The situation, such as `Bill.status: Awaiting Payment`."""
    case: Case
    """A generated call in that situation, without an expected outcome."""
    outcome: str
    """The guard's outcome."""


def gaps(bench: Bench, trials: Sequence[Trial], cases: Sequence[Case], code: str) -> list[Gap]:
    """Return enumeration values that the guard reads and no case has, each with the shortest such call.

    Calls for a missing record are left out, because their outcome does not depend on the value.
    """
    read = arguments_read(code)
    known = {each for case in cases for each in _words(bench, case)}
    found: list[Gap] = []
    for trial in sorted(trials, key=lambda trial: len(str(trial.case))):
        if trial.is_broken or trial.outcomes[0] == "failed" or None in trial.case["facts"].values():
            continue
        words = set(_words(bench, trial.case, read)) - known
        if words:
            found.append(Gap(", ".join(sorted(words)), trial.case, trial.outcomes[0]))
            known |= words
    return found


def variants(code: str) -> Iterator[tuple[str, str]]:
    """Yield variants of the guard with one bound changed, each with the original comparison."""
    count = sum(isinstance(node, ast.Compare) for node in ast.walk(parse_python(code)))
    for number in range(count):
        tree = parse_python(code)
        compared = [node for node in ast.walk(tree) if isinstance(node, ast.Compare)][number]
        other = _OTHER.get(type(compared.ops[0]))
        if other is not None and len(compared.ops) == 1:
            told = ast.unparse(compared)
            compared.ops = [other()]
            yield told, ast.unparse(tree)


def _words(bench: Bench, case: Case, read: Container[str] | None = None) -> Iterator[str]:
    """Yield the enumeration values in a case, by field and by argument. With `read`, only these arguments count."""
    entities = bench.base.schema.entities
    for thing, fields in cast(dict[str, Any], case.get("facts") or {}).items():
        kind = thing.partition("[")[0]
        for name, value in cast(dict[str, Any], fields or {}).items():
            field = entities[kind].fields.get(name) if kind in entities else None
            if field is not None and field.type == "enum":
                yield f"{kind}.{name}: {value}"
    for tool, arguments in cast(dict[str, dict[str, Any]], case.get("call") or {}).items():
        for name, value in arguments.items():
            if (read is None or name in read) and cast(
                dict[str, Any], bench.cards[tool].parameters.get(name) or {}
            ).get("enum"):
                yield f"{name}: {value}"
