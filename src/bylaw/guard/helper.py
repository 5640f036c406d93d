"""Functions that the guards of a file share: the same language, giving a value, a thing, or the answer itself.

Each is translated once for each kind of things it is given, so that `order.total` is checked as in a guard.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence

from bylaw.guard.language import HELPERS, OF_LOOKUPS, RESERVED
from bylaw.guard.scope import Helper, Scope
from bylaw.guard.statement import ANSWERS, Statements


class Translated(Statements):
    """One function that gives something, translated for arguments of certain kinds."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope, ())
        self.gives: str | None = None
        self.has_given = False

    def answer(self) -> str:
        return "a value"

    def returning(self, node: ast.Return) -> list[ast.stmt]:
        branch = self.scope.branch(node, "return")
        if node.value is None:
            self.fault(node, "a return gives a value", "write return value")
            return []
        thing = self.reading.thing(node.value)
        kind = thing[0].name if thing else None
        if self.has_given and kind != self.gives:
            self.fault(node, "this function returns different kinds of things", "write a function for each")
        self.has_given, self.gives = True, kind
        return [*self.covering(branch), ast.Return(thing[1] if thing else self.values.expression(node.value))]


class FileHelpers:
    """The functions that one guard may call, translated when they are called."""

    def __init__(self, nodes: Mapping[str, ast.FunctionDef], files: Mapping[str, str] | None = None) -> None:
        self.nodes = nodes
        self.files = files or {}
        """Where those stand that are of another file than the guard."""
        self.used: set[str] = set()
        self._made: dict[tuple[str, tuple[str | None, ...]], Helper | None] = {}
        self._open: list[str] = []

    def find(self, scope: Scope, node: ast.Call, kinds: Sequence[str | None]) -> Helper | None:
        """The function that `node` calls, translated for arguments of these kinds; None where it has faults."""
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        self.used.add(name)
        if name in self._open:
            scope.fault(node, f"`{name}` calls itself", "loop over a list with `for`")
            return None
        known = (name, tuple(kinds))
        if known not in self._made:
            if len(self._made) == HELPERS:
                scope.fault(node, f"a guard calls more than {HELPERS} functions", "split the policy")
                return None
            self._open.append(name)
            self._made[known] = self._translated(scope, self.nodes[name], kinds)
            self._open.pop()
        return self._made[known]

    def _translated(self, scope: Scope, node: ast.FunctionDef, kinds: Sequence[str | None]) -> Helper | None:
        names = [argument.arg for argument in node.args.args]
        own = [name for name in names if name not in ("call", "facts")]
        call, facts = (root if root in names else "" for root in ("call", "facts"))
        file = self.files.get(node.name, scope.file)
        inside = Scope(file, scope.vocabulary, cover=scope.cover, call=call, facts=facts, parameters=own)
        inside.helpers, inside.branches = self, scope.branches
        inside.kinds.update(zip(own, kinds, strict=True))
        shown = ", ".join(kind or "" for kind in kinds)
        inside.label = f"{node.name}({shown}): " if any(kinds) else ""
        if node.name in RESERVED | OF_LOOKUPS:
            inside.fault(node, f"`{node.name}` has a meaning already", "choose another name")
        made = Statements(inside) if self.is_answering(node.name) else Translated(inside)
        function = made.function(node, names)
        for fault in inside.faults:
            if str(fault) not in {str(known) for known in scope.faults}:
                scope.faults.append(fault)
        gives = made.gives if isinstance(made, Translated) else None
        return None if function is None else Helper(gives, function)

    def is_answering(self, name: str) -> bool:
        """Whether that function permits or denies, in place of giving a value."""
        seen: set[str] = set()
        pending = [name]
        while pending:
            found = pending.pop()
            if found in ANSWERS:
                return True
            if found in self.nodes and found not in seen:
                seen.add(found)
                pending.extend(_returned(self.nodes[found]))
        return False


def _returned(node: ast.FunctionDef) -> Iterator[str]:
    """The names of the functions whose answer it returns."""
    ways: list[ast.expr | None] = [each.value for each in ast.walk(node) if isinstance(each, ast.Return)]
    for way in ways:
        if isinstance(way, ast.IfExp):
            ways += [way.body, way.orelse]
        elif isinstance(way, ast.Call) and isinstance(way.func, ast.Name):
            yield way.func.id
