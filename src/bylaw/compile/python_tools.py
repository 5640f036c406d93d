"""Reads Python functions as tools from their source: name, docstring and annotations. No code is imported or run."""

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bylaw.compile.card import Card, schema_text
from bylaw.errors import UsageError
from bylaw.policy.python import parse_python

_TYPES: dict[str, dict[str, Any]] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "Decimal": {"type": "string"},
    "UUID": {"type": "string"},
    "date": {"type": "string", "format": "date"},
    "datetime": {"type": "string", "format": "date-time"},
}
_LISTS = ("list", "List", "tuple", "Tuple", "set", "Set", "frozenset", "Sequence", "Iterable", "Collection")
_MAPS = ("dict", "Dict", "Mapping", "MutableMapping")
_NESTED = 12


class Types:
    """Converts annotations to schemas. `classes` are the file's records and enumerations."""

    def __init__(self, classes: Mapping[str, ast.ClassDef]) -> None:
        self._classes = classes

    def schema(self, annotation: ast.expr, depth: int = 0) -> dict[str, Any]:
        """Return the schema of an annotation; an object if it is unknown."""
        if depth > _NESTED:
            return {"type": "object"}
        match annotation:
            case ast.Constant(None):
                return {}
            case ast.Constant(str() as text):
                return self._quoted(text, depth)
            case ast.BinOp(left, ast.BitOr(), right):
                return self._first([left, right], depth)
            case ast.Subscript(value, inside):
                return self._generic(_name(value), inside, depth)
            case ast.Name() | ast.Attribute():
                return self._named(_name(annotation), depth)
            case _:
                return {"type": "object"}

    def _quoted(self, text: str, depth: int) -> dict[str, Any]:
        try:
            return self.schema(parse_python(text, mode="eval").body, depth + 1)
        except (SyntaxError, ValueError, RecursionError):
            return {"type": "object"}

    def _first(self, parts: list[ast.expr], depth: int) -> dict[str, Any]:
        """Return the first member of a union other than None."""
        found = [self.schema(part, depth + 1) for part in parts]
        return next(filter(None, found), found[0])

    def _generic(self, name: str, inside: ast.expr, depth: int) -> dict[str, Any]:
        parts = inside.elts if isinstance(inside, ast.Tuple) else [inside]
        if name == "Literal":
            words = [each.value for each in parts if isinstance(each, ast.Constant)]
            return {"type": "string", "enum": words}
        if name == "Annotated":
            told = "".join([words for each in parts[1:] if (words := _words(each))][:1])
            return self.schema(parts[0], depth + 1) | ({"description": told} if told else {})
        if name in ("Optional", "Union"):
            return self._first(parts, depth)
        if name in _LISTS:
            return {"type": "array", "items": self.schema(parts[0], depth + 1)}
        if name in _MAPS and len(parts) == 2:
            return {"type": "object", "additionalProperties": self.schema(parts[1], depth + 1)}
        return {"type": "object"}

    def _named(self, name: str, depth: int) -> dict[str, Any]:
        if name in _TYPES:
            return dict(_TYPES[name])
        if name in _LISTS:
            return {"type": "array", "items": {}}
        record = self._classes.get(name)
        if record is None:
            return {"type": "object"}
        if any(_name(base).endswith("Enum") for base in record.bases):
            members = [node.value for node in record.body if isinstance(node, ast.Assign)]
            return {"type": "string", "enum": [*texts(members)]}
        fields = {
            node.target.id: self.schema(node.annotation, depth + 1)
            for node in record.body
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        }
        return {"type": "object", "properties": fields}


def texts(nodes: Iterable[ast.expr]) -> Iterator[str]:
    """Yield the nodes that are string constants."""
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _name(node: ast.expr) -> str:
    """Return the last part of a dotted name."""
    match node:
        case ast.Name(name):
            return name
        case ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _words(node: ast.expr) -> str:
    """Return a description in an annotation: a string, or `Field(description=...)`."""
    match node:
        case ast.Constant(str() as text):
            return text
        case ast.Call(keywords=keywords):
            return "".join(_words(each.value) for each in keywords if each.arg == "description")
        case _:
            return ""


_Function = ast.FunctionDef | ast.AsyncFunctionDef

_HINT = "give a catalogue's file, a file of Python functions (`tools.py`, `tools.py:refund,ship`) or `module:function`"
_FOLLOWED = 8


def python_cards(said: str) -> list[Card]:
    """Return the tools of a Python file or module: those named after a colon, or all."""
    where, _, names = said.partition(":")
    path = Path(where) if where.endswith(".py") else _module_file(where)
    if path is None or not path.is_file():
        raise UsageError("no such file or module", place=said, hint=_HINT)
    source = _Source(path)
    if not names:
        found = list(source.offered())
        if not found:
            raise UsageError("no public function here", place=str(path), hint=_HINT)
        return found
    return [source.card(name.strip(), said) for name in names.split(",")]


