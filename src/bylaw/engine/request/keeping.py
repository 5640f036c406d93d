"""Whether a call keeps to what the request allows: decided by code, from where each of its values came.

Destinations matter most: accounts, addresses, links and names are the user's words, or stand in a source that the user
named, or in a field that its tool vouches for. A text that the agent composes may hold no link that nobody approved.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from bylaw.engine.request.allowance import Allowance, Deed, Delegation, Fill, ReadRequest, Slot, fetches, is_deed
from bylaw.engine.request.by_words import allowed_by_words, condition, meant_words, slots_of
from bylaw.engine.request.checking import Check
from bylaw.engine.request.naming import Naming
from bylaw.engine.request.noting import is_of_one_item
from bylaw.engine.request.objection import Objection
from bylaw.engine.request.values import given_words
from bylaw.engine.request.view import View
from bylaw.facts.provenance import Provenance
from bylaw.policy.tool import Tool
from bylaw.policy.verb import words_of
from bylaw.text.folding import fold, occurs
from bylaw.trace.event import Call

Delegating = Literal["ask", "follow"]
"""What becomes of a deed that a text asks for which the user handed over to: asked about, or held to that text."""
HANDED_OVER = "The text that the user hands over to:"
"""What stands between the user's words and a text that they hand over to, where both are read."""
_DESTROYING = frozenset(("delete", "remove", "cancel", "reset", "revoke", "update", "change", "share"))
"""Verbs of tools that a note must ask for in words."""


class Held(NamedTuple):
    """A deed that a call may be held to, and what speaks against the call."""

    deed: Deed
    view: View
    """What the call is held against: the user's words, or with them those of a text that the user handed over to."""
    objections: list[Objection]
    is_handed_over: bool = False


class Keeping:
    """Holds the calls of one conversation to what its request allows."""

    def __init__(
        self,
        tools: Mapping[str, Tool],
        provenance: Provenance,
        read: ReadRequest,
        *,
        delegation: Delegating = "ask",
    ) -> None:
        """`read` says what a text allows that the user handed over to, as it does of a request."""
        self._tools, self._read = tools, read
        self._provenance = provenance
        self._delegation: Delegating = delegation

    def weigh(
        self, call: Call, allowance: Allowance, request: str, *, before: int, approved: Callable[[str], bool]
    ) -> tuple[list[Objection], Held | None]:
        """What speaks against a call, nothing where it keeps to the request; and the deed that it keeps to, or nearly.

        `request` is all that the user has said, `approved` tells whether an earlier call that was allowed had a value.
        """
        tool = self._tools.get(call.tool)
        if tool is None or not is_deed(tool):
            return [], None
        held, is_clear = _nearest(self._held_to(call, tool, allowance, request, before, approved))
        if is_clear:
            return [], held
        if allowance.unread:
            return [Objection("unread", value=allowance.unread)], None
        if allowance.delegations and self._delegation == "follow":
            noted, is_clear = _nearest(self._handed_over(call, tool, allowance.delegations, request, before))
            if is_clear:
                return [], noted
            held = min((each for each in (held, noted) if each is not None), key=_against, default=None)
            return [*(held.objections if held is not None else ()), Objection("delegated")], held
        if allowance.delegations:
            return [*(held.objections if held is not None else ()), Objection("delegated")], None
        return (held.objections, held) if held is not None else ([Objection("not_asked")], None)

    def covering(
        self, call: Call, allowance: Allowance, request: str, *, before: int, approved: Callable[[str], bool]
    ) -> list[Deed]:
        """The deeds of the request that a call keeps to."""
        tool = self._tools.get(call.tool)
        held = self._held_to(call, tool, allowance, request, before, approved) if tool is not None else ()
        return [each.deed for each in held if not each.objections]

    def _held_to(
        self,
        call: Call,
        tool: Tool,
        allowance: Allowance,
        request: str,
        before: int,
        approved: Callable[[str], bool],
    ) -> Iterator[Held]:
        """The deeds of the request that are of a call's tool, each with what speaks against the call under it."""
        deeds = allowance.deeds_of(call.tool)
        if fetches(tool):
            # A page may be opened that the user named, whoever said what the request allows; where no model did, also
            # one that stands in a place which the user named.
            fill: Fill = "said" if allowance.by == "model" else "open"
            deeds = (*deeds, Deed(call.tool, (), tuple(Slot(name, fill) for name in tool.parameters)))
        view = View(self._provenance, self._tools, request, before)
        meant = meant_words(request) if allowance.by == "words" and deeds else None
        for deed in deeds:
            said = condition(request, deed.asked) if meant is not None else None
            if said is not None and not self._provenance.shown_since(said, before):
                yield Held(deed, view, [Objection("depends")])
                continue
            is_whole = allowance.by == "model" and bool(deed.asked)
            others = [slot for each in allowance.deeds if each is not deed for slot in each.slots if slot.said]
            judges = self._delegation == "follow"
            check = Check(
                view, tool, deed, approved=approved, is_whole=is_whole, others=others, judges=judges, meant=meant
            )
            yield Held(deed, view, check.objections(call.arguments))

    def _handed_over(
        self, call: Call, tool: Tool, delegations: Sequence[Delegation], request: str, before: int
    ) -> Iterator[Held]:
        """The deeds that a text asks for which the user handed over to, each with what speaks against the call."""
        naming = Naming(View(self._provenance, self._tools, request, before))
        for text in (each for delegation in delegations for each in naming.texts_of(delegation)):
            said = f"{request}\n\n{HANDED_OVER}\n{text}"
            read = self._read(said)
            is_read = read.by == "model"
            view = View(self._provenance, self._tools, said, before)
            for deed in read.deeds_of(call.tool) if is_read else self._noted(call, tool, text, view):
                check = Check(
                    *(view, tool, deed),
                    is_whole=is_read,
                    judges=is_read,
                    quoted=text if is_read else "",
                    text="" if is_read else text,
                )
                yield Held(deed, view, check.objections(call.arguments), is_handed_over=True)

    def _noted(self, call: Call, tool: Tool, text: str, view: View) -> tuple[Deed, ...]:
        """Without a model, what a text asks for: by its words, or as a note does, which says "hotel: Riga Inn, 3 to 5
        May" without a verb."""
        if not is_of_one_item(call, text, view):
            return ()
        deeds = allowed_by_words(text, self._tools).deeds_of(call.tool)
        is_note = not _DESTROYING & {*words_of(tool.name)} and _is_noted(call.arguments, fold(text))
        return (*deeds, Deed(tool.name, (), tuple(slots_of(tool)))) if is_note else deeds


def _nearest(held: Iterable[Held]) -> tuple[Held | None, bool]:
    """The deed that the least speaks against, and whether nothing does."""
    nearest: Held | None = None
    for each in held:
        if not each.objections:
            return each, True
        nearest = each if nearest is None else min(nearest, each, key=_against)
    return nearest, False


def _against(held: Held) -> int:
    return len(held.objections)


def _is_noted(arguments: Mapping[str, Any], text: str) -> bool:
    """Whether a folded text names something that a call is given."""
    given = given_words(arguments)
    return any(len(each) > 2 and not each[:4].isdigit() and occurs(each, text) >= 0 for each in given)
