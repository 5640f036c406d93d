"""Finds numbers in sentences and whether a guard uses them.

An unused number is a hint for the reviewer. A guard that uses another number instead, such as 60 days for 30, is wrong,
unless a case shows that it keeps the sentence's number.
"""

import ast
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal

from bylaw.policy.python import parse_python

_CLAUSE = re.compile(r"^\s*\d+(\.\d+)+\.?\s")
_NUMBER = re.compile(r"(?<![\w.])\$?(\d+(?:,\d{3})*(?:\.\d+)?)(?!\w)")
_DIGITS = re.compile(r"\d+(?:\.\d+)?")


def unused_numbers(quotes: Iterable[str], code: str) -> list[str]:
    """Return the quotes' numbers, in digits, that the code lacks."""
    used = _used(code)
    named = (found for quote in quotes for found in _NUMBER.findall(_CLAUSE.sub("", quote)))
    return list(dict.fromkeys(each for each in named if _decimal(each) not in used))


def replaced_numbers(quotes: Sequence[str], others: str, code: str, cases: str) -> tuple[list[str], list[str]]:
    """Return the quotes' numbers that code and cases lack, and the numbers that the code uses instead.

    Both lists are empty if either is. A number is no replacement if `others` contain it, if it is 0, 1 or 2, or if it
    is the same in other units (a week and 7 days, 10 % and 0.1).
    """
    tried = {_decimal(found) for found in _NUMBER.findall(cases)}
    missing = [each for each in unused_numbers(quotes, code) if _decimal(each) not in tried]
    named = {_decimal(found) for text in (*quotes, others) for found in _DIGITS.findall(text)}
    found = [
        each
        for each in sorted(_used(code) - named)
        if each > _SMALL and not any(_is_another_unit(each, _decimal(other)) for other in missing)
    ]
    return (missing, [str(each) for each in found]) if missing and found else ([], [])


_SMALL = 2
_UNITS = (7, 12, 14, 24, 30, 31, 52, 60, 100, 365, 366, 1000, 1440, 3600)


def _is_another_unit(one: Decimal, other: Decimal) -> bool:
    pairs = [(one, other), (other, one)]
    return any(bottom and abs(top / bottom / unit - 1) < Decimal("0.03") for top, bottom in pairs for unit in _UNITS)


def _used(code: str) -> set[Decimal]:
    return {
        Decimal(found)
        for node in ast.walk(parse_python(code))
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float | str)
        for found in _DIGITS.findall(str(node.value))
    }


def _decimal(text: str) -> Decimal:
    return Decimal(text.replace(",", ""))
