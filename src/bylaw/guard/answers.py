"""What a source has answered so far: each question is put to it once, by whichever guard or path asks first."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bylaw.facts.entity import Entity, Fact, FactSource, Field, Key, OneOf

Question = Fact | tuple[str, str, tuple[tuple[str, Any], ...]]
"""A fact, or (`done` or `members`, of what, with what)."""
UNASKED: Any = object()
_UNKEPT = frozenset((list, dict, tuple, bool))


class Answers:
    """The answers of one source, in the order of asking."""

    __slots__ = ("given", "is_whole", "source")

    def __init__(self, source: FactSource) -> None:
        self.source = source
        self.given: dict[Question, Any] = {}
        self.is_whole = True
        """Every question had an answer that is kept."""

    def read(self, fact: Fact, entity: Entity, key: Key, field: Field) -> Any:
        """The value of a fact, which is that of `field`."""
        answer = self.given.get(fact, UNASKED)
        if answer is UNASKED:
            try:
                answer = self.given[fact] = self.source.read(entity, key, field)
                # Which of several values it is nobody knows: no other call is sure to be like this one.
                self.is_whole = self.is_whole and answer.__class__ is not OneOf
            except ValueError:
                self.is_whole = False
                raise
        return answer

    def members(self, entity: Entity, match: Mapping[str, Any]) -> tuple[Sequence[Key], bool]:
        """Keys of the things that match, and whether these are surely all."""
        return self._ask("members", entity.name, match, lambda: self.source.members(entity, match))

    def done(self, tool: str, match: Mapping[str, Any]) -> Any:
        """How many earlier calls match."""
        return self._ask("done", tool, match, lambda: self.source.done(tool, match))

    def _ask(self, kind: str, name: str, match: Mapping[str, Any], answer: Callable[[], Any]) -> Any:
        question = (kind, name, tuple(match.items()))
        # A list among what is to match cannot be kept, and `True` would be taken for `1`.
        if any(value.__class__ in _UNKEPT for value in match.values()):
            self.is_whole = False
            return answer()
        if question not in self.given:
            try:
                self.given[question] = answer()
            except ValueError:
                self.is_whole = False
                raise
        return self.given[question]
