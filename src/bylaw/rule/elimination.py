"""Exact variable elimination over small tables of numbers, in plain Python.

A table over the variables `scope` is a list in which variable `scope[j]` is bit `j + lanes` of the index; the `lanes`
low bits are never eliminated. One lane carries the action, so that both its values are computed in one pass.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import add, itemgetter, mul

import msgspec

Variables = tuple[int, ...]
Numbers = Sequence[float]
Gather = Callable[[Numbers], Numbers]


class EliminationStep(msgspec.Struct, frozen=True):
    """The elimination of one variable: multiply the inputs, spread to the step's scope, and sum the variable out."""

    variable: int
    inputs: tuple[tuple[int, Gather | None, tuple[int, ...]], ...]
    """Table number, how to spread it to this scope, and the place of each variable of this scope in its own, or -1."""


class EliminationPlan(msgspec.Struct, frozen=True):
    """An order of elimination for tables of known scopes."""

    steps: tuple[EliminationStep, ...]
    roots: tuple[int, ...]
    """Tables left without variables: their product is the result."""
    width: int
    count: int
    """How many tables go in; the message of step i is table `count + i`."""


@lru_cache(maxsize=2048)
def plan(
    scopes: tuple[Variables, ...], lanes: int, width_cap: int, order: tuple[int, ...] | None = None
) -> EliminationPlan | None:
    """How to eliminate every variable of `scopes`; None where that needs more than the cap.

    Without an `order` it is found by `elimination_order`. One that was found for larger scopes serves as well.
    """
    if order is None:
        order = elimination_order(tuple(sum(1 << variable for variable in scope) for scope in scopes), width_cap)
        if order is None:
            return None
    turn = {variable: number for number, variable in enumerate(order)}
    waiting: list[list[tuple[int, Variables]]] = [[] for _ in order]
    roots: list[int] = []
    for i, scope in enumerate(scopes):
        if scope:
            waiting[min([turn[variable] for variable in scope])].append((i, scope))
        else:
            roots.append(i)
    steps: list[EliminationStep] = []
    width = 0
    for variable, chosen in zip(order, waiting, strict=True):
        if not chosen:
            continue
        together = set(chosen[0][1]).union(*[own for _, own in chosen[1:]])
        together.remove(variable)
        rest = sorted(together)
        width = max(width, len(rest))
        if width > width_cap:
            return None
        scope = (*rest, variable)
        inputs: list[tuple[int, Gather | None, tuple[int, ...]]] = []
        for i, own in chosen:
            places = tuple([own.index(each) if each in own else -1 for each in scope])
            inputs.append((i, _spread(places, lanes), places))
        message = len(scopes) + len(steps)
        steps.append(EliminationStep(variable, tuple(inputs)))
        if rest:
            waiting[min([turn[each] for each in rest])].append((message, tuple(rest)))
        else:
            roots.append(message)
    return EliminationPlan(tuple(steps), tuple(roots), width, len(scopes))


@lru_cache(maxsize=512)
def elimination_order(masks: tuple[int, ...], width_cap: int) -> tuple[int, ...] | None:
    """Variables in the order of fewest fill-ins; scopes are bit masks. None where some step is wider than the cap."""
    neighbours: dict[int, int] = {}
    for mask in masks:
        for variable in _members(mask):
            neighbours[variable] = neighbours.get(variable, 0) | mask & ~(1 << variable)
    order: list[int] = []
    costs = {variable: _fill(variable, neighbours) for variable in neighbours}
    while neighbours:
        variable = min(costs, key=costs.__getitem__)
        around = neighbours.pop(variable)
        del costs[variable]
        if around.bit_count() > width_cap:
            return None
        order.append(variable)
        touched = around
        for other in _members(around):
            neighbours[other] = (neighbours[other] | around) & ~(1 << other) & ~(1 << variable)
            touched |= neighbours[other]
        for other in _members(touched):
            costs[other] = _fill(other, neighbours)
    return tuple(order)


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


@lru_cache(maxsize=4096)
def _spread(places: tuple[int, ...], lanes: int) -> Gather | None:
    """Takes a table to a wider scope, given where each variable of the wider one is in the table's own."""
    if places == tuple(range(len(places))):
        return None
    index = list(range(1 << lanes))
    for place in places:
        stride = 1 << (place + lanes) if place >= 0 else 0
        index += [i + stride for i in index]
    return itemgetter(*index)


@lru_cache(maxsize=4096)
def _folding(places: tuple[int, ...], lanes: int) -> Gather | None:
    """Reorders the wider table so that the variables of the narrower one come lowest, in their order."""
    back = sorted((place, position) for position, place in enumerate(places) if place >= 0)
    positions = [position for _, position in back] + [p for p, place in enumerate(places) if place < 0]
    if positions == list(range(len(places))):
        return None
    index = list(range(1 << lanes))
    for position in positions:
        index += [i + (1 << (position + lanes)) for i in index]
    return itemgetter(*index)


Combine = Callable[[Numbers, Numbers], Numbers]


def multiply(left: Numbers, right: Numbers) -> Numbers:
    return list(map(mul, left, right))


def total(left: Numbers, right: Numbers) -> Numbers:
    return list(map(add, left, right))


def least(left: Numbers, right: Numbers) -> Numbers:
    return [x if x < y else y for x, y in zip(left, right, strict=True)]


def greatest(left: Numbers, right: Numbers) -> Numbers:
    return [x if x > y else y for x, y in zip(left, right, strict=True)]


def total_of_logs(left: Numbers, right: Numbers) -> Numbers:
    """log(exp x + exp y), for weights too large for floating point."""
    return [
        y if x == -math.inf else x if y == -math.inf else max(x, y) + math.log1p(math.exp(-abs(x - y)))
        for x, y in zip(left, right, strict=True)
    ]


def eliminate(
    plan: EliminationPlan, tables: Sequence[Numbers], combine: Combine = multiply, reduce: Combine = total
) -> Numbers:
    """The product of all tables with every variable summed out: one number per value of the lanes."""
    made = list(tables)
    for step in plan.steps:
        product: Numbers | None = None
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


def beliefs(plan: EliminationPlan, tables: Sequence[Numbers]) -> dict[int, tuple[float, float, float, float]]:
    """For each variable the four sums (action, variable) = (0, 0), (1, 0), (0, 1), (1, 1), from one pass back.

    This is the derivative of the result by each message, pushed down the steps: twice the work of `eliminate`, not one
    run per variable. Expects one lane.
    """
    made: list[Numbers] = list(tables)
    spreads: list[list[Numbers]] = []
    products: list[Numbers] = []
    for step in plan.steps:
        inputs = [made[i] if spread is None else spread(made[i]) for i, spread, _ in step.inputs]
        product = inputs[0]
        for table in inputs[1:]:
            product = multiply(product, table)
        half = len(product) >> 1
        made.append(total(product[:half], product[half:]))
        spreads.append(inputs)
        products.append(product)
    slopes: dict[int, Numbers] = {}
    for root in plan.roots:
        slope: Numbers = (1.0, 1.0)
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
        for position, (i, _, places) in enumerate(step.inputs):
            if i < plan.count:
                continue
            folding = _folding(places, 1)
            slope = outer
            for other, table in enumerate(spreads[number]):
                if other != position:
                    slope = multiply(slope, table)
            if folding is not None:
                slope = folding(slope)
            while len(slope) > len(made[i]):
                half = len(slope) >> 1
                slope = total(slope[:half], slope[half:])
            slopes[i] = slope
    return found
