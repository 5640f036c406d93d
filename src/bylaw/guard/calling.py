"""Translates calls in guards: built-ins, allowed methods, and comprehensions in their arguments."""

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bylaw.facts.entity import Entity, Fact, Key
from bylaw.facts.unknown import Stuck, Unknown, expression_text, kind_of, opaque_bool
from bylaw.facts.variable import ValueKind, unlike
from bylaw.guard.builtin import BuiltIns
from bylaw.guard.language import (
    ARITY,
    BUILT_INS,
    DATE_METHODS,
    GATHERING,
    INSTEAD,
    LONGEST,
    LOOPING,
    METHODS_INSTEAD,
    NODES_PER_TICK,
    TEXT_METHODS,
)
from bylaw.guard.operation import Absent, Failure, fail
from bylaw.guard.run import GuardRun, Unsure
from bylaw.guard.scope import Reading, Spec, Translate

_KINDS: Mapping[str, ValueKind] = {
    **dict.fromkeys(("string", "enum"), "text"),
    **dict.fromkeys(("integer", "number", "money"), "number"),
    **dict.fromkeys(("date", "datetime"), "time"),
}


class Trial:
    """The answer for one member of a search, or None if it is unknown, and the facts on which the answer depends."""

    __slots__ = ("answer", "asked", "doubtful", "is_noting", "key", "memo", "open", "reads")

    def __init__(self, key: Key) -> None:
        self.key = key
        self.answer: bool | None = None
        self.memo: dict[Fact, Any] = {}
        self.reads: list[Fact] = []
        self.asked: dict[Fact, None] = {}
        self.doubtful: dict[Fact, tuple[str, Any]] = {}
        self.is_noting = True
        self.open: set[str] = set()


NOT_SURE = (Unsure, Stuck, Absent, Failure, ArithmeticError, TypeError, ValueError, LookupError)
"""Exceptions after which the answer for a member is unknown."""


def any_seen(
    run: GuardRun,
    entity: Entity,
    match: Mapping[str, Any],
    specs: tuple[Spec, ...],
    body: Callable[[Key], Any],
    weight: int,
    text: str,
    free: tuple[Any, ...],
) -> Any:
    """Evaluate `any(body for x in facts.X.seen(match))`.

    One certain match is enough, and then only the facts read for the matching member are recorded. In a run over ground
    truth, members that the agent has fully seen are tried first.
    """
    run.is_open = True
    run.spend(weight)
    field = next(iter(match), "exists")
    question = f"any({text}) over {expression_text(list(match.values()))} {expression_text(free)}"
    for value in match.values():
        if isinstance(value, Unknown):
            return opaque_bool(run, question, value.needs)
    for name, value in match.items():
        if name not in entity.key and (why := unlike(_KINDS.get(entity.fields[name].type, "any"), kind_of(value))):
            fail(why)
    keys, is_complete = run.once("members", entity.name, match, lambda: run.source.members(entity, match))
    answer = _try_members(run, question, keys, specs, body, weight)
    if answer is None:
        for key in keys:
            run.spend(weight)
            for spec in specs:
                run.read(spec, tuple(key))
            if body(tuple(key)):
                return True
    if answer or is_complete:
        return bool(answer)
    missing = Fact(entity.name, None, field)
    if run.is_noting:
        run.reads.append(missing)
        run.is_noting = False
    return opaque_bool(run, question, {missing: "system"})


def _try_members(
    run: GuardRun, question: str, keys: Sequence[Key], specs: tuple[Spec, ...], body: Callable[[Key], Any], weight: int
) -> bool | None:
    """Return True if a member certainly matches, False if certainly none does, and None otherwise. The facts read are
    recorded.
    """
    trials, best = _find_sure(run, question, keys, specs, body, weight)
    is_no = all(trial.answer is False for trial in trials)
    for trial in [best] if best else trials if is_no else ():
        if run.is_noting:
            run.reads.extend(fact for fact in trial.reads if fact not in run.memo)
            run.is_noting = trial.is_noting
        run.memo.update(trial.memo)
        run.asked.update(trial.asked)
        run.doubtful.update(trial.doubtful)
    return True if best else False if is_no else None


