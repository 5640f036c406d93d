"""What ends a run of a guard before it has returned, beside failures and values that it cannot do without."""

from typing import Any

from bylaw.facts.variable import ValueSet, Variable


class Absent(Exception):
    """A field of a thing that does not exist was read: the path ends in deny."""


class Unsure(Exception):
    """While looking for a member that surely answers yes: this one depends on something unknown."""


class Split(Exception):
    """The path depends on what only the user or the host can say: both ways are looked at separately."""

    def __init__(self, variable: Variable, region: ValueSet, rest: ValueSet) -> None:
        self.variable, self.region, self.rest = variable, region, rest


class Hushed(Exception):
    """A deny text depends on something unknown: it is said without the value."""


def no_such(entity: str, key: Any) -> str:
    """What a denial says of a thing that is not there."""
    shown = ", ".join(str(part) for part in key) if isinstance(key, tuple) else "?"  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return f"no such {entity} `{shown}`" if shown else f"no {entity} so far: nothing has shown one"
