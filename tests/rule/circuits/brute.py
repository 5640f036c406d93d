"""The slow, obvious twin of `bylaw.rule.inference`: every world, one after the other."""

import itertools
import math
import random
from collections.abc import Mapping

from bylaw.rule.circuit import Circuit
from bylaw.rule.formula import And, Atom, Constant, Formula, Implies, Not, Or, Xor, atoms
from bylaw.rule.rule import Rule


def holds(formula: Formula, world: Mapping[str, bool]) -> bool:
    match formula:
        case Constant(value):
            return value
        case Atom(name):
            return world[name]
        case Not(operand):
            return not holds(operand, world)
        case And(left, right):
            return holds(left, world) and holds(right, world)
        case Or(left, right):
            return holds(left, world) or holds(right, world)
        case Xor(left, right):
            return holds(left, world) != holds(right, world)
        case Implies(left, right):
            return not holds(left, world) or holds(right, world)
    raise AssertionError(formula)


def worlds(circuit: Circuit, evidence):
    """Every completion of the evidence that the hard physical rules allow, with its virtual weight."""
    names = sorted(set().union(*(atoms(rule.formula) for rule in circuit.rules)) - {circuit.action})
    known = {n: evidence[n] for n in names if isinstance(evidence.get(n), bool)}
    free = [n for n in names if n not in known]
    for values in itertools.product([False, True], repeat=len(free)):
        world = {**known, **dict(zip(free, values, strict=True)), circuit.action: False}
        if all(holds(r.formula, world) for r in circuit.rules if r.physical and r.hard):
            weight = 1.0
            for n, value in zip(free, values, strict=True):
                p = evidence.get(n)
                weight *= 1.0 if p is None else p if value else 1.0 - p
            yield world, weight


def score(circuit: Circuit, world, taken: bool) -> float:
    world = {**world, circuit.action: taken}
    return math.fsum(r.weight for r in circuit.rules if not r.hard and holds(r.formula, world))


def margin(circuit: Circuit, evidence) -> float:
    terms = [
        (score(circuit, world, True), score(circuit, world, False), weight)
        for world, weight in worlds(circuit, evidence)
    ]
    top = max(max(one, other) for one, other, _ in terms)
    taken = math.fsum(weight * math.exp(one - top) for one, _, weight in terms)
    without = math.fsum(weight * math.exp(other - top) for _, other, weight in terms)
    return (taken - without) / (taken + without)


def interval(circuit: Circuit, evidence) -> tuple[float, float]:
    margins = [
        math.tanh((score(circuit, world, True) - score(circuit, world, False)) / 2)
        for world, _ in worlds(circuit, evidence)
    ]
    return min(margins), max(margins)


def cases(circuit: Circuit, rule: Rule, evidence) -> set[tuple[bool, bool]]:
    return {
        (holds(rule.formula, {**world, circuit.action: True}), holds(rule.formula, {**world, circuit.action: False}))
        for world, _ in worlds(circuit, evidence)
    }


def random_formula(rng: random.Random, names: list[str], size: int) -> Formula:
    if size <= 1:
        atom = Atom(rng.choice(names))
        return Not(atom) if rng.random() < 0.3 else atom
    left = rng.randint(1, size - 1)
    kind = rng.choice([And, Or, Implies, Implies, Xor])
    return kind(random_formula(rng, names, left), random_formula(rng, names, size - left))


def random_circuit(rng: random.Random, *, predicates: int = 7, rules: int = 6) -> Circuit:
    states = [f"p{i}" for i in range(rng.randint(1, predicates))]
    made = []
    for number in range(rng.randint(1, rules)):
        kind = rng.random()
        physical = kind < 0.15
        near = rng.sample(states, min(len(states), rng.randint(1, 4)))
        formula = random_formula(rng, near if physical else [*near, "act", "act"], rng.randint(1, 5))
        made.append(
            Rule(
                name=f"r{number}",
                formula=formula,
                weight=rng.choice([0.0, 1.0, rng.uniform(-1, 4), rng.uniform(0, 8)]),
                hard=rng.random() < (0.6 if physical else 0.15),
                physical=physical,
            )
        )
    return Circuit(action="act", rules=tuple(made), eps=rng.choice([0.0, 0.0, -0.2, 0.3]))


def random_evidence(rng: random.Random, circuit: Circuit) -> dict[str, bool | float | None]:
    unknown = rng.random()
    return {
        name: rng.choice([None, rng.uniform(0.01, 0.99)]) if rng.random() < unknown else rng.random() < 0.5
        for name in circuit.predicates
    }
