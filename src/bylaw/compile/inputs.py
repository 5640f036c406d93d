"""Generates calls for trying out a guard, and finds situations that its cases leave out.

Calls and facts are generated at random, one set (`World`) per seed, from the constants in guards. Every field takes a
value from a small pool around the constants. Values therefore fall on both sides of limits, and ids often match.

Cases may leave out enumeration values and bounds that a guard reads. Each gap is filled with a generated call. For an
enumeration value, a record in the call has that value. For a bound, the guard and a variant with `<` instead of `<=`
give different results for the call. A referee decides the expected outcome from the policy's sentences. If the
sentences do not settle it, the owner is asked.

A guard that fails on some recorded calls, or denies most of them, is reconsidered once. Complaints contain counts, code
locations and denial texts, but no values from records.
"""

import ast
import random
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, cast

from msgspec import Struct

from bylaw.compile.bench import Bench, Case
from bylaw.compile.plausible import Plausible, arguments_of
from bylaw.compile.schema import Schema, holds_records, names_in, record, section
from bylaw.engine.finished import verdicts
from bylaw.facts.entity import ABSENT, Entity, Field, Key, NoValue
from bylaw.facts.value import coerce, key_of, leaves
from bylaw.guard import Guard, evaluate
from bylaw.policy.statement import Policy
from bylaw.policy.tool import Tool
from bylaw.text.python import parse_python
from bylaw.trace import Call, Trajectory

WORLDS = 400
_ABSENT_SHARE = 0.03
_NONE_SHARE = 0.1
_UNMADE_SHARE = 0.3
_MEMBER_SHARE = 0.4
_IDS = ("X1", "X2")
_LENGTHS = (0, 1, 1, 2, 2, 3)
_LISTED_SHARE = 0.7
_UNLIKE_SHARE = 0.15
_CENT = Decimal("0.01")
_LARGEST = 10**15


class Pool(Struct, frozen=True):
    numbers: tuple[int, ...]
    money: tuple[str, ...]
    days: tuple[str, ...]
    times: tuple[str, ...]
    words: tuple[str, ...]
    read_as: Mapping[str, str]
    """Arguments that guards treat as amounts, dates or times, with their types."""
    inner_as: Mapping[str, str] = {}
    """Fields inside records that guards treat as amounts, dates or times, with their types."""


def pool_of(codes: Iterable[str], now: datetime) -> Pool:
    """Build a pool of values close to the constants in some guards."""
    numbers, money, days, times = {0, 1, 2}, {Decimal(0)}, {now.date()}, {now}
    words: set[str] = set()
    read_as: dict[str, str] = {}
    inner_as: dict[str, str] = {}

    def add_times(number: int) -> None:
        """Add the days and times that are `number` days or hours before and after now."""
        for signed, step in ((sign * number, step) for sign in (1, -1) for step in (-1, 0, 1)):
            with suppress(OverflowError):
                days.add(now.date() + timedelta(days=signed + step))
            with suppress(OverflowError):
                times.update(now + timedelta(hours=hours, minutes=step) for hours in (signed, 24 * signed))

    def add_text(text: str) -> None:
        with suppress(ValueError, OverflowError):
            days.update([date.fromisoformat(text) + timedelta(days=step) for step in (-1, 0, 1)])
            return
        with suppress(InvalidOperation):
            amount = Decimal(text)
            if amount.is_finite() and abs(amount) < _LARGEST:
                money.update((amount - _CENT, amount, amount + _CENT))
            return
        words.add(text)

    for node in (node for code in codes for node in _decisive(parse_python(code))):
        match node:
            case ast.Constant(value=bool()):
                pass
            case ast.Constant(value=int(number)):
                numbers |= {number - 1, number, number + 1}
                money |= {Decimal(number) - _CENT, Decimal(number), Decimal(number) + _CENT}
                add_times(number)
            case ast.Constant(value=str(text)):
                add_text(text)
            case ast.Call(func=ast.Name(id=("money" | "date" | "time") as kind), args=[argument, *_]):
                if name := _argument(argument):
                    read_as[name] = kind
                elif name := _part(argument):
                    inner_as[name] = kind
            case _:
                pass
    return Pool(
        tuple(sorted(numbers)),
        tuple(f"{amount:.2f}" for amount in sorted(money) if amount >= 0),
        tuple(day.isoformat() for day in sorted(days)),
        tuple(time.isoformat() for time in sorted(times)),
        tuple(sorted(words)),
        read_as,
        inner_as,
    )


