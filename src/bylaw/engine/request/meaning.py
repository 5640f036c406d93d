"""Whether a call is what the user means, where only a reader of what was looked up can tell.

What a request allows is said before anything is read: from where a value may come, and seldom which of those there it
is. Code holds a call to the places. Then a model is shown the user's words, what these places show and that one call,
and says of each value whether it is the one. It may turn a call down, and it may settle which of the values in a place
is meant. Where a value may come from it cannot change, as what it reads strangers may have written.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from bylaw.engine.request.allowance import kinds_of
from bylaw.engine.request.keeping import Held
from bylaw.engine.request.naming import Naming
from bylaw.engine.request.objection import Objection
from bylaw.engine.request.values import parts_of
from bylaw.engine.request.view import View
from bylaw.facts.provenance import plain_link
from bylaw.trace.event import Call

_WHICH = frozenset(("not_found", "not_chosen", "left_out", "of_another", "as_shown", "unsaid"))
"""Objections that say which of several things is meant, and not from where it may come."""
_MOST = 60_000
"""Characters of results that a model is shown; nobody is asked about more."""


class Shown(Struct, frozen=True):
    """What a look-up showed."""

    tool: str
    arguments: Mapping[str, Any]
    text: str


class Doubt(Struct, frozen=True):
    """A call of which a model says whether it is what the user means."""

    request: str
    tool: str
    arguments: Mapping[str, Any]
    asked: tuple[str, ...]
    """The arguments that it is asked about."""
    shown: tuple[Shown, ...]


ReadMeaning = Callable[[Doubt], Mapping[str, bool] | None]
"""By argument, whether it is what the user means, but for those of which nobody can tell; None where no answer came."""


@runtime_checkable
class ReadsMeaning(Protocol):
    """Who is asked about calls as well as about requests."""

    @property
    def meant(self) -> ReadMeaning | None:
        """Says of a call whether it is what the user means; None where nobody is asked."""
        ...


def settle(call: Call, held: Held, read: ReadMeaning) -> list[Objection]:
    """What speaks against a call, after a model has looked at it; the same where none did."""
    against = held.objections
    slots = {name: held.deed.slot(name) for name in call.arguments}
    asked = [name for name, slot in slots.items() if held.is_handed_over or slot is None or slot.fill != "said"]
    places = _places(held)
    is_open = all(
        each.why in _WHICH and each.argument in asked and _is_in_place(call, each.argument, places, held.view)
        for each in against
    )
    if not asked or not is_open or not (places or held.is_handed_over):
        return against
    shown = tuple(_shown(places, held.view))
    if sum(len(each.text) for each in shown) > _MOST:
        return against
    meant = read(Doubt(held.view.request, call.tool, call.arguments, tuple(asked), shown))
    if meant is None:
        return against
    wrong = [name for name in asked if meant.get(name) is False]
    # Where it is a reader's to tell which one it is, and the reader cannot, nobody has.
    wrong += [name for name, slot in slots.items() if slot is not None and slot.judged and name not in meant]
    if wrong:
        return [Objection("not_meant", name, str(call.arguments[name])) for name in wrong]
    return [each for each in against if each.argument not in meant]


def _places(held: Held) -> set[int]:
    """The steps of the results that the deed's values may be taken from."""
    naming = Naming(held.view)
    sources = [source for slot in held.deed.slots for source in slot.sources]
    results = held.view.results()
    return {step for step, call, _ in results if any(naming.may_show(source, step, call) for source in sources)}


def _shown(places: set[int], view: View) -> Iterator[Shown]:
    """What stands there, and beside it what tools show that vouch for all of it: who is in a channel already."""
    for step, call, text in view.results():
        tool = view.tools.get(call.tool)
        if step in places or (tool is not None and tool.effect == "read" and tool.trusts("")):
            yield Shown(call.tool, call.arguments, text)


def _is_in_place(call: Call, name: str, places: set[int], view: View) -> bool:
    """Whether what an argument is given stands in a place that the request takes it from; a number, a day or a text
    may be worked out from there."""
    kind = kinds_of(view.tools[call.tool]).get(name, "name")
    if kind in ("number", "moment", "text"):
        return True
    values = parts_of(call.arguments[name], view.tools[call.tool]) if kind != "link" else []
    sights = [view.sights(plain_link(value), confirmed=True) for value in values]
    return bool(values) and all(any(sight.step in places for sight in each) for each in sights)