def _find_sure(
    run: GuardRun, question: str, keys: Sequence[Key], specs: tuple[Spec, ...], body: Callable[[Key], Any], weight: int
) -> tuple[list[Trial], Trial | None]:
    kept: dict[Key, Trial] = run.tried.setdefault(question, {}) if not run.has_decided_existence else {}
    trials: list[Trial] = []
    best: Trial | None = None
    for key in keys:
        key = tuple(key)
        trial = kept.get(key)
        if trial is None or not run.path.keys().isdisjoint(trial.open):
            run.spend(weight)
            trial = Trial(key)
            _try_member(run, trial, specs, body)
            if run.path.keys().isdisjoint(trial.open):
                kept[key] = trial
        run.open.update(trial.open)
        trials.append(trial)
        if trial.answer:
            best = best or trial
            if run.seen is None or all(map(run.seen, trial.reads)):
                return trials, trial
    return trials, best


def _try_member(run: GuardRun, trial: Trial, specs: tuple[Spec, ...], body: Callable[[Key], Any]) -> None:
    """Test one member without deciding unknown conditions. Its facts are recorded separately."""
    before = (run.memo, run.reads, run.is_noting, run.is_testing, run.touched, run.asked, run.doubtful, run.open)
    run.memo, run.reads, run.is_testing, run.open = dict(run.memo), trial.reads, True, trial.open
    run.is_noting = run.denial_fallback is None
    run.touched, run.asked, run.doubtful = set(run.touched), trial.asked, trial.doubtful
    try:
        for spec in specs:
            run.read(spec, trial.key)
        trial.answer = bool(body(trial.key))
    except NOT_SURE:
        trial.answer = None
    finally:
        trial.memo = {fact: value for fact, value in run.memo.items() if fact not in before[0]}
        trial.is_noting = run.is_noting or run.denial_fallback is not None
        run.memo, run.reads, run.is_noting, run.is_testing, run.touched, run.asked, run.doubtful, run.open = before


FOLDED = ("date", "time", "days", "hours", "money")
"""Built-ins that run when the guard is loaded if their argument is a constant, so that malformed constants are found
early.
"""


