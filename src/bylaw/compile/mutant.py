"""How well cases pin a guard down: small changes of its code, and how many of them some case notices."""

import ast
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from bylaw.compile.bench import Bench, Case
from bylaw.policy.python import parse_python
from bylaw.policy.statement import Policy
from bylaw.review.case import CaseResult

_SWAPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


def mutation_score(bench: Bench, policy: Policy, code: str, cases: Sequence[Case]) -> tuple[int, int]:
    """Mutants that some case tells from the guard, and all that load."""
    killed = loaded = 0
    for mutant in mutants(code):
        guard, _ = bench.guard(policy, mutant)
        if guard is not None and cases:
            loaded += 1
            results = bench.run(policy, guard, cases)
            killed += any(not (isinstance(each, CaseResult) and each.passed) for each in results)
    return killed, loaded


def mutants(code: str) -> Iterator[str]:
    """The code with one comparison, constant, connective or answer changed at a time; deny texts are left alone."""
    count = sum(1 for _ in _places(parse_python(code)))
    for index in range(count):
        tree = parse_python(code)
        place = next(each for number, each in enumerate(_places(tree)) if number == index)
        _change(*place)
        yield ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _places(tree: ast.AST) -> Iterator[tuple[Any, int]]:
    """Nodes that can be changed, in order, each with which part of it."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.Call(func=ast.Name(id="deny")):
                yield node, 0
                continue
            case ast.Call(func=ast.Name(id="permit")):
                yield node, 0
            case ast.Compare(ops=ops):
                yield from ((node, index) for index, op in enumerate(ops) if type(op) in _SWAPPED)
            case ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                yield node, 0
            case ast.Constant(value=value) if _number(value) is not None:
                yield node, 0
            case _:
                pass
        yield from _places(node)


def _change(node: Any, index: int) -> None:
    match node:
        case ast.Call(func=ast.Name(id="deny")):
            node.func, node.args = ast.Name("permit", ast.Load()), []
        case ast.Call(func=ast.Name(id="permit")):
            node.func, node.args = ast.Name("deny", ast.Load()), [ast.Constant("changed")]
        case ast.Compare():
            node.ops[index] = _SWAPPED[type(node.ops[index])]()
        case ast.BoolOp():
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        case ast.UnaryOp():
            # Not twice is the operand itself, and every place stays a place.
            node.operand = ast.UnaryOp(ast.Not(), node.operand)
        case ast.Constant():
            number = _number(node.value)
            assert number is not None
            node.value = _moved(node.value, number)
        case _:
            raise AssertionError(node)


def _moved(value: Any, number: Decimal) -> Any:
    """The next number: a cent more for an amount that stands in a text."""
    return str(number + Decimal("0.01")) if isinstance(value, str) else value + 1


def _number(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return Decimal(value) if isinstance(value, str) else Decimal(str(value))
    except InvalidOperation:
        return None