def _decisive(node: ast.AST) -> Iterator[ast.AST]:
    """Yield every syntax node except those in the text of a denial."""
    yield node
    for part in ast.iter_child_nodes(node):
        if not (isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id == "deny"):
            yield from _decisive(part)


def arguments_read(code: str) -> frozenset[str]:
    nodes = (node for node in ast.walk(parse_python(code)) if isinstance(node, ast.expr))
    return frozenset(filter(None, map(_argument, nodes)))


def _argument(node: ast.expr) -> str:
    match node:
        case ast.Attribute(value=ast.Name(id="call"), attr=name):
            return name
        case ast.Call(func=ast.Name(id="get"), args=[ast.Name(id="call"), ast.Constant(value=str(name)), *_]):
            return name
        case _:
            return ""


def _part(node: ast.expr) -> str:
    match node:
        case ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
        case ast.Call(func=ast.Name(id="get"), args=[_, ast.Constant(value=str(name)), *_]):
            return name
        case _:
            return ""


class World:
    """Generated facts. Records what the guards read."""

    def __init__(self, seed: str, pool: Pool, inside: Mapping[tuple[str, str], Schema]) -> None:
        self._seed = seed
        self._pool = pool
        self._inside = inside
        self.read_so_far: dict[tuple[str, Key], dict[str, Any] | None] = {}
        self.absent: list[Key] = []
        self.done_so_far: list[dict[str, Any]] = []

    @property
    def facts(self) -> dict[str, dict[str, Any] | None]:
        """The facts that the guards read, in the format of a case."""
        named = {f"{kind}[{', '.join(map(str, key))}]" if key else kind: (kind, key) for kind, key in self.read_so_far}
        return {name: self.read_so_far[thing] for name, thing in named.items()}

    def read(self, entity: Entity, key: Key, field: Field) -> Any:
        key = key_of(key)
        thing = (entity.name, key)
        if thing not in self.read_so_far:
            is_there = self._random(*thing).random() >= _absent_share(entity)
            self.read_so_far[thing] = {} if is_there else None
            if not is_there and entity.origin != "conversation":
                self.absent.append(key)
        shown = self.read_so_far[thing]
        if shown is None:
            return False if field.name == "exists" else ABSENT
        if field.name == "exists":
            return True
        if field.name not in shown:
            if field.nullable and self._random(*thing, field.name, None).random() < _NONE_SHARE:
                shown[field.name] = None
                return None
            draw = self._random(*thing, field.name)
            schema = self._inside.get((entity.name, field.name))
            shown[field.name] = self._draw(field, draw) if schema is None else self._made(field.name, schema, draw)
        return coerce(field, shown[field.name])

    def members(self, entity: Entity, match: Mapping[str, Any]) -> tuple[Sequence[Key], bool]:
        """Return up to two matching entities, and True because no other entity matches."""
        found: list[Key] = []
        if len(entity.key) != 1 or not all(isinstance(value, str | int) for value in match.values()):
            return found, True
        for key in ((each,) for each in _IDS):
            shown = self.read_so_far.get((entity.name, key), {})
            is_such = shown is not None and all(shown.get(name, value) == value for name, value in match.items())
            if is_such and self._random("member", entity.name, key, *sorted(match)).random() < _MEMBER_SHARE:
                self.read_so_far[entity.name, key] = {**(shown or {}), **match}
                found.append(key)
        return found, True

    def done(self, tool: str, match: Mapping[str, Any]) -> int | NoValue:
        happened = self._random("done", tool, *sorted(map(str, match.items()))).random() < 0.3
        if happened:
            self.done_so_far.append({tool: dict(match)})
        return int(happened)

    def arguments(self, tool: Tool) -> dict[str, Any]:
        return {
            name: self._argument(name, record(schema))
            for name, schema in tool.parameters.items()
            if name in tool.required or self._random("given", name).random() < 0.7
        }

    def _argument(self, name: str, schema: Mapping[str, Any]) -> Any:
        draw = self._random("argument", name)
        if words := schema.get("enum"):
            return draw.choice(cast(list[Any], words))
        match schema.get("type"):
            case "array" | "object" if holds_records(schema):
                return self._made(name, schema, draw)
            case "array":
                words = (*_IDS, *self._pool.words) if not name.endswith("_ids") else _IDS
                items = record(schema.get("items")).get("enum") or words
                # Parallel lists usually have the same length, but agents sometimes forget an item.
                is_unlike = self._random("unlike").random() < _UNLIKE_SHARE
                length = self._random("length", *([name] if is_unlike else [])).choice(_LENGTHS)
                length = max(length, int(schema.get("minItems") or 0))
                return draw.sample(list(items), min(length, len(items)))
            case "object":
                return {}
            case "integer" | "number" | "boolean" as kind:
                return self._scalar(kind, draw)
            case _:
                kind = self._pool.read_as.get(name) or _form(schema)
                return self._scalar(kind, draw, is_id=name.endswith("_id"))

    def _draw(self, field: Field, draw: random.Random) -> Any:
        match field.type:
            case "enum":
                return draw.choice(field.values)
            case "list":
                return [word for word in (*self._pool.words, *_IDS) if draw.random() < 0.4]
            case "object":
                return {}
            case _:
                return self._scalar(field.type, draw, is_id=field.name.endswith("_id"))

    def _scalar(self, kind: str, draw: random.Random, *, is_id: bool = False) -> Any:
        """Draw a value of a type or format. For an unknown type, the value is a word or an id."""
        pool = self._pool
        match kind:
            case "boolean":
                return draw.random() < 0.5
            case "integer" | "number":
                return draw.choice(pool.numbers)
            case "money":
                return draw.choice(pool.money)
            case "date":
                return draw.choice(pool.days)
            case "time" | "datetime" | "date-time":
                return draw.choice(pool.times)
            case _:
                return draw.choice(_IDS if is_id else (*_IDS, *pool.words))

    def _made(self, name: str, schema: Schema, draw: random.Random) -> Any:
        """Draw a value that fits a schema, including nested records."""
        if words := schema.get("enum"):
            return draw.choice(cast(list[Any], words))
        if isinstance(inner := schema.get("additionalProperties"), dict):
            return {key: self._made(key, record(inner), draw) for key in _IDS if draw.random() < _LISTED_SHARE}
        if "properties" in schema:
            return {key: self._made(key, record(part), draw) for key, part in section(schema, "properties").items()}
        if schema.get("type") == "array":
            return [self._made(name, record(schema.get("items")), draw) for _ in range(draw.choice(_LENGTHS))]
        is_plain = schema.get("type") in ("integer", "number", "boolean")
        kind = str(schema["type"] if is_plain else self._pool.inner_as.get(name) or schema.get("format"))
        return self._scalar(kind, draw, is_id=name == "id" or name.endswith("_id"))

    def _random(self, *of: Any) -> random.Random:
        return random.Random(f"{self._seed}/{of}")


