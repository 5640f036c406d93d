"""What only the user or the host can say."""

from collections.abc import Mapping
from typing import Any

from bylaw.facts.call_record import CallRecord
from bylaw.facts.entity import UNDECLARED, UNSEEN, Field, Saying
from bylaw.facts.ledger import Ledger
from bylaw.facts.value import coerce
from bylaw.policy.pattern import Match, Pattern, compile_pattern
from bylaw.text.condition import is_meant
from bylaw.text.day import spoken_day
from bylaw.text.passage import passages_about


class Testimony:
    """What only the user or the host can say, as of one call; the same for every source."""

    def __init__(self, ledger: Ledger, at: CallRecord, context: Mapping[str, Any]) -> None:
        self._ledger = ledger
        self._at = at
        self._context = context

    def read(self, field: Field) -> Any:
        """The value, or UNSEEN."""
        if field.origin == "context":
            return coerce(field, self._context[field.name]) if field.name in self._context else UNSEEN
        for saying in field.sayings:
            value = self._at.call.arguments.get(saying.argument) if saying.argument else None
            if value is not None:
                return coerce(field, value)
        sayings = [(saying, compile_pattern(saying.says, saying.but_not)) for saying in field.sayings if saying.says]
        for step, text in self._ledger.stating([pattern for _, pattern in sayings], self._at.step):
            if not self._ledger.has_heard_since(step, self._at.step):
                # The user may have said otherwise since.
                return UNSEEN
            for saying, pattern in sayings:
                if (match := self._statement(saying, pattern, text)) is not None:
                    return coerce(field, saying.value) if saying.value is not None else _told(field, match)
        # What nobody said is so where the pack says what that means, and where all that was said is there.
        is_unsaid = bool(sayings) and field.default is not UNDECLARED and self._ledger.has_heard_all(self._at.step)
        return coerce(field, field.default) if is_unsaid else UNSEEN

    def _statement(self, saying: Saying, pattern: Pattern, text: str) -> Match | None:
        """What in a message states it: neither negated, nor hanging on a condition, nor said of another thing."""
        found = pattern.finditer(text)
        about: Any = self._at.call.arguments.get(saying.about) if saying.about else None
        spans = [(0, len(text))] if not saying.about else passages_about(text, about)
        for match in found:
            start, end = match.start(), match.end()
            if any(begin <= start < stop for begin, stop in spans) and is_meant(text, start, end):
                return match
        return None


def _told(field: Field, match: Match) -> Any:
    """The value that words have; a day may be said as people say it, and one that may be two is not known."""
    said = match[match.lastindex or 0]
    if field.type != "date" or not isinstance(said, str):
        return coerce(field, said)
    return spoken_day(said) or UNSEEN
