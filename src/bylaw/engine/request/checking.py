"""Whether the arguments of a call are what one deed of the request allows: each by where its value came from."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from bylaw.engine.request.allowance import Deed, Slot, Source, fetches, kinds_of, parameter_kind
from bylaw.engine.request.by_words import said_amounts
from bylaw.engine.request.choosing import Choosing, fits, fitting, is_beyond
from bylaw.engine.request.composing import LINK, TRIM, Composing, is_code
from bylaw.engine.request.lasting import Lasting
from bylaw.engine.request.leaving_out import LeavingOut
from bylaw.engine.request.naming import Naming, is_weekday, pieces_of
from bylaw.engine.request.objection import Objection
from bylaw.engine.request.values import DAY, ends_of, is_past, number_of, parts_of, says, says_a_day, telling
from bylaw.facts.provenance import Provenance, Traced, plain_link
from bylaw.policy.tool import Tool
from bylaw.policy.verb import words_of
from bylaw.text.day import times
from bylaw.text.folding import fold, occurs
from bylaw.text.identifier import identifiers
from bylaw.text.spelling import spell

_CLOCK = re.compile(r"(\d\d):(\d\d)")
_ORDINAL = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)\b")
_A_NUMBER = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?(?![\w])")
_SUMS = frozenset(("amount", "sum", "price", "total", "fee"))
_CENT = 0.005
_ROUNDED = 0.01
_SHORT = 80


class Check:
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
        others: Sequence[Slot] = (),
        text: str = "",
        quoted: str = "",
        judges: bool = False,
        meant: str | None = None,
    ) -> None:
        """`is_whole` where the deed lists every argument that it should be given; `others` are arguments of other deeds
        which the user's words fix; `text` is one that the user handed over to, whose words count as the user's, and
        `quoted` one that a model read: what the agent writes may be taken from it, and values only as the model says.
        `judges` where it is left to the agent which of the things that fit is meant by words only a reader can hold
        against them. `meant` are the words of the request that values may be taken from; all, where it is None."""
        self._meant = None if meant is None else fold(meant)
        self._others = others
        self._judges = judges
        self._is_whole = is_whole
        self._provenance, self._tools, self._tool, self._deed = provenance, tools, tool, deed
        self._request, self._before, self._approved = request, before, approved
        self._kinds = kinds_of(tool)
        self._quoted = fold(quoted)
        self._text = " \n ".join([folded := fold(text), *ends_of(folded)])
        self._naming = Naming(provenance, request)

    def objections(self, arguments: Mapping[str, Any]) -> list[Objection]:
        found: list[Objection] = []
        for name, given in arguments.items():
            listed = self._deed.slot(name)
            if isinstance(given, bool) and listed is not None and _is_other_flag(listed.value, given):
                found.append(self._objection("not_said", listed, str(given).lower()))
            if given is None or given == "" or given == [] or isinstance(given, bool):
                continue
            kind = self._kinds.get(name) or parameter_kind(name, None)
            slot = listed or Slot(name, "free" if kind == "text" else "open")
            values = parts_of(given)
            is_needed = kind not in ("link", "address", "name") and (
                kind not in ("number", "moment") or name in self._tool.required
            )
            if listed is None and self._is_whole and not is_needed:
                strange = [value for value in values if not self._may_be_added(value, arguments)]
                found += [self._objection("not_said", slot, value) for value in strange[:1]]
                continue
            for value in values:
                if len(values) > 1 and self._is_the_users_own(value):
                    # People put themselves on the list, too.
                    continue
                if objection := self._object(slot, kind, value, arguments):
                    found.append(objection)
                    break
        return found

    def _may_be_added(self, value: str | float, arguments: Mapping[str, Any]) -> bool:
        """Whether a value may be given that the deed does not list: the user said it, for no other argument, it is the
        user's own address, it stands alone in what the user named for the others, or in the record of a thing that the
        call names, such as the recipient of the standing order whose amount is changed."""
        if self._is_user_word(value):
            return not any(self._is_fixed(slot, "name", value) for slot in self._deed.slots if slot.said)
        if self._is_the_users_own(value):
            return True
        listed = [slot.name for slot in self._deed.slots if self._kinds.get(slot.name) == "name"]
        named = {fold(str(arguments[name])) for name in listed if name in arguments}
        sources = [source for slot in self._deed.slots for source in slot.sources if source.named]
        return any(
            bool(named & {*sight.beside.values()})
            if sight.source == "record"
            else sight.is_whole and any(self._naming.is_of(source, sight, value) for source in sources)
            for sight in self._sights(value)
        )

    def _object(self, slot: Slot, kind: str, value: str | float, arguments: Mapping[str, Any]) -> Objection | None:
        if slot.judged and slot.every and self._judges:
            # Which of them fit is the agent's to tell.
            slot = replace(slot, sources=tuple(source.as_named() for source in slot.sources))
        if kind == "moment" and (slot.clear or slot.minutes):
            lasting = Lasting(self._provenance, self._tool, arguments, self._before)
            if why := lasting.objection(slot):
                return self._objection(why, slot, value)
        if slot.but and (objection := self._object_to_left_out(slot, kind, value, arguments)):
            return objection
        if slot.said and self._is_at_another_time(slot, kind, str(value)):
            return self._objection("not_said", slot, value)
        if slot.said and self._is_fixed(slot, kind, value):
            return None
        if slot.fill == "said" and slot.said:
            return self._objection("not_said", slot, value)
        if any(fits(limit.field, slot.name) and is_beyond(limit, str(value)) for limit in slot.limits):
            return self._objection("too_much", slot, value)
        if kind == "text" and isinstance(value, str):
            # A text is the agent's own, whatever it passes on.
            if slot.must and (unsaid := self._unsaid(slot, arguments)):
                return self._objection("unsaid", slot, unsaid)
            return self._object_to_text(slot, value)
        if self._meant is not None and (kind == "number" or _SUMS & {*words_of(slot.name)}):
            return self._object_to_amount(slot, value)
        if (
            self._is_user_word(value)
            and not slot.choice
            and not slot.limits
            and not self._is_said_of_another(slot, kind, value)
        ):
            return None
        match kind:
            case "number":
                return self._object_to_number(slot, value)
            case "moment":
                return self._object_to_moment(slot, value)
            case _:
                pass
        if slot.fill == "free" and (kind == "flag" or (kind == "name" and self._trace(value).source == "agent")):
            return None
        if slot.fill == "said":
            return self._objection("not_said", slot, value)
        objection = self._object_to_source(slot, kind, value)
        if objection is None or len(slot.sources) < 2 or self._choosing().is_out(slot, value):
            return objection
        sources = self._naming.placed(slot.sources, self._before)
        return self._object_to_source(replace(slot, sources=sources), kind, value) if sources else objection

    def _is_at_another_time(self, slot: Slot, kind: str, value: str) -> bool:
        """Whether a moment is on the day that the user said, or any, and at another time than the user said."""
        if any(limit.field == slot.name and is_beyond(limit, value) for limit in slot.limits):
            return True
        if kind == "moment" and (meant := _CLOCK.search(str(slot.value))):
            told = _CLOCK.search(value)
            return told is not None and told[0] != meant[0]
        clock = _CLOCK.search(value) if kind == "moment" and not slot.limits else None
        said = times(" ".join(self._naming.words(slot.said))) if clock else ()
        return clock is not None and bool(said) and (int(clock[1]), int(clock[2])) not in said

    def _object_to_left_out(
        self, slot: Slot, kind: str, value: str | float, arguments: Mapping[str, Any]
    ) -> Objection | None:
        """What the user left out is not given."""
        leaving_out = self._leaving_out(slot)
        if kind == "text" and isinstance(value, str):
            held = leaving_out.held_in(slot, value)
            return self._objection("left_out", slot, held) if held else None
        if kind in ("number", "moment", "flag") or not leaving_out.is_out(slot, value, arguments):
            return None
        return self._objection("left_out", slot, value)

    def _choosing(self) -> Choosing:
        return Choosing(self._provenance, self._tools, self._naming, self._before)

    def _leaving_out(self, slot: Slot) -> LeavingOut:
        is_judged = bool(slot.judged) and self._judges
        return LeavingOut(self._provenance, self._naming, self._request, self._before, judges=is_judged)

    def _is_said_of_another(self, slot: Slot, kind: str, value: str | float) -> bool:
        """Whether the user said a value only as the name of where another is to be found, or as the account or the
        number of another deed."""
        if fold(str(value)) in {word for source in slot.sources for word in self._naming.words(source.named)}:
            return True
        is_number = slot.fill == "found" and kind == "name" and bool(identifiers(str(value)))
        return is_number and any(self._is_fixed(other, "name", value) for other in self._others)

    def _unsaid(self, slot: Slot, arguments: Mapping[str, Any]) -> str:
        """What the texts of a call should say, in any of them and in any form, and do not."""
        texts = (value for name, value in arguments.items() if self._kinds.get(name) == "text")
        text = fold(" \n ".join(str(each) for each in texts))
        return next((words for words in self._naming.words(slot.must) if not says(words, text)), "")

    def _object_to_text(self, slot: Slot, text: str) -> Objection | None:
        """No link that nobody approved: said by the user, or of an earlier call that was allowed. Where the sources of
        a text are known, nothing in it may come from elsewhere."""
        if self._is_whole:
            composing = Composing(
                self._provenance, self._tools, self._naming, self._before, self._approved, self._is_quoted
            )
            sources = [source for each in self._deed.slots for source in each.sources]
            if name := composing.strange_name(text, sources):
                return self._objection("link", slot, name)
            if passage := composing.strange_passage(text, sources):
                return self._objection("passage", slot, passage)
            choosing = self._choosing()
            figure = composing.figure_of_another(text, slot.sources, lambda sight: choosing.is_best(slot, sight))
            return self._objection("of_another", slot, figure) if figure else None
        for link in LINK.findall(text) if "." in text else ():
            bare = link.rstrip(TRIM)
            if not (self._is_user_word(bare) or self._approved(bare) or self._is_in_place("link", bare)):
                return self._objection("link", slot, bare)
        return None

    def _object_to_amount(self, slot: Slot, value: str | float) -> Objection | None:
        """Without a model, an amount is one that the user said for it, or that stands in a place which counts."""
        number = number_of(value)
        is_said = number is not None and number in said_amounts(self._request, self._deed, slot.name)
        is_shown = any(sight.source == "record" or sight.pointed for sight in self._sights(value))
        return None if is_said or is_shown else self._objection("not_said", slot, value)

    def _object_to_number(self, slot: Slot, value: str | float) -> Objection | None:
        """An amount that nobody said must at least not be more than all that was said or shown, together."""
        number = number_of(value)
        named = [source for source in slot.sources if source.is_described] if slot.fill == "found" else []
        if (slot.factor or slot.plus) and number is not None:
            return None if self._is_share(number, slot) else self._objection("not_found", slot, value)
        if named and number is not None:
            sights = [*self._provenance.sights(number, before=self._before)]
            if any(self._is_named(slot, source, sight, number) for source in named for sight in sights):
                return None
            # What a record says is the thing itself; only a running text tells by how much something changes.
            texts = (text for source in named for text in self._naming.texts(source, (), self._before, only_prose=True))
            text = " \n ".join(texts).strip()
            is_told = bool(text) and self._follows(number, text)
            return None if is_told else self._objection("not_found", slot, value)
        is_one = not any(each.every for each in self._deed.slots)
        if slot.fill == "free" and is_one and number is not None and self._is_shown_as_it_is(slot, number):
            return self._objection("as_shown", slot, value)
        if self._text and number is not None and not self._follows(number, self._text):
            return self._objection("not_said", slot, value)
        known = self._provenance.numbers(before=self._before)
        if number is None or not known or number <= 2 * max(known):
            return None
        return self._objection("too_much", slot, value)

    def _is_shown_as_it_is(self, slot: Slot, number: float) -> bool:
        """Whether an amount that has to be worked out is one that a source shows."""
        sources = [source.as_named() for source in slot.sources if source.is_described]
        sights = [*self._provenance.sights(number, before=self._before)]
        return any(self._naming.is_of(source, sight, number) for source in sources for sight in sights)

    def _is_share(self, number: float, slot: Slot) -> bool:
        """Whether an amount is the share that the user said of one that a source shows."""
        for base in self._provenance.numbers(before=self._before):
            if abs(base * (slot.factor or 1) + slot.plus - number) < _ROUNDED:
                sights = [*self._provenance.sights(base, before=self._before)]
                if not slot.sources or any(
                    self._naming.is_of(source, sight, base) for source in slot.sources for sight in sights
                ):
                    return True
        return False

    def _is_named(self, slot: Slot, source: Source, sight: Traced, value: str | float) -> bool:
        """Whether a value stands where the user said: in the named record, and in its field; of a text in the piece
        that bears the names."""
        if not self._naming.is_of(source, sight, value) or not self._is_of_field(slot, sight):
            return False
        is_one = not slot.every and not slot.choice and not (slot.judged and self._judges)
        if is_one and not self._naming.is_likeliest(source, sight):
            return False
        return sight.is_whole or self._naming.stands_by_its_names(source, sight, value) is not False

    def _is_of_field(self, slot: Slot, sight: Traced) -> bool:
        """Whether a value stands in the field that it should be, where its record has one of that name."""
        if not slot.field or sight.step is None or sight.number < 0:
            return True
        fields = self._provenance.places(sight.step).fields(sight.number)
        best = fitting(slot.field, fields)
        return not best or fold(sight.field) in best

    def _follows(self, number: float, text: str) -> bool:
        """Whether an amount follows from a text: one that was shown is raised or lowered by what stands there, in
        figures or in percent. A text without figures says nothing of it."""
        told = [float(each.replace(",", "")) for each in _A_NUMBER.findall(text)]
        shown = self._provenance.numbers(before=self._before)
        changes = (
            (base, sign * by) for base in shown for each in told for by in (each, base * each / 100) for sign in (1, -1)
        )
        return not told or any(abs(base + by - number) < _CENT for base, by in changes)

    def _object_to_moment(self, slot: Slot, value: str | float) -> Objection | None:
        """A day is said or shown, where the user said one; and of texts, only those count that the user named."""
        day = DAY.match(str(value))
        if day is None or self._is_user_word(day[0]):
            return None
        spelling = spell(day[0])
        if spelling is not None and any(spelling.said_in(ends) for ends in ends_of(fold(self._request))):
            return None
        sights = [*self._sights(day[0])]
        if not sights:
            if self._text:
                return self._objection("not_said", slot, value) if is_past(day[0], self._text) else None
            is_open = slot.fill == "free" or not says_a_day(self._request)
            return None if is_open else self._objection("not_said", slot, value)
        named = [source for source in slot.sources if source.is_described]
        if slot.fill == "found" and named and not self._is_shown_moment(slot, named, str(value), sights):
            return self._objection("not_found", slot, value)
        if not named or any(sight.source == "record" or sight.is_whole for sight in sights):
            return None
        is_named = any(self._naming.is_of(source, sight, day[0]) for source in named for sight in sights)
        return None if is_named else self._objection("not_found", slot, value)

    def _is_shown_moment(self, slot: Slot, named: Sequence[Source], value: str, sights: Sequence[Traced]) -> bool:
        """Whether a moment is one of the named records, by the clock as well where they show one."""
        shown = [
            (sight, self._told(sight))
            for sight in sights
            if sight.step is not None and any(self._is_named(slot, source, sight, value[:10]) for source in named)
        ]
        clock = _CLOCK.search(value)
        fits = [sight for sight, told in shown if clock is None or _is_at(clock, value[:10], told)]
        if slot.choice is None:
            return bool(fits) or not shown
        choosing = self._choosing()
        return any(choosing.is_best(slot, sight) is not False for sight in fits)

    def _told(self, sight: Traced) -> str:
        """What the field says that a value stands in, as it was written."""
        assert sight.step is not None
        places = self._provenance.places(sight.step)
        written = places.written(sight.number, sight.field)
        return written or places.fields(sight.number).get(fold(sight.field), "")

    def _is_in_place(self, kind: str, value: str | float) -> bool:
        """Whether a value stands in a trusted field, or in a place that the user named."""
        return any(sight.source == "record" or self._is_pointed(kind, sight) for sight in self._sights(value))

    def _sights(self, value: str | float) -> Iterator[Traced]:
        return self._provenance.sights(plain_link(value), before=self._before)

    def _object_to_source(self, slot: Slot, kind: str, value: str | float) -> Objection | None:
        is_found = False
        choosing = self._choosing()
        for sight in self._provenance.sights(plain_link(value), before=self._before, confirmed=bool(slot.sources)):
            if not self._is_usable(slot, kind, value, sight):
                continue
            is_found = True
            if choosing.is_chosen(slot, value, sight, judges=self._judges) and not self._is_one_of_several(
                choosing, slot, value, sight
            ):
                return None
        if slot.choice is not None and self._is_user_word(value):
            # "Which of the two is better rated? Book that one."
            asked = self._naming.asked_about(value, self._before)
            return (
                None
                if any(choosing.is_chosen(slot, value, each) for each in asked)
                else self._objection("not_chosen", slot, value)
            )
        is_listed = any(sight.source == "record" for sight in self._sights(value))
        if (
            is_listed
            and not is_found
            and any(self._naming.is_shown_by(source, value, self._before) for source in slot.sources)
        ):
            return None
        return self._objection("not_chosen" if is_found else "not_found", slot, value)

    def _is_one_of_several(self, choosing: Choosing, slot: Slot, value: str | float, sight: Traced) -> bool:
        """Whether others fit as well as a value, and only the user can say which is meant."""
        if slot.judged and not sight.is_whole and not self._is_user_word(value):
            return not self._naming.stands_by_words(slot.sources, slot.judged, sight, value, as_well=self._judges)
        if slot.judged and self._judges:
            return False
        is_one = self._is_whole and slot.fill == "found" and not slot.every and slot.choice is None
        if not (is_one or slot.judged) or self._is_user_word(value):
            return False
        leaving_out = self._leaving_out(slot)
        return choosing.has_rivals(slot, value, sight, lambda other: leaving_out.is_out(slot, other))

    def _is_usable(self, slot: Slot, kind: str, value: str | float, sight: Traced) -> bool:
        """Whether a value may be taken from where it stands."""
        if not slot.sources:
            if self._text:
                if sight.source == "record":
                    return self._is_noted(sight, is_known=kind != "link" and "@" not in str(value))
                return self._is_called(value, sight) or self._is_posted(kind, sight)
            return sight.source == "record" or self._is_pointed(kind, sight)
        if sight.source != "record" and not self._stands_out(slot, kind, value, sight):
            return False
        if not any(self._is_named(slot, source, sight, value) for source in slot.sources):
            return False
        return (
            sight.source == "record"
            or bool(sight.pointed)
            or any(source.named or source.perhaps for source in slot.sources)
        )

    def _is_noted(self, sight: Traced, *, is_known: bool) -> bool:
        """Whether the text that the user handed over to speaks of a record; or of none of those beside it, where one
        that the system knows will do."""
        assert sight.step is not None
        said = telling(self._text)
        places = self._provenance.places(sight.step)
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
        """Whether the text that the user handed over to calls somebody by name whose address stands alone somewhere."""
        person, at, _ = fold(str(value)).partition("@")
        return sight.is_whole and bool(at) and bool(telling(person.replace(".", " ")) & telling(self._text))

    def _is_posted(self, kind: str, sight: Traced) -> bool:
        """Whether a link or an address stands in the place that the text which the user handed over to names."""
        is_page = kind == "link" and fetches(self._tools[sight.tool])
        return kind in ("link", "address") and not is_page and self._naming.is_noted(sight, self._text)

    def _stands_out(self, slot: Slot, kind: str, value: str | float, sight: Traced) -> bool:
        """Whether a value may be taken from a text: it is all that stands there, or a link, an address or a plain name;
        an id in a running text never, an account only where the text has no other, or its piece alone bears the names
        that the user gave; or in a row of its own, where all are meant."""
        if sight.is_whole or kind in ("link", "address"):
            return True
        if "id" in words_of(slot.name):
            return False
        assert sight.step is not None
        if not is_code(str(value)) and any(each.source == "record" for each in self._sights(value)):
            # `covers-2026` is a channel that the system knows, and no account.
            return True
        codes = [each for each in identifiers(self._provenance.text(sight.step)) if is_code(each)]
        return (
            not identifiers(str(value))
            or codes == [str(value)]
            or (slot.every and self._naming.is_in_a_row(sight, str(value), codes))
            or any(self._naming.alone_bears(source, sight, str(value), codes) for source in slot.sources)
        )

    def _is_pointed(self, kind: str, sight: Traced) -> bool:
        """Whether content counts: it stands in a place that the user named; alone, but for links and addresses."""
        if kind == "link" and (tool := self._tools.get(sight.tool)) is not None and fetches(tool):
            # A page that was fetched may not send the agent to another.
            return False
        return bool(sight.pointed) and (sight.is_whole or kind in ("link", "address"))

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
        if slot.value is not None and kind in ("flag", "moment", "number") and _is_same(slot.value, value):
            return True
        quotes = [*self._naming.words(slot.said)]
        if kind == "moment" and len(quotes) > 1:
            # "The 10th to the 13th of June": a day in pieces.
            quotes += [
                " ".join(quotes),
                *(f"{day} {words}" for day in _ORDINAL.findall(" ".join(quotes)) for words in quotes),
            ]
        if kind == "moment":
            quotes += [ends for words in quotes for ends in ends_of(words)]
        forms = [value]
        if kind == "moment" and (day := DAY.match(str(value))):
            forms.append(day[0])
            said = " ".join(quotes)
            if not says_a_day(said) and int(day[0][8:]) in map(int, _ORDINAL.findall(said)):
                # "On the 27th": nobody says of which month.
                return True
            if any(is_weekday(day[0], words) for words in quotes) and not any(map(says_a_day, quotes)):
                return True
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
        parts = [words for words in quotes if len(words) > 2 and occurs(words, bare) >= 0] if is_name else []
        # Where something is called by just these words, nothing else is.
        return any(kind == "text" or not any(each.is_whole for each in self._sights(words)) for words in parts)

    def _is_user_word(self, value: str | float) -> bool:
        if self._provenance.is_said(value, before=self._before):
            return self._is_meant(value)
        spelling = spell(value) if self._text else None
        return spelling is not None and spelling.said_in(self._text)

    def _is_meant(self, value: str | float) -> bool:
        """Whether words that ask for something say a value that the user said, and not only a quoted line, or one that
        refuses."""
        spelling = None if self._meant is None else spell(plain_link(value))
        if spelling is None or self._meant is None:
            return True
        return spelling.said_in(self._meant) or not spelling.said_in(fold(self._request))

    def _is_quoted(self, words: str) -> bool:
        """Whether the user said words, or a text that the user handed over to."""
        spelling = spell(words) if self._quoted else None
        return self._is_user_word(words) or (spelling is not None and spelling.said_in(self._quoted))

    def _trace(self, value: str | float) -> Traced:
        return self._provenance.trace(value, before=self._before)

    def _objection(self, why: Any, slot: Slot, value: str | float) -> Objection:
        return Objection(why, slot.name, str(value), self._trace(value))


def _is_at(clock: re.Match[str], day: str, told: str) -> bool:
    """Whether a moment or a text that tells a day says no other time of it."""
    spelling = spell(day)
    pieces = [fold(piece) for piece in pieces_of(told)]
    said = [piece for piece in pieces if len(pieces) == 1 or (spelling is not None and spelling.said_in(piece))]
    at = {time for piece in said for time in times(piece)} or {
        (int(each[1]), int(each[2])) for piece in said for each in _CLOCK.finditer(piece)
    }
    return not at or (int(clock[1]), int(clock[2])) in at


def _is_same(meant: str | float | bool, given: str | float) -> bool:
    """Whether a value is what the user's words mean: the same figure, moment or word, whatever the seconds."""
    if isinstance(meant, bool) or (one := number_of(meant)) is None or (other := number_of(given)) is None:
        one, other = (fold(str(each)).replace("t", " ") for each in (meant, given))
        return bool(one) and (one == other or (DAY.match(one) is not None and other.startswith(one)))
    return one == other


def _is_other_flag(meant: str | float | bool | None, given: bool) -> bool:
    """Whether the user's words mean yes and a flag says no, or the other way round."""
    return fold(str(meant)) == str(not given).lower()


def _abbreviates(code: str, words: str) -> bool:
    """Whether a code of a closed list stands for words: by their beginning (`r`: read), or their first letters."""
    first = "".join(word[0] for word in words.split() if word != "and")
    return bool(code) and (words.startswith(code) or first == code)
