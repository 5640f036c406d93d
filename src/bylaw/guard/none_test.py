"""The fields of which a pack's code asks whether there is one: its author knows that `null` means none."""

from collections.abc import Iterable

from bylaw.guard.nullable import fields_compared
from bylaw.guard.parse import parse_text
from bylaw.guard.syntax import parts_of


def compared_with_none(functions: Iterable[str], expressions: Iterable[str] = ()) -> frozenset[str]:
    """The names of fields that are compared with `None`, at once or under a name given to them; faults are not told."""
    trees = [parse_text(text, file="")[0] for text in functions if "None" in text]
    trees += [parse_text(text.strip(), file="", mode="eval")[0] for text in expressions if "None" in text]
    return frozenset[str]().union(*(fields_compared(parts_of(tree)) for tree in trees))
