"""Reads tools from an OpenAPI description, an MCP `tools/list`, function definitions, JSON schemas or
Python functions.

The names, docstrings and annotations of Python functions are read from their source. No code is imported or run.
"""

import ast
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace

from bylaw.compile.card import Card, Results
from bylaw.compile.schema import listed, record, schema_text, section
from bylaw.errors import BylawError, UsageError
from bylaw.policy.catalogue import CatalogueError, read_catalogue_file
from bylaw.policy.yaml import YamlError, read_yaml_file
from bylaw.scan.shape import Shapes, parameters_of
from bylaw.text.python import parse_python
from bylaw.trace import Trajectory

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
_OBJECT: dict[str, Any] = {"type": "object"}
_NESTED = 12


def _schema(annotation: ast.expr, classes: Mapping[str, ast.ClassDef], depth: int = 0) -> dict[str, Any]:
    """Return the JSON schema of an annotation. An unknown annotation becomes an object.

    `classes` holds the file's records and enumerations.
    """
    if depth > _NESTED:
        return _OBJECT

    def inner(part: ast.expr) -> dict[str, Any]:
        return _schema(part, classes, depth + 1)

    match annotation:
        case ast.Constant(None):
            return {}
        case ast.Constant(str() as text):
            try:
                return inner(parse_python(text, mode="eval").body)
            except (SyntaxError, ValueError, RecursionError):
                return _OBJECT
        case ast.BinOp(left, ast.BitOr(), right):
            return inner(left) or inner(right)
        case ast.Subscript(value, inside):
            parts = inside.elts if isinstance(inside, ast.Tuple) else [inside]
            return _generic(_name(value), parts, inner)
        case ast.Name() | ast.Attribute():
            name = _name(annotation)
            if name in _LISTS:
                return {"type": "array", "items": {}}
            return _of_class(classes[name], inner) if name in classes else dict(_TYPES.get(name, _OBJECT))
        case _:
            return _OBJECT


def _generic(name: str, parts: Sequence[ast.expr], inner: Callable[[ast.expr], dict[str, Any]]) -> dict[str, Any]:
    if name == "Literal":
        return {"type": "string", "enum": [each.value for each in parts if isinstance(each, ast.Constant)]}
    if name == "Annotated":
        told = next((words for each in parts[1:] if (words := _words(each))), "")
        return inner(parts[0]) | ({"description": told} if told else {})
    if name in ("Optional", "Union"):
        return next((schema for each in parts if (schema := inner(each))), dict[str, Any]())
    if name in _LISTS:
        return {"type": "array", "items": inner(parts[0])}
    if name in _MAPS and len(parts) == 2:
        return {"type": "object", "additionalProperties": inner(parts[1])}
    return _OBJECT


