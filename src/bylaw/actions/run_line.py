"""A line under `runs` of tools.yaml: a command that agents may run without asking the owner.

`pytest [-q -x] *paths*` means `pytest`, then any of the words in brackets and any paths of the project, in any order.
"""

import re
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from bylaw.reading.shell_command import Command

_LINE = re.compile(r"([^\[\]*]+?)(?: \[([^\[\]*]+)\])?( \*paths\*)?")
_PATH = re.compile(r"[\w.][\w./:,+-]*(?:\[[\w.,-]+\])?")


class RunLine(Struct, frozen=True):
    words: tuple[str, ...]
    """The variables, the program and its first words."""
    options: frozenset[str] = frozenset()
    """The words that may follow."""
    takes_paths: bool = False

    def fits(self, command: "Command", *, may_be_elsewhere: bool) -> bool:
        """Whether a command matches this line. Paths in the first words are relative to the first folder."""
        if command.is_privileged or (not command.is_of_system and command.written != self.words[0]):
            return False
        if any("/" in word for word in self.words) and (may_be_elsewhere or command.directories != frozenset({""})):
            return False
        given = command.known_words
        if given is None or given[: len(self.words)] != self.words:
            return False
        return all(
            word in self.options or (self.takes_paths and _PATH.fullmatch(word) is not None)
            for word in given[len(self.words) :]
        )

    def paths_of(self, command: "Command") -> list[str]:
        """Return the paths in a matching command."""
        given = command.known_words or ()
        return [word for word in given[len(self.words) :] if word not in self.options]


def read_run_line(text: str) -> RunLine | None:
    """Return the parsed line, or None for another form."""
    found = _LINE.fullmatch(" ".join(text.split()))
    if found is None:
        return None
    return RunLine(tuple(found[1].split()), frozenset((found[2] or "").split()), found[3] is not None)
