"""Exact variable elimination over small tables of numbers, in plain Python.

A table over the variables `scope` is a list in which variable `scope[j]` is bit `j + lanes` of the index; the `lanes`
low bits are never eliminated. One lane carries the action, so that both its values are computed in one pass.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import add, itemgetter, mul

import msgspec

Scope = tuple[int, ...]
Numbers = list[float]
Gather = Callable[[Numbers], Sequence[float]]


class Step(msgspec.Struct, frozen=True):
    """The elimination of one variable: multiply the inputs, spread to the step's scope, and sum the variable out."""

    variable: int
    inputs: tuple[tuple[int, Gather | None, Gather | None], ...]
    """Table number, how to spread it to this scope, and how to order this scope to fold back onto it."""


class Plan(msgspec.Struct, frozen=True):
    """An order of elimination for tables of known scopes."""

    steps: tuple[Step, ...]
    roots: tuple[int, ...]
    """Tables left without variables: their product is the result."""
    width: int
    count: int
    """How many tables go in; the message of step i is table `count + i`."""


@lru_cache(maxsize=512)
def plan(scopes: tuple[Scope, ...], lanes: int, width_cap: int) -> Plan | None:
    """How to eliminate every variable of `scopes`, fewest fill-ins first; None where that needs more than the cap."""
    order = _order(scopes, width_cap)
    if order is None:
        return None
    live: dict[int, Scope] = {i: scope for i, scope in enumerate(scopes) if scope}
    roots = [i for i, scope in enumerate(scopes) if not scope]
    steps: list[Step] = []
    for variable, _ in order:
        chosen = [i for i, scope in live.items() if variable in scope]
        rest = sorted(set[int]().union(*(live[i] for i in chosen)) - {variable})
        scope = (*rest, variable)
        inputs = tuple((i, _spread(live[i], scope, lanes), _folding(live[i], scope, lanes)) for i in chosen)
        steps.append(Step(variable, inputs))
        for i in chosen:
            del live[i]
        message = len(scopes) + len(steps) - 1
        if rest:
            live[message] = tuple(rest)
        else:
            roots.append(message)
    return Plan(tuple(steps), tuple(roots), max((width for _, width in order), default=0), len(scopes))


def _order(scopes: tuple[Scope, ...], width_cap: int) -> list[tuple[int, int]] | None:
    """Variables with their width (neighbours when eliminated), by min-fill; None above the cap."""
    neighbours: dict[int, int] = {}
    for scope in scopes:
        mask = 0
        for variable in scope:
            mask |= 1 << variable
        for variable in scope:
            neighbours[variable] = neighbours.get(variable, 0) | mask & ~(1 << variable)
    order: list[tuple[int, int]] = []
    costs = {variable: _fill(variable, neighbours) for variable in neighbours}
    while neighbours:
        variable = min(costs, key=costs.__getitem__)
        around = neighbours.pop(variable)
        del costs[variable]
        width = around.bit_count()
        if width > width_cap:
            return None
        order.append((variable, width))
        touched = around
        for other in _members(around):
            neighbours[other] = (neighbours[other] | around) & ~(1 << other) & ~(1 << variable)
            touched |= neighbours[other]
        for other in _members(touched):
            costs[other] = _fill(other, neighbours)
    return order


def _fill(variable: int, neighbours: dict[int, int]) -> tuple[int, int, int]:
    around = neighbours[variable]
    missing = sum((around & ~neighbours[other]).bit_count() - 1 for other in _members(around))
    return missing, around.bit_count(), variable


def _members(mask: int) -> list[int]:
    members: list[int] = []
    while mask:
        low = mask & -mask
        members.append(low.bit_length() - 1)
        mask ^= low
    return members


def _spread(scope: Scope, wide: Scope, lanes: int) -> Gather | None:
    if scope == wide:
        return None
    index = list(range(1 << lanes))
    for variable in wide:
        stride = 1 << (scope.index(variable) + lanes) if variable in scope else 0
        index += [i + stride for i in index]
    return itemgetter(*index)


