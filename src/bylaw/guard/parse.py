"""From the text of a guard file to compiled guards, with every fault of the file reported together."""

import ast
import io
import tokenize
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from bylaw.errors import GuardError
from bylaw.guard.language import DEPTH, NODES, SOURCE, Vocabulary
from bylaw.guard.statement import Statements


class Branch(Struct, frozen=True):
    """One way through a guard that a case can take."""

    id: int
    line: int
    kind: str
    """`then`, `else`, `loop` or `return`."""


class Guard:
    """A compiled guard: permits or denies one call under one policy."""

    __slots__ = ("_covering", "_node", "_vocabulary", "branches", "file", "function", "line", "name")

    def __init__(
        self, node: ast.FunctionDef, file: str, vocabulary: Vocabulary, made: Statements, function: Any
    ) -> None:
        self.name = node.name
        self.file = file
        self.line = node.lineno
        self.function: Callable[..., Any] = function
        self.branches = [Branch(index, line, kind) for index, (line, kind) in enumerate(made.branches)]
        self._node = node
        self._vocabulary = vocabulary
        self._covering: Callable[..., Any] | None = None

    @property
    def place(self) -> str:
        """`file:line` of its definition."""
        return f"{self.file}:{self.line}"

    @property
    def denials(self) -> list[str]:
        """The texts it denies with, `...` for each value they would hold."""
        calls = [node for node in ast.walk(self._node) if isinstance(node, ast.Call) and len(node.args) == 1]
        texts = [call.args[0] for call in calls if isinstance(call.func, ast.Name) and call.func.id == "deny"]
        parts = [text.values if isinstance(text, ast.JoinedStr) else [text] for text in texts]
        return ["".join(str(p.value) if isinstance(p, ast.Constant) else "..." for p in text) for text in parts]

    @property
    def arguments(self) -> tuple[frozenset[str], frozenset[str]]:
        """The arguments of the call that it reads as the key of a thing, and those that it reads as values."""
        call, facts = (argument.arg for argument in self._node.args.args)
        keys: set[int] = set()
        for node in ast.walk(self._node):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                named = node.func.value
                if isinstance(named, ast.Name) and named.id == facts:
                    keys.update(id(part) for argument in node.args for part in ast.walk(argument))
        read: tuple[set[str], set[str]] = (set(), set())
        for node in ast.walk(self._node):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == call:
                read[id(node) not in keys].add(node.attr)
        return frozenset(read[0]), frozenset(read[1])

    @property
    def facts(self) -> frozenset[str]:
        """The names after a dot that it reads, with those of the entities it names: `Request.reason`."""
        nodes = [node for node in ast.walk(self._node) if isinstance(node, ast.Attribute)]
        facts = self._node.args.args[1].arg
        entities = {node.attr for node in nodes if isinstance(node.value, ast.Name) and node.value.id == facts}
        return frozenset(f"{entity}.{node.attr}" for entity in entities for node in nodes)

    def covering(self) -> Callable[..., Any]:
        """The same function, noting the branches it takes; made when first asked for."""
        if self._covering is None:
            made = Statements(self.file, self._vocabulary, cover=True)
            self._covering = made.function(self._node, ("call", "facts"))
            assert self._covering is not None
        return self._covering

    def __repr__(self) -> str:
        return f"<guard {self.name} at {self.place}>"


def parse_guards(text: str, *, file: str, vocabulary: Vocabulary) -> tuple[dict[str, Guard], list[GuardError]]:
    """The guards of one file by name, and all its faults; a guard with a fault is not among them."""
    functions, faults = functions_of(text, file=file)
    guards: dict[str, Guard] = {}
    for node in functions:
        made = Statements(file, vocabulary)
        function = made.function(node, ("call", "facts"))
        faults.extend(made.faults)
        if function is not None:
            guards[node.name] = Guard(node, file, vocabulary, made, function)
    return guards, sorted(faults, key=_line)


def functions_of(text: str, *, file: str) -> tuple[list[ast.FunctionDef], list[GuardError]]:
    """The functions of one file that are small enough to look at, and what is wrong around them."""
    tree, faults = parse_text(text, file=file)
    functions: list[ast.FunctionDef] = []
    names: set[str] = set()
    for index, node in enumerate(tree.body):
        if isinstance(node, ast.FunctionDef):
            if node.name in names:
                hint = "a policy has one guard; rename or remove one"
                faults.append(_fault(f"`{node.name}` is written twice", file, node.lineno, hint))
            names.add(node.name)
            too_large = size_fault(node, file)
            if too_large:
                faults.append(too_large)
            else:
                functions.append(node)
        elif not (index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            hint = "put it inside a function"
            faults.append(_fault("only functions stand at the top of the file", file, node.lineno, hint))
    return functions, faults


def parse_text(text: str, *, file: str, mode: str = "exec") -> tuple[Any, list[GuardError]]:
    """The syntax tree of `text`; an empty module and the fault where it has none."""
    nothing = ast.Module([], [])
    if len(text) > SOURCE:
        return nothing, [_fault(f"the file has {len(text)} characters", file, 1, f"keep it under {SOURCE}")]
    try:
        tree = ast.parse(text, file, mode)
    except SyntaxError as error:
        return nothing, [_fault(f"not python: {error.msg}", file, error.lineno or 1, "correct the syntax")]
    except (RecursionError, MemoryError):
        return nothing, [_fault("the file is nested too deep", file, 1, "write it flatter")]
    except (ValueError, OverflowError) as error:
        return nothing, [_fault(f"not python: {error}", file, 1, "correct the syntax")]
    return tree, [] if text.isascii() else list(_foreign_names(text, file))


def size_fault(node: ast.AST, file: str) -> GuardError | None:
    """What is wrong with the size of a function, looked at without recursion."""
    line = getattr(node, "lineno", 1)
    pending = [(node, 0)]
    count = 0
    while pending:
        part, depth = pending.pop()
        count += 1
        if count > NODES:
            return _fault("a function is too long", file, line, f"keep it under {NODES} parts; split the policy")
        if depth > DEPTH:
            return _fault("an expression is nested too deep", file, getattr(part, "lineno", line), "name its parts")
        pending.extend((child, depth + 1) for child in ast.iter_child_nodes(part))
    return None


def _foreign_names(text: str, file: str) -> Iterator[GuardError]:
    """Python reads `ﬁeld` as `field`; a reviewer may not."""
    seen: set[str] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME and not token.string.isascii() and token.string not in seen:
            seen.add(token.string)
            yield _fault(f"the name `{token.string}` is not plain ascii", file, token.start[0], "spell it in ascii")


def _fault(message: str, file: str, line: int, hint: str) -> GuardError:
    return GuardError(message, place=f"{file}:{line}", hint=hint)


def _line(fault: GuardError) -> int:
    return int(fault.place.rpartition(":")[2])
