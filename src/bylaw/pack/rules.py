"""Compiles a pack's `rules.yaml`, which contains limits, and rules over predicates."""

from collections.abc import Hashable, Mapping
from functools import cached_property
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from bylaw.errors import FormulaError, meant
from bylaw.facts.schema import Schema
from bylaw.pack.predicate import TURNS, Predicate, PredicateReader, RuleError, WrittenPredicate, act_of
from bylaw.policy.statement import Policy
from bylaw.policy.tool import Tool
from bylaw.policy.yaml import Located, Scalar, read_record
from bylaw.rule.circuit import Assessment, Circuit
from bylaw.rule.formula import Always, atoms, is_propositional
from bylaw.rule.inference import Inference
from bylaw.rule.letters import table_of
from bylaw.rule.monitor import rulebook
from bylaw.rule.reach import reach
from bylaw.rule.rule import Limit, Over, Rule, denying_weight, read_rule, threshold_of
from bylaw.text.day import read_duration

PER = "`per` must be `tenant`, `agent`, `context.NAME` or `call.ARGUMENT`"


class WrittenLimit(Struct, frozen=True, forbid_unknown_fields=True):
    id: Scalar = ""
    policy: Scalar | None = None
    tool: Scalar | list[Scalar] = ""
    most: int = 0
    within: Scalar = ""
    per: Scalar = "tenant"
    over: Over = "deny"


HEAVIEST = 1_000_000
"""The maximum weight of a rule, so that sums of weights are finite."""
MOST_KNOWN = 12
"""The maximum number of predicates in a physical rule. With more, the rule's truth table would be too large."""
TOLD = frozenset(("tool", "effect", "message", "turn"))
"""Sources whose value depends only on the called tool and the current turn."""
THE_CALL = "the call"
"""The name that the judged call has in a circuit of all rules."""

_SEVERAL = (TURNS["several_calls"], TURNS["several_writes"])


class WrittenRule(Struct, frozen=True, forbid_unknown_fields=True):
    id: Scalar = ""
    formula: Scalar = ""
    policy: Scalar | None = None
    weight: int | float = 1.0
    hard: bool = False
    physical: bool = False


class RulesFile(Struct, frozen=True, forbid_unknown_fields=True):
    predicates: dict[str, WrittenPredicate | None] = {}
    rules: list[WrittenRule] = []
    limits: list[WrittenLimit] = []
    eps: int | float = 0.0


class WeightsFile(Struct, frozen=True, forbid_unknown_fields=True):
    """The contents of weights.yaml, whose learned weights replace the weights in rules.yaml."""

    weights: dict[str, int | float] = {}
    eps: int | float | None = None
    learned: dict[str, Any] = {}
    """Where the learned weights come from."""


class Rules(Struct, frozen=True):
    predicates: dict[str, Predicate]
    rules: tuple[Rule, ...]
    knowledge: tuple[Rule, ...] = ()
    """Physical rules, which state how predicates depend on each other. They cannot be broken."""
    eps: float = 0.0
    """The margin by which the soft rules must favour a call."""
    limits: tuple[Limit, ...] = ()
    """Limits on the number of calls in a period, counted across all conversations."""

    @property
    def every(self) -> tuple[Rule, ...]:
        return (*self.rules, *self.knowledge)

    @property
    def enforced(self) -> frozenset[str]:
        """The policies that at least one rule or limit enforces."""
        return frozenset(each.policy for each in (*self.rules, *self.limits))

    @property
    def disarmed(self) -> tuple[Rule, ...]:
        """Rules whose weight is too low to deny a call without other rules."""
        return tuple(rule for rule in self.rules if not rule.denies_alone(self.eps))

    @property
    def actions(self) -> tuple[str, ...]:
        return tuple(name for name, predicate in self.predicates.items() if predicate.is_action)


