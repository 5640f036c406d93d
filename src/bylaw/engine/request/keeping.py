"""Whether a call keeps to what the request allows: decided by code, from where each of its values came.

Destinations matter most: accounts, addresses, links and names are the user's words, or stand in a source that the user
named, or in a field that its tool vouches for. A text that the agent composes may hold no link that nobody approved.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from bylaw.engine.request.allowance import Allowance, Deed, Delegation, Fill, ReadRequest, Slot, fetches, is_deed
from bylaw.engine.request.by_words import allowed_by_words, meant_words, slots_of
from bylaw.engine.request.checking import Check
from bylaw.engine.request.items import is_of_one_item
from bylaw.engine.request.naming import Naming, leaves_of
from bylaw.engine.request.objection import Objection
from bylaw.facts.provenance import Provenance, plain_link
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

    def objections(
        self, call: Call, allowance: Allowance, request: str, *, before: int, approved: Callable[[str], bool]
    ) -> list[Objection]:
        """What speaks against a call; nothing where it keeps to the request.

        `request` is all that the user has said, `approved` tells whether an earlier call that was allowed had a value.
        """
        tool = self._tools.get(call.tool)
        if tool is None or not is_deed(tool):
            return []
        held: list[Objection] | None = None
        for _, found in self._held_to(call, tool, allowance, request, before, approved):
            if not found:
                return []
            held = found if held is None or len(found) < len(held) else held
        if allowance.unread:
            return [Objection("unread", value=allowance.unread)]
        if allowance.delegations:
            if self._delegation == "follow" and self._is_delegated(call, tool, allowance.delegations, request, before):
                return []
            return [*(held or ()), Objection("delegated")]
        return held if held is not None else [Objection("not_asked")]

    def covering(
        self, call: Call, allowance: Allowance, request: str, *, before: int, approved: Callable[[str], bool]
    ) -> list[Deed]:
        """The deeds of the request that a call keeps to."""
        tool = self._tools.get(call.tool)
        held = self._held_to(call, tool, allowance, request, before, approved) if tool is not None else ()
        return [deed for deed, found in held if not found]

    def _held_to(
        self,
        call: Call,
        tool: Tool,
        allowance: Allowance,
        request: str,
        before: int,
        approved: Callable[[str], bool],
    ) -> Iterator[tuple[Deed, list[Objection]]]:
        """The deeds of the request that are of a call's tool, each with what speaks against the call under it."""
        deeds = allowance.deeds_of(call.tool)
        if fetches(tool):
            # A page may be opened that the user named, whoever said what the request allows; where no model did, also
            # one that stands in a place which the user named.
            fill: Fill = "said" if allowance.by == "model" else "open"
            deeds = (*deeds, Deed(call.tool, (), tuple(Slot(name, fill) for name in tool.parameters)))
        meant = meant_words(request) if allowance.by == "words" and deeds else None
        for deed in deeds:
            is_whole = allowance.by == "model" and bool(deed.asked)
            others = [slot for each in allowance.deeds if each is not deed for slot in each.slots if slot.said]
            check = Check(
                *(self._provenance, self._tools, tool, deed, request, before, approved),
                is_whole=is_whole,
                others=others,
                judges=self._delegation == "follow",
                meant=meant,
            )
            yield deed, check.objections(call.arguments)

    def _is_delegated(
        self, call: Call, tool: Tool, delegations: Sequence[Delegation], request: str, before: int
    ) -> bool:
        """Whether the text that the user handed over to asks for the call, with its values."""
        naming = Naming(self._provenance, request)
        for delegation in delegations:
            for text in naming.texts_of(delegation, before):
                said = f"{request}\n\n{HANDED_OVER}\n{text}"
                read = self._read(said)
                if read.by == "model":
                    checks = [
                        Check(
                            *(self._provenance, self._tools, tool, deed, said, before, _never),
                            is_whole=True,
                            quoted=text,
                            judges=True,
                        )
                        for deed in read.deeds_of(call.tool)
                    ]
                    if any(not check.objections(call.arguments) for check in checks):
                        return True
                    continue
                deeds = allowed_by_words(text, self._tools).deeds_of(call.tool)
                if not _DESTROYING & {*words_of(tool.name)} and _is_noted(call.arguments, fold(text)):
                    # A note says "hotel: Riga Inn, 3 to 5 May", without a verb.
                    deeds = (*deeds, Deed(tool.name, (), tuple(slots_of(tool))))
                if not is_of_one_item(call, tool, text, self._provenance, before):
                    continue
                for deed in deeds:
                    check = Check(self._provenance, self._tools, tool, deed, said, before, _never, text=text)
                    if not check.objections(call.arguments):
                        return True
        return False


def _is_noted(arguments: Mapping[str, Any], text: str) -> bool:
    """Whether a folded text names something that a call is given."""
    given = (fold(str(plain_link(each))) for each in leaves_of(arguments))
    return any(len(each) > 2 and not each[:4].isdigit() and occurs(each, text) >= 0 for each in given)


def _never(_value: str) -> bool:
    return False
