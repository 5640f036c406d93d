"""Checks a call, in code, against the actions that a request needs. How a value is checked depends on its source."""

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from bylaw.engine.request.allowance import (
    Allowance,
    Deed,
    Objection,
    ReadRequest,
    Slot,
    Span,
    fetches,
    kinds_of,
)
from bylaw.engine.request.checking import Approved, Check
from bylaw.engine.request.naming import Naming
from bylaw.engine.request.values import View, given_words, parts_of
from bylaw.facts.provenance import Provenance, plain_link
from bylaw.policy.tool import Tool
from bylaw.text.folding import fold
from bylaw.trace.event import Call

Delegating = Literal["ask", "follow"]
"""What happens to instructions in a document that the agent is to follow: the user is asked, or code checks them."""
HANDED_OVER = "The text that the user hands over to:"
"""The line in a question to the model that separates the user's words from the text that they tell the agent to follow.
"""
_WHICH = frozenset(("not_found", "not_chosen", "left_out", "as_shown", "unsaid", "in_part"))
"""Objections about which of several values was chosen. All other objections concern where a value comes from."""


class Held(NamedTuple):
    """A call that was checked against one action of a request."""

    call: Call
    deed: Deed
    view: View
    objections: list[Objection]
    asked: tuple[Span, ...]
    """The user's words that ask for the action."""
    approved: Approved
    """Whether a value appeared in an earlier call that the user requested."""
    is_handed_over: bool = False
    """Whether the action comes from instructions that the user told the agent to follow."""
    is_on_the_way: bool = False
    """Whether a call that was not requested may be a step towards the request, because it opens a page linked from a
    source that the user named, or because its tool prepares other calls.
    """

    def places(self) -> set[int]:
        """Return the steps of results from which values may come: sources that the user named, and pages opened from
        them.
        """
        naming = Naming(self.view)
        sources = [source for slot in self.deed.slots for source in slot.sources]
        return {
            step
            for step, call, _ in self.view.results()
            if any(naming.may_show(source, step, call) for source in sources)
            or ((sources or self.is_on_the_way) and self._is_opened(call))
        }

    def shown(self) -> set[int]:
        """Return the steps of `places`. For each named tool without a step in `places`, add all of its results."""
        found = self.places()
        for source in {source for slot in self.deed.slots for source in slot.sources if source.tool}:
            steps = {step for step, call, _ in self.view.results() if call.tool == source.tool}
            found |= set() if steps & found else steps
        return found

    def _is_opened(self, call: Call) -> bool:
        tool = self.view.tools.get(call.tool)
        links = _links(tool) if tool is not None and (fetches(tool) or tool.prepares) else []
        return bool(links) and self.approved(str(call.arguments.get(links[0], "")))

    def may_be_meant(self) -> bool:
        """Whether the call may be what the user means: the results can resolve any objections."""
        if self.is_on_the_way:
            return True
        return all(each.why in _WHICH for each in self.objections) and all(map(self._can_settle, self.objections))

    def _can_settle(self, objection: Objection) -> bool:
        """Whether the results can resolve an objection.

        For `in_part` and `not_chosen`, they can, because code has already found the value. Any other value must appear
        in a source that the request names, or must have been used in a call whose result is such a source. Numbers,
        dates and text may also be derived from the results.
        """
        tool = self.view.tools[self.call.tool]
        kind = kinds_of(tool).get(objection.argument, "name")
        places = self.places()
        if objection.why in ("in_part", "not_chosen"):
            return True
        if kind in ("number", "moment", "text"):
            return bool(places) or self.is_handed_over
        asked = {
            word for step, call, _ in self.view.results() if step in places for word in given_words(call.arguments)
        }
        values = parts_of(self.call.arguments[objection.argument], tool) if kind != "link" else []
        return bool(values) and all(
            any(
                sight.step in places or (sight.source == "record" and fold(str(value)) in asked)
                for sight in self.view.sights(plain_link(value), confirmed=True)
            )
            for value in values
        )


