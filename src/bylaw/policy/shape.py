"""What shape each file of a pack has. A value of another shape is a fault with its place, and is left out.

Readers after this may rely on shapes and look at meaning only.
"""

from collections.abc import Mapping
from typing import Any, Literal, cast

from msgspec import Struct

from bylaw.errors import BylawError
from bylaw.policy.yaml import Located

_WORDS = {
    "text": "text",
    "scalar": "one value",
    "number": "a number",
    "whole": "a whole number",
    "flag": "true or false",
}


class ShapeError(BylawError):
    """A value in a file of a pack is not of the shape that stands there."""

    code = "BY408"


class Plain(Struct, frozen=True):
    """One value; `text` must be quoted where it looks like a number, a `scalar` need not."""

    kind: Literal["text", "scalar", "number", "whole", "flag", "any"]


class Many(Struct, frozen=True):
    """A list."""

    of: "Shape"


class Named(Struct, frozen=True):
    """A mapping whose names the author chooses."""

    of: "Shape"


class Record(Struct, frozen=True):
    """A mapping whose names are known."""

    fields: dict[str, "Shape"]
    open: bool = False
    """Other names may stand there too."""


class Either(Struct, frozen=True):
    """Any of several shapes that differ in kind: a value, a list, a mapping."""

    of: "tuple[Shape, ...]"


Shape = Plain | Many | Named | Record | Either

ANY, TEXT, SCALAR = Plain("any"), Plain("text"), Plain("scalar")
NUMBER, WHOLE, FLAG = Plain("number"), Plain("whole"), Plain("flag")
_ANYTHING = Named(ANY)
_NAMES = Either((SCALAR, Many(SCALAR)))
_KEY = Either((SCALAR, Named(SCALAR)))
_THINGS = Named(_ANYTHING)

_MANIFEST = Record(
    {
        **dict.fromkeys(("format", "name", "version", "title", "description", "now", "base", "world"), SCALAR),
        "criterion": SCALAR,
        "document": Either((SCALAR, Record({"title": SCALAR, "sha256": TEXT}))),
        "variants": Many(Record({"name": SCALAR, "when": _ANYTHING})),
        "about": Named(SCALAR),
        "shield": _ANYTHING,
    }
)
_CHANGE = Record({"as": SCALAR, "fields": _NAMES, "key": _KEY, "each": SCALAR})
_EFFECT = Record({"as": SCALAR, "key": _KEY, "each": SCALAR, "set": _ANYTHING, "delete": FLAG, "when": SCALAR})
_TOOL = Record(
    {
        **dict.fromkeys(("effect", "description", "refused", "returns", "alters"), SCALAR),
        "parameters": _ANYTHING,
        "changes": Many(Either((SCALAR, _CHANGE))),
        "effects": Many(_EFFECT),
    }
)
_FIELD = Record(
    {
        **dict.fromkeys(("type", "origin", "question", "description"), SCALAR),
        "values": Many(SCALAR),
        "from": Many(Record({"argument": SCALAR, "says": SCALAR, "but_not": SCALAR, "value": ANY, "about": SCALAR})),
        "claims": Named(Many(SCALAR)),
        "default": ANY,
        "private": FLAG,
    }
)
_ENTITY = Record(
    {
        "key": _NAMES,
        "read": Either((SCALAR, Record({"tool": SCALAR, "arguments": Named(SCALAR)}))),
        "fields": Named(Either((SCALAR, Many(SCALAR), _FIELD))),
        "fresh_for": NUMBER,
        "origin": SCALAR,
        "complete": FLAG,
        "description": SCALAR,
    }
)
_OBSERVATION = Record(
    {
        **dict.fromkeys(("as", "each", "text", "absent"), SCALAR),
        "key": _KEY,
        "fields": _ANYTHING,
        "only": FLAG,
        "when": Record({"path": SCALAR, "is": ANY, "in": Many(ANY)}),
    }
)
_STORED = Record(
    {
        **dict.fromkeys(("table", "of", "each"), SCALAR),
        **{name: _OBSERVATION.fields[name] for name in ("key", "fields", "only", "when")},
    }
)
_SPAN = Record(
    {"quote": SCALAR, "heading": SCALAR, "line": WHOLE, "sentence": WHOLE, "digest": TEXT, "at": Named(TEXT)}
)
_POLICY = Record(
    {
        **dict.fromkeys(("id", "kind", "definition", "description", "scope", "severity"), SCALAR),
        "tools": Either((Many(SCALAR), Record({"effect": SCALAR, "with": _NAMES, "except": _NAMES}))),
        "spans": Many(Either((SCALAR, _SPAN))),
        "unenforced": Record({"accepted_by": SCALAR, "reason": SCALAR}),
    }
)
_RULE = Record(
    {"id": SCALAR, "policy": SCALAR, "formula": SCALAR, "weight": NUMBER, "hard": FLAG, "physical": FLAG}, open=True
)
_PATTERNS = Either((SCALAR, Many(Either((SCALAR, Record({"pattern": SCALAR, "but_not": SCALAR}))))))
_PREDICATE = Record(
    {
        "tool": _NAMES,
        "description": SCALAR,
        "when": SCALAR,
        **dict.fromkeys(("pattern", "said", "returned"), _PATTERNS),
        "but_not": SCALAR,
    },
    open=True,
)
_EVENT = Record(
    {"user": SCALAR, "agent": SCALAR, "call": SCALAR, "args": _ANYTHING, "result": ANY, "error": FLAG, "turn": WHOLE}
)
_CASE = Record(
    {
        **dict.fromkeys(("note", "policy", "rule", "now"), SCALAR),
        "call": _THINGS,
        "facts": _THINGS,
        "world": _THINGS,
        "events": Many(_EVENT),
        "context": _ANYTHING,
        "done": Many(_THINGS),
        "want": Either((SCALAR, _ANYTHING)),
    }
)

