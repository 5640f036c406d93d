"""A pack's `rules.yaml`, compiled: its predicates, each with a way to a value, and its rules."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, Protocol, cast, get_args

from msgspec import Struct
from msgspec.structs import replace

from bylaw.engine.act import Act
from bylaw.engine.consent import Basis, ConsentWitness
from bylaw.errors import BylawError, FormulaError, GuardError
from bylaw.facts.ledger import CallRecord, Ledger
from bylaw.facts.schema import Schema
from bylaw.guard import Condition, Vocabulary, compile_condition
from bylaw.policy.pattern import PatternError, any_of, compile_pattern
from bylaw.policy.statement import Policy
from bylaw.policy.yaml import Located
from bylaw.rule.detectors import DETECTORS
from bylaw.rule.formula import Always, Formula, atoms
from bylaw.rule.rule import Rule, read_rule
from bylaw.rule.table import propositional_atoms
from bylaw.trace.event import Event, Message, Result

WAYS = (
    *("tool", "effect", "message", "turn", "pattern", "said", "returned", "consented", "code", "detector", "guard"),
    "question",
)

DEAR = ("code", "guard", "consented")
"""Ways that cost more than a search in a text, asked last and in this order."""
_BEFORE = ("said", "returned", "question")
"""Ways that speak of what came before an act."""
_OF_ACT = re.compile(r"\bact\b(?!\.(?:said|returned|asked)\b)")
"""Code that looks at the act itself."""
MOST_KNOWN = 12
"""A physical rule may have so many predicates: its table must fit."""
_BESIDE = {"tool": ("when",), **dict.fromkeys(("pattern", "said", "returned"), ("but_not",))}
"""What may stand beside a way, apart from a description."""

Find = Callable[[Act], bool | None]

TURNS: dict[str, Find] = {
    "several_calls": lambda act: act.calls_in_turn > 1,
    "several_writes": lambda act: act.writes_in_turn > 1,
    "with_text": lambda act: act.text_in_turn,
    "without_call": lambda act: act.without_call,
}
"""What may be said of the turn an act belongs to, as far as the turn has come; `without_call` is settled at its end."""


class Witness(Protocol):
    """Finds a predicate's value from the conversation so far, which it takes in event by event."""

    def observe(self, step: int, event: Event) -> None:
        """Take in the next event, after the rules were asked about it."""
        ...

    def ask(self, act: Act, record: CallRecord) -> bool | None:
        """The value at an act about to be observed; None where it cannot be told. It must not move the witness."""
        ...

    def tell(self, act: Act, record: CallRecord) -> Mapping[str, Any] | None:
        """Why it has this value, as data for `engine.wording`; None where there is no more to say."""
        ...


class RuleError(BylawError):
    """A predicate or a rule of a pack does not say what it must."""

    code = "BY303"


class Predicate(Struct, frozen=True):
    """A boolean over an act, and how its value is found."""

    name: str
    description: str
    way: str
    """One of `WAYS`; empty where nothing finds its value."""
    find: Find | None = None
    """Where the act alone tells."""
    code: Condition | None = None
    """Where facts must be asked."""
    guard: str = ""
    """A policy whose guard must be asked: true where it denies."""
    witness: Callable[[Ledger], Witness] | None = None
    """Opens what follows one conversation, where the act and the facts alone do not tell."""
    is_about_act: bool = True
    """Whether it speaks of the act itself; else of what came before, which is so whether or not the act is made."""

    @property
    def is_action(self) -> bool:
        """Whether it names an action: `FOR EACH` takes it to hold for what the call names, and for nothing else."""
        return self.way in ("tool", "effect")

    @property
    def price(self) -> int:
        """Predicates are asked in this order: what is searched in a text first."""
        return DEAR.index(self.way) + 1 if self.way in DEAR else 0

    @property
    def text(self) -> str:
        """The predicate in words, for embeddings."""
        return f"{self.name.replace('_', ' ')} {self.description}"

    def unmade(self, act: Act) -> bool:
        """The value if a call is not made, of a predicate about the act."""
        if self.way != "turn" or self.find is None:
            return False
        fewer = act.writes_in_turn - (act.effect == "write")
        return bool(self.find(replace(act, calls_in_turn=act.calls_in_turn - 1, writes_in_turn=fewer)))


class Rules(Struct, frozen=True):
    """The rules of a pack."""

    predicates: dict[str, Predicate]
    rules: tuple[Rule, ...]
    knowledge: tuple[Rule, ...] = ()
    """Physical rules: what is known of predicates. Nobody breaks them; circuits draw conclusions from them."""
    eps: float = 0.0
    """The margin that a call must reach where soft rules are weighed."""

    @property
    def every(self) -> tuple[Rule, ...]:
        """Rules and knowledge."""
        return (*self.rules, *self.knowledge)

    @property
    def actions(self) -> tuple[str, ...]:
        """Predicates that speak of the action itself."""
        return tuple(name for name, predicate in self.predicates.items() if predicate.is_action)


