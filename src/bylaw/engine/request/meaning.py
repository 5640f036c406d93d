"""The second look: a model reads the results and decides whether a call is what the user means.

The allowance for a request is determined before any result is read. It names the source of each value, but it rarely
says which of the source's values is meant. Code restricts a call to those sources. A model then sees the user's words,
the results and the call, and gives an answer for each argument. The model can reject a call and choose among a source's
values. It cannot change the sources, because strangers may have written the results.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from msgspec import Struct

from bylaw.engine.request.allowance import Allowance, Objection
from bylaw.engine.request.keeping import Held
from bylaw.engine.request.values import View

_MOST = 60_000
"""The maximum number of characters of results to give to a model. If there are more, the user is asked instead of the
model.
"""


class Shown(Struct, frozen=True):
    tool: str
    arguments: Mapping[str, Any]
    text: str


class Doubt(Struct, frozen=True):
    """A call about which a model is asked, because code cannot tell whether it is what the user means."""

    request: str
    tool: str
    arguments: Mapping[str, Any]
    asked: tuple[str, ...]
    shown: tuple[Shown, ...]
    unsettled: tuple[str, ...] = ()
    """The arguments to which code objects unless the model confirms them."""
    is_preparing: bool = False
    """Whether the user did not request the call. The model is then asked whether the request needs the call."""


class RequestModel(Protocol):
    """Answers the two questions about a request: what it allows, and which values the user means."""

    def read(self, text: str) -> Allowance:
        """Return what the user's words allow. If the model does not answer, `unread` says why."""
        ...

    def look(self, doubt: Doubt) -> Mapping[str, bool] | None:
        """Return, for each argument, whether the user means its value. Unclear arguments are left out. None if the
        model does not answer.
        """
        ...


def settle(held: Held, model: RequestModel | None) -> list[Objection]:
    """Return the objections to a call after a model has read the results. If the model does not answer, the user is
    asked.
    """
    arguments = held.call.arguments
    unsettled = tuple(each.argument for each in held.objections)
    asked = tuple(name for name in arguments if held.is_handed_over or name in unsettled or not _is_stated(held, name))
    asked = asked or tuple(arguments)
    shown = tuple(_shown(held.shown(), held.view))
    meant: Mapping[str, bool] | None = None
    if model is not None and sum(len(each.text) for each in shown) <= _MOST:
        is_preparing = held.is_on_the_way and held.view.tools[held.call.tool].prepares
        meant = model.look(Doubt(held.view.request, held.call.tool, arguments, asked, shown, unsettled, is_preparing))
    if meant is None:
        return held.objections or [Objection("not_looked_at")]
    return [
        Objection("not_meant", name, str(arguments[name]))
        for name in asked
        if not meant.get(name, name not in unsettled and _is_left_open(held, name))
    ]


def _is_left_open(held: Held, name: str) -> bool:
    """Whether the request leaves an argument to the agent, so that only a model can object to it."""
    slot = held.deed.slot(name)
    return slot is None or slot.fill == "free"


def _is_stated(held: Held, name: str) -> bool:
    slot = held.deed.slot(name)
    return slot is not None and slot.fill == "said" and not slot.judged


def _shown(places: set[int], view: View) -> Iterator[Shown]:
    """Yield the results at these steps and, from any step, the results of read-only tools declared reliable for all
    fields.
    """
    for step, call, text in view.results():
        tool = view.tools.get(call.tool)
        if step in places or (tool is not None and tool.effect == "read" and tool.trusts("")):
            yield Shown(call.tool, call.arguments, text)