class Calling:
    """Translates calls. A comprehension over an unknown list becomes an Unknown and is not evaluated as a loop."""

    def __init__(self, reading: Reading, test: Translate) -> None:
        self.scope = reading.scope
        self.fault, self.run, self.meant = self.scope.fault, self.scope.run, self.scope.meant
        self.reading = reading
        self.expression = reading.expression
        self.test = test

    def calling(self, node: ast.Call) -> ast.expr:
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                return self.scope.refuse(argument)
        if any(keyword.arg is None for keyword in node.keywords):
            return self.scope.refuse(ast.copy_location(ast.Starred(node.func, ast.Load()), node))
        if isinstance(node.func, ast.Attribute):
            return self.method(node, node.func)
        if not isinstance(node.func, ast.Name):
            return self.fault(node, "only built-ins and listed methods can be called", "name a built-in")
        name = node.func.id
        if name in ("permit", "deny", "found", "unseen"):
            return self.fault(node, f"`{name}()` can only follow `return`", f"write `return {name}(...)`")
        if name in LOOPING:
            return self.fault(node, f"`{name}` can only be used in `for x in {name}(...)`", "loop over it")
        if self.reading.is_helped(node):
            if self.reading.is_answering(node):
                return self.fault(
                    node, f"`{name}` permits or denies and returns no value", f"write `return {name}(...)`"
                )
            kind = self.reading.is_thing(node)
            if kind is not None:
                return self.fault(node, f"`{name}(...)` is a {kind}, not a value", f"read a field, `{name}(...).field`")
            return self.reading.helped(node)
        if (
            name not in BUILT_INS - self.scope.unavailable
            or self.scope.kind(name) is not None
            or name in self.scope.kinds
        ):
            hint = INSTEAD.get(name) or self.meant(name, BUILT_INS)
            return self.fault(node, f"there is no built-in `{name}`", hint)
        if name == "done":
            return self.done(node)
        if node.keywords:
            return self.fault(node, f"`{name}` takes no named arguments", "pass them in order")
        least, most = ARITY[name]
        if not least <= len(node.args) <= most:
            return self.fault(
                node,
                f"`{name}` takes {least if least == most else f'{least} to {most}'} arguments",
                f"write `{name}({', '.join('xyz'[:most])})`" if most <= len("xyz") else "pass at least one",
            )
        if name in GATHERING and len(node.args) == 1:
            inside = node.args[0]
            if isinstance(inside, (ast.GeneratorExp, ast.ListComp, ast.SetComp)):
                return self.gathering(name, inside)
        if name == "get" and self.scope.is_root(node.args[0], self.scope.call):
            return self.reading.optional_argument(node)
        if name in FOLDED and len(node.args) == 1 and isinstance(node.args[0], ast.Constant):
            return self.folded(node, name, node.args[0].value)
        made = [self.expression(argument) for argument in node.args]
        if name == "get" and isinstance(node.args[1], ast.Constant) and node.args[1].value in self.scope.nullable:
            return self.run("get_or_none", *made)
        return self.run(f"do_{name}", *made)

    def folded(self, node: ast.Call, name: str, value: object) -> ast.expr:
        try:
            return self.scope.constant(getattr(BuiltIns(self.scope.vocabulary.zone), f"do_{name}")(value))
        except (Failure, OverflowError) as failure:
            return self.fault(node, str(failure), "correct the constant")

    def done(self, node: ast.Call) -> ast.expr:
        first = node.args[0] if len(node.args) == 1 else None
        if (
            isinstance(first, ast.Attribute)
            and first.attr == "tool"
            and self.scope.is_root(first.value, self.scope.call)
        ):
            self.check_done(node)
            return self.run("do_done", self.run("tool_name"), self.reading.named(node.keywords))
        if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
            return self.fault(
                node, "done() takes a tool's name and its arguments", 'write done("tool", argument=value)'
            )
        if first.value not in self.scope.vocabulary.tools:
            known = self.meant(first.value, self.scope.vocabulary.tools)
            return self.fault(node, f"there is no tool `{first.value}`", known, lacks=f"tool {first.value}")
        self.check_done(node, first.value)
        return self.run("do_done", ast.Constant(first.value), self.reading.named(node.keywords))

    def check_done(self, node: ast.Call, tool: str = "") -> None:
        """Report arguments that the tool does not have. If no tool is named, report those that no tool has."""
        declared = self.scope.vocabulary.declared
        if declared is None:
            return
        arguments = declared.get(tool, frozenset[str]()) if tool else frozenset[str]().union(*declared.values())
        for name in (str(keyword.arg) for keyword in node.keywords if keyword.arg not in arguments):
            message = f"`{tool}` has no argument `{name}`" if tool else f"no tool has the argument `{name}`"
            self.fault(node, message, self.meant(name, arguments), lacks=f"argument {tool}{tool and '.'}{name}")

    def method(self, node: ast.Call, func: ast.Attribute) -> ast.expr:
        name = func.attr
        if self.scope.is_root(func.value, self.scope.history) and name == "results":
            if len(node.args) != 1:
                return self.fault(
                    node, "history.results() takes one tool", 'write history.results("tool", argument=value)'
                )
            return self.run("results", self.expression(node.args[0]), self.reading.named(node.keywords))
        if name == "seen" and self.reading.is_thing(func.value) is not None:
            return self.fault(
                node, "`seen` can only be used in `any(... for x in facts.X.seen(...))`", "put it inside any()"
            )
        if self.scope.is_root(func.value, self.scope.facts):
            if self.reading.entity(func) is None:
                return ast.Constant(None)
            return self.fault(node, f"`facts.{name}(...)` is not a value", "read one of its fields")
        arity = TEXT_METHODS.get(name) or DATE_METHODS.get(name)
        if arity is None and self.scope.is_root(func.value, self.scope.call):
            return self.fault(node, f"`call` has no method `{name}`", 'write get(call, "name", default)')
        value = self.expression(func.value)
        if arity is None:
            hint = METHODS_INSTEAD.get(name) or self.meant(name, [*TEXT_METHODS, *DATE_METHODS])
            return self.fault(node, f"there is no method `{name}`", hint)
        if node.keywords or not arity[0] <= len(node.args) <= arity[1]:
            return self.fault(node, f"`{name}` takes {arity[1]} arguments", "pass them in order")
        return self.run("method", value, ast.Constant(name), *(self.expression(a) for a in node.args))

    def gathering(self, name: str, node: ast.GeneratorExp | ast.ListComp | ast.SetComp) -> ast.expr:
        if isinstance(node, ast.SetComp) and name != "len":
            return self.scope.refuse(node)
        first = node.generators[0]
        if _is_seen(first.iter):
            return self.gathering_seen(name, node)
        source = self.loop_source(first.iter)
        outer = [set(scope) for scope in self.scope.scopes]
        self.scope.scopes.append({})
        generators = [
            self.generator(one, ast.Name("_it", ast.Load()) if one is first else None, node) for one in node.generators
        ]
        element = (self.test if name in ("any", "all", "count") else self.expression)(node.elt)
        free = self.free(node, outer)
        self.scope.scopes.pop()
        body = ast.GeneratorExp(element, generators)
        how = "distinct" if isinstance(node, ast.SetComp) else name
        text = ast.Constant(f"{self.scope.label}{how}({ast.unparse(node)})")
        return self.run("gather", ast.Constant(how), source, ast.Lambda(one_argument("_it"), body), text, free)

    def generator(self, one: ast.comprehension, source: ast.expr | None, whole: ast.AST) -> ast.comprehension:
        if one.is_async:
            self.fault(whole, "`async` is not part of the language", "use a plain `for`")
        source = source if source is not None else self.loop_source(one.iter)
        names = self.targets(one.target, one.iter)
        turns = self.turns(source, whole, names)
        self.scope.scopes[-1].update(dict.fromkeys(names))
        return ast.comprehension(stored(names), turns, [self.test(test) for test in one.ifs], 0)

    def turns(self, source: ast.expr, body: ast.AST, names: Sequence[str]) -> ast.expr:
        size = sum(1 for _ in ast.walk(body))
        may_be_none = not self.scope.nullable_names.isdisjoint(names)
        return self.run("turns_or_none" if may_be_none else "turns", source, ast.Constant(1 + size // NODES_PER_TICK))

    def targets(self, node: ast.expr, source: ast.expr) -> list[str]:
        """Return the loop's variable, or its variables if the loop iterates over pairs."""
        width = _width(source)
        if not width or not isinstance(node, ast.Tuple):
            return [self.target(node)]
        if len(node.elts) != width:
            self.fault(node, f"each iteration yields {width} values", f"use {width} names")
        return [self.target(name) for name in node.elts]

    def target(self, node: ast.expr) -> str:
        if not isinstance(node, ast.Name):
            hint = "loop over the records and read their parts, or over zip(...) or enumerate(...)"
            self.fault(node, "a loop has a single variable", hint)
            return "_bad"
        self.scope.check_new_name(node, node.id)
        return node.id

    def loop_source(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
            ends = [end.value for end in node.args if isinstance(end, ast.Constant) and type(end.value) is int]
            if len(ends) != len(node.args) or len(ends) not in (1, 2) or node.keywords or max(map(abs, ends)) > LONGEST:
                return self.fault(node, "range() takes constants", f"use one or two whole numbers up to {LONGEST}")
            return self.scope.constant(range(*ends))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in LOOPING:
            return self.paired(node, node.func.id)
        if _is_seen(node):
            return self.fault(
                node, "`seen` can only be used in the first `for` of any()", "write any(... for x in facts.X.seen(...))"
            )
        return self.expression(node)

    def paired(self, node: ast.Call, name: str) -> ast.expr:
        least, most = (2, 8) if name == "zip" else (1, 1)
        if node.keywords or not least <= len(node.args) <= most or any(isinstance(a, ast.Starred) for a in node.args):
            return self.fault(node, f"`{name}` takes {'lists' if name == 'zip' else 'one list'}", f"write {name}(...)")
        return self.run(f"do_{name}", *(self.expression(argument) for argument in node.args))

    def gathering_seen(self, name: str, node: ast.GeneratorExp | ast.ListComp | ast.SetComp) -> ast.expr:
        call = node.generators[0].iter
        assert isinstance(call, ast.Call)
        assert isinstance(call.func, ast.Attribute)
        entity = self.reading.entity(call.func.value)
        if entity is None:
            return self.fault(node, "seen() must be called on an entity", "write facts.X.seen(...)")
        if name != "any" or not isinstance(node, ast.GeneratorExp):
            return self.fault(
                node, "`seen` can only be used in the first `for` of any()", "write any(... for x in facts.X.seen(...))"
            )
        for keyword in call.keywords:
            if keyword.arg not in entity.fields and keyword.arg not in entity.key:
                self.fault(
                    call,
                    f"`{entity.name}` has no field `{keyword.arg}`",
                    self.meant(str(keyword.arg), [*entity.fields, *entity.key]),
                    lacks=f"field {entity.name}.{keyword.arg}",
                )
        if call.args:
            self.fault(call, "seen() takes fields by name", "write seen(field=value)")
        match = self.reading.named(keyword for keyword in call.keywords if keyword.arg)
        first, *others = node.generators
        if first.is_async:
            return self.fault(node, "`async` is not part of the language", "use a plain `for`")
        target = self.target(first.target)
        outer = [set(scope) for scope in self.scope.scopes]
        self.scope.scopes.append({target: entity.name})
        tests = [self.test(test) for test in first.ifs]
        inner = [self.generator(one, None, node) for one in others]
        element = self.test(node.elt)
        free = self.free(node, outer)
        self.scope.scopes.pop()
        if inner:
            element = self.run("plain_any", ast.GeneratorExp(element, inner))
        body = ast.BoolOp(ast.And(), [*tests, element]) if tests else element
        size = ast.Constant(1 + sum(1 for _ in ast.walk(node)) // NODES_PER_TICK)
        fields = [self.reading.spec(entity, entity.fields[k.arg]) for k in call.keywords if k.arg in entity.fields]
        specs = ast.Tuple(fields, ast.Load())
        lambda_ = ast.Lambda(one_argument(target), body)
        text = ast.Constant(self.scope.label + ast.unparse(node))
        told = [self.scope.constant(entity), match, specs, lambda_, size, text, free]
        return ast.Call(self.scope.constant(any_seen), [ast.Name("_", ast.Load()), *told], [])

    def free(self, node: ast.AST, outer: Sequence[set[str]]) -> ast.expr:
        """Return the free variables of a comprehension. Its text and the values of these variables together identify
        the question about the unknown list.
        """
        known = set[str]().union(*outer) | self.scope.sure
        targets = [part.target for part in ast.walk(node) if isinstance(part, ast.comprehension)]
        own = {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
        used = sorted({part.id for part in ast.walk(node) if isinstance(part, ast.Name)} & known - own)
        return ast.Tuple([ast.Name(name, ast.Load()) for name in used], ast.Load())


def one_argument(name: str) -> ast.arguments:
    return ast.arguments([], [ast.arg(name)], None, [], [], None, [])


def stored(names: Sequence[str]) -> ast.expr:
    stores: list[ast.expr] = [ast.Name(name, ast.Store()) for name in names]
    return stores[0] if len(stores) == 1 else ast.Tuple(stores, ast.Store())


def _width(source: ast.expr) -> int:
    """Return how many values `zip` or `enumerate` yields per iteration, or 0 for other loops."""
    if not isinstance(source, ast.Call) or not isinstance(source.func, ast.Name):
        return 0
    return {"zip": len(source.args), "enumerate": 2}.get(source.func.id, 0)


def _is_seen(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "seen"