EMPTY = Rules({}, ())


class RulesReader:
    """Reads `rules.yaml`; keeps every fault it meets."""

    def __init__(
        self, source: Located | None, schema: Schema, policies: Mapping[str, Policy], learned: Located | None = None
    ) -> None:
        self._source = source
        self._learned = learned
        """`weights.yaml`: weights that stand in place of those in `rules.yaml`."""
        self._schema = schema
        self._policies = policies
        self.faults: list[BylawError] = []

    def read(self) -> Rules:
        """The rules; look at `faults` before using it."""
        if self._source is None:
            return EMPTY
        self._known(self._source.data, {"predicates", "rules", "eps"})
        predicates = {
            name: self._predicate(name, cast(dict[str, Any], body or {}))
            for name, body in cast(dict[str, Any], self._source.data.get("predicates") or {}).items()
        }
        rules: list[Rule] = []
        knowledge: list[Rule] = []
        for index, body in enumerate(cast(list[Any], self._source.data.get("rules") or [])):
            if body is None:
                continue
            rule = self._rule(body, index, predicates)
            if rule is not None:
                if any(rule.name == each.name for each in (*rules, *knowledge)):
                    self._fault(f"there are two rules `{rule.name}`", "rules", index)
                (knowledge if rule.physical else rules).append(rule)
        eps = float(self._source.data.get("eps", 0.0))
        return self._weighted(Rules(predicates, tuple(rules), tuple(knowledge), eps))

    def _weighted(self, found: Rules) -> Rules:
        """The rules with the weights that were learned for them, where there are any."""
        if self._learned is None:
            return found
        weights = cast(dict[str, float], self._learned.data.get("weights") or {})
        for name in weights.keys() - {rule.name for rule in found.rules}:
            place = self._learned.place("weights", name)
            self.faults.append(RuleError(f"`{name}` is not a rule", place=place, hint="learn the weights again"))
        rules = tuple(replace(rule, weight=float(weights.get(rule.name, rule.weight))) for rule in found.rules)
        return replace(found, rules=rules, eps=float(self._learned.data.get("eps", found.eps)))

    def _predicate(self, name: str, body: dict[str, Any]) -> Predicate:
        at = ("predicates", name)
        ways = [way for way in WAYS if way in body]
        description = str(body.get("description", ""))
        if len(ways) != 1:
            hint = f"give one of {', '.join(WAYS)}"
            self._fault(f"predicate `{name}` has {len(ways)} ways to a value", *at, hint=hint)
            return Predicate(name, description, "")
        way = ways[0]
        value = body[way]
        known = {way, "description", *_BESIDE.get(way, ())}
        for key in sorted(body.keys() - known):
            self._fault(f"`{key}` means nothing here", *at, key, hint=f"known beside `{way}`: {_listed(known - {way})}")
        match way:
            case "tool":
                tools = frozenset(map(str, cast(list[Any], value) if isinstance(value, list) else [value]))
                for tool in sorted(tools - self._schema.tools.keys()):
                    self._fault(f"`{tool}` is not a tool", *at)
                if "when" in body:
                    called = " or ".join(f"act.tool == {tool!r}" for tool in sorted(tools))
                    code = self._code(name, description, f"({called}) and ({body['when']})", at)
                    # It stays an action: `FOR EACH` must know that it speaks of the binding the call names.
                    return replace(code, way=way, is_about_act=True)
                return Predicate(name, description, way, lambda act: act.tool in tools)
            case "effect":
                return Predicate(name, description, way, lambda act: act.effect == value)
            case "message":
                wanted = bool(value)
                return Predicate(name, description, way, lambda act: (act.tool is None) is wanted)
            case "turn":
                find = TURNS.get(str(value))
                if find is None:
                    self._fault(f"`{value}` is nothing a turn can be", *at, hint=f"known: {', '.join(TURNS)}")
                return Predicate(name, description, way, find)
            case "pattern" | "said" | "returned":
                find = self._search(way, value, str(body.get("but_not", "")), at)
                return Predicate(name, description, way, find, is_about_act=way not in _BEFORE)
            case "consented":
                if value not in get_args(Basis):
                    hint = f"known: {', '.join(get_args(Basis))}"
                    self._fault(f"`{value}` is nothing that consent can rest on", *at, hint=hint)
                basis: Basis = "requested" if value == "requested" else "told"
                return Predicate(name, description, way, witness=lambda ledger: ConsentWitness(ledger, basis))
            case "code":
                return self._code(name, description, str(value), at)
            case "detector":
                found = DETECTORS.get(str(value))
                if found is None:
                    self._fault(f"`{value}` is not a detector", *at, hint=f"built in: {', '.join(DETECTORS)}")
                return Predicate(name, description, way, found)
            case "guard":
                if value not in self._policies:
                    self._fault(f"`{value}` is not a policy", *at)
                return Predicate(name, description, way, guard=str(value))
            case _:
                return Predicate(name, description, way, is_about_act=way not in _BEFORE)

    def _search(self, way: str, value: Any, but_not: str, at: tuple[str, ...]) -> Find | None:
        """Whether a text matches: one of the patterns, and neither its own `but_not` nor that of all."""
        entries = cast(list[Any], value) if isinstance(value, list) else [value]
        records: list[dict[str, Any]] = [each if isinstance(each, dict) else {"pattern": each} for each in entries]
        if not all(each.get("pattern") for each in records):
            self._fault(f"`{at[-1]}` has an entry without a `pattern`", *at)
            return None
        try:
            patterns = [compile_pattern(str(each["pattern"]), str(each.get("but_not", ""))) for each in records]
            occurs = any_of(patterns, [str(each["pattern"]) for each in records])
            never = compile_pattern(but_not) if but_not else None
        except PatternError as error:
            place = self._source.place(*at) if self._source is not None else ""
            self.faults.append(PatternError(error.message, place=place, hint=error.hint))
            return None

        def found(text: str) -> bool:
            return occurs(text) and (never is None or not never.occurs(text))

        match way:
            case "said":
                return lambda act: _found(found, [message.text for message in act.sayings], act.sayings)
            case "returned":
                return lambda act: _found(found, act.returns(), act.results)
            case _:
                return lambda act: found(act.text) if act.captured else None

    def _code(self, name: str, description: str, text: str, at: tuple[str, ...]) -> Predicate:
        schema = self._schema
        vocabulary = Vocabulary(
            schema.entities, schema.arguments(tuple(schema.tools)), frozenset(schema.tools), schema.writes()
        )
        assert self._source is not None
        file, _, line = self._source.place(*at).rpartition(":")
        try:
            code = compile_condition(text, parameters=("act",), vocabulary=vocabulary, file=file, line=int(line))
        except GuardError as error:
            self.faults.append(error)
            return Predicate(name, description, "code")
        return Predicate(name, description, "code", code=code, is_about_act=_OF_ACT.search(text) is not None)

    def _rule(self, body: Any, index: int, predicates: Mapping[str, Predicate]) -> Rule | None:
        record = cast(dict[str, Any], body) if isinstance(body, dict) else {}
        name, policy = str(record.get("id", "")), str(record.get("policy", record.get("id", "")))
        self._known(record, {"id", "formula", "policy", "weight", "hard", "physical"}, "rules", index)
        if not name or not record.get("formula"):
            self._fault("a rule needs an id and a formula", "rules", index)
            return None
        physical = bool(record.get("physical", False))
        if policy not in self._policies and not (physical and "policy" not in record):
            self._fault(f"rule `{name}` comes from no policy `{policy}`", "rules", index)
        try:
            rule = read_rule(
                name,
                str(record["formula"]),
                policy=policy,
                weight=float(record.get("weight", 1.0)),
                hard=bool(record.get("hard", False)),
                physical=physical,
            )
        except FormulaError as error:
            assert self._source is not None
            self.faults.append(FormulaError(error.message, place=self._source.place("rules", index), hint=error.hint))
            return None
        if not isfinite(rule.weight):
            self._fault(f"the weight of rule `{name}` is too large", "rules", index, hint="make the rule hard")
        if physical and (rule.for_each or propositional_atoms(_at_once(rule.formula)) is None):
            hint = "knowledge holds at each act by itself: leave out operators over time and FOR EACH"
            self._fault(f"physical rule `{name}` speaks of other acts", "rules", index, hint=hint)
        elif physical and len(atoms(rule.formula)) > MOST_KNOWN:
            hint = "split it into smaller rules"
            self._fault(f"physical rule `{name}` has more than {MOST_KNOWN} predicates", "rules", index, hint=hint)
        for atom in atoms(rule.formula):
            if atom not in predicates:
                self._fault(f"rule `{name}` speaks of `{atom}`, which is no predicate", "rules", index)
        return rule

    def _known(self, record: Mapping[str, Any], names: set[str], *at: str | int) -> None:
        for key in sorted(record.keys() - names):
            self._fault(f"`{key}` means nothing here", *at, key, hint=f"known: {_listed(names)}")

    def _fault(self, message: str, *at: str | int, hint: str = "") -> None:
        place = self._source.place(*at) if self._source is not None else "rules.yaml"
        self.faults.append(RuleError(message, place=place, hint=hint))


def _at_once(formula: Formula) -> Formula:
    return formula.operand if isinstance(formula, Always) else formula


def _found(matches: Callable[[str], bool], texts: Sequence[str], sources: Sequence[Message | Result]) -> bool | None:
    """Whether any of the texts matches; where none does and one was not recorded, nobody can say."""
    if any(matches(text) for text in texts if text):
        return True
    return False if all(source.captured for source in sources) else None


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
