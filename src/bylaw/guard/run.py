"""Runs a guard along one path: reads and records facts, and decides Unknown booleans.

If all facts are known, the guard runs on ordinary values. An unknown fact becomes an Unknown, and each condition on an
Unknown is a decision on the path.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, tzinfo
from decimal import Decimal
from itertools import islice
from typing import Any, cast

from bylaw.facts.entity import (
    ABSENT,
    EXISTS,
    NOT_KNOWN,
    UNSEEN,
    Between,
    Fact,
    FactSource,
    Field,
    Key,
    NoValue,
    Origin,
)
from bylaw.facts.unknown import BranchDecider, Stuck, Unknown, UnknownBool, derive, expression_text, opaque_bool
from bylaw.facts.value import key_of
from bylaw.facts.variable import (
    DAY,
    EITHER,
    TRUE,
    ValueSet,
    Variable,
    Words,
    name_of_fact,
    parted,
    show_region,
    words_of,
)
from bylaw.guard.builtin import BuiltIns
from bylaw.guard.language import ALL_TICKS, TICKS, UNKNOWN_TICKS
from bylaw.guard.operation import Absent, Failure, admit, fail, is_truth_word, name_of
from bylaw.guard.scope import Spec
from bylaw.text.cost import spend


class Assumptions:
    """One possible combination of the facts that only the user or host can supply: for each fact, a set of values."""

    __slots__ = ("regions",)

    def __init__(self, regions: Mapping[str, tuple[Variable, ValueSet]] | None = None) -> None:
        self.regions: Mapping[str, tuple[Variable, ValueSet]] = regions or {}

    def narrowed(self, variable: Variable, region: ValueSet) -> "Assumptions":
        """Return a copy with `variable` restricted to `region`."""
        return Assumptions({**self.regions, variable.name: (variable, region)})

    def __bool__(self) -> bool:
        return bool(self.regions)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Assumptions) and _regions(self) == _regions(other)

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.regions)))

    def __str__(self) -> str:
        return (
            "; ".join(show_region(variable, region) for variable, region in self.regions.values()) or "nothing assumed"
        )

    def __repr__(self) -> str:
        return f"Assumptions({self})"


NO_ASSUMPTIONS = Assumptions()


def _regions(assumptions: Assumptions) -> dict[str, ValueSet]:
    return {name: region for name, (_, region) in assumptions.regions.items()}


class Unsure(Exception):
    """Raised while a member is tested, if the answer depends on an unknown value."""


class Split(Exception):
    """Raised if the path depends on a fact of the user or host. The possible values are then evaluated separately."""

    def __init__(self, variable: Variable, region: ValueSet, rest: ValueSet) -> None:
        self.variable, self.region, self.rest = variable, region, rest


class UnknownInDenial(Exception):
    """Raised if the text of a denial depends on an unknown value. The text is then written without that value."""


def no_such(entity: str, key: Any) -> str:
    """Return the text of the denial for an entity that does not exist."""
    shown = ", ".join(str(part) for part in key) if isinstance(key, tuple) else "?"  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return f"no such {entity} `{shown}`" if shown else f"no {entity} is known: no result has shown one yet"


NOW = Fact("context", (), "now")
HISTORY = Fact("context", (), "history")
"""Reported as missing if part of the conversation is unknown."""
UNCOUNTED = "done()"
"""The name of the entity in a fact that represents an unknown count."""
REQUEST = Fact("request", (), "allows")
"""The fact that states whether the user wants a call outside the request."""
_TRACED = Field("provenance", "object")
_REQUESTED = Field("requested", "boolean", origin="user")
ODD_KEYS = frozenset((bool, float, Decimal))
"""Types that are converted to strings when they are part of a key."""
_UNKEPT = frozenset((list, dict, tuple, bool))
"""Types that cannot be in the key of a cached question. Lists are not hashable, and `True` would equal `1`."""


def unknown_fact(
    decider: BranchDecider, field: Field, name: str, needs: Mapping[Fact, Origin], thing: Any = None
) -> Unknown:
    """Return the Unknown for a field without a known value."""
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
    """The names that appear as values of the facts read on one path."""

    __slots__ = ("_looked_through", "_names", "_read")

    def __init__(self) -> None:
        self._read: Mapping[Fact, Any] = {}
        self._names: set[str] = set()
        self._looked_through = 0

    def name(self, key: Key, read: Mapping[Fact, Any]) -> bool:
        """Whether a fact that was read on this path has the entity's key as its value.

        A key that is 0 or contains no digit does not count, because it may mean "none".
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