class _Source:
    """A Python file, read as text."""

    def __init__(self, path: Path, depth: int = 0) -> None:
        self._path, self._depth = path, depth
        try:
            tree = parse_python(path.read_bytes(), str(path))
        except (OSError, SyntaxError, ValueError, RecursionError) as error:
            line = getattr(error, "lineno", None)
            place = f"{path}:{line}" if line else str(path)
            raise UsageError(f"invalid Python: {error}", place=place, hint=_HINT) from None
        self._functions: dict[str, _Function] = {}
        self._methods: dict[str, _Function] = {}
        self._imports: dict[str, ast.ImportFrom] = {}
        self._all: list[str] | None = None
        classes: dict[str, ast.ClassDef] = {}
        for node in tree.body:
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    self._functions[node.name] = node
                case ast.ClassDef():
                    classes[node.name] = node
                    for each in node.body:
                        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                            self._methods[each.name] = each
                case ast.ImportFrom():
                    self._imports |= {alias.asname or alias.name: node for alias in node.names}
                case ast.Assign(targets=[ast.Name("__all__")], value=ast.List(elts) | ast.Tuple(elts)):
                    self._all = [*texts(elts)]
                case _:
                    pass
        self._types = Types(classes)

    def offered(self) -> Iterator[Card]:
        """Yield the functions that are marked as tools, or else those in `__all__`, or else every public function."""
        marked = [each for each in (*self._functions.values(), *self._methods.values()) if _is_marked(each)]
        if marked:
            yield from (self._read(each) for each in marked)
        elif self._all is not None:
            yield from (self.card(name, name) for name in self._all if name in self._functions or name in self._imports)
        else:
            yield from (self._read(each) for name, each in self._functions.items() if not name.startswith("_"))

    def card(self, name: str, said: str) -> Card:
        """Return one function by name, followed through imports."""
        if function := self._functions.get(name) or self._methods.get(name):
            return self._read(function)
        if (imported := self._imports.get(name)) and self._depth < _FOLLOWED:
            inner = {alias.asname or alias.name: alias.name for alias in imported.names}[name]
            if path := _imported_file(imported, self._path):
                return _Source(path, self._depth + 1).card(inner, said)
        known = ", ".join(f"`{each}`" for each in self._functions if not each.startswith("_"))
        hint = f"it has {known}" if known else _HINT
        raise UsageError(f"no function `{name}` in {self._path}", place=said, hint=hint)

    def _read(self, function: _Function) -> Card:
        doc = ast.get_docstring(function) or ""
        words = _argument_words(doc)
        given = [*function.args.posonlyargs, *function.args.args]
        spare = len(given) - len(function.args.defaults)
        required = {each.arg for each in given[:spare]}
        required |= {
            each.arg
            for each, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
            if default is None
        }
        parameters: dict[str, Any] = {}
        for each in (*given, *function.args.kwonlyargs):
            if each.arg in ("self", "cls"):
                continue
            schema = self._types.schema(each.annotation) if each.annotation else {"type": "string"}
            if (told := words.get(each.arg)) and "description" not in schema:
                schema = schema | {"description": told}
            parameters[each.arg] = schema
        output = self._types.schema(function.returns) if function.returns else {}
        shown = f"results: {schema_text(output)}" if output else ""
        return Card(function.name, doc, parameters, tuple(p for p in parameters if p in required), None, shown, output)


def _module_file(name: str, roots: list[str] | None = None) -> Path | None:
    """Return the source file of a module on the path, without importing it."""
    if not all(part.isidentifier() for part in name.split(".")):
        return None
    for root in roots or ["", *sys.path]:
        start = Path(root, *name.split("."))
        for path in (start.with_suffix(".py"), start / "__init__.py"):
            if path.is_file():
                return path
    return None


def _imported_file(statement: ast.ImportFrom, importer: Path) -> Path | None:
    if statement.level:
        folder = importer.resolve().parents[statement.level - 1]
        return _module_file(statement.module, [str(folder)]) if statement.module else folder / "__init__.py"
    return _module_file(statement.module or "", [str(importer.parent), "", *sys.path])


def _is_marked(function: _Function) -> bool:
    """Whether a decorator marks a tool, such as `@tool`, `@mcp.tool()` or `@is_tool(ToolType.READ)`."""
    for mark in function.decorator_list:
        target = mark.func if isinstance(mark, ast.Call) else mark
        name = target.attr if isinstance(target, ast.Attribute) else target.id if isinstance(target, ast.Name) else ""
        if "tool" in name.lower().split("_"):
            return True
    return False


_SECTION = re.compile(r"^\s*(args|arguments|parameters|params)\s*:?\s*$", re.IGNORECASE)
_ARGUMENT = re.compile(r"^\s*\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.+)$")
_FIELD = re.compile(r"^\s*:param\s+(?:[\w\[\], ]+\s+)?(\w+)\s*:\s*(.+)$")


def _argument_words(doc: str) -> dict[str, str]:
    """Return a docstring's descriptions of arguments, under `Args:` or by `:param name:`."""
    found: dict[str, str] = {}
    inside, indent, last = False, 0, ""
    for line in doc.splitlines():
        depth = len(line) - len(line.lstrip())
        if told := _FIELD.match(line):
            found[told[1]] = told[2].strip()
        elif _SECTION.match(line):
            inside, indent, last = True, depth, ""
        elif inside and line.strip():
            if depth <= indent:
                inside = False
            elif (told := _ARGUMENT.match(line)) and not (last and depth > len(last) - len(last.lstrip())):
                found[told[1]], last = told[2].strip(), line
            elif last and (told := _ARGUMENT.match(last)):
                found[told[1]] += f" {line.strip()}"
    return found
