"""Computes how safe an action is under a circuit.

The model is a Markov logic network over the action and the unknown predicates (ShieldAgent, Eq. 4). P(world) is
proportional to exp(sum of the weights of the satisfied rules). A world that breaks a hard physical rule has probability
zero. A predicate with evidence p multiplies a world's probability by p or 1 - p. The margin is P(action) - P(no action)
(Eq. 5).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from operator import sub
from typing import NamedTuple

from bylaw.errors import CircuitError
from bylaw.rule.circuit import Assessment, Circuit, Evidence, RuleState, Speech, answer_of
from bylaw.rule.elimination import (
    EliminationPlan,
    Numbers,
    Variables,
    eliminate,
    elimination_order,
    greatest,
    least,
    plan,
    total,
    total_of_logs,
)
from bylaw.rule.formula import Always, Constant, Formula, atoms, is_propositional
from bylaw.rule.letters import MOST_ATOMS, TruthTable, condition, table_of
from bylaw.rule.rule import Rule

MEMO = 4096


class Reduced(NamedTuple):
    """The values of a rule over its unknown predicates: one column with the action, and one without."""

    scope: Variables
    kept_with: bytes
    kept_without: bytes
    is_wide: bool = False
    """Whether too many predicates are unknown for a table. The columns then contain only the rule's possible values."""


class Column:
    """The truth table of a rule, split by the action, and the reductions made so far."""

    def __init__(self, table: TruthTable, action: str, numbers: dict[str, int]) -> None:
        names = table.atoms
        self.bits = [numbers.setdefault(name, len(numbers)) if name != action else -1 for name in names]
        self.values = table.values
        self.mask = sum(1 << bit for bit in self.bits if bit >= 0)
        self._reduced = lru_cache(maxsize=MEMO)(self._reduce)

    def reduce(self, known: int, true: int) -> Reduced:
        return self._reduced(known & self.mask, true & self.mask)

    def _reduce(self, known: int, true: int) -> Reduced:
        base, action, scope, index = 0, 0, list[int](), [0]
        for position, bit in enumerate(self.bits):
            if bit < 0:
                action = 1 << position
            elif known >> bit & 1:
                base |= (true >> bit & 1) << position
        for bit, position in sorted((bit, j) for j, bit in enumerate(self.bits) if bit >= 0 and not known >> bit & 1):
            scope.append(bit)
            index += [i | 1 << position for i in index]
        values = self.values
        return _narrowed(
            tuple(scope), bytes([values[base | action | i] for i in index]), bytes([values[base | i] for i in index])
        )


class WideRule:
    """A rule with too many predicates for one table. The table is built once enough of the predicates are known."""

    def __init__(self, formula: Formula, action: str, numbers: dict[str, int]) -> None:
        self.formula, self.action, self.numbers = formula, action, numbers
        self.names = [name for name in atoms(formula) if name != action]
        for name in self.names:
            numbers.setdefault(name, len(numbers))
        self.mask = sum(1 << numbers[name] for name in self.names)

    def reduce(self, known: int, true: int) -> Reduced:
        values = {n: bool(true >> self.numbers[n] & 1) for n in self.names if known >> self.numbers[n] & 1}
        left = condition(self.formula, values)
        if len(atoms(left)) <= MOST_ATOMS:
            return Column(table_of(left), self.action, self.numbers).reduce(known, true)
        columns = (_possible_values(condition(left, {self.action: taken})) for taken in (True, False))
        scope = sorted(self.numbers[name] for name in atoms(left) if name != self.action)
        return Reduced(tuple(scope), *columns, is_wide=True)


def _possible_values(formula: Formula) -> bytes:
    return bytes([formula.value]) if isinstance(formula, Constant) else b"\x00\x01"


def _narrowed(scope: Variables, kept_with: bytes, kept_without: bytes) -> Reduced:
    position = 0
    while position < len(scope):
        step = 1 << position
        blocks = range(0, len(kept_with), 2 * step)
        if all(
            column[at : at + step] == column[at + step : at + 2 * step]
            for column in (kept_with, kept_without)
            for at in blocks
        ):
            kept_with, kept_without = (
                b"".join([column[at : at + step] for at in blocks]) for column in (kept_with, kept_without)
            )
            scope = scope[:position] + scope[position + 1 :]
        else:
            position += 1
    return Reduced(scope, kept_with, kept_without)


