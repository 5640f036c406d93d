"""Errors that a user can fix. A policy violation is returned as a value, not raised as an error."""

from collections.abc import Iterable, Sequence


class BylawError(Exception):
    """An error that the user can fix.

    `code` is stable and has a page in `docs/errors/`. `place` is `file` or `file:line`. `lacks` names an undeclared
    item such as `tool get_order`. Its many references are then reported only once.
    """

    code = "BY000"

    def __init__(self, message: str, *, place: str = "", hint: str = "", lacks: str = "") -> None:
        self.message = message
        self.place = place
        self.hint = hint
        self.lacks = lacks
        super().__init__(str(self))

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        then = f"; {self.hint}" if self.hint else ""
        return f"{where}{self.message}{then}"


def meant(name: str, known: Iterable[str]) -> str:
    """Return a hint for an undeclared name: the closest declared name, or some of them."""
    import difflib

    known = sorted(set(known))
    if close := difflib.get_close_matches(name, known, 1):
        return f"did you mean `{close[0]}`?"
    return f"known names: {', '.join(f'`{one}`' for one in known[:12])}" if known else "none are declared"


class UsageError(BylawError):
    """The command line names something that is missing, or options that exclude each other."""

    code = "BY001"


class MissingExtra(UsageError):
    def __init__(self, what: str, extra: str) -> None:
        super().__init__(what, hint=f"in your clone of Bylaw: pip install '.[{extra}]'")


class FormatError(BylawError):
    """The file is not in a trace format that Bylaw reads."""

    code = "BY101"


class RecordError(BylawError):
    """A record of a trace file is malformed. It is reported, counted and skipped."""

    code = "BY102"


class GuardError(BylawError):
    """The guard is outside the guard language."""

    code = "BY201"


class SyntaxFault(GuardError):
    """The text is not Python, so nothing in it can be checked."""


class FormulaError(BylawError):
    """A rule's formula does not parse or has no meaning. `column` counts from 1. A column of 0 means that there is no
    text.
    """

    code = "BY301"

    def __init__(self, message: str, *, column: int = 0, place: str = "", hint: str = "") -> None:
        self.column = column
        super().__init__(f"column {column}: {message}" if column else message, place=place, hint=hint)


class CircuitError(BylawError):
    """A circuit, its evidence or its weights are invalid."""

    code = "BY302"


class PackError(BylawError):
    """A pack does not load. `faults` contains every error with its location."""

    code = "BY401"

    def __init__(self, faults: Sequence[BylawError], *, place: str = "") -> None:
        self.faults = tuple(faults)
        count = len(self.faults)
        lines = "".join(f"\n  {fault.code} {fault}" for fault in self.faults)
        super().__init__(f"{count} error{'s' if count != 1 else ''}{lines}", place=place)


class WorldError(BylawError):
    """A world could not be opened or read."""

    code = "BY501"
