"""From expressions of the guard language to instrumented Python, refusing everything else.

Known values stay plain Python values. `_` is the run: reads, arithmetic and calls go through it; comparisons with
plain constants, `and`, `or`, `not`, `if` stay Python's own, because an Unknown overloads them.
"""

import ast
import difflib
from collections.abc import Iterable, Sequence
from typing import Any

from bylaw.errors import GuardError
from bylaw.facts.entity import EXISTS, Entity, Field, Origin
from bylaw.guard.language import (
    ARITY,
    BINARY,
    BUILT_INS,
    DATE_METHODS,
    GATHERING,
    LARGEST,
    LONGEST,
    NODES_PER_TICK,
    ORDER,
    REFUSED,
    RESERVED,
    TEXT_METHODS,
    Vocabulary,
)


class Spec:
    """One field of one entity as the compiled code names it."""

    __slots__ = ("entity", "entity_name", "field", "field_name", "is_system", "origin")

    def __init__(self, entity: Entity, field: Field) -> None:
        self.entity = entity
        self.field = field
        self.entity_name = entity.name
        self.field_name = field.name
        self.origin: Origin = "context" if entity.name == "context" else field.origin
        self.is_system = self.origin == "system"


class Expressions:
    """Translates expressions inside one function; faults are collected, not raised."""

    def __init__(self, file: str, vocabulary: Vocabulary, *, cover: bool = False) -> None:
        self.file = file
        self.vocabulary = vocabulary
        self.cover = cover
        self.faults: list[GuardError] = []
        self.constants: dict[str, Any] = {}
        self.branches: list[tuple[int, str]] = []
        self.kinds: dict[str, str | None] = {}
        """Every name of the function; its entity where it stands for a thing."""
        self.sure: set[str] = set()
        """Names that have a value here whatever path was taken."""
        self.scopes: list[dict[str, str | None]] = []
        """Names of the comprehensions around this expression."""
        self.call = "call"
        self.facts = "facts"
        self.history = ""
        self.has_arithmetic = False
        self.unavailable: frozenset[str] = frozenset()
        """Built-ins that have no meaning in this kind of function."""

    # What a fault looks like, and nodes in place of what was refused.

    def fault(self, node: ast.AST, message: str, hint: str) -> ast.expr:
        place = f"{self.file}:{getattr(node, 'lineno', 1)}"
        error = GuardError(message, place=place, hint=hint)
        if str(error) not in {str(known) for known in self.faults}:
            self.faults.append(error)
        return ast.Constant(None)

    def refuse(self, node: ast.AST) -> ast.expr:
        name = type(node).__name__
        message, hint = REFUSED.get(
            type(node), (f"`{name}` is not part of the language", "see the guard language page")
        )
        return self.fault(node, message, hint)

    def constant(self, value: Any) -> ast.expr:
        """A name for an object the compiled code needs."""
        for name, known in self.constants.items():
            if known is value:
                return ast.Name(name, ast.Load())
        name = f"_{len(self.constants)}"
        self.constants[name] = value
        return ast.Name(name, ast.Load())

    def branch(self, node: ast.AST, kind: str) -> int:
        self.branches.append((getattr(node, "lineno", 0), kind))
        return len(self.branches) - 1

    # Expressions.

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
                made = self.attribute(node)
            case ast.Subscript():
                made = self.subscript(node)
            case ast.Call():
                made = self.calling(node)
            case ast.List() | ast.Tuple():
                made = self.run("listed", type(node)([self.expression(item) for item in node.elts], ast.Load()))
            case ast.Dict():
                made = self.record(node)
            case _:
                made = self.refuse(node)
        return ast.copy_location(made, node)

    def run(self, method: str, *arguments: ast.expr) -> ast.expr:
        return ast.Call(ast.Attribute(ast.Name("_", ast.Load()), method, ast.Load()), list(arguments), [])

    def literal(self, node: ast.Constant) -> ast.expr:
        value = node.value
        if isinstance(value, str):
            if len(value) > LONGEST:
                return self.fault(node, f"a text of {len(value)} characters is too long", f"keep it under {LONGEST}")
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            if not -LARGEST <= value <= LARGEST:
                return self.fault(node, "a number is too large", "stay within plus or minus 10**18")
        elif value is not None and not isinstance(value, bool):
            return self.fault(node, f"a constant of type {type(value).__name__} is not allowed", "use text or numbers")
        return ast.Constant(value)

    def name(self, node: ast.Name) -> ast.expr:
        name = node.id
        kind = self.kind(name)
        if kind is not None:
            return self.fault(node, f"`{name}` is a {kind}, not a value", f"read one of its fields, `{name}.field`")
        if any(name in scope for scope in self.scopes):
            return ast.Name(name, ast.Load())
        if name in self.kinds:
            if name not in self.sure:
                self.fault(node, f"`{name}` may have no value here", "give it one before the `if` or `for`")
            return ast.Name(name, ast.Load())
        if name in (self.call, self.facts, self.history):
            return self.fault(node, f"`{name}` is not a value", f"read something of it, `{name}.x`")
        if name in BUILT_INS:
            return self.fault(node, f"`{name}` is a built-in, not a value", f"call it, `{name}(...)`")
        return self.fault(node, f"there is no name `{name}`", self.meant(name, [*self.kinds, *BUILT_INS]))

    def kind(self, name: str) -> str | None:
        """The entity that `name` stands for, where it stands for a thing."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return self.kinds.get(name)

    def meant(self, name: str, known: Iterable[str]) -> str:
        known = sorted(set(known))
        close = difflib.get_close_matches(name, known, 1)
        if close:
            return f"did you mean `{close[0]}`?"
        return f"known are {', '.join(f'`{one}`' for one in known[:12])}" if known else "none is declared"

    def unary(self, node: ast.UnaryOp) -> ast.expr:
        match node.op:
            case ast.Not():
                return ast.UnaryOp(ast.Not(), self.expression(node.operand))
            case ast.USub():
                value = node.operand
                if isinstance(value, ast.Constant) and type(value.value) in (int, float):
                    made = self.literal(value)
                    return (
                        ast.Constant(-made.value) if isinstance(made, ast.Constant) and made.value is not None else made
                    )  # type: ignore[operator]
                self.has_arithmetic = True
                return self.run("negative", self.expression(value))
            case _:
                return self.fault(node, "only `not` and `-` stand before a value", "remove the operator")

    def binary(self, node: ast.BinOp) -> ast.expr:
        method = BINARY.get(type(node.op))
        if method is None:
            return self.fault(node, "only + - * / // % are allowed", "write it with these")
        for side in (node.left, node.right):
            if isinstance(side, (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.JoinedStr)) or (
                isinstance(side, ast.Constant) and isinstance(side.value, (str, bytes))
            ):
                return self.fault(
                    node, "arithmetic is for numbers, money and dates", "compare texts and lists as they are"
                )
        self.has_arithmetic = True
        return self.run(method, self.expression(node.left), self.expression(node.right))

    def comparison(self, node: ast.Compare) -> ast.expr:
        operands = [node.left, *node.comparators]
        if any(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            return self.fault(node, "`is` is not part of the language", "use `==` or `!=`")
        self.check_words(node, operands)
        made = [
            self.operand(operand, index and isinstance(node.ops[index - 1], (ast.In, ast.NotIn)))
            for index, operand in enumerate(operands)
        ]
        if len(node.ops) == 1:
            return self.compare(node.ops[0], made[0], made[1])
        if all(isinstance(middle, (ast.Name, ast.Constant)) for middle in made[1:-1]):
            pairs = zip(node.ops, made, made[1:], strict=False)
            return ast.BoolOp(ast.And(), [self.compare(op, left, right) for op, left, right in pairs])
        later = [ast.Lambda(_no_arguments(), value) for value in made[1:]]
        orders = ast.Tuple([ast.Constant(ORDER[type(op)]) for op in node.ops], ast.Load())
        return self.run("chain", orders, made[0], *later)

    def operand(self, node: ast.expr, is_container: Any) -> ast.expr:
        if is_container and isinstance(node, (ast.Set, ast.List, ast.Tuple)):
            items = [self.expression(item) for item in node.elts]
            if all(_is_plain(item) for item in items):
                values = tuple(item.value for item in items if isinstance(item, ast.Constant))
                return ast.copy_location(ast.Constant(values), node)
            return ast.copy_location(self.run("listed", ast.List(items, ast.Load())), node)
        return self.expression(node)

    def compare(self, op: ast.cmpop, left: ast.expr, right: ast.expr) -> ast.expr:
        method = ORDER[type(op)]
        if isinstance(op, (ast.In, ast.NotIn)):
            if isinstance(right, ast.Constant) and isinstance(right.value, tuple):
                method = "among" if isinstance(op, ast.In) else "not_among"
            return self.run(method, left, right)
        if _is_plain(left) or _is_plain(right):
            return ast.Compare(left, [op], [right])
        return self.run(method, left, right)

    def check_words(self, node: ast.Compare, operands: Sequence[ast.expr]) -> None:
        """A field compared with a constant it can never equal is a slip of the pen."""
        for op, left, right in zip(node.ops, operands, operands[1:], strict=False):
            for side, other in ((left, right), (right, left)):
                field = self.field_of(side)
                if field is None or (isinstance(op, (ast.In, ast.NotIn)) and side is right):
                    continue
                constants = other.elts if isinstance(other, (ast.Set, ast.List, ast.Tuple)) else [other]
                for constant in constants:
                    if isinstance(constant, ast.Constant):
                        self.check_word(constant, field)

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
        yes, no = self.branch(node, "then"), self.branch(node, "else")
        test, body, orelse = self.expression(node.test), self.expression(node.body), self.expression(node.orelse)
        if self.cover:
            body = ast.BoolOp(ast.And(), [self.run("cover", ast.Constant(yes)), body])
            orelse = ast.BoolOp(ast.And(), [self.run("cover", ast.Constant(no)), orelse])
        return ast.IfExp(test, body, orelse)

    def record(self, node: ast.Dict) -> ast.expr:
        keys: list[ast.expr | None] = []
        for key in node.keys:
            if isinstance(key, ast.Constant) and isinstance(key.value, (str, int)):
                keys.append(self.literal(key))
            else:
                self.fault(key or node, "the keys of a record are constants", "write them as text")
        return self.run("listed", ast.Dict(keys, [self.expression(value) for value in node.values]))

    # Facts, arguments, records.

    def entity(self, node: ast.expr) -> Entity | None:
        """The entity of `facts.X`."""
        if isinstance(node, ast.Attribute) and self.is_root(node.value, self.facts):
            found = self.vocabulary.entities.get(node.attr)
            if found is None:
                self.fault(node, f"there is no entity `{node.attr}`", self.meant(node.attr, self.vocabulary.entities))
            return found
        return None

    def is_root(self, node: ast.expr, name: str) -> bool:
        shadowed = isinstance(node, ast.Name) and any(node.id in scope for scope in self.scopes)
        return bool(name) and isinstance(node, ast.Name) and node.id == name and not shadowed

    def thing(self, node: ast.expr) -> tuple[Entity, ast.expr] | None:
        """The entity and key of an expression that stands for a thing; None for a value."""
        if isinstance(node, ast.Name):
            entity = self.kind(node.id)
            if entity is None:
                return None
            if node.id not in self.sure and not any(node.id in scope for scope in self.scopes):
                self.fault(node, f"`{node.id}` may have no value here", "give it one before the `if` or `for`")
            return self.vocabulary.entities[entity], ast.copy_location(ast.Name(node.id, ast.Load()), node)
        if isinstance(node, ast.Call):
            entity = self.entity(node.func)
            return None if entity is None else (entity, ast.copy_location(self.key(node, entity), node))
        entity = self.entity(node)
        if entity is None:
            return None
        if entity.key:
            keys = ", ".join(entity.key)
            self.fault(node, f"`{entity.name}` needs its key", f"write `facts.{entity.name}({keys})`")
        return entity, ast.copy_location(ast.Constant(()), node)

    def is_thing(self, node: ast.expr) -> str | None:
        """The name of the entity an assigned expression stands for, without translating it."""
        func = node.func if isinstance(node, ast.Call) else node
        if (
            isinstance(func, ast.Attribute)
            and self.is_root(func.value, self.facts)
            and func.attr in self.vocabulary.entities
        ):
            return func.attr
        if isinstance(node, ast.Name):
            return self.kind(node.id)
        return None

    def key(self, node: ast.Call, entity: Entity) -> ast.expr:
        parts: dict[str, ast.expr] = {}
        if len(node.args) > len(entity.key):
            self.fault(
                node, f"`{entity.name}` has {len(entity.key)} key parts", f"give {', '.join(entity.key) or 'none'}"
            )
        parts.update(zip(entity.key, node.args, strict=False))
        for keyword in node.keywords:
            if keyword.arg not in entity.key or keyword.arg in parts:
                return self.fault(
                    node, f"`{keyword.arg}` is no key of `{entity.name}`", self.meant(str(keyword.arg), entity.key)
                )
            parts[keyword.arg] = keyword.value
        missing = [name for name in entity.key if name not in parts]
        if missing:
            return self.fault(
                node, f"`{entity.name}` needs its key", f"give {', '.join(f'`{name}`' for name in missing)}"
            )
        values = [self.expression(parts[name]) for name in entity.key]
        return self.run("key_of", ast.Constant(entity.name), ast.Tuple(values, ast.Load()))

    def field_of(self, node: ast.expr) -> Field | None:
        """The declared field that `node` reads, where that can be seen without running."""
        if not isinstance(node, ast.Attribute):
            return None
        entity = self.is_thing(node.value)
        return self.vocabulary.entities[entity].fields.get(node.attr) if entity else None

    def attribute(self, node: ast.Attribute) -> ast.expr:
        name = node.attr
        if name.startswith("_"):
            return self.fault(node, f"`{name}` begins with an underscore", "read a declared field")
        if self.is_root(node.value, self.call):
            if name == "tool":
                return self.run("tool_name")
            if name not in self.vocabulary.arguments:
                return self.fault(
                    node, f"no tool in scope has the argument `{name}`", self.meant(name, self.vocabulary.arguments)
                )
            return self.run("argument", ast.Constant(name))
        if self.is_root(node.value, self.facts):
            self.thing(node)
            return self.fault(node, f"`facts.{name}` is not a value", "read one of its fields")
        thing = self.thing(node.value)
        if thing is not None:
            entity, key = thing
            if name in entity.key:
                return self.key_part(entity, key, name)
            field = EXISTS if name == "exists" else entity.fields.get(name)
            if field is None:
                return self.fault(
                    node, f"`{entity.name}` has no field `{name}`", self.meant(name, [*entity.fields, "exists"])
                )
            return self.run("read", self.spec(entity, field), key)
        return self.run("part", self.expression(node.value), ast.Constant(name))

    def key_part(self, entity: Entity, key: ast.expr, name: str) -> ast.expr:
        """A part of a thing's own key is known with the key: reading it takes no look-up."""
        part = self.run("key_part", key, ast.Constant(entity.key.index(name)))
        declared = entity.fields.get(name)
        match declared.type if declared else "string":
            case "date":
                return self.run("do_date", part)
            case "datetime":
                return self.run("do_time", part)
            case _:
                return part

    def spec(self, entity: Entity, field: Field) -> ast.expr:
        for name, known in self.constants.items():
            if isinstance(known, Spec) and known.entity is entity and known.field is field:
                return ast.Name(name, ast.Load())
        return self.constant(Spec(entity, field))

    def subscript(self, node: ast.Subscript) -> ast.expr:
        value = self.expression(node.value)
        if isinstance(node.slice, ast.Slice):
            if node.slice.step is not None:
                return self.fault(node, "a slice has no step", "write `x[a:b]`")
            ends = [
                ast.Constant(None) if end is None else self.expression(end)
                for end in (node.slice.lower, node.slice.upper)
            ]
            return self.run("section", value, *ends)
        return self.run("item", value, self.expression(node.slice))

    # Calls.

    def calling(self, node: ast.Call) -> ast.expr:
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                return self.refuse(argument)
        if any(keyword.arg is None for keyword in node.keywords):
            return self.refuse(ast.copy_location(ast.Starred(node.func, ast.Load()), node))
        if isinstance(node.func, ast.Attribute):
            return self.method(node, node.func)
        if not isinstance(node.func, ast.Name):
            return self.fault(node, "only built-ins and listed methods can be called", "name a built-in")
        name = node.func.id
        if name in ("permit", "deny", "found", "unseen"):
            return self.fault(node, f"`{name}()` stands only after `return`", f"write `return {name}(...)`")
        if name == "range":
            return self.fault(node, "`range` stands only in `for x in range(...)`", "loop over it")
        if name not in BUILT_INS - self.unavailable or self.kind(name) is not None or name in self.kinds:
            return self.fault(node, f"there is no built-in `{name}`", self.meant(name, BUILT_INS))
        if name == "done":
            return self.done(node)
        if node.keywords:
            return self.fault(node, f"`{name}` takes no named arguments", "give them in order")
        least, most = ARITY[name]
        if not least <= len(node.args) <= most:
            return self.fault(
                node,
                f"`{name}` takes {least if least == most else f'{least} to {most}'} arguments",
                "see the guard language page",
            )
        if name in GATHERING and len(node.args) == 1:
            inside = node.args[0]
            if isinstance(inside, (ast.GeneratorExp, ast.ListComp, ast.SetComp)):
                return self.gathering(name, inside)
        if name == "get" and self.is_root(node.args[0], self.call):
            return self.optional_argument(node)
        if name in ("days", "hours", "sum", "money", "round"):
            self.has_arithmetic = True
        return self.run(f"do_{name}", *(self.expression(argument) for argument in node.args))

    def optional_argument(self, node: ast.Call) -> ast.expr:
        name = node.args[1]
        if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
            return self.fault(
                node, "get(call, ...) needs the argument's name as text", 'write get(call, "name", default)'
            )
        if name.value not in self.vocabulary.arguments:
            return self.fault(
                node,
                f"no tool in scope has the argument `{name.value}`",
                self.meant(name.value, self.vocabulary.arguments),
            )
        default = self.expression(node.args[2]) if len(node.args) == 3 else ast.Constant(None)
        return self.run("optional", name, default)

    def done(self, node: ast.Call) -> ast.expr:
        first = node.args[0] if len(node.args) == 1 else None
        if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
            return self.fault(
                node, "done() takes a tool's name and its arguments", 'write done("tool", argument=value)'
            )
        if first.value not in self.vocabulary.tools:
            return self.fault(node, f"there is no tool `{first.value}`", self.meant(first.value, self.vocabulary.tools))
        return self.run("do_done", ast.Constant(first.value), self.named(node.keywords))

    def named(self, keywords: Iterable[ast.keyword]) -> ast.expr:
        pairs = [(keyword.arg, self.expression(keyword.value)) for keyword in keywords]
        return ast.Dict([ast.Constant(name) for name, _ in pairs], [value for _, value in pairs])

    def method(self, node: ast.Call, func: ast.Attribute) -> ast.expr:
        name = func.attr
        if self.is_root(func.value, self.history) and name == "results":
            if len(node.args) != 1:
                return self.fault(
                    node, "history.results() takes one tool", 'write history.results("tool", argument=value)'
                )
            return self.run("results", self.expression(node.args[0]), self.named(node.keywords))
        if name == "seen" and self.is_thing(func.value) is not None:
            return self.fault(
                node, "`seen` stands only in `any(... for x in facts.X.seen(...))`", "put it inside any()"
            )
        if self.is_root(func.value, self.facts):
            self.entity(func)
            return self.fault(node, f"`facts.{name}(...)` is not a value", "read one of its fields")
        arity = TEXT_METHODS.get(name) or DATE_METHODS.get(name)
        if arity is None:
            hint = (
                "use get(record, key, default)" if name == "get" else self.meant(name, [*TEXT_METHODS, *DATE_METHODS])
            )
            return self.fault(node, f"there is no method `{name}`", hint)
        if node.keywords or not arity[0] <= len(node.args) <= arity[1]:
            return self.fault(node, f"`{name}` takes {arity[1]} arguments", "give them in order")
        return self.run(
            "method", self.expression(func.value), ast.Constant(name), *(self.expression(a) for a in node.args)
        )

    # Comprehensions: the first list is looked at before the loop, so that an unknown one gives an opaque value.

    def gathering(self, name: str, node: ast.GeneratorExp | ast.ListComp | ast.SetComp) -> ast.expr:
        if isinstance(node, ast.SetComp) and name != "len":
            return self.refuse(node)
        first = node.generators[0]
        if _is_seen(first.iter):
            return self.gathering_seen(name, node)
        source = self.loop_source(first.iter)
        outer = [set(scope) for scope in self.scopes]
        self.scopes.append({})
        generators = [
            self.generator(one, ast.Name("_it", ast.Load()) if one is first else None, node) for one in node.generators
        ]
        element = self.expression(node.elt)
        free = self.free(node, outer)
        self.scopes.pop()
        body = ast.GeneratorExp(element, generators)
        how = "distinct" if isinstance(node, ast.SetComp) else name
        text = self.constant_text(f"{how}({ast.unparse(node)})")
        return self.run("gather", ast.Constant(how), source, ast.Lambda(_one_argument("_it"), body), text, free)

    def generator(self, one: ast.comprehension, source: ast.expr | None, whole: ast.AST) -> ast.comprehension:
        if one.is_async:
            self.fault(whole, "`async` is not part of the language", "use a plain `for`")
        turns = self.turns(source if source is not None else self.loop_source(one.iter), whole)
        self.scopes[-1][self.target(one.target)] = None
        return ast.comprehension(
            ast.Name(self.target(one.target), ast.Store()), turns, [self.expression(test) for test in one.ifs], 0
        )

    def turns(self, source: ast.expr, body: ast.AST) -> ast.expr:
        size = sum(1 for _ in ast.walk(body))
        return self.run("turns", source, ast.Constant(1 + size // NODES_PER_TICK))

    def target(self, node: ast.expr) -> str:
        if not isinstance(node, ast.Name):
            self.fault(node, "a loop has one name", "loop over the records and read their parts")
            return "_bad"
        self.check_new_name(node, node.id)
        return node.id

    def check_new_name(self, node: ast.AST, name: str) -> None:
        if name in RESERVED or name in (self.call, self.facts, self.history):
            self.fault(node, f"`{name}` has a meaning already", "choose another name")
        elif name.startswith("_"):
            self.fault(node, f"`{name}` begins with an underscore", "choose another name")

    def loop_source(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
            ends = [end.value for end in node.args if isinstance(end, ast.Constant) and type(end.value) is int]
            if len(ends) != len(node.args) or len(ends) not in (1, 2) or node.keywords or max(map(abs, ends)) > LONGEST:
                return self.fault(node, "range() takes constants", f"write one or two whole numbers up to {LONGEST}")
            return self.constant(range(*ends))
        if _is_seen(node):
            return self.fault(
                node, "`seen` stands only in the first `for` of any()", "write any(... for x in facts.X.seen(...))"
            )
        return self.expression(node)

    def gathering_seen(self, name: str, node: ast.GeneratorExp | ast.ListComp | ast.SetComp) -> ast.expr:
        call = node.generators[0].iter
        assert isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
        entity = self.entity(call.func.value)
        if entity is None:
            return self.fault(node, "seen() is asked of an entity", "write facts.X.seen(...)")
        if name != "any" or not isinstance(node, ast.GeneratorExp):
            return self.fault(
                node, "`seen` stands only in the first `for` of any()", "write any(... for x in facts.X.seen(...))"
            )
        for keyword in call.keywords:
            if keyword.arg not in entity.fields and keyword.arg not in entity.key:
                self.fault(
                    call,
                    f"`{entity.name}` has no field `{keyword.arg}`",
                    self.meant(str(keyword.arg), [*entity.fields, *entity.key]),
                )
        if call.args:
            self.fault(call, "seen() takes fields by name", "write seen(field=value)")
        match = self.named(keyword for keyword in call.keywords if keyword.arg)
        first, *others = node.generators
        if first.is_async:
            return self.refuse(ast.copy_location(ast.AsyncFor(), node))
        target = self.target(first.target)
        outer = [set(scope) for scope in self.scopes]
        self.scopes.append({target: entity.name})
        tests = [self.expression(test) for test in first.ifs]
        inner = [self.generator(one, None, node) for one in others]
        element = self.expression(node.elt)
        free = self.free(node, outer)
        self.scopes.pop()
        if inner:
            element = self.run("plain_any", ast.GeneratorExp(element, inner))
        body = ast.BoolOp(ast.And(), [*tests, element]) if tests else element
        size = ast.Constant(1 + sum(1 for _ in ast.walk(node)) // NODES_PER_TICK)
        fields = [self.spec(entity, entity.fields[k.arg]) for k in call.keywords if k.arg in entity.fields]
        specs = ast.Tuple(fields, ast.Load())
        lambda_ = ast.Lambda(_one_argument(target), body)
        return self.run(
            "any_seen", self.constant(entity), match, specs, lambda_, size, self.constant_text(ast.unparse(node)), free
        )

    def constant_text(self, text: str) -> ast.expr:
        return ast.Constant(text)

    def free(self, node: ast.AST, outer: Sequence[set[str]]) -> ast.expr:
        """The names a comprehension takes from around it: with its text they say which question it asks."""
        known = set[str]().union(*outer) | self.sure
        own = {
            part.target.id
            for part in ast.walk(node)
            if isinstance(part, ast.comprehension) and isinstance(part.target, ast.Name)
        }
        used = sorted({part.id for part in ast.walk(node) if isinstance(part, ast.Name)} & known - own)
        return ast.Tuple([ast.Name(name, ast.Load()) for name in used], ast.Load())


def _is_plain(node: ast.expr) -> bool:
    """Whether Python's own comparison with this constant is the language's: not so for floats beside money."""
    return isinstance(node, ast.Constant) and (node.value is None or type(node.value) in (str, int, bool))


def _is_seen(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "seen"


def _no_arguments() -> ast.arguments:
    return ast.arguments([], [], None, [], [], None, [])


def _one_argument(name: str) -> ast.arguments:
    return ast.arguments([], [ast.arg(name)], None, [], [], None, [])
