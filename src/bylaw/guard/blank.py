"""What a guard says of things of which nothing is known, found once for all calls that are alike.

Only the call decides it then. Which things it names makes no difference while they are told apart, and are no words
that the guard knows: what was found for one call is said of the next with its names in place of the first one's.
"""

import ast
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from bylaw.facts.entity import UNSEEN, Entity, Fact, Field, Key
from bylaw.guard.operation import Failure
from bylaw.guard.reading import Spec
from bylaw.guard.run import Run, new_fact

KEPT = 64
"""For so many kinds of calls a guard's answer is kept; of one with an amount in it there is no end."""
LONGEST_NAME = 100
_HASHED = frozenset((str, int, float, bool, type(None)))


class Unfit(Exception):
    """The guard asks for more than facts of things: what it says hangs on the history."""


class Nothing:
    """A source that knows nothing, and notes what it is asked for."""

    def __init__(self) -> None:
        self.asked: dict[Fact, tuple[Entity, Field]] = {}

    def read(self, entity: Entity, key: Key, field: Field) -> Any:
        """Nothing."""
        if field.origin not in ("system", "conversation"):
            raise Unfit
        self.asked.setdefault(Fact(entity.name, key, field.name), (entity, field))
        return UNSEEN

    def members(self, entity: Entity, match: Mapping[str, Any]) -> tuple[Sequence[Key], bool]:
        """Which there are, nobody asks without a history."""
        raise Unfit

    def done(self, tool: str, match: Mapping[str, Any]) -> int:
        """Nor what was done."""
        raise Unfit


class Blank(Struct, frozen=True):
    """What a guard asks for where it is told nothing, in order, and what it says then."""

    keys: tuple[tuple[str | None, ...], ...]
    """The argument of the call behind each part of a key, None for a part that is always the same; empty where all
    are."""
    constants: tuple[Key, ...]
    """The keys with those parts."""
    questions: tuple[tuple[Spec, int], ...]
    """Facts, each with the place of its key."""
    reads: tuple[int, ...]
    lacking: tuple[int, ...]
    paths: int

    def facts(self, arguments: Mapping[str, Any]) -> list[Fact]:
        """The facts that it asks for of a call with these arguments."""
        keys: list[Key] = [
            _filled(parts, constant, arguments) if parts else constant
            for parts, constant in zip(self.keys, self.constants, strict=True)
        ]
        return [new_fact(Fact, (spec.entity_name, keys[at], spec.field_name)) for spec, at in self.questions]


class Blanks:
    """What one guard says where nothing is known, by kind of call."""

    def __init__(self, nodes: Iterable[ast.AST], entities: Mapping[str, Entity], *, reads_keys: bool) -> None:
        """`reads_keys` where it reads a part of a thing's key as a value: then names are not only names."""
        listed = list(nodes)
        self._named, self._valued = _uses(listed)
        if reads_keys:
            self._valued, self._named = (*self._valued, *self._named), ()
        self._tells_time = any(isinstance(node, ast.Name) and node.id == "now" for node in listed)
        words = {node.value for node in listed if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        words.update(word for entity in entities.values() for field in entity.fields.values() for word in field.values)
        self._words = words
        self._known: dict[Any, Blank | None] = {}

    def kind_of(self, arguments: Mapping[str, Any], tool: str, now: datetime | None) -> Any:
        """What calls have in common of which the guard says the same; None where a call is like no other."""
        names: set[Any] = set()
        for name in self._named:
            value: Any = arguments.get(name)
            if value.__class__ is not str or len(value) > LONGEST_NAME or value in self._words:
                return None
            names.add(value)
        if len(names) < len(self._named):
            return None
        kind: list[Any] = [tool, now if self._tells_time else None]
        for name in self._valued:
            value = arguments.get(name, self)
            if value in names if value.__class__ is str else value.__class__ not in _HASHED and value is not self:
                return None
            kind += (value.__class__, value)
        return tuple(kind)

    def is_new(self, kind: Any) -> bool:
        """Whether calls of this kind are worth finding out about."""
        return kind not in self._known and len(self._known) < KEPT

    def say(self, run: Run, kind: Any) -> "tuple[Blank, list[Fact]] | None":
        """What is said of a call where its source knows nothing of all that is asked for; None where it may."""
        blank = self._known.get(kind)
        if blank is None:
            return None
        facts = blank.facts(run.arguments)
        given = run.given
        try:
            for fact, (spec, _) in zip(facts, blank.questions, strict=True):
                value = given.get(fact, run)
                if value is run:
                    value = run.ask(spec, fact.key or (), fact)
                if value is not UNSEEN:
                    return None
        except (Failure, ArithmeticError, ValueError):
            # The guard meets it again, where it is told.
            return None
        return blank, facts

    def placed(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments, with the name of each that only names something in its place."""
        return {**arguments, **{name: f"\0{name}" for name in self._named}}

    def keep(self, kind: Any, blank: Blank | None) -> None:
        """Remember what is said of such calls; None where that hangs on more."""
        self._known[kind] = blank


def blank_of(
    asked: Mapping[Fact, tuple[Entity, Field]], reads: Iterable[Fact], lacking: Iterable[Fact], paths: int
) -> Blank:
    """What was found for a call whose names stand for themselves."""
    places = {fact: place for place, fact in enumerate(asked)}
    keys: dict[Key, int] = {}
    for fact in asked:
        assert fact.key is not None
        keys.setdefault(fact.key, len(keys))
    return Blank(
        tuple(tuple(_argument(part) for part in key) if any(map(_argument, key)) else () for key in keys),
        tuple(keys),
        tuple((Spec(*asked[fact]), keys[fact.key or ()]) for fact in asked),
        tuple(places[fact] for fact in reads),
        tuple(places[fact] for fact in lacking),
        paths,
    )


def _argument(part: Any) -> str | None:
    return part[1:] if isinstance(part, str) and part[:1] == "\0" else None


def _filled(parts: Sequence[str | None], constant: Key, arguments: Mapping[str, Any]) -> Key:
    return tuple([constant[at] if name is None else arguments[name] for at, name in enumerate(parts)])


def _uses(nodes: Sequence[ast.AST]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The arguments that only name something, as keys or compared with what a fact names; and all others."""
    naming: set[int] = set()
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="facts"))):
                naming.update(map(id, (*node.args, *(keyword.value for keyword in node.keywords))))
            case ast.Call(func=ast.Name(id="deny")):
                # What a denial tells is not said where it is open.
                naming.update(id(part) for part in ast.walk(node))
            case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[right]):
                if not _is_argument(left) and isinstance(left, ast.Attribute | ast.Name):
                    naming.add(id(right))
                if not _is_argument(right) and isinstance(right, ast.Attribute | ast.Name):
                    naming.add(id(left))
            case _:
                pass
    named: dict[str, None] = {}
    valued: dict[str, None] = {}
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Name(id="call"), attr=name):
                (named if id(node) in naming else valued)[name] = None
            case ast.Call(func=ast.Name(id="get"), args=[ast.Name(id="call"), ast.Constant(value=name), *_]):
                valued[str(name)] = None
            case _:
                pass
    valued.pop("tool", None)
    return tuple(name for name in named if name not in valued and name != "tool"), tuple(valued)


def _is_argument(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "call"