def column_of(formula: Formula, action: str, numbers: dict[str, int]) -> Column | WideRule | None:
    """Prepare a rule for reduction. Returns None for a temporal rule, whose predicates are only numbered."""
    formula = formula.operand if isinstance(formula, Always) else formula
    names = atoms(formula)
    if not is_propositional(formula):
        for name in names:
            if name != action:
                numbers.setdefault(name, len(numbers))
        return None
    if len(names) > MOST_ATOMS:
        return WideRule(formula, action, numbers)
    return Column(table_of(formula, names), action, numbers)


@lru_cache(maxsize=8192)
def differences(reduced: Reduced) -> tuple[int, ...]:
    """Return the action's effect on the rule (-1, 0 or 1) for all values of the unknown predicates."""
    if reduced.is_wide:
        return tuple(one - other for one in reduced.kept_with for other in reduced.kept_without)
    return tuple(map(sub, reduced.kept_with, reduced.kept_without))


@lru_cache(maxsize=8192)
def lanes(reduced: Reduced, kept: float = 1.0, broken: float = 0.0) -> tuple[float, ...]:
    """Return both columns as one table, with the action as the lowest bit."""
    values = bytearray(2 * len(reduced.kept_with))
    values[0::2] = reduced.kept_without
    values[1::2] = reduced.kept_with
    return tuple([kept if value else broken for value in values])


_SAFE_EXPONENT = 300.0
"""If the sum of the weights is larger than this, logarithms are used."""
_ROUNDING = 1e-15
"""A margin below this is treated as 0, so that rounding cannot make an action fail an `eps` of 0."""
_MEMO = 16384


class _Facts(NamedTuple):
    """The evidence as bits: which predicates are known and which are true. Also contains the probabilities of the
    remaining predicates.
    """

    known: int
    true: int
    likely: dict[int, float]


