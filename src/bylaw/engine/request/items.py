"""The items of a list that the user handed over to: a call is of one of them."""

import re
from collections.abc import Sequence

from bylaw.engine.request.allowance import kinds_of
from bylaw.engine.request.values import DAY, ends_of, parts_of, telling
from bylaw.facts.provenance import Provenance, plain_link
from bylaw.policy.tool import Tool
from bylaw.text.folding import fold, occurs
from bylaw.text.identifier import identifiers, is_prose
from bylaw.text.spelling import spell
from bylaw.trace.event import Call

_ITEM = re.compile(r"^\s*[-*\u2022]\s+|(?:^|(?<=\s))\d{1,2}[.)]\s+", re.MULTILINE)

_ONE_ITEM = 2
"""What stands before the first item, and that item."""


def is_of_one_item(call: Call, tool: Tool, text: str, provenance: Provenance, before: int) -> bool:
    """Whether one item of a list has all that a call is given, as far as any has it: names and addresses, days, and
    things that are looked up by what an item calls them. Who is to be told something is not who is to be let in."""
    items = [fold(item) for item in _ITEM.split(text)]
    if len(items) <= _ONE_ITEM:
        return True
    kinds = kinds_of(tool)
    held = [
        _items_with(value, kinds.get(name, "name"), items, provenance, before)
        for name, given in call.arguments.items()
        if kinds.get(name) in ("name", "address", "link", "moment")
        for value in parts_of(given)
    ]
    return any(all(not each or number in each for each in held) for number in range(len(items)))


def _items_with(value: str | float, kind: str, items: Sequence[str], provenance: Provenance, before: int) -> set[int]:
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
        for sight in provenance.sights(plain_link(value), before=before)
        if sight.source == "record" and sight.step is not None
        for each in provenance.places(sight.step).beside_number(sight.number).values()
        if not is_prose(each) and not identifiers(each) and not DAY.match(each)
    ]
    told = telling(" ".join(beside))
    shared = {number: len(told & telling(item)) for number, item in enumerate(items)}
    most = max(shared.values())
    return {number for number, count in shared.items() if most and count == most}
