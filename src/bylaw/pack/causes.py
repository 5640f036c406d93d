"""Reduces the errors of a pack to their causes.

If tools.yaml is missing or unreadable, every reference to a tool is an error. Only the cause is reported, once.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy

from bylaw.errors import BylawError, SyntaxFault
from bylaw.policy.catalogue import CatalogueError
from bylaw.policy.folder import ManifestError
from bylaw.policy.reading import ShapeError
from bylaw.policy.yaml import YamlError

_DECLARED_IN: Mapping[str, tuple[str, ...]] = {
    "tool": ("tools",),
    "argument": ("tools",),
    "entity": ("entities",),
    "field": ("entities",),
    "predicate": ("rules",),
    "policy": ("policies", "guards"),
    "guard": ("guards",),
}
"""The files that can declare what an error lacks."""
_CONTENTS = {
    "tools": "list the tools that the agent may call, each with its effect (read, write or none)",
    "entities": "declare the things that guards ask about, with their keys and fields",
}
_SHOWN = 4


def causes(faults: Iterable[BylawError], *, files: Collection[str], declared: Mapping[str, bool]) -> list[BylawError]:
    """Return the causes among `faults`.

    `files` are the existing YAML files. `declared` says whether the pack has tools and entities.
    """
    faults = list(faults)
    broken = {
        _part(fault) for fault in faults if isinstance(fault, YamlError | ShapeError | CatalogueError | SyntaxFault)
    }
    kept: list[BylawError] = []
    for part in _CONTENTS:
        needing = [fault for fault in faults if part in _declared_in(fault)]
        if needing and not declared[part] and part not in broken:
            kept.append(_undeclared(part, part in files, needing))
            broken.add(part)
    has_no_tool = any(_kind(fault) == "tool" for fault in faults)
    by_name: dict[str, list[BylawError]] = {}
    for fault in faults:
        # The arguments of an unknown tool are unknown too.
        if broken.isdisjoint(_declared_in(fault)) and not (has_no_tool and _kind(fault) == "argument"):
            by_name.setdefault(fault.lacks or f"{fault.code} {fault.message} {fault.hint}", []).append(fault)
    return kept + [one_for_all(alike) for alike in by_name.values()]


def _kind(fault: BylawError) -> str:
    return fault.lacks.partition(" ")[0]


def _declared_in(fault: BylawError) -> tuple[str, ...]:
    return _DECLARED_IN.get(_kind(fault), ())


def _part(fault: BylawError) -> str:
    """Return the faulty part of a pack: `tools` for `tools.yaml:3`, `guards` for `guards/orders.py:1`."""
    file = fault.place.partition(":")[0]
    folder, _, _ = file.removeprefix("../").rpartition("/")
    return folder.rpartition("/")[2] if file.endswith(".py") else file.rpartition("/")[2].removesuffix(".yaml")


def _undeclared(part: str, is_there: bool, needing: Sequence[BylawError]) -> BylawError:
    """Return the error for a file that is missing or declares nothing, with the names that other files use."""
    found = (fault.lacks.partition(" ")[2] for fault in needing if _kind(fault) in ("tool", "entity"))
    names = [f"`{name}`" for name in dict.fromkeys(found) if name]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    named = f", and the pack names {', '.join(names[:_SHOWN])}{more}" if names else ""
    message = f"the file lists no {part}{named}" if is_there else f"there is no such file{named}"
    hint = f"{_CONTENTS[part]}; `bylaw init` drafts it from logs"
    return ManifestError(message, place=f"{part}.yaml", hint=hint)


def one_for_all(alike: Sequence[BylawError]) -> BylawError:
    """Return one error for all places with the same message."""
    first, *others = alike
    places = list(dict.fromkeys(fault.place for fault in others if fault.place != first.place))
    if not places:
        return first
    more = f" and {len(places) - _SHOWN} more places" if len(places) > _SHOWN else ""
    also = f"also at {', '.join(places[:_SHOWN])}{more}"
    made = copy(first)
    made.hint = "; ".join(filter(None, (first.hint, also)))
    return made