_DAY = re.compile(r"\bYYYY-MM-DD\b(?!T| HH)|\b\d{4}-\d\d-\d\d\b(?!T)")


def _form(schema: Mapping[str, Any]) -> str:
    """Return the format of a string, from its schema or from a date format that its description states."""
    return str(schema.get("format") or ("date" if _DAY.search(str(schema.get("description"))) else ""))


class Trial(Struct, frozen=True):
    """The results of several guards for the same generated call."""

    case: Case
    """The call and its facts, without an expected outcome."""
    outcomes: tuple[str, ...]
    """Each guard's outcome: `permit`, `deny` or `failed`."""
    because: tuple[str, ...]
    is_broken: bool = False
    """Whether the input is unrealistic: a record is missing or has no id, or a value could not occur."""


def tried(
    policy: str,
    guards: Sequence[Guard],
    codes: Sequence[str],
    tools: Sequence[Tool],
    now: datetime,
    inside: Mapping[tuple[str, str], Schema],
    plausible: Plausible | None = None,
) -> list[Trial]:
    """Run the guards of one policy on the same generated calls.

    `inside` contains the schemas of records nested in fields.
    """
    plausible = plausible or Plausible({}, ())
    pool = pool_of(codes, now)
    by_code = dict(zip(codes, guards, strict=True))
    trials: list[Trial] = []
    for number in range(WORLDS):
        tool = tools[number % len(tools)]
        world = World(f"{policy}/{number}", pool, inside)
        arguments = world.arguments(tool)
        said = {code: evaluate(each, arguments, world, tool=tool.name, now=now) for code, each in by_code.items()}
        found = [said[code] for code in codes]
        case: Case = {"policy": policy, "call": {tool.name: arguments}, "facts": world.facts}
        if world.done_so_far:
            case["done"] = world.done_so_far
        given = {key_of((leaf,))[0] for leaf in leaves(arguments)}
        is_broken = (
            any(not given.issuperset(key) for key in world.absent)
            or any("" in key for _, key in world.read_so_far)
            or not plausible.may_occur(arguments_of(tool.name), arguments)
            or not all(plausible.may_occur(entity, fields or {}) for (entity, _), fields in world.read_so_far.items())
        )
        outcomes = tuple(each[0].outcome if len(each) == 1 else "failed" for each in found)
        trials.append(Trial(case, outcomes, tuple(each[0].because for each in found), is_broken))
    return trials


