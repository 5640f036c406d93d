"""Compiles a guard file and reports all its errors together."""

import ast
import io
import keyword
import re
import tokenize
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from msgspec import Struct

from bylaw.errors import GuardError, SyntaxFault
from bylaw.guard.language import DEPTH, NODES, SOURCE, Vocabulary, children_of, fields_compared, parts_of, unnamed_kinds
from bylaw.guard.scope import FileHelpers, Scope
from bylaw.guard.statement import LazyFunction, Statements, translate_helper
from bylaw.text.python import parse_python


class Branch(Struct, frozen=True):
    id: int
    line: int
    kind: str
    """`then`, `else`, `loop` or `return`."""
    file: str = ""
    """The file that contains the branch: that of the guard or of a shared function."""
    column: int = 0


class Guard:
    """A compiled guard. It permits or denies a call under one policy."""

    def __init__(
        self, node: ast.FunctionDef, scope: Scope, function: LazyFunction, helpers: FileHelpers | None = None
    ) -> None:
        self.name = node.name
        self.file = scope.file
        self.line = node.lineno
        self.branches = [
            Branch(index, line, kind, file, column) for index, (file, line, column, kind) in enumerate(scope.branches)
        ]
        self._node = node
        self._helpers = helpers
        self._vocabulary = scope.vocabulary
        self.zone = scope.vocabulary.zone
        self._function = function

    @property
    def place(self) -> str:
        """The position of the guard as `file:line`."""
        return f"{self.file}:{self.line}"

    def parts_named_at(self, line: int) -> list[str]:
        """Return the attribute names on a line from left to right."""
        named = [node for node in self._nodes() if isinstance(node, ast.Attribute) and node.lineno == line]
        return list(dict.fromkeys(node.attr for node in sorted(named, key=lambda node: node.col_offset)))

    @cached_property
    def attributes(self) -> frozenset[str]:
        """All attribute names in the guard and in the functions that it calls."""
        return frozenset(node.attr for node in self._nodes() if isinstance(node, ast.Attribute))

    @property
    def functions(self) -> list[tuple[str, int]]:
        """The file and line of every function that the guard calls, directly or indirectly."""
        if self._helpers is None:
            return []
        nodes, files = self._helpers.nodes, self._helpers.files
        return sorted((files.get(name, self.file), nodes[name].lineno) for name in self._helpers.used)

    def _nodes(self) -> Iterator[ast.AST]:
        yield from parts_of(self._node)
        if self._helpers is not None:
            for name in sorted(self._helpers.used):
                yield from parts_of(self._helpers.nodes[name])

    @property
    def denials(self) -> list[str]:
        """The guard's denial messages, with `...` in place of each value."""
        calls = [node for node in self._nodes() if isinstance(node, ast.Call) and len(node.args) == 1]
        texts = [call.args[0] for call in calls if isinstance(call.func, ast.Name) and call.func.id == "deny"]
        parts = [text.values if isinstance(text, ast.JoinedStr) else [text] for text in texts]
        return ["".join(str(p.value) if isinstance(p, ast.Constant) else "..." for p in text) for text in parts]

    @cached_property
    def arguments(self) -> tuple[frozenset[str], frozenset[str]]:
        """The names of the call arguments that the guard uses as entity keys, and the names of those that it uses as
        values.
        """
        call, facts = (argument.arg for argument in self._node.args.args)
        keys: set[int] = set()
        shared = self._helpers.used if self._helpers is not None else ()
        for node in self._nodes():
            if isinstance(node, ast.Call):
                named = node.func.value if isinstance(node.func, ast.Attribute) else None
                # An argument of a shared function is nearly always an entity's key.
                is_shared = isinstance(node.func, ast.Name) and node.func.id in shared
                if is_shared or (isinstance(named, ast.Name) and named.id == facts):
                    keys.update(id(part) for argument in node.args for part in parts_of(argument))
        read: tuple[set[str], set[str]] = (set(), set())
        for node in self._nodes():
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == call:
                read[id(node) not in keys].add(node.attr)
        return frozenset(read[0]), frozenset(read[1])

    @cached_property
    def built_ins(self) -> frozenset[str]:
        """The functions and built-ins that the guard calls by name."""
        calls = [node.func for node in self._nodes() if isinstance(node, ast.Call)]
        return frozenset(function.id for function in calls if isinstance(function, ast.Name))

    @cached_property
    def facts(self) -> frozenset[str]:
        """The fields that the guard may read, such as `Request.reason`."""
        nodes = [node for node in self._nodes() if isinstance(node, ast.Attribute)]
        facts = self._node.args.args[1].arg
        entities = {node.attr for node in nodes if isinstance(node.value, ast.Name) and node.value.id == facts}
        return frozenset(f"{entity}.{node.attr}" for entity in entities for node in nodes)

    @cached_property
    def searches(self) -> bool:
        """Whether the guard searches entities by field. If so, the guard permits a call only if all such entities are
        known.
        """
        return any(isinstance(node, ast.Attribute) and node.attr == "seen" for node in self._nodes())

    @cached_property
    def unnamed(self) -> frozenset[str]:
        """The entities that the guard reads with keys that are not call arguments."""
        return unnamed_kinds(list(self._nodes()), self._helpers.nodes if self._helpers is not None else {})

    @cached_property
    def function(self) -> Callable[..., Any]:
        return self._function.made

    @cached_property
    def covering(self) -> Callable[..., Any]:
        """The compiled function, instrumented for branch coverage."""
        scope = Scope(self.file, self._vocabulary, cover=True)
        scope.helpers = (
            None if (known := self._helpers) is None else FileHelpers(known.nodes, known.files, translate_helper)
        )
        function = Statements(scope).function(self._node, ("call", "facts"))
        assert function is not None
        return function.made

    def __repr__(self) -> str:
        return f"<guard {self.name} at {self.place}>"


