"""Exact variable elimination over small numeric tables, in plain Python.

A table over the variables `scope` is a list. Variable `scope[j]` is bit `j + lanes` of the index. The lowest `lanes`
bits are never eliminated. With the action as the only lane, a single pass gives the results with and without the
action.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import add, itemgetter, mul

import msgspec

Variables = tuple[int, ...]
Numbers = Sequence[float]
Gather = Callable[[Numbers], Numbers]


EliminationStep = tuple[tuple[int, Gather | None], ...]
"""Eliminates the last variable of a scope. Lists the tables by number, each with the mapping that extends the table to
the scope.
"""


class EliminationPlan(msgspec.Struct, frozen=True):
    steps: tuple[EliminationStep, ...]
    roots: tuple[int, ...]
    """The tables without variables. Their product is the result."""
    width: int


@lru_cache(maxsize=2048)
def plan(
    scopes: tuple[Variables, ...], lanes: int, width_cap: int, order: tuple[int, ...] | None = None
) -> EliminationPlan | None:
    """Plan the elimination of every variable in `scopes`. None if the plan exceeds the width cap.

    `order` defaults to the result of `elimination_order`. An order that was computed for larger scopes also works.
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
        places = [(i, tuple([own.index(each) if each in own else -1 for each in scope])) for i, own in chosen]
        message = len(scopes) + len(steps)
        steps.append(tuple([(i, _spread(each, lanes)) for i, each in places]))
        if rest:
            waiting[min([turn[each] for each in rest])].append((message, tuple(rest)))
        else:
            roots.append(message)
    return EliminationPlan(tuple(steps), tuple(roots), width)


@lru_cache(maxsize=512)
def elimination_order(masks: tuple[int, ...], width_cap: int) -> tuple[int, ...] | None:
    """Return the variables ordered by fewest fill-in edges. None if a step exceeds the width cap. Scopes are bit
    masks.
    """
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
    """Return the index mapping that extends a table to a wider scope. `places` contains the position of each
    variable.
    """
    if places == tuple(range(len(places))):
        return None
    index = list(range(1 << lanes))
    for place in places:
        stride = 1 << (place + lanes) if place >= 0 else 0
        index += [i + stride for i in index]
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
    """Return log(exp x + exp y), for weights too large for floating-point exponentials."""
    return [
        y if x == -math.inf else x if y == -math.inf else max(x, y) + math.log1p(math.exp(-abs(x - y)))
        for x, y in zip(left, right, strict=True)
    ]


def eliminate(
    plan: EliminationPlan, tables: Sequence[Numbers], combine: Combine = multiply, reduce: Combine = total
) -> Numbers:
    """Multiply all tables and sum out every variable. Return one number per value of the lanes."""
    made = list(tables)
    for step in plan.steps:
        product: Numbers | None = None
        for i, spread in step:
            table = made[i] if spread is None else spread(made[i])
            product = table if product is None else combine(product, table)
        assert product is not None
        half = len(product) >> 1
        made.append(reduce(product[:half], product[half:]))
    result = made[plan.roots[0]]
    for i in plan.roots[1:]:
        result = combine(result, made[i])
    return result
