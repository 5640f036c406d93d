"""A line under `runs` of tools.yaml: a command that agents may run without asking the owner.

`pytest [-q -x] *paths*` allows `pytest`, followed in any order by words from the brackets and paths in the project.
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
    """The variables, the program, and the words that must follow it."""
    options: frozenset[str] = frozenset()
    """The words that may follow after those."""
    takes_paths: bool = False

    def fits(self, command: "Command", *, may_be_elsewhere: bool) -> bool:
        """Whether a command matches this line. Paths in the required words are relative to the folder in which the
        shell starts.
        """
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
        """Return the paths in a command that matches this line."""
        given = command.known_words or ()
        return [word for word in given[len(self.words) :] if word not in self.options]


def read_run_line(text: str) -> RunLine | None:
    """Return the parsed line, or None if the text is not a valid line."""
    found = _LINE.fullmatch(" ".join(text.split()))
    if found is None:
        return None
    return RunLine(tuple(found[1].split()), frozenset((found[2] or "").split()), found[3] is not None)
