"""Which argument or field stands for which part of a thing's key, however each of them is spelled."""

from collections.abc import Collection, Mapping, Sequence

from bylaw.policy.verb import words_of
from bylaw.scan.shape import SeenValues

_TAILS = {"id", "ids", "number", "no", "nr", "code", "key", "ref", "uuid"}
_SHARED = 0.5
"""Of an argument's values, the share that must be known as values of the key."""
_FEWEST = 2


def bare(name: str) -> tuple[str, ...]:
    """The words of a name without what only says that it is an id: `reservationId`, `reservation` -> reservation."""
    words = words_of(name)
    while words and words[-1] in _TAILS:
        words.pop()
    return tuple(words)


def spelled_like(part: str, names: Collection[str], *, thing: str = "") -> str:
    """The name that means the same as a key's part: the same words, but for case, joints and the word `id`."""
    if part in names:
        return part
    words = words_of(part)
    same = [name for name in names if words and words_of(name) == words]
    # A part that is only called `id` is the id of its thing.
    meant = bare(part) or tuple(words_of(thing))
    same = same or [name for name in names if meant and bare(name) == meant]
    return same[0] if same else ""


def arguments_for(
    key: Sequence[str], thing: str, arguments: Mapping[str, SeenValues], known: Mapping[str, Collection[str]]
) -> tuple[tuple[str, ...], int]:
    """The arguments that give each part of a key, and how far their names are from it: 0 for the same names.

    Names come first; where none fits, an argument whose values are mostly `known` values of that part.
    Empty where a part is left without.
    """
    chosen: list[str] = []
    distance = 0
    for part in key:
        free = {name: values for name, values in arguments.items() if name not in chosen}
        name = spelled_like(part, free, thing=thing)
        distance += 0 if name == part else 1
        if not name:
            distance += 1
            shared = {each: _shared(values, known.get(part, ())) for each, values in free.items()}
            name = max(shared, key=lambda each: shared[each], default="")
            if not name or shared[name] == 0:
                return (), 0
        chosen.append(name)
    return tuple(chosen), distance


def _shared(values: SeenValues, known: Collection[str]) -> float:
    """The share of an argument's values that are known, 0 where it is too small to mean anything."""
    if values.type not in ("string", "integer"):
        return 0.0
    # Small numbers and yes or no are everywhere.
    own = {value for value in values.seen if len(value) >= 3}
    common = len(own.intersection(known))
    return common / len(values.seen) if common >= _FEWEST and common >= _SHARED * len(values.seen) else 0.0
