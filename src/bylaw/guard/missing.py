"""What stands in a guard for a field whose value is not known: an Unknown that knows what values the field may have.

Its thing exists where something that was read on the path names it.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, cast

from bylaw.facts.entity import EXISTS, UNSEEN, Fact, FactSource, Field, Key, Origin
from bylaw.facts.unknown import BranchDecider, Unknown, UnknownBool, opaque_bool
from bylaw.facts.variable import DAY, EITHER, TRUE, ValueSet, Variable, Words, name_of_fact, words_of
from bylaw.guard.builtin import BuiltIns
from bylaw.guard.interruption import Absent, no_such
from bylaw.guard.language import UNKNOWN_TICKS
from bylaw.guard.operation import admit
from bylaw.guard.reading import Spec

new_fact: Callable[..., Fact] = tuple.__new__  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
"""Makes a Fact without the detour through its Python-level constructor: this is the hottest line of an audit."""


def unknown_fact(
    decider: BranchDecider, field: Field, name: str, needs: Mapping[Fact, Origin], thing: Any = None
) -> Unknown:
    """The Unknown that stands for a field whose value is not known."""
    match field.type:
        case "boolean":
            whose = (thing[0], thing[1]) if field.name == "exists" and thing is not None else None
            return UnknownBool(decider, Variable(name, EITHER, None, needs, "boolean", whose), TRUE)
        case "enum":
            return Unknown(decider, name, needs, "text", words=words_of(field.values))
        case "string":
            return Unknown(decider, name, needs, "text")
        case "integer":
            return Unknown(decider, name, needs, "number", step=1)
        case "number":
            return Unknown(decider, name, needs, "number", exact=False)
        case "money":
            return Unknown(decider, name, needs, "number")
        case "date":
            return Unknown(decider, name, needs, "time", step=DAY)
        case "datetime":
            return Unknown(decider, name, needs, "time", step=1)
        case "list":
            return Unknown(decider, name, needs, "list")
        case "object":
            return Unknown(decider, name, needs, "record")


DIGITS = frozenset("123456789")


class References:
    """What one path has read, looked through for names as it grows."""

    __slots__ = ("_looked_through", "_names", "_read")

    def __init__(self) -> None:
        self._read: Mapping[Fact, Any] = {}
        self._names: set[str] = set()
        self._looked_through = 0

    def name(self, key: Key, read: Mapping[Fact, Any]) -> bool:
        """Whether something `read` on this path names the thing.

        A word without a digit, or a 0, may say that there is none (`none`, `n/a`), so it names nothing here.
        """
        if len(key) != 1 or DIGITS.isdisjoint(str(key[0])):
            return False
        if self._read is not read:
            self._read, self._names, self._looked_through = read, set(), 0
        for value in islice(read.values(), self._looked_through, None) if self._looked_through < len(read) else ():
            if value.__class__ is str:
                self._names.add(value)
            elif value.__class__ is list or value.__class__ is tuple:
                self._names.update(name for name in cast("Sequence[Any]", value) if isinstance(name, str))
        self._looked_through = len(read)
        return key[0] in self._names


class MissingFacts(BuiltIns):
    """The facts that a guard asks for and nobody knows, along one path."""

    __slots__ = (
        "doubtful", "given", "has_decided_existence", "hushed", "is_noting", "is_open", "memo", "path", "references",
        "source", "touched", "unknowns",
    )  # fmt: skip

    source: FactSource
    given: dict[Any, Any]
    """What the source answered, over all guards and paths: by fact, or by another question."""
    unknowns: dict[Fact, tuple[Unknown, bool, tuple[str, Any]]]
    """What stands for each fact that is not known, whether it is open that the thing exists at all, and which."""
    is_open: bool
    """Whether anything but plain known facts was met since the beginning."""
    references: References
    doubtful: dict[Fact, tuple[str, Any]]
    """Facts of things of which nothing shows that they exist."""
    memo: dict[Fact, Any]
    """What was read on the path: a value, or the Unknown in its place."""
    is_noting: bool
    """Whether what is read counts: not after the first unknown fact, and not for the text of a denial."""
    hushed: str | None
    has_decided_existence: bool
    path: dict[str, ValueSet]
    touched: set[tuple[str, Any]]

    @abstractmethod
    def decide(self, truth: UnknownBool) -> bool:
        """The answer to an Unknown boolean on this path."""

    def choose(self, spec: Spec, key: Key, fact: Fact, possible: tuple[Any, ...]) -> Any:
        """One of the few values that a fact may have: this path goes on with it, another path with another."""
        self.missing(spec, key, fact)
        name = name_of_fact(spec.entity_name, key, spec.field_name)
        for place, value in enumerate(possible[:-1]):
            if self.decide(opaque_bool(self, f"{name} is value {place + 1}", {fact: spec.origin})):
                return admit(value, self.zone)
        return admit(possible[-1], self.zone)

    def missing(self, spec: Spec, key: Key, fact: Fact) -> Unknown:
        self.is_open = True
        self.ticks -= UNKNOWN_TICKS
        if self.ticks < 0:
            self.spend(0)
        if spec.is_system:
            self.is_noting = False
        found = self.unknowns.get(fact)
        if found is None:
            thing = (spec.entity_name, key)
            name = name_of_fact(*thing, spec.field_name)
            unknown = unknown_fact(self, spec.field, name, {fact: spec.origin}, thing)
            is_shaky = spec.is_system and spec.field_name != "exists" and not self.is_shown_to_exist(spec, key)
            found = self.unknowns[fact] = (unknown, is_shaky, thing)
        unknown, is_shaky, thing = found
        if spec.field_name != "exists":
            if self.has_decided_existence:
                self.check_exists(thing)
            self.touched.add(thing)
            if is_shaky and fact not in self.doubtful and not self.references.name(key, self.memo):
                self.doubt(fact, thing)
        return unknown

    def is_shown_to_exist(self, spec: Spec, key: Key) -> bool:
        fact = new_fact(Fact, (spec.entity_name, key, "exists"))
        found = self.given.get(fact, self)
        if found is self:
            found = self.given[fact] = self.source.read(spec.entity, key, EXISTS)
        return found is not UNSEEN

    def doubt(self, fact: Fact, thing: tuple[str, Any]) -> None:
        """Nothing shows that the thing exists: one completion of what is unknown ends here, in a denial."""
        if self.hushed is None and fact not in self.doubtful and not self.is_there(thing):
            self.doubtful[fact] = thing

    def is_there(self, thing: tuple[str, Any]) -> bool:
        """Whether this path took the thing to exist."""
        if not self.has_decided_existence:
            return False
        possible = self.path.get(name_of_fact(*thing, "exists"))
        return isinstance(possible, Words) and False not in possible.values

    def read_of_unknown(self, spec: Spec, key: Unknown) -> Unknown:
        """A field of a thing whose key is not known: what is missing is what the key needs."""
        self.is_open = True
        thing = (spec.entity_name, key.text)
        if spec.field_name != "exists":
            self.check_exists(thing)
            if spec.is_system:
                for fact, origin in key.needs.items():
                    if origin == "system":
                        self.doubt(fact, thing)
        return unknown_fact(self, spec.field, name_of_fact(*thing, spec.field_name), key.needs, thing)

    def check_exists(self, thing: tuple[str, Any]) -> None:
        """A field read where the path took the thing not to exist ends it, and the other way round in `decide`."""
        if self.has_decided_existence and self.is_gone(thing):
            raise Absent(no_such(*thing))
        self.touched.add(thing)

    def is_gone(self, thing: tuple[str, Any]) -> bool:
        """Whether this path took the thing not to exist."""
        possible = self.path.get(name_of_fact(*thing, "exists"))
        return isinstance(possible, Words) and True not in possible.values
