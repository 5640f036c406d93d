"""Durations: `90s`, `30m`, `2h`, `7d`, or a number of seconds."""

import re

_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_WRITTEN = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s?([smhd]?)")


def read_duration(text: str, *, unit: bool = False) -> float | None:
    """The number of seconds; None unless the text is a positive duration, with a unit if `unit` is set."""
    found = _WRITTEN.fullmatch(text.strip())
    if found is not None and unit and not found[2]:
        return None
    seconds = float(found[1]) * _SECONDS[found[2]] if found is not None else 0.0
    return seconds or None


def told_duration(seconds: float) -> str:
    """A duration in words: `hour`, `2 hours`, `90 minutes`."""
    for name, size in (("day", 86_400.0), ("hour", 3600.0), ("minute", 60.0), ("second", 1.0)):
        count = seconds / size
        if count >= 1 and count == int(count):
            return name if count == 1 else f"{int(count)} {name}s"
    return f"{seconds:g} seconds"
