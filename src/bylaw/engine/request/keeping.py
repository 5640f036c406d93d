"""Whether a call keeps to what the request allows: decided by code, from where each of its values came.

Destinations matter most: accounts, addresses, links and names are the user's words, or stand in a source that the user
named, or in a field that its tool vouches for. A text that the agent composes may hold no link that nobody approved.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, cast

from bylaw.engine.request.allowance import (
    Allowance,
    Deed,
    Delegation,
    Slot,
    Source,
    Span,
    fetches,
    is_deed,
    kinds_of,
    parameter_kind,
)
from bylaw.engine.request.by_words import allowed_by_words
from bylaw.engine.request.choosing import is_chosen
from bylaw.engine.request.objection import Objection
from bylaw.facts.provenance import Provenance, Traced, plain_link
from bylaw.policy.tool import Tool
from bylaw.text.folding import fold, occurs
from bylaw.text.identifier import identifiers
from bylaw.text.spelling import spell
from bylaw.trace.event import Call, decode_text

Delegating = Literal["ask", "follow"]
"""What becomes of a deed that a text asks for which the user handed over to: asked about, or held to that text."""
_LINK = re.compile(r"(?:https?://|www\.)[^\s<>\"')\]]+", re.IGNORECASE)
_TRIM = ".,;:!?'\"()[]*_`"
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


class Keeping:
    """Holds the calls of one conversation to what its request allows."""

    def __init__(
        self,
        tools: Mapping[str, Tool],
        provenance: Provenance,
        *,
        delegation: Delegating = "ask",
    ) -> None:
        self._tools = tools
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
        deeds = allowance.deeds_of(call.tool)
        if fetches(tool):
            # A page may be opened that the user named or that stands in a place which the user named, whoever said
            # what the request allows.
            deeds = (*deeds, Deed(call.tool, (), tuple(Slot(name, "open") for name in tool.parameters)))
        held: list[Objection] | None = None
        for deed in deeds:
            is_whole = allowance.by == "model" and bool(deed.asked)
            check = _Check(self._provenance, self._tools, tool, deed, request, before, approved, is_whole=is_whole)
            found = check.objections(call.arguments)
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

    def _is_delegated(
        self, call: Call, tool: Tool, delegations: Sequence[Delegation], request: str, before: int
    ) -> bool:
        """Whether the text that the user handed over to asks for the call, with its values."""
        for delegation in delegations:
            for text in self._delegated(delegation, request, before):
                allowance = allowed_by_words(text, self._tools)
                for deed in allowance.deeds_of(call.tool):
                    check = _Check(
                        self._provenance, self._tools, tool, deed, f"{request}\n{text}", before, lambda _: False
                    )
                    if not check.objections(call.arguments):
                        return True
        return False

    def _delegated(self, delegation: Delegation, request: str, before: int) -> Iterator[str]:
        """The texts of results that a delegation means: those that the user named."""
        asked = [request[span.start : span.end] for span in (*delegation.asked, *delegation.source.named)]
        for step, call, text in self._provenance.results(before=before):
            is_tool = not delegation.source.tool or call.tool == delegation.source.tool
            given = [value for value in call.arguments.values() if isinstance(value, str) and len(value) > 2]
            named = [str(plain_link(value)) for value in given]
            if (
                is_tool
                and step < before
                and any(occurs(fold(name), fold(words)) >= 0 for name in named for words in asked)
            ):
                yield text


class _Check:
    """One call under one deed."""

    def __init__(
        self,
        provenance: Provenance,
        tools: Mapping[str, Tool],
        tool: Tool,
        deed: Deed,
        request: str,
        before: int,
        approved: Callable[[str], bool],
        *,
        is_whole: bool = False,
    ) -> None:
        """`is_whole` where the deed lists every argument that it should be given."""
        self._is_whole = is_whole
        self._provenance, self._tools, self._tool, self._deed = provenance, tools, tool, deed
        self._request, self._before, self._approved = request, before, approved
        self._kinds = kinds_of(tool)

    def objections(self, arguments: Mapping[str, Any]) -> list[Objection]:
        found: list[Objection] = []
        for name, given in arguments.items():
            if given is None or given == "" or given == [] or isinstance(given, bool):
                continue
            kind = self._kinds.get(name) or parameter_kind(name, None)
            listed = self._deed.slot(name)
            slot = listed or Slot(name, "free" if kind == "text" else "open")
            values = parts_of(given)
            if listed is None and self._is_whole and kind in ("link", "address", "name"):
                strange = [value for value in values if not self._may_be_added(kind, value, arguments)]
                found += [self._objection("not_said", slot, value) for value in strange[:1]]
                continue
            for value in values:
                if len(values) > 1 and self._is_the_users_own(value):
                    # People put themselves on the list, too.
                    continue
                if objection := self._object(slot, kind, value):
                    found.append(objection)
                    break
        return found

    def _may_be_added(self, kind: str, value: str | float, arguments: Mapping[str, Any]) -> bool:
        """Whether a value may be given that the deed does not list: the user said it, it is the user's own address, or
        it stands in a place that the user named; of records, in that of a thing that the call names, such as the
        recipient of the standing order whose amount is changed."""
        if self._is_user_word(value) or self._is_the_users_own(value):
            return True
        listed = [slot.name for slot in self._deed.slots if self._kinds.get(slot.name) == "name"]
        named = {fold(str(arguments[name])) for name in listed if name in arguments}
        return any(
            bool(named & {*sight.beside.values()}) if sight.source == "record" else self._is_pointed(kind, sight)
            for sight in self._sights(value)
        )

    def _object(self, slot: Slot, kind: str, value: str | float) -> Objection | None:
        if slot.fill == "free" or (slot.fill == "open" and kind == "text"):
            return self._object_to_text(slot, value) if isinstance(value, str) else None
        if slot.fill == "said" and slot.said:
            return None if self._is_fixed(slot, kind, value) else self._objection("not_said", slot, value)
        if self._is_user_word(value):
            return None
        match kind:
            case "number":
                return self._object_to_number(slot, value)
            case "moment":
                return self._object_to_moment(slot, value)
            case _:
                pass
        if slot.fill == "said":
            return self._objection("not_said", slot, value)
        return self._object_to_source(slot, kind, value)

    def _object_to_text(self, slot: Slot, text: str) -> Objection | None:
        """No link that nobody approved: said by the user, or of an earlier call that was allowed."""
        for link in _LINK.findall(text) if "." in text else ():
            bare = link.rstrip(_TRIM)
            if not (self._is_user_word(bare) or self._approved(bare) or self._is_in_place("link", bare)):
                return self._objection("link", slot, bare)
        return None

    def _object_to_number(self, slot: Slot, value: str | float) -> Objection | None:
        """An amount that nobody said must at least not be more than all that was said or shown, together."""
        number = _number(value)
        known = self._provenance.numbers(before=self._before)
        if number is None or not known or number <= 2 * max(known):
            return None
        return self._objection("too_much", slot, value)

    def _object_to_moment(self, slot: Slot, value: str | float) -> Objection | None:
        """A day is said or shown, where the user said one."""
        day = _DAY.match(str(value))
        if day is None or not _says_a_day(self._request):
            return None
        if self._is_user_word(day[0]) or self._trace(day[0]).source in ("record", "content"):
            return None
        return self._objection("not_said", slot, value)

    def _is_in_place(self, kind: str, value: str | float) -> bool:
        """Whether a value stands in a trusted field, or in a place that the user named."""
        return any(sight.source == "record" or self._is_pointed(kind, sight) for sight in self._sights(value))

    def _sights(self, value: str | float) -> Iterator[Traced]:
        return self._provenance.sights(plain_link(value), before=self._before)

    def _object_to_source(self, slot: Slot, kind: str, value: str | float) -> Objection | None:
        is_found = False
        for sight in self._sights(value):
            if not self._is_usable(slot, kind, value, sight):
                continue
            is_found = True
            if slot.choice is None or is_chosen(slot.choice, value, sight, self._provenance, self._tools, self._before):
                return None
        return self._objection("not_chosen" if is_found else "not_found", slot, value)

    def _is_usable(self, slot: Slot, kind: str, value: str | float, sight: Traced) -> bool:
        """Whether a value may be taken from where it stands."""
        if not slot.sources:
            return sight.source == "record" or self._is_pointed(kind, sight)
        if not any(self._is_of(source, sight, value) for source in slot.sources):
            return False
        return sight.source == "record" or bool(sight.pointed) or any(source.named for source in slot.sources)

    def _is_pointed(self, kind: str, sight: Traced) -> bool:
        """Whether content counts: it stands in a place that the user named; alone, but for links and addresses."""
        if kind == "link" and (tool := self._tools.get(sight.tool)) is not None and fetches(tool):
            # A page that was fetched may not send the agent to another.
            return False
        return bool(sight.pointed) and (sight.is_whole or kind in ("link", "address"))

    def _is_of(self, source: Source, sight: Traced, value: str | float) -> bool:
        """Whether a sight is of a source: of its tool, and of the place that the user named."""
        if source.tool and sight.tool != source.tool:
            return False
        beside = [fold(str(each)) for _, each in _leaves(sight.arguments)] + [*sight.beside.values()]
        if sight.source == "record":
            # "The channel that begins with External": what is named is the thing itself.
            beside.append(fold(str(value)))
            if "@" in str(value) and source.named:
                # Several names are several people, and each has an address.
                return any(self._names(span, beside) for span in source.named)
        return all(self._names(span, beside) for span in source.named)

    def _names(self, span: Span, values: Sequence[str]) -> bool:
        """Whether words of the user name one of the values: a file by its title, a day in any form."""
        words = _spaced(fold(self._request[span.start : span.end])).strip(_TRIM)
        plain = [_spaced(value) for value in values if value]
        if any(occurs(value, words) >= 0 or occurs(words, value) >= 0 for value in plain):
            return True
        days = [spell(value) for value in values if _DAY.fullmatch(value)]
        return any(day is not None and day.said_in(words) for day in days)

    def _is_the_users_own(self, value: str | float) -> bool:
        """Whether an address is the user's: it stands in every record that the system shows of the user's things."""
        return any(
            sight.source == "record"
            and sight.step is not None
            and self._provenance.places(sight.step).in_every_record(str(value), sight.field)
            for sight in self._sights(value)
        )

    def _is_fixed(self, slot: Slot, kind: str, value: str | float) -> bool:
        """Whether a value is what the words say that fix it."""
        quotes = [fold(self._request[span.start : span.end]) for span in slot.said]
        if kind == "moment" and len(quotes) > 1:
            # "The 10th to the 13th of June": a day in pieces.
            quotes.append(" ".join(quotes))
        forms = [value]
        if kind == "moment" and (day := _DAY.match(str(value))):
            forms.append(day[0])
        for form in forms:
            spelling = spell(form)
            if spelling is not None and any(spelling.said_in(words) for words in quotes):
                return True
        bare = fold(str(plain_link(value)))
        if any(occurs(bare, words) >= 0 for words in quotes):
            return True
        if kind == "flag" and any(_abbreviates(bare, words) for words in quotes):
            return True
        # A thing may be called by a part of its name ("the channel that begins with External"), an address may not.
        is_name = kind in ("name", "text") and isinstance(value, str) and not identifiers(value)
        return is_name and any(occurs(words.strip(_TRIM), bare) >= 0 for words in quotes if len(words) > 2)

    def _is_user_word(self, value: str | float) -> bool:
        return self._provenance.is_said(value, before=self._before)

    def _trace(self, value: str | float) -> Traced:
        return self._provenance.trace(value, before=self._before)

    def _objection(self, why: Any, slot: Slot, value: str | float) -> Objection:
        return Objection(why, slot.name, str(value), self._trace(value))


def _spaced(folded: str) -> str:
    """With the hyphens of names of files as white space."""
    return folded.replace("-", " ")


def _abbreviates(code: str, words: str) -> bool:
    """Whether a code of a closed list stands for words: by their beginning (`r`: read), or their first letters."""
    first = "".join(word[0] for word in words.split() if word != "and")
    return bool(code) and (words.startswith(code) or first == code)


def parts_of(given: Any) -> list[str | float]:
    """The values of an argument: of a list each, and of a text that lists addresses each of them."""
    if given.__class__ is not str and isinstance(given, (int, float)):
        return [given]
    if isinstance(given, str) and given.lstrip()[:1] == "[":
        decoded = decode_text(given)
        given = decoded if isinstance(decoded, list) else given  # pyright: ignore[reportUnknownVariableType]
    if isinstance(given, (list, dict)):
        return [leaf for _, leaf in _leaves(given)]
    if isinstance(given, str) and given.count("@") > 1 and (found := identifiers(given)):
        return [*found]
    return [given] if isinstance(given, (str, int, float)) else []


def _leaves(value: Any) -> Iterator[tuple[str, str | float]]:
    if isinstance(value, Mapping):
        for name, part in cast("Mapping[str, Any]", value).items():
            yield from ((name, leaf) for _, leaf in _leaves(part))
    elif isinstance(value, list):
        for part in cast("list[Any]", value):
            yield from _leaves(part)
    elif isinstance(value, (str, int, float)) and not isinstance(value, bool) and value != "":
        yield "", value


def _number(value: str | float) -> float | None:
    try:
        return float(value)
    except (ValueError, TypeError):
        return None


_A_DAY = re.compile(
    r"\d{4}-\d\d-\d\d|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? \d|\d(?:st|nd|rd|th)?(?: of)? "
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)|\b\d{1,2}[/.]\d{1,2}\b",
    re.IGNORECASE,
)


def _says_a_day(text: str) -> bool:
    return _A_DAY.search(text) is not None