def parse_guards(
    text: str, *, file: str, vocabulary: Vocabulary, policies: Collection[str] = ()
) -> tuple[dict[str, Guard], list[GuardError]]:
    """Return the guards in a file, by name, and all errors. Guards with errors are left out."""
    guards, faults = parse_guard_files({file: text}, vocabulary=vocabulary, policies=policies)
    return {guard.name: guard for guard in guards}, faults


def parse_guard_files(
    files: Mapping[str, str], *, vocabulary: Vocabulary, policies: Collection[str] = ()
) -> tuple[list[Guard], list[GuardError]]:
    """Return the guards in several files, and all errors.

    A function that other functions call is shared, unless `policies` names it as a guard. A guard may call a function
    in another file if the name of that function, and the names of all functions that it calls, are unique.
    """
    own = {file: functions_of(text, file=file) for file, text in files.items()}
    places: dict[str, list[str]] = {}
    calls: dict[str, set[str]] = {}
    for file, (functions, _) in own.items():
        for node in functions:
            places.setdefault(node.name, []).append(file)
            calls[node.name] = _called_by(node)
    plain = {name for name, where in places.items() if len(where) == 1 and name not in policies}
    while unclear := {name for name in plain if (calls[name] & places.keys()) - plain}:
        plain -= unclear
    nodes = {node.name: node for functions, _ in own.values() for node in functions}
    called = {file: set[str]().union(*map(_called_by, functions)) for file, (functions, _) in own.items()}
    guards: list[Guard] = []
    faults: list[GuardError] = []
    for file, (functions, known) in own.items():
        reached = _closed(called[file] & plain, calls, plain)
        others = {name: places[name][0] for name in sorted(reached) if places[name] != [file]}
        by_others = plain & set[str]().union(*(names for other, names in called.items() if other != file))
        shared = {
            node.name: node for node in functions if node.name in called[file] | by_others and node.name not in policies
        }
        helpers = {**{name: nodes[name] for name in others}, **shared}
        elsewhere = {name: place for name, place in others.items() if name not in shared}
        used = _closed(set(by_others), {name: _called_by(node) for name, node in shared.items()})
        wrong = list(known)
        for node in functions:
            if node.name not in shared:
                scope = Scope(file, vocabulary)
                scope.helpers = FileHelpers(helpers, elsewhere, translate_helper)
                function = Statements(scope).function(node, ("call", "facts"))
                wrong.extend(fault for fault in scope.faults if str(fault) not in {str(each) for each in wrong})
                used |= scope.helpers.used
                if function is not None:
                    guards.append(Guard(node, scope, function, scope.helpers))
        for name in sorted(shared.keys() - used):
            hint = "call it from a guard, or remove it"
            wrong.append(_fault(f"no guard calls `{name}`", file, shared[name].lineno, hint))
        faults.extend(sorted(wrong, key=_line))
    return guards, faults


def _closed(names: set[str], calls: Mapping[str, set[str]], among: Collection[str] | None = None) -> set[str]:
    while more := set[str]().union(*(calls.get(name, ()) for name in names)) - names:
        if among is not None and not (more := more & set(among)):
            break
        names = names | more
    return names


def _called_by(node: ast.FunctionDef) -> set[str]:
    calls = [part.func for part in parts_of(node) if isinstance(part, ast.Call)]
    return {called.id for called in calls if isinstance(called, ast.Name)} - {node.name}