class Keeping:
    """Checks the calls in one conversation against its requests."""

    def __init__(
        self,
        tools: Mapping[str, Tool],
        provenance: Provenance,
        read: ReadRequest,
        *,
        delegation: Delegating = "ask",
    ) -> None:
        """`read` also reads texts that the user tells the agent to follow."""
        self._tools, self._read, self._provenance = tools, read, provenance
        self.follows = delegation == "follow"

    def hold(
        self, call: Call, allowance: Allowance, request: str, *, before: int, approved: Approved
    ) -> Iterator[Held]:
        """Check the call against each action for its tool, first the actions of the request, then those of texts that
        the request refers to.

        `request` contains the user's words before the step `before`. `approved` is explained in `Check`.
        """
        tool = self._tools[call.tool]
        view = View(self._provenance, self._tools, request, before)
        for deed in allowance.deeds_of(call.tool):
            objections = Check(view, tool, deed, approved=approved).objections(call.arguments)
            yield Held(call, deed, view, objections, deed.asked, approved)
        for delegation in allowance.delegations if self.follows else ():
            for text in Naming(view).texts_of(delegation):
                said = f"{request}\n\n{HANDED_OVER}\n{text}"
                both = View(self._provenance, self._tools, said, before)
                for deed in self._read(said).deeds_of(call.tool):
                    objections = Check(both, tool, deed, approved=approved, quoted=text).objections(call.arguments)
                    yield Held(call, deed, both, objections, delegation.asked, approved, is_handed_over=True)
        deed = _opening(tool, allowance)
        if deed is not None and not Check(view, tool, deed, approved=approved).objections(call.arguments):
            objections = [Objection("not_asked", deed.slots[0].name)]
            yield Held(call, deed, view, objections, deed.asked, approved, is_on_the_way=True)
        if tool.prepares and not allowance.deeds_of(call.tool):
            # The user did not request this call. Only a model can confirm such a call, so all its arguments are in
            # question.
            objections = [Objection("not_asked", name) for name in call.arguments]
            deed = _preparing(tool, allowance)
            held = Held(call, deed, view, objections, deed.asked, approved, is_on_the_way=True)
            if objections and _is_known(held, tool):
                yield held


def _opening(tool: Tool, allowance: Allowance) -> Deed | None:
    """Return the action for opening a linked page. None if the user named no source from which the link could come."""
    deed = _preparing(tool, allowance)
    return deed if fetches(tool) and deed.slots else None


def _preparing(tool: Tool, allowance: Allowance) -> Deed:
    """Return the action for a step towards the request. Its link must come from a source that the user named."""
    named = [source for deed in allowance.deeds for slot in deed.slots for source in slot.sources if source.named]
    asked = tuple(span for deed in allowance.deeds for span in deed.asked)
    return Deed(tool.name, asked, tuple(Slot(link, "found", (), tuple(named)) for link in _links(tool)[:1] if named))


def _is_known(held: Held, tool: Tool) -> bool:
    """Whether the call's link comes from the user or from a source that they named, and no other value comes from
    elsewhere.

    A value that occurs nowhere was made up by the agent. A model judges such values, so they are accepted here.
    """
    view, links = held.view, _links(tool)
    places = held.places() if links else set[int]()
    for name, given in held.call.arguments.items():
        if name in links:
            is_linked = bool(held.deed.slots) and not Check(view, tool, held.deed, approved=held.approved).objections(
                {name: given}
            )
            if not is_linked and not view.is_said(str(given)):
                return False
            continue
        for value in parts_of(given, tool) if not isinstance(given, bool) else ():
            sights = [*view.sights(plain_link(value), confirmed=True)]
            is_ours = any(sight.source == "record" or sight.step in places for sight in sights)
            if sights and not is_ours and not view.is_said(value):
                return False
    return True


def _links(tool: Tool) -> list[str]:
    return [name for name, kind in kinds_of(tool).items() if kind == "link"]
