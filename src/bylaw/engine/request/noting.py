"""A text that the user handed over to, by its words alone: what it means, and of which of its items a call is."""

import re
from collections import Counter
from collections.abc import Sequence

from bylaw.engine.request.allowance import fetches, kinds_of
from bylaw.engine.request.values import DAY, ends_of, given_words, parts_of, telling
from bylaw.engine.request.view import View
from bylaw.facts.provenance import Traced, plain_link
from bylaw.text.folding import fold, occurs
from bylaw.text.identifier import identifiers, is_prose
from bylaw.text.spelling import spell
from bylaw.trace.event import Call

_SHORT = 80


class Noting:
    """Holds what results show against a text that the user handed over to."""

    def __init__(self, view: View, text: str) -> None:
        """`text` is folded."""
        self._view, self._text = view, text

    def means(self, kind: str, value: str | float, sight: Traced) -> bool:
        """Whether the text means a value that stands somewhere."""
        if sight.source == "record":
            return self._is_noted(sight, is_known=kind != "link" and "@" not in str(value))
        return self._is_called(value, sight) or self._is_posted(kind, sight)

    def _is_noted(self, sight: Traced, *, is_known: bool) -> bool:
        """Whether the text speaks of a record; or of none of those beside it, where one
        that the system knows will do."""
        said = telling(self._text)
        places = self._view.around(sight)
        records = places.records
        if not records and sight.is_whole:
            # Of a list the text means the members that it names, where it names any.
            members = [each for each in places.values(sight.field) if occurs(each, self._text) >= 0]
            return is_known and not members
        # What several records have alike tells none of them apart.
        had = Counter(value for record in records for value in {*record.values()} if not DAY.match(value))
        noted = [
            any(len(value) <= _SHORT and had[value] == 1 and telling(value) & said for value in record.values())
            for record in records
        ]
        return (is_known and not any(noted)) or (sight.number >= 0 and noted[sight.number])

    def _is_called(self, value: str | float, sight: Traced) -> bool:
        """Whether the text calls somebody by name whose address stands alone somewhere."""
        person, at, _ = fold(str(value)).partition("@")
        return sight.is_whole and bool(at) and bool(telling(person.replace(".", " ")) & telling(self._text))

    def _is_posted(self, kind: str, sight: Traced) -> bool:
        """Whether a link or an address stands in the place that the text names."""
        is_page = kind == "link" and fetches(self._view.tools[sight.tool])
        return kind in ("link", "address") and not is_page and self._is_named(sight)

    def _is_named(self, sight: Traced) -> bool:
        """Whether the text names what stands beside a value, or was asked for, and of no record beside it more."""
        places = self._view.around(sight)
        given = {*given_words(sight.arguments)}

        def noted(number: int) -> int:
            beside = {value for value in places.fields(number).values() if len(value) > 2 and not is_prose(value)}
            return sum(occurs(value, self._text) >= 0 for value in beside | given if not value.isdigit())

        return noted(sight.number) >= max(1, *(noted(each) for each in range(len(places.records))))


_ITEM = re.compile(r"^\s*[-*\u2022]\s+|(?:^|(?<=\s))\d{1,2}[.)]\s+", re.MULTILINE)

_ONE_ITEM = 2
"""What stands before the first item, and that item."""


def is_of_one_item(call: Call, text: str, view: View) -> bool:
    """Whether one item of a list has all that a call is given, as far as any has it: names and addresses, days, and
    things that are looked up by what an item calls them. Who is to be told something is not who is to be let in."""
    items = [fold(item) for item in _ITEM.split(text)]
    if len(items) <= _ONE_ITEM:
        return True
    kinds = kinds_of(view.tools[call.tool])
    held = [
        _items_with(value, kinds.get(name, "name"), items, view)
        for name, given in call.arguments.items()
        if kinds.get(name) in ("name", "address", "link", "moment")
        for value in parts_of(given, view.tools[call.tool])
    ]
    return any(all(not each or number in each for each in held) for number in range(len(items)))


def _items_with(value: str | float, kind: str, items: Sequence[str], view: View) -> set[int]:
    """The items of a list that hold a value, or else speak of the record that shows it."""
    day = DAY.match(str(value)) if kind == "moment" else None
    spelling = spell(day[0]) if day else None
    if spelling is not None:
        return {number for number, item in enumerate(items) if spelling.said_in(" \n ".join((item, *ends_of(item))))}
    bare = fold(str(plain_link(value)))
    if held := {number for number, item in enumerate(items) if occurs(bare, item) >= 0}:
        return held
    beside = [
        each
        for sight in view.sights(plain_link(value))
        if sight.source == "record"
        for each in view.around(sight).beside_number(sight.number).values()
        if not is_prose(each) and not identifiers(each) and not DAY.match(each)
    ]
    told = telling(" ".join(beside))
    shared = {number: len(told & telling(item)) for number, item in enumerate(items)}
    most = max(shared.values())
    return {number for number, count in shared.items() if most and count == most}
