"""The exception that every parser raises if its input has no certain meaning."""


class Unreadable(Exception):
    """Raised for input that cannot be parsed with certainty. `line` is counted from 1, and 0 means the whole input."""

    def __init__(self, reason: str, *, line: int = 0) -> None:
        self.reason = reason
        self.line = line
        super().__init__(f"line {line}: {reason}" if line else reason)