def _absent_share(entity: Entity) -> float:
    """Return the probability that an entity is absent. A keyless entity always exists unless the conversation creates
    it.
    """
    if entity.origin == "conversation":
        return _UNMADE_SHARE
    return _ABSENT_SHARE if entity.key else 0.0


_TRIED = 200
"""The maximum number of recorded conversations per guard."""
_FEWEST = 5
"""Denials are suspicious if there are at least this many and they concern most calls."""
ADVICE = (
    ". Most of what was recorded is right: if the check asks for more than the policy does, or reads a record otherwise"
    " than it is, mend it; else write it again as it is"
)
_FAILURE = re.compile(r"guards/[^:]*:(\d+): (.*)", re.DOTALL)
_QUOTED = re.compile(r"`([^`]*)`")


def complaint(bench: Bench, policy: Policy, guard: Guard) -> str:
    """Describe what is odd about a guard's results on recorded calls: failures, or denials of most calls. Empty if
    nothing is odd.
    """
    pack = bench.with_guard(policy, guard)
    called = set(policy.tools)
    said: list[tuple[str, str]] = []
    for trajectory in _calling(bench.trajectories, called):
        for call in verdicts(pack, trajectory).calls:
            said += [(each.determined, each.because) for each in call.policies if each.policy.id == policy.id]
    failures = Counter(f"line {found[1]}: {found[2]}" for _, why in said if (found := _FAILURE.match(why)))
    if failures:
        why = _QUOTED.sub(lambda match: match[0] if match[1] in _names(bench) else "`...`", next(iter(failures)))
        return f"it fails on {failures.total()} of {len(said)} recorded calls: {why}"
    denied = Counter(_denial(guard, why) for verdict, why in said if verdict == "violation")
    if denied.total() >= _FEWEST and 2 * denied.total() > len(said):
        listed = "; ".join(f"{text} ({count})" for text, count in denied.most_common(3))
        return f"it denies {denied.total()} of {len(said)} recorded calls: {listed}{ADVICE}"
    return ""