class ReadyRules:
    """A pack's rules, in a form that is prepared once and used for all conversations."""

    def __init__(self, rules: Rules, tools: Mapping[str, Tool]) -> None:
        self.tools = tools
        self.predicates = rules.predicates
        self.book = rulebook(rule for rule in rules.rules if not rule.for_each)
        self.families = [rule for rule in rules.rules if rule.for_each]
        self.actions = frozenset(rules.actions)
        self.names = {rule.name: atoms(rule.formula) for rule in rules.rules}
        named = {name for names in self.names.values() for name in names}
        used = [rules.predicates[name] for name in self.book.predicates]
        self.told = [
            (1 << place, each) for place, each in enumerate(used) if each.way in TOLD and each.find is not None
        ]
        self.untold = self.book.everything & ~sum(bit for bit, _ in self.told)
        rest = [(1 << place, each) for place, each in enumerate(used) if self.untold >> place & 1]
        self.asked = sorted(rest, key=lambda each: each[1].price)
        """Predicates that are evaluated only on demand, the cheapest first."""
        self.has_waiting = any(rules.predicates[name].find is TURNS["without_call"] for name in named)
        """Whether any rule applies only if the turn has no calls, which is known only at the end of the turn."""
        self.knowledge = {rule.name: table_of(rule.formula) for rule in rules.knowledge}
        self.weighed = named.union(*(table.atoms for table in self.knowledge.values()))
        several = {name for name in named if rules.predicates[name].find in _SEVERAL}
        self.shaped = frozenset(rule for rule, names in self.names.items() if several.intersection(names))
        """Rules that depend on the number of calls in a turn."""
        self.bits: dict[tuple[Any, ...], int] = {}
        """Cached values of the predicates in `told`, keyed by the kind of call or message."""
        self.weighings: dict[Hashable, Assessment] = {}
        """Cached results for a call, keyed by the states of the rules and the values of the predicates."""
        self._all, self._eps = rules.every, rules.eps

    @cached_property
    def circuit(self) -> Inference:
        """A circuit of all rules, in which the action is the judged call."""
        return Inference(Circuit(action=THE_CALL, rules=self._all, eps=self._eps))


class Breaks(Struct, frozen=True):
    tools: frozenset[str]
    """The tools whose calls can permanently violate the rule."""
    is_breakable: bool
    """Whether any call, message or end of the conversation can break the rule."""


def where_broken(
    rule: Rule, predicates: Mapping[str, Predicate], schema: Schema, policies: Mapping[str, Policy]
) -> Breaks:
    """Return which acts can break a rule.

    Its automaton is searched over all acts: a message, or a call to a tool of the pack.
    """
    acts = [act_of(None), act_of("", "unknown"), *(act_of(name, tool.effect) for name, tool in schema.tools.items())]
    if schema.actions is not None:
        # A call to a generic tool is treated as a look-up as well as its actions.
        acts += [act_of(name, "read") for name in schema.actions.by_tool]
    used = {name: predicates[name] for name in atoms(rule.formula)}
    own = {name: frozenset(policies[each.guard].tools) for name, each in used.items() if each.guard in policies}
    kinds: list[tuple[str, dict[str, bool | None]]] = []
    is_bound = False
    for act in acts:
        values = {name: each.fixed(act, own.get(name, ())) for name, each in used.items()}
        if rule.for_each:
            tool = schema.tools.get(act.tool or "")
            if act.tool is not None and (tool is None or not tool.parameters or rule.for_each in tool.parameters):
                is_bound = is_bound or tool is not None
                kinds.append((act.tool, values))
            values = {name: False if used[name].is_action else value for name, value in values.items()}
        kinds.append((act.tool or "", values))
    if rule.for_each and not is_bound:
        return Breaks(frozenset(), False)
    found = reach(rule.formula, [values for _, values in kinds])
    return Breaks(frozenset(kinds[number][0] for number in found.acts), found.is_breakable)


