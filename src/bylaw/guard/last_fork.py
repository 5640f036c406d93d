"""The last fork of a guard: where both ways end in an answer, one run tells both.

`if test: return permit()` and then `return deny("...")`: should the test be open, a run that goes one way knows what
another would have said. `Run.forks` notes it, and the other way is not run.
"""

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from bylaw.guard.language import PERMIT

_TEST = "_test"


def join_last_forks(body: Sequence[ast.stmt], constants: dict[str, Any]) -> None:
    """Lets every test in compiled code whose two ways end in an answer note the answer of the other way."""
    for place, statement in enumerate(body):
        match statement:
            case ast.If(test=test, body=[ast.Return(value=ast.expr() as yes)], orelse=orelse):
                match orelse or body[place + 1 : place + 2]:
                    case [ast.Return(value=ast.expr() as no)]:
                        ways = _certain(yes, no, constants), _certain(no, yes, constants)
                        statement.test = _noting(test, *ways, constants)
                    case _:
                        join_last_forks(orelse, constants)
            case ast.If():
                join_last_forks(statement.body, constants)
                join_last_forks(statement.orelse, constants)
            case ast.For():
                join_last_forks(statement.body, constants)
            case _:
                pass


def _certain(answer: ast.expr, beside: ast.expr, constants: Mapping[str, Any]) -> tuple[str, str] | None:
    """What a way answers whatever is known; None where that is not certain.

    The words of a denial do not matter beside a permit: where both are open, nobody is told them.
    """
    match answer:
        case ast.Name(id=name):
            return constants.get(name)
        case ast.Call(func=ast.Attribute(attr="deny_with")) if _certain(beside, answer, constants) == PERMIT:
            return "deny", ""
        case _:
            return None


def _noting(
    test: ast.expr, yes: tuple[str, str] | None, no: tuple[str, str] | None, constants: dict[str, Any]
) -> ast.expr:
    """The same test; where its last part is open, the answer of the way that is not taken is noted."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return ast.UnaryOp(ast.Not(), _noting(operand, no, yes, constants))
        case ast.BoolOp(op=op, values=[*first, last]):
            return ast.BoolOp(op, [*first, _noting(last, yes, no, constants)])
        case _ if no is None:
            return test
        case _:
            # Nearly always the test is plainly true or false, and nothing is to be noted.
            name = f"_{len(constants)}"
            constants[name] = no
            run, value = ast.Name("_", ast.Load()), ast.Name(_TEST, ast.Load())
            noted = ast.Call(ast.Attribute(run, "forks", ast.Load()), [value, ast.Name(name, ast.Load())], [])
            is_true = ast.Compare(ast.NamedExpr(ast.Name(_TEST, ast.Store()), test), [ast.Is()], [ast.Constant(True)])
            is_open = ast.Compare(value, [ast.IsNot()], [ast.Constant(False)])
            return ast.BoolOp(ast.Or(), [is_true, ast.BoolOp(ast.And(), [is_open, noted])])
