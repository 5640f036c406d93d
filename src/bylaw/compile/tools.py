"""Reads tools from an OpenAPI description, an MCP `tools/list`, function definitions, JSON schemas or
Python functions.

The names, docstrings and annotations of Python functions are read from their source. No code is imported or run.
"""

import ast
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace

from bylaw.compile.card import Card, Results
from bylaw.compile.schema import schema_text
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
_NESTED = 12


class Types:
    """Converts annotations to schemas. `classes` holds the file's records and enumerations."""

    def __init__(self, classes: Mapping[str, ast.ClassDef]) -> None:
        self._classes = classes

    def schema(self, annotation: ast.expr, depth: int = 0) -> dict[str, Any]:
        """Return the schema of an annotation. An unknown annotation becomes an object."""
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
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _name(node: ast.expr) -> str:
    match node:
        case ast.Name(name):
            return name
        case ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _words(node: ast.expr) -> str:
    match node:
        case ast.Constant(str() as text):
            return text
        case ast.Call(keywords=keywords):
            return "".join(_words(each.value) for each in keywords if each.arg == "description")
        case _:
            return ""


_Function = ast.FunctionDef | ast.AsyncFunctionDef

_HINT = "use a catalogue file, a file of Python functions (`tools.py`, `tools.py:refund,ship`) or `module:function`"
_FOLLOWED = 8


def python_cards(said: str) -> list[Card]:
    """Return the tools in a Python file or module. If names follow a colon, return only the named tools."""
    where, _, names = said.partition(":")
    path = Path(where) if where.endswith(".py") else _module_file(where)
    if path is None or not path.is_file():
        raise UsageError("no such file or module", place=said, hint=_HINT)
    source = _Source(path)
    if not names:
        found = list(source.offered())
        if not found:
            raise UsageError("the file has no public function", place=str(path), hint=_HINT)
        return found
    return [source.card(name.strip(), said) for name in names.split(",")]


class _Source:
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
        """Yield the functions marked as tools. If there are none, yield those in `__all__` or, without that, every
        public function.
        """
        marked = [each for each in (*self._functions.values(), *self._methods.values()) if _is_marked(each)]
        if marked:
            yield from (self._read(each) for each in marked)
        elif self._all is not None:
            yield from (self.card(name, name) for name in self._all if name in self._functions or name in self._imports)
        else:
            yield from (self._read(each) for name, each in self._functions.items() if not name.startswith("_"))

    def card(self, name: str, said: str) -> Card:
        """Return the card for one function, following imports."""
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
    """Return the descriptions of arguments in a docstring, from its `Args:` section or from `:param name:` lines."""
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
    """Add recorded results and the tools that occur only in the logs. Return the cards and the conversations."""
    shapes, results = Shapes(), Results()
    read: list[Trajectory] = []
    for trajectory in trajectories:
        if isinstance(trajectory, Trajectory):
            shapes.add(trajectory)
            results.add(trajectory)
            read.append(trajectory)
    made = dict(cards)
    for name, shape in sorted(shapes.tools.items()):
        if name not in made and shape.calls:
            record = _normal(parameters_of(shape))
            made[name] = Card(name, str(shape.definition.get("description", "")), *record)
    for name, card in made.items():
        if text := results.text(name):
            # Recorded results take precedence over a schema. A description in words is kept, because it may cover
            # results that were not recorded.
            words = [line for line in card.results.splitlines() if line.startswith("returns: ")]
            shown = results.schema(name)
            made[name] = replace(card, results="\n".join([*words, text]), output=shown or card.output)
    return made, read


def _from_file(path: Path) -> list[Card]:
    data = _data(path)
    if isinstance(data, dict) and ("openapi" in data or "swagger" in data):
        return list(operations(cast(dict[str, Any], data)))
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
        return cast(dict[str, Any], given["properties"]), tuple(given.get("required") or ())
    plain = {name: {"type": str(kind).removesuffix("?")} for name, kind in given.items()}
    return plain, tuple(name for name, kind in given.items() if not str(kind).endswith("?"))


_METHODS = ("get", "put", "post", "delete", "patch", "head", "options")


def operations(api: Mapping[str, Any]) -> Iterable[Card]:
    """Yield the operations in an OpenAPI description. GET and HEAD are treated as reads."""
    for path, item in cast(dict[str, dict[str, Any]], api.get("paths") or {}).items():
        for method, raw in item.items():
            if method not in _METHODS:
                continue
            operation = cast(dict[str, Any], raw)
            default = "_".join([method, *(part.strip("{}") for part in path.split("/") if part)])
            parameters: dict[str, Any] = {}
            required: list[str] = []
            for given in [*item.get("parameters", ()), *operation.get("parameters", ())]:
                one = _resolved(given, api)
                parameters[str(one["name"])] = _resolved(one.get("schema") or {"type": one.get("type")}, api)
                if one.get("required"):
                    required.append(str(one["name"]))
            body = _content(_resolved(operation.get("requestBody") or {}, api), api)
            parameters |= cast(dict[str, Any], body.get("properties") or {})
            required += cast(list[str], body.get("required") or [])
            responses = cast(dict[str, Any], operation.get("responses") or {})
            answer = next((one for code, one in responses.items() if str(code)[0] == "2"), None)
            shown = _content(_resolved(answer or {}, api), api)
            yield Card(
                str(operation.get("operationId") or default),
                str(operation.get("summary") or operation.get("description") or ""),
                parameters,
                tuple(dict.fromkeys(required)),
                "read" if method in ("get", "head", "options") else "write" if method == "delete" else None,
                f"results: {schema_text(shown)}" if shown else "",
                shown,
            )


def _content(holder: Mapping[str, Any], api: Mapping[str, Any]) -> dict[str, Any]:
    content = cast(dict[str, Any], holder.get("content") or {})
    chosen = content.get("application/json") or next(iter(content.values()), {"schema": holder.get("schema")})
    return _resolved(chosen.get("schema") or {}, api)


def _resolved(schema: Any, api: Mapping[str, Any], depth: int = 0) -> Any:
    """Replace each `$ref` in a schema with its target, up to a maximum depth."""
    if isinstance(schema, list):
        return [_resolved(item, api, depth + 1) for item in cast(list[Any], schema)]
    if not isinstance(schema, dict) or depth > 12:
        return cast(Any, schema)
    record = cast(dict[str, Any], schema)
    if isinstance(reference := record.get("$ref"), str) and reference.startswith("#/"):
        found: Any = api
        for part in reference[2:].split("/"):
            found = cast(dict[str, Any], found).get(part) if isinstance(found, dict) else None
        return _resolved(found, api, depth + 1)
    return {name: _resolved(part, api, depth + 1) for name, part in record.items()}