class Inference:
    """A circuit ready for evaluation. Reuse the object, because it caches results."""

    def __init__(self, circuit: Circuit) -> None:
        self.circuit = circuit
        self.numbers: dict[str, int] = {}
        self._columns: dict[str, Column | WideRule | None] = {}
        self._bound = lru_cache(maxsize=_MEMO)(self._bind)
        self._state = lru_cache(maxsize=_MEMO)(self._described)
        self._rules = {rule.name: rule for rule in circuit.rules}
        for rule in circuit.rules:
            self._columns[rule.name] = column_of(rule.formula, circuit.action, self.numbers)
        self._masks = {column.mask: None for column in self._columns.values() if column is not None}
        if len(self._columns) != len(circuit.rules):
            raise CircuitError("two rules of one circuit have the same name", place=circuit.action)
        self._knowledge = [rule for rule in circuit.rules if rule.physical and rule.hard]
        self._vetoes = [rule for rule in circuit.rules if rule.hard and not rule.physical]
        self._soft = [rule for rule in circuit.rules if not rule.hard]

    def assess(self, evidence: Evidence, *, tables: Mapping[str, TruthTable] | None = None) -> Assessment:
        """Assess the action. `tables` has one table per temporal rule, which depends on the state of its monitor."""
        facts, contradicted = self._deduced(self._read(evidence), tables)
        reduced = {rule.name: self._reduced(rule, facts, tables) for rule in self.circuit.rules}
        states = tuple(self._state(*each) for each in reduced.items())
        if contradicted:
            return self._contradiction(states, contradicted)
        soft = [(rule.weight, reduced[rule.name]) for rule in self._soft]
        knowledge = [reduced[rule.name] for rule in self._knowledge if reduced[rule.name].scope]
        low, high = self._interval(soft, knowledge, facts)
        margin = self._margin(soft, knowledge, facts)
        if low > high or (margin is not None and math.isnan(margin)):
            return self._contradiction(states, [rule.name for rule in self._knowledge])
        if margin is not None:
            # The bounds are exact, so if the margin is outside them, the difference is a rounding error.
            margin = min(max(margin, low), high)
        veto, conflict, undecided = self._hard(reduced, knowledge)
        if veto:
            low, high = -1.0, -1.0
        elif conflict or undecided:
            low = -1.0
        eps = self.circuit.eps
        barred = bool(veto or conflict or undecided)
        decision = answer_of((low, high), eps)
        if barred and decision == "allow":
            decision = "deny" if veto else "ask"
        influence: dict[str, float] = {}
        if decision == "ask":
            swings = self._linear_swings(soft) if margin is None else self._swings(evidence, tables, soft, knowledge)
            influence = self._influence(swings, [reduced[name] for name in undecided])
        return Assessment(
            action=self.circuit.action,
            safe=not barred and (low if margin is None else margin) >= eps,
            decision=decision,
            margin=margin,
            interval=(low, high),
            eps=eps,
            rules=states,
            veto=tuple(veto),
            conflict=tuple(conflict),
            influence=influence,
        )

    def margin(self, evidence: Evidence, *, tables: Mapping[str, TruthTable] | None = None) -> float | None:
        """Return the exact margin of the weighted rules. None above the width cap, or if no world is possible."""
        facts, contradicted = self._deduced(self._read(evidence), tables)
        if contradicted:
            return None
        soft = [(rule.weight, self._reduced(rule, facts, tables)) for rule in self._soft]
        knowledge = [self._reduced(rule, facts, tables) for rule in self._knowledge]
        margin = self._margin(soft, [each for each in knowledge if each.scope], facts)
        return None if margin is None or math.isnan(margin) else margin

    def _read(self, evidence: Evidence) -> _Facts:
        known = true = 0
        likely: dict[int, float] = {}
        numbers = self.numbers
        for name, value in evidence.items():
            if value is None or name == self.circuit.action:
                continue
            bit = numbers.get(name)
            if bit is None:
                continue
            if value is True or value == 1.0:
                known |= 1 << bit
                true |= 1 << bit
            elif value is False or value == 0.0:
                known |= 1 << bit
            elif 0.0 < value < 1.0:
                likely[bit] = value
            else:
                raise CircuitError(f"the probability of `{name}` is `{value}`", hint="pass a number from 0 to 1")
        return _Facts(known, true, likely)

    def _reduced(self, rule: Rule, facts: _Facts, tables: Mapping[str, TruthTable] | None) -> Reduced:
        if tables and rule.name in tables:
            column = self._bound(tables[rule.name])
        else:
            column = self._columns[rule.name]
        if column is None:
            raise CircuitError(
                f"rule `{rule.name}` is temporal, but the state of its monitor was not passed",
                hint="pass its table in `tables`",
            )
        return column.reduce(facts.known, facts.true)

    def _bind(self, table: TruthTable) -> Column:
        column = Column(table, self.circuit.action, self.numbers)
        self._masks[column.mask] = None
        return column

    def _deduced(self, facts: _Facts, tables: Mapping[str, TruthTable] | None) -> tuple[_Facts, list[str]]:
        """Deduce the values that the hard physical rules imply. Also return the rules that the evidence contradicts."""
        contradicted: list[str] = []
        changed = bool(self._knowledge)
        while changed and not contradicted:
            changed = False
            for rule in self._knowledge:
                scope, column, _, is_wide = self._reduced(rule, facts, tables)
                if is_wide:
                    continue
                allowed = [i for i, kept in enumerate(column) if kept]
                if not allowed:
                    contradicted.append(rule.name)
                for position, bit in enumerate(scope if allowed else ()):
                    values = {i >> position & 1 for i in allowed}
                    if len(values) == 1:
                        likely = {k: p for k, p in facts.likely.items() if k != bit}
                        facts = _Facts(facts.known | 1 << bit, facts.true | values.pop() << bit, likely)
                        changed = True
        return facts, contradicted

    def _contradiction(self, states: tuple[RuleState, ...], names: Sequence[str]) -> Assessment:
        return Assessment(
            action=self.circuit.action,
            safe=False,
            decision="ask",
            margin=None,
            interval=(-1.0, 1.0),
            eps=self.circuit.eps,
            rules=states,
            conflict=tuple(names),
        )

    def _margin(self, soft: list[tuple[float, Reduced]], knowledge: list[Reduced], facts: _Facts) -> float | None:
        """Return the exact margin. None above the width cap, NaN if no world is possible."""
        if not knowledge and all(not reduced.scope for _, reduced in soft):
            return math.tanh(_closed(soft) / 2)
        if any(reduced.is_wide for _, reduced in soft) or any(reduced.is_wide for reduced in knowledge):
            return None
        in_logs = sum(abs(weight) for weight, reduced in soft if reduced.scope) > _SAFE_EXPONENT
        scopes, factors = _factors(soft, knowledge, facts, in_logs=in_logs)
        order = plan(scopes, 1, self.circuit.width_cap, self._order(facts))
        if order is None:
            return None
        if in_logs:
            without, taken = eliminate(order, factors, total, total_of_logs)
            return math.tanh((taken - without) / 2) if max(taken, without) > -math.inf else math.nan
        without, taken = eliminate(order, factors)
        if abs(taken - without) <= _ROUNDING * (taken + without):
            return 0.0 if taken else math.nan
        return (taken - without) / (taken + without)

    def _order(self, facts: _Facts) -> tuple[int, ...] | None:
        """Return an elimination order for all combinations of values. The order is cached by the set of known
        predicates.
        """
        return elimination_order(tuple([mask & ~facts.known for mask in self._masks]), self.circuit.width_cap)

    def _interval(
        self, soft: list[tuple[float, Reduced]], knowledge: list[Reduced], facts: _Facts
    ) -> tuple[float, float]:
        """Bound the margin over all values of the unknown predicates. If the width cap is exceeded, the bounds may be
        wide.
        """
        settled: list[float] = []
        open_: list[tuple[Variables, Numbers]] = []
        is_tight = True
        for weight, reduced in soft:
            terms = [weight * difference for difference in differences(reduced)]
            if min(terms) == max(terms):
                settled.append(terms[0])
            else:
                open_.append((reduced.scope, terms))
                is_tight = is_tight and not reduced.is_wide
        base = math.fsum(settled)
        if not open_:
            return math.tanh(base / 2), math.tanh(base / 2)
        scopes = tuple(scope for scope, _ in open_)
        spread = sum(map(len, scopes))
        narrow = [reduced for reduced in knowledge if not reduced.is_wide]
        if is_tight and (narrow or len(set[int]().union(*scopes)) < spread):
            order = plan(
                (*scopes, *(reduced.scope for reduced in narrow)), 0, self.circuit.width_cap, self._order(facts)
            )
            if order is not None:
                low, high = _extremes(order, [terms for _, terms in open_], narrow)
                return math.tanh((base + low) / 2), math.tanh((base + high) / 2)
        low = math.fsum([base, *(min(terms) for _, terms in open_)])
        high = math.fsum([base, *(max(terms) for _, terms in open_)])
        return math.tanh(low / 2), math.tanh(high / 2)

    def _hard(self, reduced: Mapping[str, Reduced], knowledge: list[Reduced]) -> tuple[list[str], list[str], list[str]]:
        veto: list[str] = []
        conflict: list[str] = []
        undecided: list[str] = []
        for rule in self._vetoes:
            cases = self._cases(reduced[rule.name], knowledge)
            if cases == {(0, 1)}:
                veto.append(rule.name)
            elif cases == {(0, 0)}:
                conflict.append(rule.name)
            elif any(not with_action for with_action, _ in cases):
                undecided.append(rule.name)
        return veto, conflict, undecided

    def _cases(self, rule: Reduced, knowledge: list[Reduced]) -> set[tuple[int, int]]:
        if rule.is_wide:
            return {(one, other) for one in rule.kept_with for other in rule.kept_without}
        pairs = list(zip(rule.kept_with, rule.kept_without, strict=True))
        near = [each for each in knowledge if not each.is_wide]
        if len(set(pairs)) == 1 or not near:
            return set(pairs)
        order = plan((rule.scope, *(each.scope for each in near)), 0, self.circuit.width_cap)
        if order is None:
            return set(pairs)
        filters = [[float(kept) for kept in each.kept_with] for each in near]
        return {case for case in set(pairs) if eliminate(order, [[float(p == case) for p in pairs], *filters])[0]}

    def _swings(
        self,
        evidence: Evidence,
        tables: Mapping[str, TruthTable] | None,
        soft: list[tuple[float, Reduced]],
        knowledge: list[Reduced],
    ) -> dict[str, float]:
        bits = set[int]().union(*(reduced.scope for _, reduced in soft), *(reduced.scope for reduced in knowledge))
        found: dict[str, float] = {}
        for name in self._names(sorted(bits)):
            ends = [self.margin({**evidence, name: value}, tables=tables) for value in (False, True)]
            found[name] = 0.0 if ends[0] is None or ends[1] is None else abs(ends[1] - ends[0])
        return found

    def _linear_swings(self, soft: list[tuple[float, Reduced]]) -> dict[str, float]:
        """Return each unknown predicate's share of the interval that is computed in linear time. Used if the width cap
        is exceeded.
        """
        found: dict[str, float] = {}
        for weight, reduced in soft:
            reach = abs(weight) * (max(differences(reduced)) - min(differences(reduced)))
            for name in self._names(reduced.scope):
                found[name] = found.get(name, 0.0) + math.tanh(reach / 2) / len(reduced.scope)
        return found

    def _influence(self, swings: dict[str, float], hard: list[Reduced]) -> dict[str, float]:
        """Add each undecided hard rule's contribution to the influence: the full range, divided among the rule's
        unknown predicates.
        """
        for reduced in hard:
            for name in self._names(reduced.scope):
                swings[name] = swings.get(name, 0.0) + 2.0 / len(reduced.scope)
        return {name: swings[name] for name in self.numbers if swings.get(name, 0.0) > _ROUNDING}

    def _described(self, name: str, reduced: Reduced) -> RuleState:
        rule = self._rules[name]
        with_action, without_action = _certain(reduced.kept_with), _certain(reduced.kept_without)
        speech: Speech
        match with_action, without_action:
            case True, True:
                speech = "silent"
            case False, True:
                speech = "against"
            case True, False:
                speech = "for"
            case False, False:
                speech = "broken"
            case _:
                speech = "silent" if not any(differences(reduced)) and not rule.hard else "undecided"
        return RuleState(
            name=rule.name,
            speech=speech,
            weight=rule.weight,
            hard=rule.hard,
            policy=rule.policy,
            with_action=with_action,
            without_action=without_action,
            unknown=self._names(reduced.scope),
        )

    def _names(self, scope: Iterable[int]) -> tuple[str, ...]:
        names = tuple(self.numbers)
        return tuple(names[bit] for bit in scope)


