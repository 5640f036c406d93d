"""The exception of every reader: the text cannot be read with certainty."""


class Unreadable(Exception):
    """A text that cannot be read with certainty. `line` is counted from 1, and 0 means the whole text."""

    def __init__(self, reason: str, *, line: int = 0) -> None:
        self.reason = reason
        self.line = line
        super().__init__(f"line {line}: {reason}" if line else reason)
