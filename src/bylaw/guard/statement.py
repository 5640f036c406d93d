"""Translates a function from the guard language into instrumented Python."""

import ast
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import cached_property
from typing import Any

from bylaw.guard.calling import stored
from bylaw.guard.expression import Expressions
from bylaw.guard.language import (
    ANSWERS,
    BINARY,
    BUILT_INS,
    LOOPS,
    NODES_PER_TICK,
    OF_LOOKUPS,
    PERMIT,
    RESERVED,
    children_of,
    parts_of,
)
from bylaw.guard.scope import Helper, Scope


class LazyFunction:
    def __init__(self, compile: Callable[[], Callable[..., Any]]) -> None:
        self._compile = compile

    @cached_property
    def made(self) -> Callable[..., Any]:
        return self._compile()


class Statements:
    """Translates the body of one function. `answers` lists the functions that may be called after `return`."""

    def __init__(self, scope: Scope, answers: Sequence[str] = ANSWERS) -> None:
        self.scope = scope
        self.fault, self.run, self.meant = self.scope.fault, self.scope.run, self.scope.meant
        self.answers = answers
        self.values = Expressions(scope)
        self.reading, self.calls = self.values.reading, self.values.calls
        self.loops = 0

    def function(self, node: ast.FunctionDef, parameters: Sequence[str]) -> "LazyFunction | None":
        self.signature(node, parameters)
        self.scope.note_nullable(node)
        self.collect(node.body)
        body = self.block(node.body, skip_docstring=True)
        if not ends(node.body):
            last = node.body[-1]
            self.fault(last, f"`{node.name}` can end without a `return`", f"end every path with return {self.answer()}")
        if self.scope.faults:
            return None
        return self.compiled(node, body)

    def answer(self) -> str:
        return " or ".join(f"{name}(...)" for name in self.answers)

    def compiled(self, node: ast.AST, body: list[ast.stmt]) -> "LazyFunction":
        """Return the compiled function. It is compiled on first use, because an audit calls only a few guards."""
        return LazyFunction(lambda: self._compiled(node, body))

    def _compiled(self, node: ast.AST, body: list[ast.stmt]) -> Callable[..., Any]:
        size = 1 + len(parts_of(node)) // NODES_PER_TICK
        start = ast.Expr(self.run("spend", ast.Constant(size)))
        arguments = ast.arguments([], [ast.arg(name) for name in ["_", *self.scope.parameters]], None, [], [], None, [])
        made = ast.FunctionDef("guard", arguments, [start, *body], [], None)
        module = ast.Module([made], [])
        _inherit_lines(made, getattr(node, "lineno", 1))
        names: dict[str, Any] = {"__builtins__": {}}
        names.update(
            (name, value.made if isinstance(value, LazyFunction) else value)
            for name, value in self.scope.constants.items()
        )
        exec(compile(module, self.scope.file, "exec"), names)
        return names["guard"]

    def signature(self, node: ast.FunctionDef, parameters: Sequence[str]) -> None:
        arguments = node.args
        given = [argument.arg for argument in arguments.args]
        plain = not (arguments.posonlyargs or arguments.kwonlyargs or arguments.vararg or arguments.kwarg)
        if given != list(parameters) or not plain or arguments.defaults or arguments.kw_defaults:
            self.fault(
                node, f"`{node.name}` has the wrong arguments", f"write def {node.name}({', '.join(parameters)}):"
            )
        if node.decorator_list:
            self.fault(node.decorator_list[0], "decorators are not part of the language", "remove it")
        said = [argument for argument in arguments.args if argument.annotation is not None]
        if node.returns is not None or not all(self.answers and _names_tools(argument) for argument in said):
            self.fault(node, "annotations are not part of the language, except for the tools of `call`", "remove them")
        if getattr(node, "type_params", None):
            self.fault(node, "type parameters are not part of the language", "remove them")
        if node.name.startswith("_"):
            self.fault(node, f"`{node.name}` begins with an underscore", "name it after its policy")

    def collect(self, body: Sequence[ast.stmt]) -> None:
        """Collect the variables of the function, and the entity of each variable if all its assignments agree."""
        for statement in body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self.note_name(statement, name, self.reading.is_thing(value))
                case ast.For():
                    for name in ast.walk(statement.target):
                        if isinstance(name, ast.Name):
                            self.note_name(statement, name.id, None)
                    self.collect(statement.body)
                case ast.If():
                    self.collect(statement.body)
                    self.collect(statement.orelse)
                case _:
                    pass

    def note_name(self, node: ast.stmt, name: str, entity: str | None) -> None:
        if name in self.scope.kinds and self.scope.kinds[name] != entity:
            self.fault(node, f"`{name}` refers to different entities", "use a separate name for each")
        self.scope.kinds.setdefault(name, entity)

    def block(self, body: Sequence[ast.stmt], *, skip_docstring: bool = False) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for index, statement in enumerate(body):
            if skip_docstring and index == 0 and _is_docstring(statement):
                continue
            made.extend(ast.copy_location(one, statement) for one in self.statement(statement))
            if ends([statement]):
                if index + 1 < len(body):
                    self.fault(body[index + 1], "this statement is never reached", "remove it")
                break
        return made or [ast.Pass()]

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        match node:
            case ast.Return():
                return self.returning(node)
            case ast.Assign():
                return self.assigning(node)
            case ast.AugAssign():
                return self.augmenting(node)
            case ast.If():
                return self.branching(node)
            case ast.For():
                return self.looping(node)
            case ast.Pass():
                return [ast.Pass()]
            case ast.Break() | ast.Continue() if self.loops:
                return [type(node)()]
            case ast.Break() | ast.Continue():
                self.fault(node, "`break` and `continue` can only be used in a loop", f"write return {self.answer()}")
            case ast.Expr(value=ast.Yield() | ast.YieldFrom() | ast.Await() as value):
                self.scope.refuse(value)
            case ast.Expr(value=ast.Call(func=ast.Name(id=name))) if name in self.answers:
                self.fault(node, f"`{name}()` has no effect here", f"write `return {name}(...)`")
            case ast.Expr():
                self.values.expression(node.value)
                self.fault(node, "a value alone has no effect", "assign the value to a name, or use it in a condition")
            case _:
                self.scope.refuse(node)
        return []

    def returning(self, node: ast.Return) -> list[ast.stmt]:
        value = node.value
        if isinstance(value, ast.IfExp):
            yes, no = (ast.copy_location(ast.Return(way), way) for way in (value.body, value.orelse))
            return self.branching(ast.copy_location(ast.If(value.test, [yes], [no]), node))
        branch = self.scope.branch(node, "return")
        name = value.func.id if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else ""
        if isinstance(value, ast.Call) and self.reading.is_helped(value) and self.answers == ANSWERS:
            if self.reading.is_answering(value):
                return [*self.covering(branch), ast.Return(self.reading.helped(value))]
            hint = f"write return permit() if {name}(...) else deny(...)"
            self.fault(node, f"`{name}` returns a value, but a guard must permit or deny", hint)
            self.values.expression(value)
            return []
        if name not in self.answers or not isinstance(value, ast.Call):
            shared = self.scope.helpers.nodes if self.scope.helpers is not None else ()
            close = get_close_matches(name, [*self.answers, *shared], 1) if name not in (*BUILT_INS, *shared) else ()
            hint = f"did you mean `{close[0]}`?" if close else f"write return {self.answer()}"
            self.fault(node, f"this function must return {self.answer()}", hint)
            return []
        if value.keywords:
            self.fault(node, f"`{name}` takes no named arguments", "pass them in order")
        made = ast.Return(self.answering(value, name, value.args))
        return [*self.covering(branch), made]

    def answering(self, node: ast.Call, name: str, given: Sequence[ast.expr]) -> ast.expr:
        match name, given:
            case "permit", []:
                return self.scope.constant(PERMIT)
            case "unseen", []:
                return self.run(name)
            case "deny", [text]:
                return self.denying(text)
            case "found", [value]:
                return self.run("found", self.values.expression(value))
            case _:
                hint = 'write deny("why")' if name == "deny" else f"write {name}()"
                return self.fault(
                    node, f"`{name}` {'takes one string' if name == 'deny' else 'does not take these arguments'}", hint
                )

    def denying(self, text: ast.expr) -> ast.expr:
        """Translate the text of a denial. Facts that are read only in this text cannot change the decision or the
        path.
        """
        if isinstance(text, ast.Constant) and isinstance(text.value, str) and text.value.strip():
            self.values.literal(text)
            return self.scope.constant(("deny", text.value))
        if not isinstance(text, ast.JoinedStr):
            return self.fault(text, "deny() takes a string", 'write deny("why") or deny(f"why {value}")')
        parts: list[ast.expr] = []
        fallback = ""
        for part in text.values:
            match part:
                case ast.Constant(value=str() as words):
                    parts.append(self.values.literal(part))
                    fallback += words
                case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                    parts.append(self.run("shown", self.values.expression(value)))
                    fallback += "..."
                case _:
                    return self.fault(
                        text, "the text of deny() can contain only plain {values}", "remove conversions and formats"
                    )
        return self.run("deny_with", self.run("start_denial", ast.Constant(fallback)), *parts)

    def assigning(self, node: ast.Assign) -> list[ast.stmt]:
        if len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
            self.fault(node, "assign to a single name", "facts, records and lists cannot be changed")
            return []
        name = node.targets[0].id
        self.scope.check_new_name(node, name)
        if self.scope.kinds.get(name) is not None:
            thing = self.reading.thing(node.value)
            value = thing[1] if thing else self.fault(node, f"`{name}` is not an entity here", "use another name")
        else:
            value = self.values.expression(node.value)
        self.scope.sure.add(name)
        return [ast.Assign([ast.Name(name, ast.Store())], value)]

    def augmenting(self, node: ast.AugAssign) -> list[ast.stmt]:
        if not isinstance(node.target, ast.Name):
            self.fault(node, "assign to a single name", "facts, records and lists cannot be changed")
            return []
        if type(node.op) not in BINARY:
            self.fault(node, "only += -= *= /= //= %= are allowed", "use these operators")
            return []
        self.scope.check_new_name(node, node.target.id)
        old = ast.copy_location(ast.Name(node.target.id, ast.Load()), node)
        value = self.values.expression(ast.copy_location(ast.BinOp(old, node.op, node.value), node))
        return [ast.Assign([ast.Name(node.target.id, ast.Store())], value)]

    def branching(self, node: ast.If) -> list[ast.stmt]:
        test = self.values.test(node.test)
        yes, no = self.scope.branch(node, "then"), self.scope.branch(node, "else")
        before = set(self.scope.sure)
        body = [*self.covering(yes), *self.block(node.body)]
        after_body = self.scope.sure if not ends(node.body) else None
        self.scope.sure = set(before)
        orelse = self.block(node.orelse) if node.orelse else []
        orelse = [*self.covering(no), *orelse]
        after_else = self.scope.sure if not (node.orelse and ends(node.orelse)) else None
        both = [names for names in (after_body, after_else) if names is not None]
        self.scope.sure = both[0].intersection(*both) if both else set(before)
        return [ast.If(test, body, orelse)]

    def looping(self, node: ast.For) -> list[ast.stmt]:
        if node.orelse:
            self.fault(
                node.orelse[0], "`else` after `for` is not part of the language", "set a variable before the loop"
            )
        names = self.calls.targets(node.target, node.iter)
        turns = self.calls.turns(self.calls.loop_source(node.iter), node, names)
        self.scope.looped.update(names)
        entered = self.scope.branch(node, "loop")
        before = set(self.scope.sure)
        self.scope.sure.update(names)
        self.loops += 1
        if self.loops > LOOPS:
            self.fault(node, "loops are nested too deeply", f"the maximum is {LOOPS}")
        body = [*self.covering(entered), *self.block(node.body)]
        self.loops -= 1
        self.scope.sure = before
        return [ast.For(stored(names), turns, body, [])]

    def covering(self, branch: int) -> list[ast.stmt]:
        return [ast.Expr(self.run("cover", ast.Constant(branch)))] if self.scope.cover else []


