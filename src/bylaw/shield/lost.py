"""Answers that leave open whether a write was done: it timed out, or the line broke before its answer came."""

import re

LONGEST = 400
"""A longer answer is one that came."""
_LOST = re.compile(
    r"\btim(?:ed|es|e)[ -]?out\b|\bdeadline[ _]exceeded\b|\bgateway time-?out\b|\b50[24]\b.{0,40}\b(?:gateway|error)\b"
    r"|\bconnection (?:was )?(?:reset|lost|closed|aborted)\b|\bno (?:answer|response|reply) (?:came|from|within)\b",
    re.IGNORECASE,
)


def is_lost(answer: str) -> bool:
    """Whether an answer says that no answer came. What such a write did has to be looked up before it is made again."""
    return len(answer) <= LONGEST and _LOST.search(answer) is not None