SHAPES: dict[str, Record] = {
    "pack": _MANIFEST,
    "tools": Record({"tools": Named(_TOOL), "from": SCALAR}),
    "entities": Record(
        {
            "entities": Named(_ENTITY),
            "context": Named(Either((SCALAR, Many(SCALAR), _FIELD))),
            "observations": Named(Either((_OBSERVATION, Many(_OBSERVATION)))),
            "world": Named(Either((_STORED, Many(_STORED)))),
        }
    ),
    "policies": Record({"policies": Many(_POLICY)}),
    "rules": Record({"predicates": Named(_PREDICATE), "rules": Many(_RULE), "eps": NUMBER}, open=True),
    "weights": Record({"weights": Named(NUMBER), "eps": NUMBER, "learned": _ANYTHING}),
    "cases": Record({"": Many(_CASE), "cases": Many(_CASE)}),
}
"""By the name of the file; `cases` for every file of that folder."""


def shaped(source: Located, shape: Record) -> tuple[Located, list[BylawError]]:
    """The file without what is of another shape, and a fault for each of those; list items keep their positions."""
    fitter = _Fitter(source)
    return source.with_data(fitter.fit(source.data, shape, ())), fitter.faults


class _Fitter:
    def __init__(self, source: Located) -> None:
        self._source = source
        self.faults: list[BylawError] = []

    def fit(self, value: Any, shape: Shape, at: tuple[str | int, ...]) -> Any:
        """The value as the shape wants it; None where it is of another kind."""
        match shape:
            case Plain(kind):
                return value if self._is_plain(value, kind, at) else None
            case Either(shapes):
                chosen = next((one for one in shapes if _kind(one) == _kind_of(value)), None)
                if chosen is not None:
                    return self.fit(value, chosen, at)
                return self._refuse(value, " or ".join(dict.fromkeys(_kind(one) for one in shapes)), at)
            case Many(of):
                if not isinstance(value, list):
                    return self._refuse(value, "a list", at)
                items = enumerate(cast(list[Any], value))
                return [self._item(item, of, (*at, index)) for index, item in items]
            case Named(of):
                if not isinstance(value, dict):
                    return self._refuse(value, "a mapping", at)
                return self._named(cast(dict[str, Any], value), of, at)
            case Record():
                if not isinstance(value, dict):
                    return self._refuse(value, "a mapping", at)
                return self._record(cast(dict[str, Any], value), shape, at)

    def _named(self, value: Mapping[str, Any], shape: Shape, at: tuple[str | int, ...]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, item in value.items():
            fitted = None if item is None else self.fit(item, shape, (*at, name))
            if item is None or fitted is not None:
                found[name] = fitted
        return found

    def _record(self, value: Mapping[str, Any], shape: Record, at: tuple[str | int, ...]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, item in value.items():
            wanted = shape.fields.get(name, ANY if shape.open else None)
            if wanted is None:
                known = ", ".join(sorted(filter(None, shape.fields)))
                self._fault(
                    f"{f'`{name}`' if name else 'a list'} means nothing here", (*at, name), hint=f"known: {known}"
                )
            elif item is None:
                # What is left empty is as if it were not there, but for values that may be null.
                if wanted is ANY:
                    found[name] = None
            else:
                fitted = self.fit(item, wanted, (*at, name) if name else at)
                if fitted is not None:
                    found[name] = fitted
        return found

    def _item(self, item: Any, shape: Shape, at: tuple[str | int, ...]) -> Any:
        if item is None and shape is not ANY:
            return self._refuse(item, _kind(shape), at)
        return self.fit(item, shape, at)

    def _is_plain(self, value: Any, kind: str, at: tuple[str | int, ...]) -> bool:
        fits = {
            "any": True,
            "text": isinstance(value, str),
            "scalar": not isinstance(value, dict | list),
            "number": isinstance(value, int | float) and not isinstance(value, bool),
            "whole": isinstance(value, int) and not isinstance(value, bool),
            "flag": isinstance(value, bool),
        }[kind]
        if not fits:
            hint = "put it in quotes" if kind == "text" and not isinstance(value, dict | list) else ""
            self._refuse(value, _WORDS[kind], at, hint=hint)
        return fits

    def _refuse(self, value: Any, wanted: str, at: tuple[str | int, ...], *, hint: str = "") -> None:
        names = [str(part) for part in at if isinstance(part, str) and part]
        name = f"`{names[-1]}`" if names else "this"
        if at and isinstance(at[-1], int):
            name = f"item {at[-1] + 1} of {name}" if names else f"item {at[-1] + 1}"
        said = "empty" if value is None else _kind_of(value) if isinstance(value, dict | list) else f"`{value}`"
        self._fault(f"{name} must be {wanted}, not {said}", at, hint=hint)

    def _fault(self, message: str, at: tuple[str | int, ...], *, hint: str = "") -> None:
        self.faults.append(ShapeError(message, place=self._source.place(*at), hint=hint))


def _kind(shape: Shape) -> str:
    match shape:
        case Plain():
            return "one value"
        case Many():
            return "a list"
        case Named() | Record():
            return "a mapping"
        case Either(shapes):
            return _kind(shapes[0])


def _kind_of(value: Any) -> str:
    return "a list" if isinstance(value, list) else "a mapping" if isinstance(value, dict) else "one value"
