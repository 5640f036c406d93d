"""What a planted bug is."""

from pathlib import Path
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

    def place(self, source: Path) -> Path | None:
        """Returns the file to plant it in: the named one, or the only other of its area that has the text."""
        named = source / "bylaw" / self.file
        area = source / "bylaw" / self.file.partition("/")[0]
        if named.is_file() and self.old in named.read_text(encoding="utf-8"):
            return named
        moved = [path for path in area.rglob("*.py") if self.old in path.read_text(encoding="utf-8")]
        return moved[0] if len(moved) == 1 else None
