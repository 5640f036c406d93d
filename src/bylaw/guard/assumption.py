"""Assumptions: one way the facts of the user and the host may be."""

from collections.abc import Mapping

from bylaw.facts.variable import ValueSet, Variable, show_region


class Assumptions:
    """One way the user's and the host's facts may be: for each a set of values it lies in."""

    __slots__ = ("regions",)

    def __init__(self, regions: Mapping[str, tuple[Variable, ValueSet]] | None = None) -> None:
        self.regions: Mapping[str, tuple[Variable, ValueSet]] = regions or {}

    def narrowed(self, variable: Variable, region: ValueSet) -> "Assumptions":
        """The same, and `variable` lies in `region`."""
        return Assumptions({**self.regions, variable.name: (variable, region)})

    def __bool__(self) -> bool:
        return bool(self.regions)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Assumptions) and _regions(self) == _regions(other)

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.regions)))

    def __str__(self) -> str:
        return (
            "; ".join(show_region(variable, region) for variable, region in self.regions.values()) or "nothing assumed"
        )

    def __repr__(self) -> str:
        return f"Assumptions({self})"


NO_ASSUMPTIONS = Assumptions()


def _regions(assumptions: Assumptions) -> dict[str, ValueSet]:
    return {name: region for name, (_, region) in assumptions.regions.items()}