def rule_complaint(bench: Bench, policy: Policy, rules: Mapping[str, Any]) -> str:
    """Return a complaint if a rule is broken in most recorded conversations that contain a write. Empty otherwise."""
    pack = bench.on_its_clock(bench.with_rules([policy], rules))
    writes = {tool.name for tool in pack.schema.tools.values() if tool.effect == "write"}
    talks = _calling(bench.trajectories, writes)
    broken = sum(bool(verdicts(pack, each).findings) for each in talks)
    if broken >= _FEWEST and 2 * broken > len(talks):
        return f"it is broken in {broken} of {len(talks)} recorded conversations{ADVICE}"
    return ""


def _calling(trajectories: Iterable[Trajectory], tools: set[str]) -> list[Trajectory]:
    found = (
        each for each in trajectories if any(isinstance(event, Call) and event.tool in tools for event in each.events)
    )
    return [each for _, each in zip(range(_TRIED), found, strict=False)]


def _denial(guard: Guard, because: str) -> str:
    for text in guard.denials:
        if re.fullmatch(".*".join(map(re.escape, text.split("..."))), because, re.DOTALL):
            return text
    return "there is no such thing"


def _names(bench: Bench) -> set[str]:
    schema = bench.base.schema
    found = {name for entity in schema.entities.values() for name in (entity.name, *entity.key, *entity.fields)}
    for card in bench.cards.values():
        found |= names_in(card.output) | names_in({"properties": card.parameters})
    return found


_OTHER: Mapping[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}


class Gap(Struct, frozen=True):
    """A situation that no case covers."""

    about: str
    """The situation, such as `Bill.status: Awaiting Payment`."""
    case: Case
    """A generated call in that situation, without an expected outcome."""
    outcome: str


def gaps(bench: Bench, trials: Sequence[Trial], cases: Sequence[Case], code: str) -> list[Gap]:
    """Return each enumeration value that the guard reads but no case contains, with the shortest call that has this
    value.

    Calls about a missing record are left out, because their outcome does not depend on the value.
    """
    read = arguments_read(code)
    known = {each for case in cases for each in _words(bench, case)}
    found: list[Gap] = []
    for trial in sorted(trials, key=lambda trial: len(str(trial.case))):
        if trial.is_broken or trial.outcomes[0] == "failed" or None in trial.case["facts"].values():
            continue
        words = set(_words(bench, trial.case, read)) - known
        if words:
            found.append(Gap(", ".join(sorted(words)), trial.case, trial.outcomes[0]))
            known |= words
    return found


def variants(code: str) -> Iterator[tuple[str, str]]:
    """Yield variants of a guard in which one bound is changed, each with the original comparison."""
    count = sum(isinstance(node, ast.Compare) for node in ast.walk(parse_python(code)))
    for number in range(count):
        tree = parse_python(code)
        compared = [node for node in ast.walk(tree) if isinstance(node, ast.Compare)][number]
        other = _OTHER.get(type(compared.ops[0]))
        if other is not None and len(compared.ops) == 1:
            told = ast.unparse(compared)
            compared.ops = [other()]
            yield told, ast.unparse(tree)


def _words(bench: Bench, case: Case, read: Container[str] | None = None) -> Iterator[str]:
    """Yield the enumeration values in a case. With `read`, only these arguments of the call count."""
    entities = bench.base.schema.entities
    for thing, values in section(case, "facts").items():
        kind = thing.partition("[")[0]
        fields = entities[kind].fields if kind in entities else {}
        for name, value in record(values).items():
            if name in fields and fields[name].type == "enum":
                yield f"{kind}.{name}: {value}"
    for tool, arguments in section(case, "call").items():
        for name, value in record(arguments).items():
            if (read is None or name in read) and record(bench.cards[tool].parameters.get(name)).get("enum"):
                yield f"{name}: {value}"