def ends(body: Sequence[ast.stmt]) -> bool:
    """Whether every path through `body` ends in `return`, `break` or `continue`."""
    for statement in body:
        match statement:
            case ast.Return() | ast.Break() | ast.Continue():
                return True
            case ast.If() if statement.orelse and ends(statement.body) and ends(statement.orelse):
                return True
            case _:
                pass
    return False


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _names_tools(argument: ast.arg) -> bool:
    """Whether the annotation names tools, such as `call: one_tool | another` or `call: write(order_id)`."""
    named = (ast.Name, ast.BinOp, ast.BitOr, ast.Call, ast.Load)
    return argument.arg == "call" and all(
        isinstance(part, named) or (isinstance(part, ast.Constant) and isinstance(part.value, str))
        for part in ast.walk(argument)
        if part is not argument
    )


def _inherit_lines(node: ast.AST, line: int) -> None:
    """Give generated nodes the line number of their source, so that errors refer to that line."""
    pending: list[tuple[ast.AST, int]] = [(node, line)]
    while pending:
        part, line = pending.pop()
        if isinstance(part, (ast.expr, ast.stmt, ast.arg)):
            line = getattr(part, "lineno", 0) or line
            part.lineno = part.end_lineno = line
            part.col_offset = part.end_col_offset = 0
        if not isinstance(part, (ast.Name, ast.Constant, ast.expr_context)):
            pending += [(child, line) for child in children_of(part)]


