"""Calls that were judged before: the same tool, arguments and time, and the same answers to every question.

A guard is a pure function of the call and of what its source answers, so nothing else needs to be the same. The runs
of a test suite repeat each other: many agents make the same call on the same task, having seen the same. Answers lead
through a tree, question by question in the order that the guards asked; at its end lies what the guards said.
"""

from collections.abc import Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any

import msgspec

from bylaw.engine.judgement import PolicyEvidence
from bylaw.facts.entity import EXISTS, Entity, Fact, FactSource, OneOf
from bylaw.guard import Answers, Question
from bylaw.trace.event import Call

_encode = msgspec.json.encode

Root = tuple[str, bytes, datetime | None]
LEAVES = 10_000
"""How many judgements are remembered before they are forgotten together."""
TRIAL = 1_000
"""After so many calls it shows whether they repeat at all."""
WORTH = 0.1


class _Node:
    """A question, and for each answer met so far where it led: to another question, or to what the guards said."""

    __slots__ = ("after", "question")

    def __init__(self, question: Question) -> None:
        self.question = question
        self.after: dict[Any, _Node | tuple[PolicyEvidence, ...]] = {}


class Memory:
    """What the guards of one pack said of earlier calls."""

    def __init__(self, entities: Mapping[str, Entity]) -> None:
        self._entities = entities
        self._roots: dict[Root, _Node | tuple[PolicyEvidence, ...]] = {}
        self._leaves = 0
        self._asked = 0
        self.hits = 0
        """How many calls were like an earlier one."""

    def root(self, call: Call, now: datetime | None) -> Root | None:
        """Where to look for calls like this one; None where that is not worth it."""
        if self._asked >= TRIAL and self.hits < self._asked * WORTH:
            return None
        self._asked += 1
        try:
            encoded = _encode(call.arguments)
            # What is not a number is written as null.
            return None if b"null" in encoded and "nan" in repr(call.arguments) else (call.tool, encoded, now)
        except (OverflowError, ValueError, TypeError, RecursionError):
            return None

    def recall(self, root: Root, seen: FactSource) -> tuple[PolicyEvidence, ...] | None:
        """What the guards said of a call like this one, if there was any."""
        node = self._roots.get(root)
        while isinstance(node, _Node):
            try:
                node = node.after.get(_key(self._ask(node.question, seen)))
            except ValueError:
                return None
        if node is not None:
            self.hits += 1
        return node

    def keep(self, root: Root, answers: Answers, said: tuple[PolicyEvidence, ...]) -> None:
        """Remember what the guards said, after what they asked."""
        if not answers.is_whole:
            return
        if self._leaves >= LEAVES:
            self._roots.clear()
            self._leaves = 0
        self._leaves += 1
        trace = list(answers.given.items())
        if not trace:
            self._roots[root] = said
            return
        node = self._roots.get(root)
        if not isinstance(node, _Node):
            node = self._roots[root] = _Node(trace[0][0])
        for (_, answer), (question, _) in pairwise(trace):
            key = _key(answer)
            after = node.after.get(key)
            if not isinstance(after, _Node):
                after = node.after[key] = _Node(question)
            node = after
        node.after[_key(trace[-1][1])] = said

    def _ask(self, question: Question, seen: FactSource) -> Any:
        if isinstance(question, Fact):
            entity = self._entities[question.entity]
            field = EXISTS if question.field == "exists" else entity.fields[question.field]
            return seen.read(entity, question.key or (), field)
        kind, name, match = question
        return seen.done(name, dict(match)) if kind == "done" else seen.members(self._entities[name], dict(match))


def _key(answer: Any) -> Any:
    """An answer as a key: answers that a guard could tell apart have different ones."""
    kind = answer.__class__
    if kind is str:
        return answer
    if kind is OneOf:
        return object()
    if kind is list or kind is dict or kind is tuple:
        return _encode(answer)
    return kind, answer