def assess(circuit: Circuit, evidence: Evidence, *, tables: Mapping[str, TruthTable] | None = None) -> Assessment:
    """Assess the action of a circuit. To assess the same circuit repeatedly, reuse one `Inference`."""
    return Inference(circuit).assess(evidence, tables=tables)


def _closed(soft: list[tuple[float, Reduced]]) -> float:
    return math.fsum(weight * (reduced.kept_with[0] - reduced.kept_without[0]) for weight, reduced in soft)


def _factors(
    soft: list[tuple[float, Reduced]], knowledge: list[Reduced], facts: _Facts, *, in_logs: bool = False
) -> tuple[tuple[Variables, ...], list[Numbers]]:
    scopes: list[Variables] = []
    tables: list[Numbers] = []
    for weight, reduced in soft:
        # Subtract the largest entry to avoid overflow. The subtraction cancels in every ratio.
        kept, broken = min(weight, 0.0), min(-weight, 0.0)
        if not in_logs:
            kept, broken = math.exp(kept), math.exp(broken)
        scopes.append(reduced.scope)
        tables.append(lanes(reduced, kept, broken))
    none, one = (-math.inf, 0.0) if in_logs else (0.0, 1.0)
    for reduced in knowledge:
        scopes.append(reduced.scope)
        tables.append(lanes(reduced, one, none))
    touched = set[int]().union(*scopes)
    for bit, p in facts.likely.items():
        if bit in touched:
            pair = (math.log1p(-p), math.log(p)) if in_logs else (1.0 - p, p)
            scopes.append((bit,))
            tables.append([pair[0], pair[0], pair[1], pair[1]])
    return tuple(scopes), tables


def _extremes(order: EliminationPlan, terms: list[Numbers], knowledge: list[Reduced]) -> tuple[float, float]:
    def bound(impossible: float) -> list[Numbers]:
        return [*terms, *([0.0 if kept else impossible for kept in each.kept_with] for each in knowledge)]

    low = eliminate(order, bound(math.inf), total, least)[0]
    high = eliminate(order, bound(-math.inf), total, greatest)[0]
    return low, high


def _certain(column: bytes) -> bool | None:
    return bool(column[0]) if column.count(column[0]) == len(column) else None
