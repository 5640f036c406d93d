"""Translates expressions of the guard language into instrumented Python, and rejects all other expressions.

Known values are ordinary Python values. Reads, arithmetic and calls go through the run, which is named `_`. Comparisons
with constants, `and`, `or`, `not` and `if` stay as they are, because Unknown overloads these operators.
"""

import ast
from collections.abc import Sequence
from typing import TypeGuard

from bylaw.facts.entity import Field
from bylaw.guard.calling import Calling
from bylaw.guard.language import BINARY, BUILT_INS, INSTEAD, LARGEST, LONGEST, ORDER
from bylaw.guard.operation import may_be_read_otherwise
from bylaw.guard.scope import Reading, Scope
from bylaw.text.number import figure

_MADE = {"money": "money", "date": "date", "datetime": "time"}
"""Built-ins that convert text to the type of the field with which it is compared."""

_PARTS = frozenset(("present", "part", "item", "do_get"))
"""Operations that return a field of a record, whose type is not declared."""


class Expressions:
    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.fault, self.run, self.meant = self.scope.fault, self.scope.run, self.scope.meant
        self.reading = Reading(scope, self.expression)
        self.calls = Calling(self.reading, self.test)

    def expression(self, node: ast.expr) -> ast.expr:
        match node:
            case ast.Constant():
                made = self.literal(node)
            case ast.Name():
                made = self.name(node)
            case ast.BoolOp():
                made = ast.BoolOp(node.op, [self.expression(value) for value in node.values])
            case ast.UnaryOp():
                made = self.unary(node)
            case ast.BinOp():
                made = self.binary(node)
            case ast.Compare():
                made = self.comparison(node)
            case ast.IfExp():
                made = self.ternary(node)
            case ast.Attribute():
                made = self.reading.attribute(node)
            case ast.Subscript():
                made = self.subscript(node)
            case ast.Call():
                made = self.calls.calling(node)
            case ast.List() | ast.Tuple():
                made = self.run("listed", type(node)([self.expression(item) for item in node.elts], ast.Load()))
            case ast.Dict():
                made = self.record(node)
            case _:
                made = self.scope.refuse(node)
        return ast.copy_location(made, node)

    def test(self, node: ast.expr) -> ast.expr:
        """Translate a condition. A field of a record may be text that means a boolean."""
        if isinstance(node, ast.BoolOp):
            return ast.copy_location(ast.BoolOp(node.op, [self.test(value) for value in node.values]), node)
        made = self.expression(node)
        if self.scope.is_of_ours(node):
            return made
        is_part = isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and made.func.attr in _PARTS
        is_item = isinstance(node, ast.Name) and (node.id in self.scope.looped or self.scope.is_local(node.id))
        return ast.copy_location(self.run("truth", made), node) if is_part or is_item else made

    def literal(self, node: ast.Constant) -> ast.expr:
        value = node.value
        if isinstance(value, str):
            if len(value) > LONGEST:
                return self.fault(node, f"text of {len(value)} characters is too long", f"keep it under {LONGEST}")
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            if not -LARGEST <= value <= LARGEST:
                return self.fault(node, "a number is too large", "stay within plus or minus 10**18")
        elif value is not None and not isinstance(value, bool):
            return self.fault(node, f"a constant of type {type(value).__name__} is not allowed", "use text or numbers")
        return ast.Constant(value)

    def name(self, node: ast.Name) -> ast.expr:
        name = node.id
        kind = self.scope.kind(name)
        if kind is not None:
            hint = f"read one of its fields, `{name}.field`, or `{name}.exists`"
            return self.fault(node, f"`{name}` is a {kind}, not a value", hint)
        if any(name in scope for scope in self.scope.scopes):
            return ast.Name(name, ast.Load())
        if name in self.scope.kinds:
            if name not in self.scope.sure:
                self.fault(node, f"`{name}` may have no value here", "assign a value before the `if` or `for`")
            return ast.Name(name, ast.Load())
        if name in (self.scope.call, self.scope.facts, self.scope.history):
            return self.fault(node, f"`{name}` is not a value", f"read one of its parts, `{name}.x`")
        if name in BUILT_INS:
            return self.fault(node, f"`{name}` is a built-in, not a value", f"call it, `{name}(...)`")
        hint = INSTEAD.get(name) or self.meant(name, [*self.scope.kinds, *BUILT_INS])
        return self.fault(node, f"there is no name `{name}`", hint)

    def unary(self, node: ast.UnaryOp) -> ast.expr:
        match node.op, node.operand:
            case ast.Not(), operand:
                return ast.UnaryOp(ast.Not(), self.test(operand))
            case ast.USub(), ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return self.literal(ast.copy_location(ast.Constant(-value), node))
            case ast.USub(), operand:
                return self.run("negative", self.expression(operand))
            case _:
                return self.fault(node, "only `not` and `-` can precede a value", "remove the operator")

    def binary(self, node: ast.BinOp) -> ast.expr:
        method = BINARY.get(type(node.op))
        if method is None:
            return self.fault(node, "only + - * / // % are allowed", "use these operators")
        for side in (node.left, node.right):
            if isinstance(side, (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.JoinedStr)) or (
                isinstance(side, ast.Constant) and isinstance(side.value, (str, bytes))
            ):
                hint = "compare strings and lists directly; for a day and a time of day, write time(day, clock)"
                return self.fault(node, "arithmetic works on numbers, money and dates", hint)
        return self.run(method, self.expression(node.left), self.expression(node.right))

    def comparison(self, node: ast.Compare) -> ast.expr:
        operands = [node.left, *node.comparators]
        if any(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            return self.fault(node, "`is` is not part of the language", "use `==` or `!=`")
        self.check_words(node, operands)
        is_container = [False, *(isinstance(op, (ast.In, ast.NotIn)) for op in node.ops)]
        made = [
            self.container(operand) if inside else self.expression(operand)
            for operand, inside in zip(operands, is_container, strict=True)
        ]
        if len(node.ops) == 1:
            return self.compare(node.ops[0], made[0], made[1])
        if all(isinstance(middle, (ast.Name, ast.Constant)) for middle in made[1:-1]):
            pairs = zip(node.ops, made, made[1:], strict=False)
            return ast.BoolOp(ast.And(), [self.compare(op, left, right) for op, left, right in pairs])
        later = [ast.Lambda(ast.arguments([], [], None, [], [], None, []), value) for value in made[1:]]
        orders = ast.Tuple([ast.Constant(ORDER[type(op)]) for op in node.ops], ast.Load())
        return self.run("chain", orders, made[0], *later)

    def container(self, node: ast.expr) -> ast.expr:
        """Translate the right side of `in`, the only position in which a set is allowed. Constants become a tuple."""
        if not isinstance(node, (ast.Set, ast.List, ast.Tuple)):
            return self.expression(node)
        items = [self.expression(item) for item in node.elts]
        if all(_is_plain(item) for item in items):
            return ast.copy_location(ast.Tuple(items, ast.Load()), node)
        return ast.copy_location(self.run("listed", ast.List(items, ast.Load())), node)

    def compare(self, op: ast.cmpop, left: ast.expr, right: ast.expr) -> ast.expr:
        method = ORDER[type(op)]
        if isinstance(op, (ast.In, ast.NotIn)):
            if isinstance(right, ast.Tuple):
                method = "among" if isinstance(op, ast.In) else "not_among"
            return self.run(method, left, right)
        if (_is_plain(left) or _is_plain(right)) and not (self.scope.cover and (_is_count(left) or _is_count(right))):
            is_equality = isinstance(op, (ast.Eq, ast.NotEq))
            if not is_equality or not any(map(_may_be_read_otherwise, (left, right))):
                return ast.Compare(left, [op], [right])
        return self.run(method, left, right)

    def check_words(self, node: ast.Compare, operands: Sequence[ast.expr]) -> None:
        """Report a comparison of a field with a constant that the field can never equal, because it is probably a
        typo.
        """
        for op, left, right in zip(node.ops, operands, operands[1:], strict=False):
            for side, other in ((left, right), (right, left)):
                if isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) or self.reading.field_of(other) is not None:
                    self.check_text(side, other)
                elif isinstance(op, (ast.Eq, ast.NotEq)) and not _is_text(other):
                    self.check_text(side, other, "put the constant in quotes, or ")
                elif isinstance(op, (ast.In, ast.NotIn)) and side is left and _is_of_no_text(right):
                    self.check_text(side, right.elts[0], "put the constants in quotes, or ")
                field = self.reading.field_of(side)
                if field is None or (isinstance(op, (ast.In, ast.NotIn)) and side is right):
                    continue
                constants = other.elts if isinstance(other, (ast.Set, ast.List, ast.Tuple)) else [other]
                for constant in constants:
                    if isinstance(constant, ast.Constant):
                        self.check_word(constant, field)

    def check_text(self, side: ast.expr, other: ast.expr, or_else: str = "") -> None:
        """Report a comparison of a string argument with a number, an amount or a date."""
        if not isinstance(side, ast.Attribute) or not self.scope.is_root(side.value, self.scope.call):
            return
        made = other.func.id if isinstance(other, ast.Call) and isinstance(other.func, ast.Name) else ""
        is_number = type(getattr(other, "value", None)) in (int, float)
        field = self.reading.field_of(other)
        made = _MADE.get(field.type, made) if field is not None else made
        is_figure = isinstance(other, ast.Constant) and isinstance(other.value, str) and figure(other.value) is not None
        if side.attr in self.scope.vocabulary.texts and (is_number or is_figure or made in ("money", "date", "time")):
            both = f" and `money({other.value!r})`" if is_figure and isinstance(other, ast.Constant) else ""
            hint = f"{or_else if is_number else ''}write `{made or 'money'}(call.{side.attr})`{both}"
            self.fault(side, f"the argument `{side.attr}` is text", hint)

    def check_word(self, node: ast.Constant, field: Field) -> None:
        value = node.value
        if value is None:
            return
        is_text = isinstance(value, str)
        if field.type == "enum" and value not in field.values:
            self.fault(node, f"`{field.name}` is never `{value}`", self.meant(str(value), field.values))
        elif field.type in ("date", "datetime", "money", "integer", "number", "boolean") and is_text:
            write = {"date": "date(...)", "datetime": "time(...)", "money": "money(...)"}.get(field.type, "no quotes")
            self.fault(node, f"`{field.name}` is a {field.type}, not text", f"write the constant with {write}")
        elif field.type == "string" and not is_text:
            self.fault(node, f"`{field.name}` is text", "put the constant in quotes")

    def ternary(self, node: ast.IfExp) -> ast.expr:
        yes, no = self.scope.branch(node, "then"), self.scope.branch(node, "else")
        test, body, orelse = self.test(node.test), self.expression(node.body), self.expression(node.orelse)
        if self.scope.cover:
            body = ast.BoolOp(ast.And(), [self.run("cover", ast.Constant(yes)), body])
            orelse = ast.BoolOp(ast.And(), [self.run("cover", ast.Constant(no)), orelse])
        return ast.IfExp(test, body, orelse)

    def record(self, node: ast.Dict) -> ast.expr:
        keys: list[ast.expr | None] = []
        for key in node.keys:
            if isinstance(key, ast.Constant) and isinstance(key.value, (str, int)):
                keys.append(self.literal(key))
            else:
                self.fault(key or node, "the keys of a record must be constants", "write them as text")
        return self.run("listed", ast.Dict(keys, [self.expression(value) for value in node.values]))

    def subscript(self, node: ast.Subscript) -> ast.expr:
        value = self.expression(node.value)
        if isinstance(node.slice, ast.Slice):
            if node.slice.step is not None:
                return self.fault(node, "a slice cannot have a step", "write `x[a:b]`")
            ends = [
                ast.Constant(None) if end is None else self.expression(end)
                for end in (node.slice.lower, node.slice.upper)
            ]
            return self.run("section", value, *ends)
        made = self.run("item", value, self.expression(node.slice))
        name = node.slice.value if isinstance(node.slice, ast.Constant) else "item"
        return self.reading.present(made, str(name))


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_of_no_text(node: ast.expr) -> TypeGuard[ast.Set | ast.List | ast.Tuple]:
    return isinstance(node, (ast.Set, ast.List, ast.Tuple)) and bool(node.elts) and not any(map(_is_text, node.elts))


def _is_plain(node: ast.expr) -> bool:
    """Whether Python's own comparison is correct for this constant. It is not correct for floats and money."""
    return isinstance(node, ast.Constant) and (node.value is None or type(node.value) in (str, int, bool))


def _may_be_read_otherwise(node: ast.expr) -> bool:
    """Whether a value of another type may mean the same as this constant, although Python considers the two unequal."""
    return isinstance(node, ast.Constant) and node.value is not None and may_be_read_otherwise(node.value)


def _is_count(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int
