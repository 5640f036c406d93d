"""What a planted bug is."""

from typing import NamedTuple


class Bug(NamedTuple):
    """Some text of the source, made wrong, and the tests that are for it."""

    name: str
    file: str
    """Within `src/bylaw`."""
    old: str
    new: str
    by: str
    """The test files that must fail, separated by blanks: within `tests`, or from `lab/` on."""

    @property
    def tests(self) -> tuple[str, ...]:
        return tuple(name if name.startswith("lab/") else f"tests/{name}" for name in self.by.split())