class RulesReader:
    def __init__(
        self, source: Located | None, schema: Schema, policies: Mapping[str, Policy], learned: Located | None = None
    ) -> None:
        self._written = source or Located("rules.yaml", {}, {})
        self._file, self._source, self.faults = read_record(self._written, RulesFile)
        self._learned, self._learned_source, wrong = read_record(learned or Located("", {}, {}), WeightsFile)
        self.faults += wrong
        self._schema = schema
        self._policies = policies

    def read(self) -> Rules:
        """Read the rules. The result is valid only if `faults` is still empty."""
        file = self._file
        given: Any = self._written.data.get("predicates")
        written = cast(dict[str, Any], given) if isinstance(given, dict) else dict[str, Any]()
        reader = PredicateReader(self._source, self._schema, self._policies, self.faults, written)
        predicates = {name: reader.read(name, body or WrittenPredicate()) for name, body in file.predicates.items()}
        rules: dict[str, Rule] = {}
        for index, body in enumerate(file.rules):
            rule = self._rule(body, index, predicates)
            if rule is not None:
                if rule.name in rules:
                    self._fault(f"two rules have the name `{rule.name}`", "rules", index)
                rules[rule.name] = rule
                self._check_breakable(rule, index, predicates)
        demands = tuple(rule for rule in rules.values() if not rule.physical)
        knowledge = tuple(rule for rule in rules.values() if rule.physical)
        limits = tuple(self._limits().values())
        return self._weighted(Rules(predicates, demands, knowledge, float(file.eps), limits))

    def _weighted(self, found: Rules) -> Rules:
        weights = self._learned.weights
        for name in weights.keys() - {rule.name for rule in found.rules}:
            message, hint = f"`{name}` is not a rule", "learn the weights again"
            self.faults.append(self._learned_source.fault(RuleError, message, "weights", name, hint=hint))
        for name, weight in weights.items():
            self._check_weight(name, weight, self._learned_source.place("weights", name))
        eps = found.eps if self._learned.eps is None else float(self._learned.eps)
        rules: list[Rule] = []
        for rule in found.rules:
            weighed = replace(rule, weight=float(weights.get(rule.name, rule.weight)))
            if rule.name not in weights and rule.denies_alone(found.eps) and not rule.denies_alone(eps):
                # Labels for other rules may have lowered `eps`. This must not weaken the present rule.
                weighed = replace(rule, weight=denying_weight(threshold_of(eps)))
            rules.append(weighed)
        return replace(found, rules=tuple(rules), eps=eps)

    def _rule(self, body: WrittenRule, index: int, predicates: Mapping[str, Predicate]) -> Rule | None:
        """Read a rule. A rule about consent is always hard, so that no weight can outweigh missing consent."""
        name = str(body.id)
        policy = name if body.policy is None else str(body.policy)
        if not name or not body.formula:
            self._fault("a rule needs an id and a formula", "rules", index)
            return None
        physical = body.physical
        if policy not in self._policies and not (physical and body.policy is None):
            message = f"rule `{name}` names a policy `{policy}` that does not exist"
            self._fault(message, "rules", index, hint=meant(policy, self._policies), lacks=f"policy {policy}")
        try:
            weight = float(body.weight)
            rule = read_rule(name, str(body.formula), policy=policy, weight=weight, hard=body.hard, physical=physical)
        except FormulaError as error:
            self.faults.append(FormulaError(error.message, place=self._source.place("rules", index), hint=error.hint))
            return None
        self._check_weight(name, rule.weight, self._source.place("rules", index))
        if physical and (
            rule.for_each
            or not is_propositional(rule.formula.operand if isinstance(rule.formula, Always) else rule.formula)
        ):
            hint = "a physical rule applies to each act on its own: leave out temporal operators and FOR EACH"
            self._fault(f"physical rule `{name}` depends on other acts", "rules", index, hint=hint)
        elif physical and len(atoms(rule.formula)) > MOST_KNOWN:
            hint = "split it into smaller rules"
            self._fault(f"physical rule `{name}` has more than {MOST_KNOWN} predicates", "rules", index, hint=hint)
        for atom in atoms(rule.formula):
            if atom not in predicates:
                message, hint = f"rule `{name}` uses `{atom}`, which is not a predicate", meant(atom, predicates)
                self._fault(message, "rules", index, hint=hint, lacks=f"predicate {atom}")
        is_consent = any(atom in predicates and predicates[atom].consent for atom in atoms(rule.formula))
        return replace(rule, hard=True) if is_consent and not physical else rule

    def _limits(self) -> dict[str, Limit]:
        found: dict[str, Limit] = {}
        for index, body in enumerate(self._file.limits):
            limit = self._limit(body, index)
            if limit.name in found:
                self._fault(f"two limits have the name `{limit.name}`", "limits", index)
            found[limit.name] = limit
        return found

    def _limit(self, body: WrittenLimit, index: int) -> Limit:
        at = ("limits", index)
        name = str(body.id)
        policy = name if body.policy is None else str(body.policy)
        given: list[Any] = body.tool if isinstance(body.tool, list) else [body.tool]
        tools = frozenset(str(tool) for tool in given if tool != "")
        within = read_duration(str(body.within))
        if not name or not tools:
            self._fault("a limit needs an `id` and a `tool`", *at)
        if policy not in self._policies:
            message = f"limit `{name}` names a policy `{policy}` that does not exist"
            self._fault(message, *at, hint=meant(policy, self._policies), lacks=f"policy {policy}")
        for tool in sorted(tools - self._schema.tools.keys()):
            self._fault(f"`{tool}` is not a tool", *at, hint=meant(tool, self._schema.tools), lacks=f"tool {tool}")
        if body.most < 1:
            hint = "to forbid a tool completely, write a guard"
            self._fault(f"`most` of limit `{name}` is less than 1", *at, hint=hint)
        if within is None:
            self._fault(f"`within` of limit `{name}` is not a duration", *at, hint="such as 30m, 1h or 7d")
        where, _, what = str(body.per).partition(".")
        if where == "call" and what:
            for tool in sorted(tools & self._schema.tools.keys()):
                parameters = self._schema.tools[tool].parameters
                if what not in parameters:
                    self._fault(f"`{tool}` has no argument `{what}` to count by", *at, hint=meant(what, parameters))
        elif body.per not in ("tenant", "agent") and not (where == "context" and what):
            self._fault(f"limit `{name}` counts per `{body.per}`", *at, hint=PER)
        return Limit(name, policy, tools, body.most, within or 1.0, str(body.per), body.over)

    def _check_breakable(self, rule: Rule, index: int, predicates: Mapping[str, Predicate]) -> None:
        """Report a rule that no conversation can break, because it protects nothing."""
        is_read = all(atom in predicates and predicates[atom].way for atom in atoms(rule.formula))
        if rule.physical or not is_read:
            return
        if where_broken(rule, predicates, self._schema, self._policies).is_breakable:
            return
        known = {name for tool in self._schema.tools.values() for name in tool.parameters}
        hint = "no act of the agent can meet all its conditions: a message is not a call, and a call has one tool"
        if rule.for_each and rule.for_each not in known:
            hint = meant(rule.for_each, known) or f"no tool has the argument `{rule.for_each}`"
        self._fault(f"rule `{rule.name}` can never be broken, so it protects nothing", "rules", index, hint=hint)

    def _check_weight(self, name: str, weight: float, place: str) -> None:
        if not abs(weight) <= HEAVIEST:
            hint = f"use at most {HEAVIEST:,}, or make the rule hard"
            self.faults.append(RuleError(f"the weight of rule `{name}` is too large", place=place, hint=hint))

    def _fault(self, message: str, *at: str | int, hint: str = "", lacks: str = "") -> None:
        self.faults.append(self._source.fault(RuleError, message, *at, hint=hint, lacks=lacks))
