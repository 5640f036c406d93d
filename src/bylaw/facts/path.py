"""The small path language of observations: where in a result, or in a call's arguments, a value stands.

$            the current item (the whole result where nothing is iterated)
$result      the whole result          $args.name   an argument of the call
$key         the name under which the current item stands, where an object is iterated
$of          in a database: what holds the item
.name  ['a name']  [0]                 one step down
[*]          every item of a list      .*           every value of an object
=word        the word itself
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Final

from msgspec import Struct

from bylaw.errors import BylawError

_ROOT = re.compile(r"\$(result|args|key|of)?(?![A-Za-z_0-9])")
_STEP = re.compile(r"\.(\*)|\.([A-Za-z_][A-Za-z_0-9-]*)|\[(\*)\]|\[(\d+)\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")


class PathError(BylawError):
    """A path of an observation does not parse."""

    code = "BY403"


class _Nothing:
    def __repr__(self) -> str:
        return "NOTHING"


NOTHING: Final[Any] = _Nothing()
"""No value stands at the path."""


class PathScope(Struct, frozen=True, gc=False):
    """What a path may start from."""

    item: Any
    result: Any
    args: Mapping[str, Any]
    key: Any = NOTHING
    find: "Finder | None" = None
    """A field of another thing, where one can be asked for: of writes, not of what results show."""


Finder = Callable[[str, Any, str], Any]
"""Entity, key and field -> the value as it is known then; NOTHING where it is not."""
Getter = Callable[[PathScope], Any]

_START: dict[str, Getter] = {
    "": attrgetter("item"),
    "result": attrgetter("result"),
    "args": attrgetter("args"),
    "key": attrgetter("key"),
    "of": attrgetter("args"),
}


def compile_path(text: str) -> Getter:
    """The value at a path without `*`, or a list of values at one with it; NOTHING where there is none."""
    if text.startswith("="):
        literal = text[1:]
        return lambda scope: literal
    root, steps = _parse(text)
    start = _START[root]
    if not steps:
        return start
    if len(steps) == 1 and isinstance(steps[0], str) and steps[0] != "*":
        name = steps[0]

        def one(scope: PathScope) -> Any:
            base = start(scope)
            return base.get(name, NOTHING) if isinstance(base, dict) else NOTHING  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

        return one
    if "*" in steps or None in steps:
        return partial(_gathered, start, steps)
    return lambda scope: next((value for value, _ in _walk([(start(scope), scope.key)], steps)), NOTHING)


def _gathered(start: Getter, steps: "Sequence[_Step]", scope: PathScope) -> Any:
    """The values at a path with `*`; NOTHING where what it runs over is not there, which is not the same as empty."""
    first = next(place for place, step in enumerate(steps) if step in (None, "*"))
    wanted = list if steps[first] is None else dict
    held = _walk([(start(scope), scope.key)], steps[:first])
    if not any(isinstance(value, wanted) for value, _ in held):
        return NOTHING
    return [value for value, _ in _walk(held, steps[first:])]


def compile_each(text: str) -> Callable[[PathScope], Sequence[tuple[Any, Any]]]:
    """Every item at a path, with the name it stands under where an object is iterated."""
    root, steps = _parse(text)
    start = _START[root]
    return lambda scope: _walk([(start(scope), scope.key)], steps)


def first_name(text: str) -> str | None:
    """The field of a result, or of the rows it lists, that a path goes into first; None where it begins elsewhere."""
    root, steps = _parse(text)
    name = next((step for step in steps if step is not None), None)
    return name if root in ("", "result") and isinstance(name, str) and name != "*" else None


def compile_misfit(text: str) -> Callable[[PathScope], bool]:
    """Whether something stands at a path with `*` that is of another shape than the path runs over."""
    root, steps = _parse(text)
    start = _START[root]

    def is_misfit(scope: PathScope) -> bool:
        found = [start(scope)]
        for step in steps:
            wanted = list if step is None or isinstance(step, int) else dict
            if any(value is not None and not isinstance(value, wanted) for value in found):
                return True
            found = [value for value, _ in _walk([(value, NOTHING) for value in found], [step])]
        return False

    return is_misfit


_Step = str | int | None
"""A name, a position, `*` for an object's values, None for a list's items."""


def _parse(text: str) -> tuple[str, list[_Step]]:
    start = _ROOT.match(text)
    if not start:
        raise PathError(f"path `{text}` must start with `$`, `$args`, `$result` or `$key`, or be `=word`")
    at, steps = start.end(), list[_Step]()
    while at < len(text):
        match = _STEP.match(text, at)
        if not match:
            raise PathError(
                f"path `{text}` cannot be read from column {at + 1}", hint="steps are `.name`, `[0]`, `[*]`, `.*`"
            )
        star, name, items, position, quoted, double = match.groups()
        if items:
            steps.append(None)
        elif star:
            steps.append("*")
        elif position is not None:
            steps.append(int(position))
        else:
            steps.append(name if name is not None else quoted if quoted is not None else double)
        at = match.end()
    return start[1] or "", steps


def _walk(found: list[tuple[Any, Any]], steps: Sequence[_Step]) -> list[tuple[Any, Any]]:
    for step in steps:
        following: list[tuple[Any, Any]] = []
        for value, key in found:
            if step is None:
                if isinstance(value, list):
                    listed: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
                    following += [(item, key) for item in listed]
            elif isinstance(step, int):
                if isinstance(value, list):
                    listed = value  # pyright: ignore[reportUnknownVariableType]
                    if step < len(listed):
                        following.append((listed[step], key))
            elif isinstance(value, dict):
                record: dict[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
                if step == "*":
                    following += [(item, name) for name, item in record.items()]
                elif step in record:
                    following.append((record[step], key))
        found = following
    return [pair for pair in found if pair[0] is not NOTHING]