class GuardRun(BuiltIns):
    """Runs guards on one call, one path at a time. Compiled code calls this object `_`.

    Guards run one after another and share answers from the source.
    """

    __slots__ = (
        "admitted", "arguments", "asked", "assumptions", "coverage", "decisions", "denial_fallback", "doubtful",
        "given", "has_decided_existence", "has_taken_none", "is_noting", "is_open", "is_testing", "lacking", "left",
        "memo", "open", "path", "paths", "position", "reads", "references", "seen", "source", "time", "tool", "touched",
        "tried", "unknowns",
    )  # fmt: skip

    def __init__(
        self,
        arguments: Mapping[str, Any],
        source: FactSource,
        *,
        tool: str = "",
        now: datetime | None = None,
        seen: Callable[[Fact], bool] | None = None,
    ) -> None:
        self.arguments = arguments
        self.admitted: dict[str, Any] = {}
        """Arguments read so far, converted for the guard language."""
        self.source = source
        self.given: dict[Any, Any] = {}
        """Answers from the source, for all guards and paths, keyed by fact or question."""
        self.tool = tool
        self.time = now
        self.zone: tzinfo | None = None
        self.seen = seen
        self.unknowns: dict[Fact, tuple[Unknown, bool, tuple[str, Any]]] = {}
        """For each unknown fact, its Unknown, its entity, and whether the entity may be missing."""
        self.references = References()

    def begin(self, assumptions: Assumptions = NO_ASSUMPTIONS, coverage: set[int] | None = None) -> None:
        self.coverage = coverage
        self.left = ALL_TICKS
        self.is_open = False
        """Whether the guard has read anything other than ordinary known facts."""
        self.tried: dict[str, dict[Key, Any]] = {}
        """The members of an entity that were tested, keyed by question."""
        self.open: set[str] = set()
        """Variables on which a search for a member depends."""
        self.complete(assumptions)
        self.start()

    def complete(self, assumptions: Assumptions) -> None:
        self.assumptions = assumptions
        self.decisions: list[bool] = []
        """The decisions on this path. For a True decision, the other branch has not been run yet."""
        self.paths = 1
        self.lacking: dict[Fact, None] = {}
        self.doubtful: dict[Fact, tuple[str, Any]] = {}
        """Facts about entities that may be missing."""
        self.asked: dict[Fact, None] = {}

    def restart(self) -> None:
        """Start another path, and keep the known values and the count of used ticks."""
        used = TICKS - self.ticks
        self.left -= used
        spend(used)
        self.start()

    def start(self) -> None:
        self.ticks = TICKS
        self.memo: dict[Fact, Any] = {}
        """The values read on this path, or the Unknowns that represent them."""
        self.reads: list[Fact] = []
        self.is_noting = True
        """Whether reads are recorded. Recording stops after the first unknown fact, and pauses while a denial is
        written.
        """
        self.denial_fallback: str | None = None
        """The text of the denial being written, with `...` for its values. None before a denial."""
        self.is_testing = False
        """Whether a member of a search is being tested. A test makes no decisions."""
        self.has_decided_existence = False
        self.has_taken_none = False
        """Whether the path assumed that a value is null. The assumption may cause a later failure, so such a failure
        counts as a denial.
        """
        self.position = 0
        self.path: dict[str, ValueSet] = {}
        self.touched: set[tuple[str, Any]] = set()

    def close(self) -> None:
        """Drop all Unknowns, because they refer back to this run and so form a reference cycle."""
        self.unknowns, self.memo, self.tried = {}, {}, {}
        self.references = References()

    def argument(self, name: str) -> Any:
        value = self.admitted.get(name, self)
        if value is self:
            if name not in self.arguments:
                fail(f"the call has no argument `{name}`; use get(call, ...)")
            value = self.admitted[name] = admit(self.arguments[name])
        return value

    def optional(self, name: str, default: Any) -> Any:
        return self.argument(name) if name in self.arguments else default

    def tool_name(self) -> str:
        return self.tool

    def present(self, part: Any, name: str) -> Any:
        if part is None:
            fail(f"`{name}` is null in the record, so it is unknown; if null is allowed, compare it with None first")
        return part

    def truth(self, part: Any) -> Any:
        if part.__class__ is str and (not part.strip() or is_truth_word(part)):
            fail(f"`{part[:40]}` is text, not a boolean; compare it with text")
        return part

    def key_of(self, entity: str, parts: tuple[Any, ...]) -> Any:
        """Return the key of an entity, or an Unknown if part of the key is unknown."""
        is_text = is_known = True
        for part in parts:
            if part.__class__ is not str:
                is_text = False
                if isinstance(part, Unknown):
                    is_known = False
                elif part is None:
                    fail(f"None is not a valid key of {entity}; test it first: `if x != None`")
                elif isinstance(part, (list, dict, tuple)):
                    fail(f"{name_of(part)} is not a key of {entity}")
        if is_text:
            return parts
        if is_known:
            # As dict keys, `True`, `1` and `1.0` are the same, but they are different entities.
            return tuple([key_of((part,))[0] if part.__class__ in ODD_KEYS else part for part in parts])
        return parts[0] if len(parts) == 1 else derive("key", parts)

    def key_part(self, key: Any, index: int, is_composite: bool) -> Any:
        if isinstance(key, Unknown):
            return derive("part", (key, index)) if is_composite else key
        return key[index]

    def read(self, spec: Spec, key: Any) -> Any:
        """Return the value of a field, or the Unknown that represents it."""
        if key.__class__ is not tuple:
            return self.read_of_unknown(spec, key)
        fact = Fact(spec.entity_name, key, spec.field_name)
        memo = self.memo
        value = memo.get(fact, memo)
        if value is not memo:
            return value
        value = self.given.get(fact, memo)
        if value is memo:
            value = self.fetch(spec, key, fact)
        if self.is_noting and spec.is_system:
            self.reads.append(fact)
        if value.__class__ in NOT_KNOWN:
            if value is ABSENT:
                raise Absent(no_such(spec.entity_name, key))
            if value is UNSEEN:
                value = self.value_or_none(spec, self.missing(spec, key, fact))
            else:
                value = self.choose(spec, key, fact, value.values)
        memo[fact] = value
        return value

    def fetch(self, spec: Spec, key: Key, fact: Fact) -> Any:
        value = self.source.read(spec.entity, key, spec.field)
        if value.__class__ not in NOT_KNOWN:
            try:
                value = admit(value, self.zone)
            except (Failure, ArithmeticError):
                if self.is_noting and spec.is_system:
                    self.reads.append(fact)
                raise
        self.given[fact] = value
        return value

    def do_now(self) -> Any:
        if self.time is None:
            self.is_open = True
            return unknown_fact(self, Field("now", "datetime"), "now()", {NOW: "context"})
        return admit(self.time, self.zone)

    def do_provenance(self, value: Any) -> Any:
        """Return the source of a value in the call, as a record. See `Traced.record`."""
        self.spend(1)
        if isinstance(value, Unknown):
            raise Stuck(value)
        self.is_open = True
        traced = getattr(self.source, "traced", None)
        found: Any = UNSEEN if traced is None else traced(value)
        if not isinstance(found, NoValue):
            return admit(found)
        return unknown_fact(self, _TRACED, f"provenance({str(value)[:80]})", {HISTORY: "context"})

    def do_requested(self) -> Any:
        """Whether the user's request covers the call. If this is unknown, only the user can decide."""
        self.spend(1)
        self.is_open = True
        requested = getattr(self.source, "requested", None)
        found: Any = UNSEEN if requested is None else requested()
        if not isinstance(found, NoValue):
            return found
        return unknown_fact(self, _REQUESTED, "requested()", {REQUEST: "user"})

    def do_done(self, tool: str, match: Mapping[str, Any]) -> Any:
        self.spend(1)
        unknown = [value for value in match.values() if isinstance(value, Unknown)]
        if unknown:
            shown = ", ".join(f"{name}={expression_text(value)}" for name, value in match.items())
            return self.opaque("count", f"done({tool}, {shown})", unknown)
        self.is_open = True
        count = self.once("done", tool, match, lambda: self.source.done(tool, match))
        if isinstance(count, NoValue):
            fail(f"the log does not show whether `{tool}` was called before")
        return self.count_between(tool, match, count) if count.__class__ is Between else count

    def count_between(self, tool: str, match: Mapping[str, Any], count: Between) -> Unknown:
        """Return an Unknown count with known bounds. The guard fails if a comparison depends on more than the
        bounds.
        """
        asked = f"done({', '.join([tool, *(f'{name}={value!r}' for name, value in match.items())])})"
        needs: dict[Fact, Origin] = {Fact(UNCOUNTED, (tool, count.least, count.most), asked): "system"}
        return Unknown(self, asked, needs, "number", step=1, lowest=count.least, highest=count.most)

    def check_counted(self, needs: Mapping[Fact, Origin]) -> None:
        """Fail if the answer depends on an unknown count, because no look-up can supply that count."""
        for fact in needs:
            if fact.entity == UNCOUNTED and fact.key is not None:
                tool, least, most = fact.key
                fail(f"the log does not show exactly how often `{tool}` was called: between {least} and {most} times")

    def once(self, kind: str, name: str, match: Mapping[str, Any], ask: Callable[[], Any]) -> Any:
        """Ask the source a question that is not about a single fact, and cache the answer."""
        if any(value.__class__ in _UNKEPT for value in match.values()):
            return ask()
        question = (kind, name, tuple(match.items()))
        if question not in self.given:
            self.given[question] = ask()
        return self.given[question]

    def start_denial(self, fallback: str) -> str:
        self.denial_fallback, self.is_noting, self.is_open = fallback, False, True
        return fallback

    def deny_with(self, _fallback: str, *parts: str) -> tuple[str, str]:
        return "deny", "".join(parts)

    def shown(self, value: Any) -> str:
        if isinstance(value, Unknown):
            return "..."
        if isinstance(value, (list, tuple)):
            return ", ".join(str(item)[:200] for item in value[:20])  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return str(value)[:200]

    def cover(self, branch: int) -> bool:
        if self.coverage is not None:
            self.coverage.add(branch)
        return True

    def decide(self, truth: UnknownBool) -> bool:
        """Decide an Unknown boolean: from earlier decisions on the path if they determine it, otherwise as a new
        decision.
        """
        self.is_open = True
        variable = truth.variable
        assert variable is not None
        name = variable.name
        if self.is_testing:
            self.open.add(name)
        current = self.path.get(name)
        if current is None:
            assumed = self.assumptions.regions.get(name)
            current = assumed[1] if assumed else variable.universe
        self.ticks -= UNKNOWN_TICKS + current.size() // 4
        if self.ticks < 0:
            self.spend(0)
        yes, no, answer = parted(current, truth.region)
        needs = variable.needs
        is_system = "system" in needs.values()
        if answer is not None:
            if not is_system:
                self.asked.update(dict.fromkeys(needs))
        elif self.denial_fallback is not None:
            raise UnknownInDenial
        elif self.is_testing:
            self.check_counted(variable.needs)
            raise Unsure
        elif not is_system:
            raise Split(variable, yes, no)
        else:
            self.check_counted(needs)
            if self.position == len(self.decisions):
                self.decisions.append(True)
            answer = self.decisions[self.position]
            self.position += 1
            for fact, origin in needs.items():
                (self.lacking if origin == "system" else self.asked)[fact] = None
        self.path[name] = yes if answer else no
        if variable.thing is not None:
            self.has_decided_existence = True
            if variable.thing in self.touched and self.is_gone(variable.thing):
                raise Absent(no_such(*variable.thing))
        return answer

    def lack(self, needs: Mapping[Fact, Origin]) -> None:
        self.is_open = True
        for fact, origin in needs.items():
            (self.lacking if origin == "system" else self.asked)[fact] = None

    def choose(self, spec: Spec, key: Key, fact: Fact, possible: tuple[Any, ...]) -> Any:
        """Choose one of the few possible values of a fact. Other paths choose the other values."""
        self.missing(spec, key, fact)
        name = name_of_fact(spec.entity_name, key, spec.field_name)
        for place, value in enumerate(possible[:-1]):
            if self.decide(opaque_bool(self, f"{name} is value {place + 1}", {fact: spec.origin})):
                return admit(value, self.zone)
        return admit(possible[-1], self.zone)

    def value_or_none(self, spec: Spec, unknown: Unknown) -> Unknown | None:
        """Represent an unknown nullable field: one path continues with a value, another with None."""
        if not spec.field.nullable or self.denial_fallback is not None:
            return unknown
        name = expression_text(unknown)
        if self.decide(opaque_bool(self, f"{name} == None", unknown.needs).denied()):
            return unknown
        self.has_taken_none = True
        return None

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
        fact = Fact(spec.entity_name, key, "exists")
        found = self.given.get(fact, self)
        if found is self:
            found = self.given[fact] = self.source.read(spec.entity, key, EXISTS)
        return found is not UNSEEN

    def doubt(self, fact: Fact, thing: tuple[str, Any]) -> None:
        """Record that the entity may be missing, so that a denial is possible."""
        if self.denial_fallback is None and fact not in self.doubtful and not self.is_there(thing):
            self.doubtful[fact] = thing

    def is_there(self, thing: tuple[str, Any]) -> bool:
        if not self.has_decided_existence:
            return False
        possible = self.path.get(name_of_fact(*thing, "exists"))
        return isinstance(possible, Words) and False not in possible.values

    def read_of_unknown(self, spec: Spec, key: Unknown) -> Unknown | None:
        """Return a field of an entity whose key is unknown. The field depends on the same facts as the key."""
        self.is_open = True
        thing = (spec.entity_name, key.text)
        if spec.field_name != "exists":
            self.check_exists(thing)
            if spec.is_system:
                for fact, origin in key.needs.items():
                    if origin == "system":
                        self.doubt(fact, thing)
        name = name_of_fact(*thing, spec.field_name)
        return self.value_or_none(spec, unknown_fact(self, spec.field, name, key.needs, thing))

    def check_exists(self, thing: tuple[str, Any]) -> None:
        """End the path if it assumed that this entity is missing. If the assumption is made later, `decide` ends the
        path.
        """
        if self.has_decided_existence and self.is_gone(thing):
            raise Absent(no_such(*thing))
        self.touched.add(thing)

    def is_gone(self, thing: tuple[str, Any]) -> bool:
        """Whether this path assumed that the entity is missing."""
        possible = self.path.get(name_of_fact(*thing, "exists"))
        return isinstance(possible, Words) and True not in possible.values
