"""Checks the arguments of a call against one action of a request. How an argument is checked depends on the source of
its value.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from bylaw.engine.request.allowance import (
    Deed,
    Objection,
    ParameterKind,
    Slot,
    Source,
    Why,
    fetches,
    kinds_of,
    parameter_kind,
)
from bylaw.engine.request.figures import fits, is_beyond, lasts, object_to_amount, object_to_moment
from bylaw.engine.request.naming import Naming
from bylaw.engine.request.saying import Saying
from bylaw.engine.request.values import View, has_flags, is_code, number_of, parts_of, says
from bylaw.facts.provenance import plain_link
from bylaw.policy.tool import Tool
from bylaw.text.folding import fold, occurs
from bylaw.text.identifier import identifiers

_LINK = re.compile(r"(?:https?://|www\.)[^\s<>\"')\]]+", re.IGNORECASE)
_TRIM = ".,;:!?'\"()[]*_`"


def strange_name(
    text: str,
    sources: Sequence[Source],
    view: View,
    naming: Naming,
    saying: Saying,
    is_approved: Callable[[str], bool],
) -> str:
    """Return a link, address or long code in the text that neither the user nor a source contains. Empty if there is
    none.

    Opened pages do not count as a source of links, because their authors could redirect people.
    """
    pages = {name for name, tool in view.tools.items() if fetches(tool)}
    for name in _names_in(text):
        is_link = _LINK.match(name) is not None
        if saying.is_quoted(name) or (is_link and is_approved(name)):
            continue
        shown_by = [source for source in sources if not is_link or source.tool not in pages]
        sights = view.sights(plain_link(name))
        if not any(naming.is_of(source, sight, name) for sight in sights for source in shown_by):
            return name
    return ""


def _names_in(text: str) -> Iterator[str]:
    yield from (link.rstrip(_TRIM) for link in _LINK.findall(text))
    for name in identifiers(text):
        if is_code(name) or ("@" in name and not _LINK.match(name)):
            yield name


Approved = Callable[[str], bool]


def _is_empty(given: Any) -> bool:
    return given is None or (isinstance(given, str | list | dict) and not given)


class Check:
    def __init__(self, view: View, tool: Tool, deed: Deed, *, approved: Approved, quoted: str = "") -> None:
        """`approved` reports whether a value appeared in an earlier call that the user requested.

        `quoted` is a text whose instructions the user told the agent to follow. Text written by the agent may quote it.
        """
        self._view, self._tool, self._deed, self._approved = view, tool, deed, approved
        self._kinds = kinds_of(tool)
        self._naming = Naming(view)
        self._saying = Saying(view, quoted=quoted)

    def objections(self, arguments: Mapping[str, Any]) -> list[Objection]:
        """Return at most one objection per argument."""
        found = [
            Objection("not_given", slot.name)
            for slot in self._deed.slots
            if slot.fill in ("said", "found") and _is_empty(arguments.get(slot.name))
        ]
        for name, given in arguments.items():
            if _is_empty(given):
                continue
            kind = self._kinds.get(name) or parameter_kind(name, None)
            slot = self._deed.slot(name) or self._unlisted(name, kind)
            if isinstance(given, bool):
                if fold(str(slot.value)) != str(given).lower() and (slot.fill == "said" or slot.value is not None):
                    found.append(self._objection("not_said" if slot.value is not None else "in_part", slot, str(given)))
            else:
                if slot.fill == "said" and has_flags(given):
                    found.append(self._objection("in_part", slot, str(given)))
                    continue
                values = parts_of(given, self._tool)
                # A list of people may include the user, even if the request does not.
                others = [value for value in values if len(values) < 2 or not self._is_the_users_own(value)]
                against = (self._object(slot, kind, each, arguments) for each in others)
                found += [each for each in against if each is not None][:1]
        return found or [*self._object_to_combination()]

    def _object_to_combination(self) -> Iterator[Objection]:
        """Object if the user stated several values for each of several arguments, because code cannot tell which belong
        together.
        """
        several = [
            slot
            for slot in self._deed.slots
            if slot.fill == "said"
            and slot.value is None
            and len(slot.said) > 1
            and self._kinds.get(slot.name) != "moment"
        ]
        for slot in several if len(several) > 1 else ():
            yield Objection("in_part", slot.name, "one of several values")

    def _unlisted(self, name: str, kind: ParameterKind) -> Slot:
        """Return how to fill an argument that the request does not mention. Only running text may have any value."""
        return Slot(name, "free" if kind == "text" else "open")

    def _object(self, slot: Slot, kind: str, value: str | float, arguments: Mapping[str, Any]) -> Objection | None:
        if self._deed.slot(slot.name) is None and self._is_optional(slot.name, kind):
            return None if self._may_be_added(value, arguments) else self._objection("not_said", slot, value)
        if kind == "moment" and slot.minutes:
            moments = [each for name, each in arguments.items() if self._kinds.get(name) == "moment"]
            if not lasts(moments, slot.minutes):
                return self._objection("not_said", slot, value)
        if any(occurs(words, fold(str(value))) >= 0 for words in self._view.words(slot.but)):
            return self._objection("left_out", slot, value)
        if slot.said and self._saying.is_at_another_time(slot, kind, str(value)):
            return self._objection("not_said", slot, value)
        if slot.said and self._saying.is_fixed(slot, kind, value):
            # The user stated the time and that the time must be free.
            return self._objection("in_part", slot, value) if slot.clear else None
        if slot.fill == "said":
            return self._object_to_part(slot, kind, value, arguments)
        if any(fits(limit.field, slot.name) and is_beyond(limit, str(value)) for limit in slot.limits):
            return self._objection("too_much", slot, value)
        if kind == "text" and isinstance(value, str):
            return self._object_to_text(slot, value, arguments)
        is_new = kind == "name" and self._view.trace(value).source == "agent"
        if kind in ("number", "moment"):
            why = self._object_to_figure(slot, kind, value)
        else:
            why = None if slot.fill == "free" and (kind == "flag" or is_new) else self._object_to_source(slot, value)
        why = why or self._unsettled(slot)
        return self._objection(why, slot, value) if why else None

    def _object_to_part(
        self, slot: Slot, kind: str, value: str | float, arguments: Mapping[str, Any]
    ) -> Objection | None:
        """Object to a value that contains more than the user's words, such as an entity's full name."""
        is_in_part = self._saying.is_in_part(slot, kind, value)
        if not is_in_part and not self._saying.is_longer(slot, value):
            return self._objection("not_said", slot, value)
        if kind == "text":
            against = self._object_to_text(slot, str(value), arguments)
            return against or self._objection("in_part", slot, value)
        is_full = self._saying.is_user_word(value) or (self._is_recorded(value) and not identifiers(str(value)))
        return self._objection("in_part" if is_in_part or (kind == "name" and is_full) else "not_said", slot, value)

    def _is_optional(self, name: str, kind: str) -> bool:
        """Whether the call works without this argument, so that only the user may request the argument."""
        if kind in ("number", "moment"):
            return name not in self._tool.required
        return kind in ("link", "address", "name")

    def _may_be_added(self, value: str | float, arguments: Mapping[str, Any]) -> bool:
        """Whether the agent may add a value that the user did not mention.

        This is allowed for the user's own address, for a whole value from another argument's source, and for part of a
        named record, such as the recipient of a standing order.
        """
        if self._is_the_users_own(value):
            return True
        listed = [slot.name for slot in self._deed.slots if self._kinds.get(slot.name) == "name"]
        named = {fold(str(arguments[name])) for name in listed if name in arguments}
        sources = [source for slot in self._deed.slots for source in slot.sources if source.named]
        return any(
            bool(named & {*sight.beside.values()})
            if sight.source == "record"
            else sight.is_whole and any(self._naming.is_of(source, sight, value) for source in sources)
            for sight in self._view.sights(plain_link(value))
        )

    def _object_to_text(self, slot: Slot, text: str, arguments: Mapping[str, Any]) -> Objection | None:
        """Object to a text that omits required words, or that contains a link, address or account which no source
        shows.
        """
        written = (str(each) for name, each in arguments.items() if self._kinds.get(name) == "text")
        whole = fold(" \n ".join(written))
        if unsaid := next((words for words in self._view.words(slot.must) if not says(words, whole)), ""):
            return self._objection("unsaid", slot, unsaid)
        sources = [source for each in self._deed.slots for source in each.sources]
        name = strange_name(text, sources, self._view, self._naming, self._saying, self._approved)
        return self._objection("link", slot, name) if name else None

    def _object_to_figure(self, slot: Slot, kind: str, value: str | float) -> Why | None:
        if kind == "moment":
            return object_to_moment(self._view, self._naming, slot, value)
        number = number_of(value)
        is_one = not any(each.every for each in self._deed.slots)
        return None if number is None else object_to_amount(self._view, self._naming, slot, number, is_one=is_one)

    def _unsettled(self, slot: Slot) -> Why | None:
        """Return the objection to a value that only the second look can resolve: one of several values, a value from a
        record with a limit, or a time that must be free.
        """
        is_limited = any(slot.fill == "found" or not fits(each.field, slot.name) for each in slot.limits)
        if slot.choice is not None or is_limited:
            return "not_chosen"
        return "in_part" if slot.clear else None

    def _object_to_source(self, slot: Slot, value: str | float) -> Why | None:
        is_found = any(
            (sight.source == "record" and not slot.sources)
            or any(self._naming.is_of(source, sight, value) for source in slot.sources)
            for sight in self._view.sights(plain_link(value), confirmed=bool(slot.sources))
        )
        return None if is_found else "not_found"

    def _is_recorded(self, value: str | float) -> bool:
        return any(sight.source == "record" for sight in self._view.sights(value, confirmed=True))

    def _is_the_users_own(self, value: str | float) -> bool:
        """Whether an address is the user's own, because it occurs in every record about the user."""
        return any(
            sight.source == "record" and self._view.around(sight).in_every_record(str(value), sight.field)
            for sight in self._view.sights(plain_link(value))
        )

    def _objection(self, why: Why, slot: Slot, value: str | float) -> Objection:
        return Objection(why, slot.name, str(value), self._view.trace(value))
