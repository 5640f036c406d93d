"""The exception that every reader raises if it cannot read its input with certainty."""


class Unreadable(Exception):
    """Input that cannot be read with certainty. Lines are counted from 1. A `line` of 0 means the whole input."""

    def __init__(self, reason: str, *, line: int = 0) -> None:
        self.reason = reason
        self.line = line
        super().__init__(f"line {line}: {reason}" if line else reason)
