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
    """The files of `tests` that must notice, apart by blanks."""

    @property
    def tests(self) -> tuple[str, ...]:
        return tuple(f"tests/{name}" for name in self.by.split())
