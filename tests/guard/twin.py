"""What a guard means. Slow on purpose: `evaluate` is tested against this, so it must be obvious.

Runs the guard's own source as ordinary Python on every way the unknown facts may be, over small domains.
"""

import functools
import itertools
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from bylaw.facts.entity import ABSENT, UNSEEN, Between, Entity, Fact


class NoSuchThing(Exception):
    pass


class Impossible(Exception):
    """A thing that a record names is taken not to exist."""


class Thing:
    def __init__(self, entity: Entity, key: tuple[Any, ...], facts: "Facts") -> None:
        self._entity, self._key, self._values, self._facts = entity, key, facts.values, facts

    def __getattr__(self, name: str) -> Any:
        if name in self._entity.key:
            return self._key[self._entity.key.index(name)]
        existence, fact = Fact(self._entity.name, self._key, "exists"), Fact(self._entity.name, self._key, name)
        exists = self._values.get(existence, True)
        if name == "exists":
            self._facts.asked.add(existence)
            return exists
        value = self._values[fact]
        if not exists and existence not in self._facts.known | self._facts.asked and self._key[0] in self._facts.named:
            raise Impossible
        if not exists or value is ABSENT:
            raise NoSuchThing(self._entity.name)
        if fact in self._facts.known and isinstance(value, str):
            self._facts.named.add(value)
        return value


class Facts:
    def __init__(self, entities: Mapping[str, Entity], values: Mapping[Fact, Any], known: frozenset[Fact]) -> None:
        self._entities, self.values, self.known = entities, values, known
        self.named: set[str] = set()
        """What the known facts that were read say: a thing of that name exists."""
        self.asked: set[Fact] = set()

    def __getattr__(self, name: str) -> Any:
        entity = self._entities[name]
        if not entity.key:
            return Thing(entity, (), self)
        return lambda *key: Thing(entity, key, self)


class Record(dict[str, Any]):
    def __getattr__(self, name: str) -> Any:
        return self[name]


def plain(value: Any) -> Any:
    """Data whose records answer to `record.part`."""
    if isinstance(value, Mapping):
        return Record({name: plain(part) for name, part in value.items()})
    return [plain(part) for part in value] if isinstance(value, list) else value


@functools.lru_cache(maxsize=1)
def function(source: str, name: str, now: datetime) -> Any:
    """The guard as ordinary Python has it."""
    names: dict[str, Any] = {
        "permit": lambda: "permit",
        "deny": lambda text: "deny",
        "now": lambda: now,
        "days": lambda n: timedelta(days=n),
        "hours": lambda n: timedelta(hours=n),
        "date": date.fromisoformat,
        "time": lambda day, clock: datetime.combine(day, time.fromisoformat(clock)),
        "money": Decimal,
        "count": lambda items: sum(1 for item in items if item),
        "get": lambda record, key, default=None: record.get(key, default),
        "lower": str.lower,
        "strip": str.strip,
    }
    exec(source, names)
    return names[name]


def run(guard: Any, arguments: Any, facts: Facts) -> str:
    """`permit`, `deny` or `failed`, every fact being known."""
    try:
        return guard(arguments, facts)
    except NoSuchThing:
        return "deny"
    except Impossible:
        return "impossible"
    except Exception:
        return "failed"


def every_completion(unknown: Mapping[Fact, Sequence[Any]]) -> Any:
    """Every way the unknown facts may be."""
    for combination in itertools.product(*unknown.values()):
        yield dict(zip(unknown, combination, strict=True))


def outcomes(
    source: str,
    name: str,
    arguments: Mapping[str, Any],
    entities: Mapping[str, Entity],
    known: Mapping[Fact, Any],
    unknown: Mapping[Fact, Sequence[Any]],
    now: datetime,
    enough: int = 3,
) -> set[str]:
    """All a guard may say; the search ends when there are `enough` answers."""
    guard, record = function(source, name, now), plain(arguments)
    found: set[str] = set()
    for completion in every_completion(unknown):
        found.add(run(guard, record, Facts(entities, {**known, **completion}, frozenset(known))))
        found.discard("impossible")
        if len(found) >= enough:
            break
    return found


class Table:
    """A source of facts: a table; what is not in it is unseen."""

    def __init__(
        self,
        values: Mapping[Fact, Any],
        members: Sequence[tuple[Any, ...]] = (),
        *,
        complete: bool = True,
        done: int | Between = 0,
    ) -> None:
        self.values, self.keys, self.complete, self.count = dict(values), members, complete, done
        self.asked: list[Any] = []

    def read(self, entity: Entity, key: tuple[Any, ...], field: Any) -> Any:
        value = self.values.get(Fact(entity.name, key, field.name), UNSEEN)
        if isinstance(value, ValueError):
            raise value
        return value

    def members(self, entity: Entity, match: Mapping[str, Any]) -> tuple[Sequence[tuple[Any, ...]], bool]:
        self.asked.append((entity.name, dict(match)))
        return self.keys, self.complete

    def done(self, tool: str, match: Mapping[str, Any]) -> int | Between:
        self.asked.append((tool, dict(match)))
        return self.count