def _of_class(body: ast.ClassDef, inner: Callable[[ast.expr], dict[str, Any]]) -> dict[str, Any]:
    """Return the schema of an enumeration or of a record."""
    if any(_name(base).endswith("Enum") for base in body.bases):
        return {"type": "string", "enum": _texts(node.value for node in body.body if isinstance(node, ast.Assign))}
    fields = {
        node.target.id: inner(node.annotation)
        for node in body.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    return {"type": "object", "properties": fields}


def _texts(nodes: Iterable[ast.expr]) -> list[str]:
    return [each.value for each in nodes if isinstance(each, ast.Constant) and isinstance(each.value, str)]


def _name(node: ast.expr) -> str:
    """Return the last part of a dotted name. Empty for any other expression."""
    match node:
        case ast.Name(name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _words(node: ast.expr) -> str:
    """Return the description in an `Annotated` type: a string, or a call such as `Field(description="...")`."""
    if isinstance(node, ast.Call):
        return "".join(_words(each.value) for each in node.keywords if each.arg == "description")
    return "".join(_texts([node]))


_Function = ast.FunctionDef | ast.AsyncFunctionDef
_HINT = "use a catalogue file, a file of Python functions (`tools.py`, `tools.py:refund,ship`) or `module:function`"
_FOLLOWED = 8


def python_cards(said: str) -> list[Card]:
    """Return the tools in a Python file or module. If names follow a colon (`module:name`), return only the named
    tools.
    """
    where, _, names = said.partition(":")
    path = Path(where) if where.endswith(".py") else _module_file(where, ["", *sys.path])
    if path is None or not path.is_file():
        raise UsageError("no such file or module", place=said, hint=_HINT)
    source = _PythonFile(path)
    if not names:
        found = source.offered()
        if not found:
            raise UsageError("the file has no public function", place=str(path), hint=_HINT)
        return found
    return [source.card(name.strip(), said) for name in names.split(",")]


class _PythonFile:
    def __init__(self, path: Path, depth: int = 0) -> None:
        self._path, self._depth = path, depth
        try:
            body = parse_python(path.read_bytes(), str(path)).body
        except (OSError, SyntaxError, ValueError, RecursionError) as error:
            line = getattr(error, "lineno", None)
            place = f"{path}:{line}" if line else str(path)
            raise UsageError(f"invalid Python: {error}", place=place, hint=_HINT) from None
        self._classes = {node.name: node for node in body if isinstance(node, ast.ClassDef)}
        self._functions = {node.name: node for node in body if isinstance(node, _Function)}
        inside = (node for each in self._classes.values() for node in each.body)
        self._methods = {node.name: node for node in inside if isinstance(node, _Function)}
        imports = [node for node in body if isinstance(node, ast.ImportFrom)]
        self._imports = {alias.asname or alias.name: (node, alias.name) for node in imports for alias in node.names}
        assigned = {_name(node.targets[0]): node.value for node in body if isinstance(node, ast.Assign)}
        names = assigned.get("__all__")
        self._all = _texts(names.elts) if isinstance(names, ast.List | ast.Tuple) else None

    def offered(self) -> list[Card]:
        """Return the functions marked as tools. If none are marked, return the functions in `__all__` or, without
        `__all__`, every public function.
        """
        marked = [each for each in (*self._functions.values(), *self._methods.values()) if _is_marked(each)]
        if marked:
            return [self._read(each) for each in marked]
        if self._all is not None:
            return [self.card(name, name) for name in self._all if name in self._functions or name in self._imports]
        return [self._read(each) for name, each in self._functions.items() if not name.startswith("_")]

    def card(self, name: str, said: str) -> Card:
        """Return the card for one function, following imports."""
        if function := self._functions.get(name) or self._methods.get(name):
            return self._read(function)
        if name in self._imports and self._depth < _FOLLOWED:
            statement, inner = self._imports[name]
            if path := _imported_file(statement, self._path):
                return _PythonFile(path, self._depth + 1).card(inner, said)
        known = ", ".join(f"`{each}`" for each in self._functions if not each.startswith("_"))
        hint = f"it has {known}" if known else _HINT
        raise UsageError(f"no function `{name}` in {self._path}", place=said, hint=hint)

    def _read(self, function: _Function) -> Card:
        doc = ast.get_docstring(function) or ""
        words = _argument_words(doc)
        arguments = function.args
        given = [*arguments.posonlyargs, *arguments.args]
        required = given[: len(given) - len(arguments.defaults)]
        required += [
            each for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if default is None
        ]
        parameters: dict[str, Any] = {}
        for each in (*given, *arguments.kwonlyargs):
            if each.arg in ("self", "cls"):
                continue
            schema = _schema(each.annotation, self._classes) if each.annotation else {"type": "string"}
            told = {"description": words[each.arg]} if each.arg in words else {}
            parameters[each.arg] = told | schema
        output = _schema(function.returns, self._classes) if function.returns else {}
        shown = f"results: {schema_text(output)}" if output else ""
        names = tuple(each.arg for each in required if each.arg in parameters)
        return Card(function.name, doc, parameters, names, None, shown, output)


def _module_file(name: str, roots: list[str]) -> Path | None:
    if not all(part.isidentifier() for part in name.split(".")):
        return None
    starts = [Path(root, *name.split(".")) for root in roots]
    paths = (path for start in starts for path in (start.with_suffix(".py"), start / "__init__.py"))
    return next((path for path in paths if path.is_file()), None)


def _imported_file(statement: ast.ImportFrom, importer: Path) -> Path | None:
    if statement.level:
        folder = importer.resolve().parents[statement.level - 1]
        return _module_file(statement.module, [str(folder)]) if statement.module else folder / "__init__.py"
    return _module_file(statement.module or "", [str(importer.parent), "", *sys.path])


def _is_marked(function: _Function) -> bool:
    """Whether a decorator's name contains the word `tool`, such as `@tool` or `@mcp.tool()`."""
    marks = (mark.func if isinstance(mark, ast.Call) else mark for mark in function.decorator_list)
    return any("tool" in _name(mark).lower().split("_") for mark in marks)


_SECTION = re.compile(r"^\s*(args|arguments|parameters|params)\s*:?\s*$", re.IGNORECASE)
_ARGUMENT = re.compile(r"^\s*\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.+)$")
_FIELD = re.compile(r"^\s*:param\s+(?:[\w\[\], ]+\s+)?(\w+)\s*:\s*(.+)$")


def _argument_words(doc: str) -> dict[str, str]:
    """Return the descriptions of arguments in a docstring, from its `Args:` section or from `:param name:` lines."""
    found: dict[str, str] = {}
    section, indent, name = -1, -1, ""
    """The indentation of the section's heading and of its last argument, and the name of that argument."""
    for line in doc.splitlines():
        depth = len(line) - len(line.lstrip())
        if told := _FIELD.match(line):
            found[told[1]] = told[2].strip()
        elif _SECTION.match(line):
            section, name = depth, ""
        elif section >= 0 and line.strip():
            if depth <= section:
                section = -1
            elif name and depth > indent:
                found[name] += f" {line.strip()}"
            elif told := _ARGUMENT.match(line):
                name, indent = told[1], depth
                found[name] = told[2].strip()
    return found


def read_tools(given: Sequence[str]) -> dict[str, Card]:
    """Read the tools from every catalogue: either a data file or Python functions (`tools.py`, `module:function`)."""
    cards: dict[str, Card] = {}
    for each in given:
        path = Path(each)
        is_data = path.suffix != ".py" and (path.exists() or path.suffix in (".json", ".yaml", ".yml"))
        found = _from_file(path) if is_data else python_cards(each)
        for card in found:
            if card.name in cards:
                raise UsageError(f"tool `{card.name}` is listed twice", place=each)
            cards[card.name] = card
    return cards


def with_logs(
    cards: Mapping[str, Card], trajectories: Iterable[Trajectory | BylawError]
) -> tuple[dict[str, Card], list[Trajectory]]:
    """Add recorded results, and tools that occur only in the logs. Return the cards and the conversations."""
    shapes, results = Shapes(), Results()
    read = [each for each in trajectories if isinstance(each, Trajectory)]
    for trajectory in read:
        shapes.add(trajectory)
        results.add(trajectory)
    made = dict(cards)
    for name, shape in sorted(shapes.tools.items()):
        if name not in made and shape.calls:
            made[name] = Card(name, str(shape.definition.get("description", "")), *_normal(parameters_of(shape)))
    for name, card in made.items():
        if text := results.text(name):
            # Recorded results take precedence over a schema. A description in words is kept, because it may cover
            # results that were not recorded.
            words = [line for line in card.results.splitlines() if line.startswith("returns: ")]
            output = results.schema(name) or card.output
            made[name] = replace(card, results="\n".join([*words, text]), output=output)
    return made, read


def _from_file(path: Path) -> list[Card]:
    data = _data(path)
    if isinstance(data, dict) and ("openapi" in data or "swagger" in data):
        return list(operations(record(data)))
    found = read_catalogue_file(path)
    return [
        Card(
            name,
            str(body.get("description", "")),
            *_normal(body.get("parameters") or {}),
            body.get("effect"),
            _promised(body),
            body.get("output") or {},
        )
        for name, body in found.items()
    ]


def _promised(body: Mapping[str, Any]) -> str:
    lines = [f"results: {schema_text(body['output'])}"] if body.get("output") else []
    return "\n".join([*lines, *([f"returns: {' '.join(body['returns'].split())}"] if body.get("returns") else [])])


def _data(path: Path) -> Any:
    if path.suffix in (".yaml", ".yml"):
        try:
            return read_yaml_file(path, file=path.name).data
        except (YamlError, OSError) as error:
            raise CatalogueError(f"cannot be read: {error}", place=str(path)) from None
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None  # `read_catalogue_file` reports the error.


def _normal(given: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    if isinstance(given.get("properties"), dict):
        return section(given, "properties"), tuple(given.get("required") or ())
    plain = {name: {"type": str(kind).removesuffix("?")} for name, kind in given.items()}
    return plain, tuple(name for name, kind in given.items() if not str(kind).endswith("?"))


_METHODS = ("get", "put", "post", "delete", "patch", "head", "options")


def operations(api: Mapping[str, Any]) -> Iterable[Card]:
    """Yield the operations in an OpenAPI description. GET and HEAD are treated as reads."""
    for path, item in section(api, "paths").items():
        for method, operation in item.items():
            if method in _METHODS:
                yield _operation(path, method, operation, item.get("parameters", ()), api)


def _operation(
    path: str, method: str, operation: Mapping[str, Any], shared: Iterable[Any], api: Mapping[str, Any]
) -> Card:
    default = "_".join([method, *(part.strip("{}") for part in path.split("/") if part)])
    given = [_resolved(each, api) for each in (*shared, *operation.get("parameters", ()))]
    parameters = {str(each["name"]): _resolved(each.get("schema") or {"type": each.get("type")}, api) for each in given}
    body = _content(operation.get("requestBody"), api)
    required = [*(str(each["name"]) for each in given if each.get("required")), *listed(body.get("required"))]
    answers = section(operation, "responses").items()
    shown = _content(next((one for code, one in answers if str(code)[0] == "2"), None), api)
    return Card(
        str(operation.get("operationId") or default),
        str(operation.get("summary") or operation.get("description") or ""),
        parameters | section(body, "properties"),
        tuple(dict.fromkeys(required)),
        "read" if method in ("get", "head", "options") else "write" if method == "delete" else None,
        f"results: {schema_text(shown)}" if shown else "",
        shown,
    )


def _content(holder: Any, api: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a request body or a response. Empty if there is none."""
    resolved = _resolved(holder or {}, api)
    content = section(resolved, "content")
    chosen = content.get("application/json") or next(iter(content.values()), {"schema": resolved.get("schema")})
    return _resolved(chosen.get("schema") or {}, api)


def _resolved(schema: Any, api: Mapping[str, Any], depth: int = 0) -> Any:
    """Replace each `$ref` in a schema with its target, up to a maximum depth."""
    if isinstance(schema, list):
        return [_resolved(item, api, depth + 1) for item in listed(schema)]
    if not isinstance(schema, dict) or depth > _NESTED:
        return cast(Any, schema)
    if isinstance(reference := record(schema).get("$ref"), str) and reference.startswith("#/"):
        found: Any = api
        for part in reference[2:].split("/"):
            found = record(found).get(part)
        return _resolved(found, api, depth + 1)
    return {name: _resolved(part, api, depth + 1) for name, part in record(schema).items()}
