"""Annotations of Python functions as JSON schemas, read from the source."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

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
_DEEPEST = 12


class Types:
    """Annotations as schemas; `classes` are those of the same file: records and enumerations."""

    def __init__(self, classes: Mapping[str, ast.ClassDef]) -> None:
        self._classes = classes

    def schema(self, annotation: ast.expr, depth: int = 0) -> dict[str, Any]:
        """What an annotation says; an object where it says nothing that is known here."""
        if depth > _DEEPEST:
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
        """Of a union, the first that is not None."""
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
    """Those that are texts as they stand."""
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _name(node: ast.expr) -> str:
    """The last part of a dotted name."""
    match node:
        case ast.Name(name):
            return name
        case ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _words(node: ast.expr) -> str:
    """A description beside a type: a text, or `Field(description=...)`."""
    match node:
        case ast.Constant(str() as text):
            return text
        case ast.Call(keywords=keywords):
            return "".join(_words(each.value) for each in keywords if each.arg == "description")
        case _:
            return ""