def _folding(scope: Scope, wide: Scope, lanes: int) -> Gather | None:
    """Reorders a table over `wide` so that the variables of `scope` come lowest, in their order."""
    if wide[: len(scope)] == scope:
        return None
    index = list(range(1 << lanes))
    for variable in (*scope, *(v for v in wide if v not in scope)):
        stride = 1 << (wide.index(variable) + lanes)
        index += [i + stride for i in index]
    return itemgetter(*index)


Combine = Callable[[Sequence[float], Sequence[float]], Numbers]


def multiply(left: Sequence[float], right: Sequence[float]) -> Numbers:
    return list(map(mul, left, right))


def total(left: Sequence[float], right: Sequence[float]) -> Numbers:
    return list(map(add, left, right))


def least(left: Sequence[float], right: Sequence[float]) -> Numbers:
    return [x if x < y else y for x, y in zip(left, right, strict=True)]


def greatest(left: Sequence[float], right: Sequence[float]) -> Numbers:
    return [x if x > y else y for x, y in zip(left, right, strict=True)]


def total_of_logs(left: Sequence[float], right: Sequence[float]) -> Numbers:
    """log(exp x + exp y), for weights too large for floating point."""
    return [
        y if x == -math.inf else x if y == -math.inf else max(x, y) + math.log1p(math.exp(-abs(x - y)))
        for x, y in zip(left, right, strict=True)
    ]


def eliminate(plan: Plan, tables: Sequence[Numbers], combine: Combine = multiply, reduce: Combine = total) -> Numbers:
    """The product of all tables with every variable summed out: one number per value of the lanes."""
    made = list(tables)
    for step in plan.steps:
        product: Sequence[float] | None = None
        for i, spread, _ in step.inputs:
            table = made[i] if spread is None else spread(made[i])
            product = table if product is None else combine(product, table)
        assert product is not None
        half = len(product) >> 1
        made.append(reduce(product[:half], product[half:]))
    result = made[plan.roots[0]]
    for i in plan.roots[1:]:
        result = combine(result, made[i])
    return result


def beliefs(plan: Plan, tables: Sequence[Numbers]) -> dict[int, tuple[float, float, float, float]]:
    """For each variable the four sums (action, variable) = (0, 0), (1, 0), (0, 1), (1, 1), from one pass back.

    This is the derivative of the result by each message, pushed down the steps: twice the work of `eliminate`, not one
    run per variable. Expects one lane.
    """
    made: list[Sequence[float]] = list(tables)
    spreads: list[list[Sequence[float]]] = []
    products: list[Sequence[float]] = []
    for step in plan.steps:
        inputs = [made[i] if spread is None else spread(list(made[i])) for i, spread, _ in step.inputs]
        product = inputs[0]
        for table in inputs[1:]:
            product = multiply(product, table)
        half = len(product) >> 1
        made.append(total(product[:half], product[half:]))
        spreads.append(inputs)
        products.append(product)
    slopes: dict[int, Sequence[float]] = {}
    for root in plan.roots:
        slope: Sequence[float] = (1.0, 1.0)
        for other in plan.roots:
            if other != root:
                slope = multiply(slope, made[other])
        slopes[root] = slope
    found: dict[int, tuple[float, float, float, float]] = {}
    for number in range(len(plan.steps) - 1, -1, -1):
        step = plan.steps[number]
        outer = list(slopes[plan.count + number]) * 2
        belief = multiply(products[number], outer)
        half = len(belief) >> 1
        found[step.variable] = (
            sum(belief[0:half:2]),
            sum(belief[1:half:2]),
            sum(belief[half::2]),
            sum(belief[half + 1 :: 2]),
        )
        for position, (i, _, folding) in enumerate(step.inputs):
            if i < plan.count:
                continue
            slope = outer
            for other, table in enumerate(spreads[number]):
                if other != position:
                    slope = multiply(slope, table)
            if folding is not None:
                slope = folding(list(slope))
            while len(slope) > len(made[i]):
                half = len(slope) >> 1
                slope = total(slope[:half], slope[half:])
            slopes[i] = slope
    return found
