"""A planted bug."""

from pathlib import Path
from typing import NamedTuple


class Bug(NamedTuple):
    """A wrong replacement for some text of the source, and the tests that should detect it."""

    name: str
    file: str
    """The file or folder in `src/bylaw`."""
    old: str
    new: str
    by: str
    """The test files that must fail, separated by blanks, relative to `tests` or to the root (`lab/...`)."""

    @property
    def tests(self) -> tuple[str, ...]:
        return tuple(name if name.startswith("lab/") else f"tests/{name}" for name in self.by.split())

    def place(self, source: Path) -> Path | None:
        """Return the file for the bug: the named file, or the only other file in its area that contains the text."""
        named = source / "bylaw" / self.file
        area = source / "bylaw" / self.file.partition("/")[0]
        if named.is_file() and self.old in named.read_text(encoding="utf-8"):
            return named
        moved = [path for path in area.rglob("*.py") if self.old in path.read_text(encoding="utf-8")]
        return moved[0] if len(moved) == 1 else None
