"""Ways of a guard's tests whose answers are known before they are run.

`if test: return permit()`: should the test be open, what the guard says where it holds needs no run of its own.
`GuardRun.ends` notes it and goes on where the test does not hold; `GuardRun.forks` notes what is said there, and goes
on where it holds.
"""

import ast
from collections.abc import Mapping, Sequence
from typing import Any

_TEST = "_test"
_DENIAL = ("deny", "")
"""A denial that has yet to find its words: it may follow another answer, whose words then count."""

_Answer = tuple[str, str] | None
"""What a way answers whatever is known; None where that is not certain."""


def note_known_ways(body: Sequence[ast.stmt], constants: dict[str, Any]) -> None:
    """Lets every test in compiled code note the answer of a way that ends at once."""
    for place, statement in enumerate(body):
        if isinstance(statement, ast.If):
            yes = _answer(statement.body, constants)
            no = _answer(statement.orelse or body[place + 1 :], constants)
            statement.test = _noting(statement.test, yes, no, constants)
            note_known_ways(statement.orelse, constants)
        if isinstance(statement, ast.If | ast.For):
            note_known_ways(statement.body, constants)


def _answer(way: Sequence[ast.stmt], constants: Mapping[str, Any]) -> _Answer:
    match way:
        case [ast.Return(value=ast.Name(id=name)), *_]:
            return constants.get(name)
        case [ast.Return(value=ast.Call(func=ast.Attribute(attr="deny_with"))), *_]:
            return _DENIAL
        case _:
            return None


def _noting(test: ast.expr, yes: _Answer, no: _Answer, constants: dict[str, Any]) -> ast.expr:
    """The same test; where a part of it is open, what is known of the way that is not taken is noted."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return ast.UnaryOp(ast.Not(), _noting(operand, no, yes, constants))
        case ast.BoolOp(op=op, values=[*first, last]):
            known = (yes, None) if isinstance(op, ast.Or) else (None, no)
            parts = [_noting(each, *known, constants) for each in first]
            return ast.BoolOp(op, [*parts, _noting(last, yes, no, constants)])
        case _ if yes is not None and yes is not _DENIAL:
            return _asking("ends", test, yes, constants)
        case _ if no is not None:
            return _asking("forks", test, no, constants)
        case _:
            return test


def _asking(way: str, test: ast.expr, other: tuple[str, str], constants: dict[str, Any]) -> ast.expr:
    """The test, asked of the run. Nearly always it is plainly true or false, and nothing is to be noted."""
    name = f"_{len(constants)}"
    constants[name] = other
    run, value = ast.Name("_", ast.Load()), ast.Name(_TEST, ast.Load())
    noted = ast.Call(ast.Attribute(run, way, ast.Load()), [value, ast.Name(name, ast.Load())], [])
    is_true = ast.Compare(ast.NamedExpr(ast.Name(_TEST, ast.Store()), test), [ast.Is()], [ast.Constant(True)])
    is_open = ast.Compare(value, [ast.IsNot()], [ast.Constant(False)])
    return ast.BoolOp(ast.Or(), [is_true, ast.BoolOp(ast.And(), [is_open, noted])])