class Translated(Statements):
    def __init__(self, scope: Scope) -> None:
        super().__init__(scope, ())
        self.gives: str | None = None
        self.has_given = False

    def answer(self) -> str:
        return "a value"

    def returning(self, node: ast.Return) -> list[ast.stmt]:
        branch = self.scope.branch(node, "return")
        if node.value is None:
            self.fault(node, "`return` needs a value", "write return value")
            return []
        thing = self.reading.thing(node.value)
        kind = thing[0].name if thing else None
        if self.has_given and kind != self.gives:
            self.fault(node, "this function returns different entities", "write a separate function for each")
        self.has_given, self.gives = True, kind
        return [*self.covering(branch), ast.Return(thing[1] if thing else self.values.expression(node.value))]


def translate_helper(scope: Scope, node: ast.FunctionDef, kinds: Sequence[str | None]) -> Helper | None:
    """Translate a function that a guard calls, for arguments of these kinds. None if the function has errors."""
    helpers = scope.helpers
    assert helpers is not None
    names = [argument.arg for argument in node.args.args]
    own = [name for name in names if name not in ("call", "facts")]
    call, facts = (root if root in names else "" for root in ("call", "facts"))
    file = helpers.files.get(node.name, scope.file)
    inside = Scope(file, scope.vocabulary, cover=scope.cover, call=call, facts=facts, parameters=own)
    inside.helpers, inside.branches = helpers, scope.branches
    inside.kinds.update(zip(own, kinds, strict=True))
    shown = ", ".join(kind or "" for kind in kinds)
    inside.label = f"{node.name}({shown}): " if any(kinds) else ""
    if node.name in RESERVED | OF_LOOKUPS:
        inside.fault(node, f"`{node.name}` is already defined", "choose another name")
    made = Statements(inside) if helpers.is_answering(node.name) else Translated(inside)
    function = made.function(node, names)
    for fault in inside.faults:
        if str(fault) not in {str(known) for known in scope.faults}:
            scope.faults.append(fault)
    gives = made.gives if isinstance(made, Translated) else None
    return None if function is None else Helper(gives, function)
