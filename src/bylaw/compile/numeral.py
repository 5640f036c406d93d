"""Numbers that sentences name, and whether a guard uses them: a hint for the reviewer, not a proof."""

import ast
import re
from collections.abc import Iterable
from decimal import Decimal

_CLAUSE = re.compile(r"^\s*\d+(\.\d+)+\.?\s")
_NUMBER = re.compile(r"(?<![\w.])\$?(\d+(?:,\d{3})*(?:\.\d+)?)(?!\w)")
_DIGITS = re.compile(r"\d+(?:\.\d+)?")


def unused_numbers(quotes: Iterable[str], code: str) -> list[str]:
    """The numbers of the quotes, in digits, that stand nowhere in the code."""
    used = {
        Decimal(found)
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float | str)
        for found in _DIGITS.findall(str(node.value))
    }
    named = (found for quote in quotes for found in _NUMBER.findall(_CLAUSE.sub("", quote)))
    return list(dict.fromkeys(each for each in named if Decimal(each.replace(",", "")) not in used))
