"""Whether a regular expression reads the same letters in exponentially many ways.

Its letters become the places of an automaton. Where, on the way from a place back to itself, two ways part and meet
again on the same letters, every round doubles what there is to try (Weideman et al., "Analyzing matching time behavior
of backtracking regular expression matchers by using ambiguity of NFA", 2016).
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from re import _parser  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
from typing import Any, TypeVar, cast

LOOPS_FROM = 10
"""A repeat that may go on for so many rounds counts as one without end."""
MOST_PLACES = 5_000
MOST_PAIRS = 1_000_000

_SAMPLE = "".join(map(chr, range(128))) + "\x85\xa0àéßÀſıİµΩжЖ中あ٣²\u2028\u212a\U0001f600"

Place = TypeVar("Place", bound=Hashable)
Node = tuple[str, Any]
"""What kind of node, by the name `re` has for it, and its argument; sequences inside are lists of nodes."""


def parse(text: str, flags: int) -> list[Node]:
    """The tree of a pattern, as `re` itself reads it."""
    return _nodes(_parser.parse(text, flags))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]


def _nodes(tree: Any) -> list[Node]:
    return [(str(op), _argument(str(op), argument)) for op, argument in tree]


def _argument(op: str, argument: Any) -> Any:
    match op:
        case "SUBPATTERN":
            return (*argument[:3], _nodes(argument[3]))
        case "BRANCH":
            return None, [_nodes(each) for each in argument[1]]
        case "GROUPREF_EXISTS":
            return argument[0], _nodes(argument[1]), _nodes(argument[2] or ())
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return int(argument[0]), int(argument[1]), _nodes(argument[2])
        case "ASSERT" | "ASSERT_NOT":
            return argument[0], _nodes(argument[1])
        case "ATOMIC_GROUP" | "IN":
            return _nodes(argument)
        case "CATEGORY":
            return str(argument)
        case _:
            return argument


class Letters:
    """Sets of letters as bits: all of ASCII, some others, and those that the pattern itself names."""

    def __init__(self, tree: Sequence[Node], *, dot_is_all: bool) -> None:
        self._letters = list(dict.fromkeys([*_SAMPLE, *map(chr, _named(tree))]))
        self.all = (1 << len(self._letters)) - 1
        self._literals: dict[int, int] = {}
        self._dot = self.all if dot_is_all else self.all & ~self._those(lambda letter: letter == "\n")

    def of(self, op: str, argument: Any) -> int:
        """The letters that a node takes, whatever their case: that asks for more care, never for less."""
        match op:
            case "LITERAL":
                if argument not in self._literals:
                    folded = _folded(chr(argument))
                    self._literals[argument] = self._those(lambda letter: _folded(letter) == folded)
                return self._literals[argument]
            case "NOT_LITERAL":
                return self.all & ~self._those(lambda letter: letter == chr(argument))
            case "RANGE":
                low, high = argument
                return self._those(lambda letter: any(low <= ord(form) <= high for form in _forms(letter)))
            case "CATEGORY":
                found = self._those(next(test for name, test in _CATEGORIES.items() if argument.endswith(name)))
                return self.all & ~found if "_NOT_" in argument else found
            case "IN":
                found = 0
                for each, of_it in argument:
                    found |= self.of(each, of_it) if each != "NEGATE" else 0
                return self.all & ~found if argument[0][0] == "NEGATE" else found
            case "ANY":
                return self._dot
            case _:
                return self.all

    def _those(self, belongs: Callable[[str], bool]) -> int:
        return sum(1 << at for at, letter in enumerate(self._letters) if belongs(letter))


_CATEGORIES: dict[str, Callable[[str], bool]] = {
    "DIGIT": str.isdigit,
    "SPACE": str.isspace,
    "WORD": lambda letter: letter.isalnum() or letter == "_",
}


def _forms(letter: str) -> set[str]:
    return {form for form in (letter, letter.lower(), letter.upper()) if len(form) == 1}


def _folded(letter: str) -> str:
    return letter.lower().upper()


def _named(tree: Any) -> Iterator[int]:
    """The codes of all letters that stand in a tree."""
    if not isinstance(tree, list | tuple):
        return
    items = cast("Sequence[Any]", tree)
    if len(items) == 2 and items[0] in ("LITERAL", "NOT_LITERAL"):
        yield items[1]
    elif len(items) == 2 and items[0] == "RANGE":
        yield from items[1]
    else:
        for item in items:
            yield from _named(item)


class _Part:
    """A part of a pattern: the places where it may begin and end, and whether it may be empty."""

    __slots__ = ("ends", "is_empty", "starts")

    def __init__(self, starts: list[int], ends: list[int], is_empty: bool) -> None:
        self.starts, self.ends, self.is_empty = starts, ends, is_empty


class Automaton:
    """A place for each letter of a pattern, and which may follow which, in how many ways."""

    def __init__(self, letters: Letters, tree: Sequence[Node]) -> None:
        self._letters = letters
        self._places: list[int] = []
        self._after: list[dict[int, int]] = []
        self.inner: list[Sequence[Node]] = []
        """Parts that are matched by themselves: what is looked ahead at, and what is never gone back into."""
        self._left = MOST_PAIRS
        self._sequence(tree)

    @property
    def is_too_large(self) -> bool:
        """Whether it was given up: there is too much of it to tell."""
        return len(self._places) > MOST_PLACES or self._left <= 0

    def is_ambiguous(self) -> bool:
        """Whether some text can be read in exponentially many ways."""
        for loop in _rounds(range(len(self._places)), lambda place: self._after[place]):
            inside = {place: [next_ for next_ in self._after[place] if next_ in loop] for place in loop}
            if any(self._after[place][next_] > 1 for place in loop for next_ in inside[place]):
                return True
            if self._parts_and_meets(inside):
                return True
        return False

    def _parts_and_meets(self, inside: dict[int, list[int]]) -> bool:
        """Whether two ways through a loop part at one place and meet at it again, on the same letters."""
        places = self._places

        def after(pair: tuple[int, int]) -> Iterator[tuple[int, int]]:
            one, other = pair
            self._left -= len(inside[one]) * len(inside[other])
            for first in inside[one] if self._left > 0 else ():
                for second in inside[other]:
                    if places[first] & places[second]:
                        yield first, second

        for pairs in _rounds([(place, place) for place in inside], after):
            if any(one == other for one, other in pairs) and any(one != other for one, other in pairs):
                return True
        return False

    def _place(self, letters: int, *, is_empty: bool = False) -> _Part:
        if self.is_too_large:
            return _Part([], [], True)
        self._places.append(letters)
        self._after.append({})
        place = len(self._places) - 1
        return _Part([place], [place], is_empty)

    def _join(self, ends: list[int], starts: list[int]) -> None:
        for end in ends:
            for start in starts:
                self._after[end][start] = self._after[end].get(start, 0) + 1

    def _then(self, whole: _Part, part: _Part) -> _Part:
        self._join(whole.ends, part.starts)
        starts = whole.starts + part.starts if whole.is_empty else whole.starts
        ends = whole.ends + part.ends if part.is_empty else part.ends
        return _Part(starts, ends, whole.is_empty and part.is_empty)

    def _sequence(self, tree: Sequence[Node]) -> _Part:
        whole = _Part([], [], True)
        for op, argument in tree:
            whole = self._then(whole, self._node(op, argument))
        return whole

    def _node(self, op: str, argument: Any) -> _Part:
        match op:
            case "SUBPATTERN":
                return self._sequence(argument[3])
            case "BRANCH":
                return self._either([self._sequence(each) for each in argument[1]])
            case "GROUPREF_EXISTS":
                return self._either([self._sequence(each) for each in argument[1:]])
            case "MAX_REPEAT" | "MIN_REPEAT":
                return self._repeat(*argument)
            case "AT":
                return _Part([], [], True)
            case "ASSERT" | "ASSERT_NOT":
                self.inner.append(argument[1])
                return _Part([], [], True)
            case "ATOMIC_GROUP" | "POSSESSIVE_REPEAT":
                self.inner.append(argument if op == "ATOMIC_GROUP" else argument[2])
                return self._place(self._letters.all, is_empty=True)
            case "GROUPREF":
                part = self._place(self._letters.all, is_empty=True)
                self._join(part.ends, part.starts)
                return part
            case _:
                return self._place(self._letters.of(op, argument))

    def _either(self, parts: list[_Part]) -> _Part:
        if sum(part.is_empty for part in parts) > 1:
            # Nothing, read in two ways, is two ways: the tree of `(a|a)*` has an `a` and then nothing or nothing.
            parts.append(self._place(self._letters.all))
        starts = [place for part in parts for place in part.starts]
        ends = [place for part in parts for place in part.ends]
        return _Part(starts, ends, any(part.is_empty for part in parts))

    def _repeat(self, least: int, most: int, body: Sequence[Node]) -> _Part:
        if most >= LOOPS_FROM:
            part = self._sequence(body)
            self._join(part.ends, part.starts)
            if part.is_empty and least > 1:
                # Any of the rounds that must be may be the empty one.
                self._join(part.ends, part.starts)
            return _Part(part.starts, part.ends, part.is_empty or least == 0)
        # One after the other, each only after the one before it: `a{1,3}` is a(a(a)?)?.
        whole, ends = _Part([], [], True), list[int]()
        for number in range(1, most + 1):
            whole = self._then(whole, self._sequence(body))
            ends = ends + whole.ends if number > least else list(whole.ends)
            if self.is_too_large:
                break
        return _Part(whole.starts, list(dict.fromkeys(ends)), whole.is_empty or least == 0)


def _rounds(places: Iterable[Place], after: Callable[[Place], Iterable[Place]]) -> Iterator[set[Place]]:
    """The sets of places that can all be reached from each other, at least one step away (Tarjan, 1972)."""
    number: dict[Place, int] = {}
    lowest: dict[Place, int] = {}
    open_: dict[Place, None] = {}
    for root in places:
        if root in number:
            continue
        number[root] = lowest[root] = len(number)
        open_[root] = None
        path = [(root, list(after(root)))]
        while path:
            place, waiting = path[-1]
            if waiting:
                following = waiting.pop()
                if following not in number:
                    number[following] = lowest[following] = len(number)
                    open_[following] = None
                    path.append((following, list(after(following))))
                elif following in open_:
                    lowest[place] = min(lowest[place], number[following])
                continue
            path.pop()
            if path:
                lowest[path[-1][0]] = min(lowest[path[-1][0]], lowest[place])
            if lowest[place] == number[place]:
                found: set[Place] = set()
                while place not in found:
                    last, _ = open_.popitem()
                    found.add(last)
                if len(found) > 1 or place in after(place):
                    yield found
