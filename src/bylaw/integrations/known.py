"""The messages of a conversation that the session was told of, and which of them a history shows again."""

from collections.abc import Mapping, Sequence, Set

from msgspec import Struct, field

from bylaw.integrations.alignment import Mark, align


class Known(Struct):
    """A message that the session was told of."""

    mark: Mark
    names: dict[str, str] = field(default_factory=dict[str, str])
    """By the ids of its calls, the names under which the session knows them: some models count anew in every turn."""


class KnownMessages:
    """The messages told so far, in their order."""

    def __init__(self) -> None:
        self._all: list[Known] = []
        self._last: tuple[list[Mark], list[Known | None], int] = ([], [], 0)
        """The history that was handed over last, what each of its messages is, and how many were known after it."""

    def __bool__(self) -> bool:
        return bool(self._all)

    def add(self, mark: Mark, names: Mapping[str, str] | None = None) -> Known:
        """One more, at the end."""
        known = Known(mark, dict(names or {}))
        self._all.append(known)
        return known

    def rename(self, id: str, before: str, name: str) -> None:
        """The call of this id has another name now."""
        for known in reversed(self._all):
            if known.names.get(id) == before:
                known.names[id] = name
                return

    def place(self, marks: list[Mark]) -> tuple[list[Known | None], frozenset[int], int | None]:
        """What each message is, which of them are to be told, and where something may be missing."""
        before, found, count = self._last
        if before and count == len(self._all) and marks[: len(before)] == before:
            fresh = range(len(before), len(marks))
            return [*found, *(None for _ in fresh)], frozenset(fresh), None
        aligned = align([each.mark for each in self._all], marks)
        places = [None if at in aligned.told else place for at, place in enumerate(aligned.places)]
        return [None if place is None else self._all[place] for place in places], aligned.told, aligned.gap

    def keep(self, marks: list[Mark], found: Sequence[Known | None], told: Set[int], *, is_sure: bool) -> None:
        """Keep what was told; after a gap, all in the order of the history, so that it is known when it comes again."""
        shown = [each for at, each in enumerate(found) if each is not None and (at in told or not is_sure)]
        there = {id(each) for each in shown}
        self._all = [each for each in self._all if id(each) not in there] + shown
        self._last = (marks, list(found), len(self._all))