def functions_of(text: str, *, file: str) -> tuple[list[ast.FunctionDef], list[GuardError]]:
    """Return the functions in a file that are within the size limits, and the errors in the file."""
    tree, faults = parse_text(text, file=file)
    functions: list[ast.FunctionDef] = []
    names: set[str] = set()
    for index, node in enumerate(tree.body):
        if isinstance(node, ast.FunctionDef):
            if node.name in names:
                hint = "a policy has one guard; rename or remove one"
                faults.append(_fault(f"`{node.name}` is defined twice", file, node.lineno, hint))
            names.add(node.name)
            too_large = size_fault(node, file)
            if too_large:
                faults.append(too_large)
            else:
                functions.append(node)
        elif not (index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            hint = "put it inside a function"
            faults.append(_fault("only functions are allowed at the top level of the file", file, node.lineno, hint))
    return functions, faults


def parse_text(text: str, *, file: str, mode: str = "exec") -> tuple[Any, list[GuardError]]:
    """Return the syntax tree of `text`. If the text cannot be parsed, return an empty module and the error."""
    nothing = ast.Module([], [])
    if len(text) > SOURCE:
        return nothing, [_fault(f"the file has {len(text)} characters", file, 1, f"keep it under {SOURCE}")]
    try:
        tree = parse_python(text, file, mode)
    except SyntaxError as error:
        place = f"{file}:{error.lineno or 1}"
        return nothing, [SyntaxFault(f"not Python: {error.msg}", place=place, hint=_mend(error))]
    except (RecursionError, MemoryError):
        return nothing, [_fault("the file is nested too deeply", file, 1, "reduce the nesting")]
    except (ValueError, OverflowError) as error:
        return nothing, [SyntaxFault(f"not Python: {error}", place=f"{file}:1", hint="correct the syntax")]
    for node in parts_of(tree) if _KEYWORD.search(text) else ():
        if isinstance(node, ast.Attribute) and keyword.iskeyword(node.attr.removesuffix("_")):
            node.attr = node.attr.removesuffix("_")
    for node in parts_of(tree) if "\\" in text else ():
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and not _is_encodable(node.value):
            return nothing, [
                _fault(
                    "a string contains an unpaired surrogate (half a character)",
                    file,
                    node.lineno,
                    "write the whole character",
                )
            ]
    return tree, [] if text.isascii() else list(_foreign_names(text, file))


def _is_encodable(text: str) -> bool:
    return not any("\ud800" <= each <= "\udfff" for each in text)


_KEYWORD = re.compile(rf"\.({'|'.join(keyword.kwlist)})(_?)\b")
"""Matches a field or argument named like a Python keyword. Guards add an underscore: `call.from_`."""


def _mend(error: SyntaxError) -> str:
    named = next((each for each in _KEYWORD.finditer(error.text or "") if not each[2]), None)
    if named is not None:
        return f"write `.{named[1]}_` for a field or argument named `{named[1]}`"
    if isinstance(error, TabError):
        return "indent with spaces only"
    if isinstance(error, IndentationError):
        return "indent every line of a block by exactly four spaces"
    return "correct the syntax"


def size_fault(node: ast.AST, file: str) -> GuardError | None:
    """Return the error for a function that is too large or too deep. Avoids recursion, which a deep function could
    exhaust.
    """
    line = getattr(node, "lineno", 1)
    level = [node]
    count = depth = 0
    while level:
        count += len(level)
        if count > NODES:
            return _fault("a function is too long", file, line, f"keep it under {NODES} parts; split the policy")
        if depth > DEPTH:
            return _fault(
                "an expression is nested too deeply", file, getattr(level[0], "lineno", line), "name its parts"
            )
        level = [child for part in level for child in children_of(part)]
        depth += 1
    return None


def _foreign_names(text: str, file: str) -> Iterator[GuardError]:
    """Report names that Python normalises, such as `ﬁeld` to `field`, because a reviewer may misread them."""
    seen: set[str] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME and not token.string.isascii() and token.string not in seen:
            seen.add(token.string)
            yield _fault(f"the name `{token.string}` is not plain ASCII", file, token.start[0], "use ASCII letters")


def _fault(message: str, file: str, line: int, hint: str) -> GuardError:
    return GuardError(message, place=f"{file}:{line}", hint=hint)


def _line(fault: GuardError) -> int:
    return int(fault.place.rpartition(":")[2])


def compared_with_none(functions: Iterable[str], expressions: Iterable[str] = ()) -> frozenset[str]:
    """Return the fields that are compared with `None`, directly or through a variable. Errors are ignored."""
    trees = [parse_text(text, file="")[0] for text in functions if "None" in text]
    trees += [parse_text(text.strip(), file="", mode="eval")[0] for text in expressions if "None" in text]
    return frozenset[str]().union(*(fields_compared(parts_of(tree)) for tree in trees))
