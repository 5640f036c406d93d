"""Calls that were judged before: the same tool, arguments and time, and the same answers about every fact.

A guard is a pure function of the call and of what its source answers, so nothing else needs to be the same. Runs of a
benchmark repeat each other: many agents make the same call on the same task, having seen the same. The answers lead
through a tree, question by question as the guards asked them; at its end lies what the guards said.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

import msgspec

from bylaw.engine.judgement import Evidence, Sight
from bylaw.facts.entity import Entity, Field, Key
from bylaw.facts.ledger import Shown

_encode = msgspec.json.encode

Question = tuple[Any, ...]
"""What was asked of a source: the name of its method and the arguments."""
LEAVES = 20_000
"""How many judgements are remembered before they are forgotten together."""
TRIAL = 2_000
"""After so many calls it shows whether they repeat at all."""
WORTH = 0.1


class _Node:
    """A question, and for each answer met so far where it led: to another question, or to what the guards said."""

    __slots__ = ("after", "question")

    def __init__(self, question: Question) -> None:
        self.question = question
        self.after: dict[Any, _Node | tuple[Evidence, ...]] = {}


class Memory:
    """What guards of one pack said of earlier calls."""

    def __init__(self) -> None:
        self._roots: dict[tuple[str, bytes, datetime | None], _Node | tuple[Evidence, ...]] = {}
        self._leaves = 0
        self._asked = 0
        self.hits = 0
        """How many calls were like an earlier one."""

    def judge(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        now: datetime | None,
        seen: Sight,
        evaluate: Callable[[Sight], tuple[Evidence, ...]],
    ) -> tuple[Evidence, ...]:
        """What the guards say; `evaluate` asks them where nothing like this was met before."""
        if self._asked >= TRIAL and self.hits < self._asked * WORTH:
            return evaluate(seen)
        self._asked += 1
        try:
            root = (tool, _encode(arguments), now)
        except (OverflowError, ValueError, TypeError, RecursionError):
            return evaluate(seen)
        known = self._recall(self._roots.get(root), seen)
        if known is not None:
            self.hits += 1
            return known
        recording = _Recording(seen)
        said = evaluate(recording)
        if not recording.is_broken:
            self._keep(root, recording.trace, said)
        return said

    def _recall(self, node: "_Node | tuple[Evidence, ...] | None", seen: Sight) -> tuple[Evidence, ...] | None:
        while isinstance(node, _Node):
            method, *given = node.question
            try:
                answer = getattr(seen, method)(*given)
            except ValueError:
                return None
            node = node.after.get(_key(answer))
        return node

    def _keep(
        self,
        root: tuple[str, bytes, datetime | None],
        trace: Sequence[tuple[Question, Any]],
        said: tuple[Evidence, ...],
    ) -> None:
        if self._leaves >= LEAVES:
            self._roots.clear()
            self._leaves = 0
        self._leaves += 1
        if not trace:
            self._roots[root] = said
            return
        node = self._roots.get(root)
        if not isinstance(node, _Node):
            node = self._roots[root] = _Node(trace[0][0])
        for (_, answer), (question, _) in pairwise(trace):
            after = node.after.get(answer)
            if not isinstance(after, _Node):
                after = node.after[answer] = _Node(question)
            node = after
        node.after[trace[-1][1]] = said


class _Recording:
    """A source that keeps what it was asked and what it answered."""

    def __init__(self, seen: Sight) -> None:
        self._seen = seen
        self.trace: list[tuple[Question, Any]] = []
        self.is_broken = False
        """Whether it had to give an answer that cannot be kept."""

    def read(self, entity: Entity, key: Key, field: Field) -> Any:
        try:
            answer = self._seen.read(entity, key, field)
        except ValueError:
            self.is_broken = True
            raise
        self.trace.append((("read", entity, key, field), _key(answer)))
        return answer

    def members(self, entity: Entity, match: Mapping[str, Any]) -> tuple[Sequence[Key], bool]:
        found = self._seen.members(entity, match)
        self.trace.append((("members", entity, dict(match)), _key(found)))
        return found

    def done(self, tool: str, match: Mapping[str, Any]) -> int:
        count = self._seen.done(tool, match)
        self.trace.append((("done", tool, dict(match)), _key(count)))
        return count

    def shown_at(self, entity: Entity, key: Key, field: Field) -> Shown | None:
        return self._seen.shown_at(entity, key, field)


def _key(answer: Any) -> Any:
    """An answer as a key: answers that a guard could tell apart have different ones."""
    kind = answer.__class__
    if kind is str:
        return answer
    if kind is list or kind is dict or kind is tuple:
        return _encode(answer)
    return kind, answer
