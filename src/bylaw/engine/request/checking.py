"""Whether the arguments of a call are what one deed of the request allows: each by where its value came from."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from bylaw.engine.request.allowance import Deed, Slot, kinds_of, parameter_kind
from bylaw.engine.request.choosing import Choosing, fits, is_beyond
from bylaw.engine.request.composing import LINK, TRIM, Composing
from bylaw.engine.request.figures import Amounts, Lasting, Moments
from bylaw.engine.request.leaving_out import LeavingOut
from bylaw.engine.request.naming import Naming
from bylaw.engine.request.noting import Noting
from bylaw.engine.request.objection import Objection, Why
from bylaw.engine.request.pairing import mixed_up
from bylaw.engine.request.placing import Placing
from bylaw.engine.request.saying import Saying
from bylaw.engine.request.values import ends_of, flags_of, number_of, parts_of, says
from bylaw.engine.request.view import View
from bylaw.facts.provenance import Traced, plain_link
from bylaw.policy.tool import Tool
from bylaw.policy.verb import words_of
from bylaw.text.folding import fold
from bylaw.text.identifier import identifiers


class Check:
    """One call under one deed."""

    def __init__(
        self,
        view: View,
        tool: Tool,
        deed: Deed,
        *,
        approved: Callable[[str], bool] = lambda _: False,
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
        against them. `meant` are the folded words of the request that values may be taken from; all, where it is
        None."""
        self._view, self._tool, self._deed, self._approved = view, tool, deed, approved
        self._is_whole, self._others, self._judges, self._by_words = is_whole, others, judges, meant is not None
        self._kinds = kinds_of(tool)
        self._text = " \n ".join([folded := fold(text), *ends_of(folded)])
        self._naming = Naming(view)
        self._saying = Saying(view, text=self._text, quoted=quoted, meant=meant)
        note = Noting(view, self._text) if self._text else None
        self._placing = Placing(view, self._naming, judges=judges, note=note)

    def objections(self, arguments: Mapping[str, Any]) -> list[Objection]:
        found: list[Objection] = []
        for name, given in arguments.items():
            listed = self._deed.slot(name)
            if isinstance(given, bool) and listed is not None and fold(str(listed.value)) == str(not given).lower():
                found.append(self._objection("not_said", listed, str(given).lower()))
            if given is None or given == "" or given == [] or isinstance(given, bool):
                continue
            kind = self._kinds.get(name) or parameter_kind(name, None)
            slot = listed or Slot(name, "free" if kind == "text" else "open")
            values = parts_of(given, self._tool)
            is_needed = kind not in ("link", "address", "name") and (
                kind not in ("number", "moment") or name in self._tool.required
            )
            if listed is None and self._is_whole and not is_needed:
                strange = [value for value in values if not self._may_be_added(value, arguments)]
                found += [self._objection("not_said", slot, value) for value in strange[:1]]
                continue
            for value in values:
                if len(values) > 1 and self._placing.is_the_users_own(value):
                    # People put themselves on the list, too.
                    continue
                if objection := self._object(slot, kind, value, arguments):
                    found.append(objection)
                    break
        if self._by_words:
            set_ = [name for name in flags_of(arguments) if any(map(self._is_only_a_texts, words_of(name)))]
            found += [self._objection("not_said", Slot(name, "free"), name) for name in set_]
        if not found and self._by_words:
            mixed = mixed_up(self._view.request, self._kinds, arguments)
            found += [self._objection("not_said", Slot(name, "open"), str(arguments[name])) for name in mixed]
        return found

    def _is_only_a_texts(self, value: str | float) -> bool:
        """Whether a text tells a value, and neither the user nor a record or a place that the user named does."""
        traced = self._view.trace(value)
        return traced.source == "content" and not traced.pointed

    def _may_be_added(self, value: str | float, arguments: Mapping[str, Any]) -> bool:
        """Whether a value may be given that the deed does not list: the user said it, for no other argument, it is the
        user's own address, it stands alone in what the user named for the others, or in the record of a thing that the
        call names, such as the recipient of the standing order whose amount is changed."""
        if self._saying.is_user_word(value):
            return not any(self._saying.is_fixed(slot, "name", value) for slot in self._deed.slots if slot.said)
        if self._placing.is_the_users_own(value):
            return True
        listed = [slot.name for slot in self._deed.slots if self._kinds.get(slot.name) == "name"]
        named = {fold(str(arguments[name])) for name in listed if name in arguments}
        sources = [source for slot in self._deed.slots for source in slot.sources if source.named]
        return any(
            bool(named & {*sight.beside.values()})
            if sight.source == "record"
            else sight.is_whole and any(self._naming.is_of(source, sight, value) for source in sources)
            for sight in self._placing.sights(value)
        )

    def _object(self, slot: Slot, kind: str, value: str | float, arguments: Mapping[str, Any]) -> Objection | None:
        if slot.judged and slot.every and self._judges:
            # Which of them fit is the agent's to tell.
            slot = replace(slot, sources=tuple(source.as_named() for source in slot.sources))
        is_lasting = kind == "moment" and (slot.clear or slot.minutes)
        if is_lasting and (why := Lasting(self._view, self._tool, arguments).objection(slot)):
            return self._objection(why, slot, value)
        if slot.but and (objection := self._object_to_left_out(slot, kind, value, arguments)):
            return objection
        if slot.said and self._saying.is_at_another_time(slot, kind, str(value)):
            return self._objection("not_said", slot, value)
        if slot.said and self._saying.is_fixed(slot, kind, value):
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
        if self._saying.is_amount(slot, kind):
            # Without a model an amount is one that the user said for it, or that stands in a place which counts.
            sights = [*self._placing.sights(value)]
            is_shown = any(sight.source == "record" or sight.pointed for sight in sights)
            is_wrong = not is_shown and self._saying.object_to_amount(self._deed, slot, value, is_told=bool(sights))
            return self._objection("not_said", slot, value) if is_wrong else None
        if (
            self._saying.is_user_word(value)
            and not slot.choice
            and not slot.limits
            and not self._is_said_of_another(slot, kind, value)
        ):
            return None
        match kind:
            case "number":
                number = number_of(value)
                is_one = not any(each.every for each in self._deed.slots)
                amounts = Amounts(self._view, self._naming, self._placing)
                why = amounts.objection(slot, number, is_one=is_one, text=self._text) if number is not None else None
                return self._objection(why, slot, value) if why else None
            case "moment":
                moments = Moments(self._view, self._naming, self._placing, self._saying, self._text)
                why = moments.objection(slot, value)
                return self._objection(why, slot, value) if why else None
            case _:
                pass
        if self._by_words and kind == "flag" and self._is_only_a_texts(value):
            return self._objection("not_said", slot, value)
        if slot.fill == "free" and (kind == "flag" or (kind == "name" and self._view.trace(value).source == "agent")):
            return None
        if slot.fill == "said":
            return self._objection("not_said", slot, value)
        objection = self._object_to_source(slot, kind, value)
        if objection is None or len(slot.sources) < 2 or self._choosing().is_out(slot, value):
            return objection
        sources = self._naming.placed(slot.sources)
        return self._object_to_source(replace(slot, sources=sources), kind, value) if sources else objection

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
        return Choosing(self._view, self._naming)

    def _leaving_out(self, slot: Slot) -> LeavingOut:
        is_judged = bool(slot.judged) and self._judges
        return LeavingOut(self._view, self._naming, judges=is_judged)

    def _is_said_of_another(self, slot: Slot, kind: str, value: str | float) -> bool:
        """Whether the user said a value only as the name of where another is to be found, or as the account or the
        number of another deed."""
        if fold(str(value)) in {word for source in slot.sources for word in self._view.words(source.named)}:
            return True
        is_number = slot.fill == "found" and kind == "name" and bool(identifiers(str(value)))
        return is_number and any(self._saying.is_fixed(other, "name", value) for other in self._others)

    def _unsaid(self, slot: Slot, arguments: Mapping[str, Any]) -> str:
        """What the texts of a call should say, in any of them and in any form, and do not."""
        texts = (value for name, value in arguments.items() if self._kinds.get(name) == "text")
        text = fold(" \n ".join(str(each) for each in texts))
        return next((words for words in self._view.words(slot.must) if not says(words, text)), "")

    def _object_to_text(self, slot: Slot, text: str) -> Objection | None:
        """No link that nobody approved: said by the user, or of an earlier call that was allowed. Where the sources of
        a text are known, nothing in it may come from elsewhere."""
        if self._is_whole:
            composing = Composing(self._view, self._naming, self._approved, self._saying.is_quoted)
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
            if not (self._saying.is_user_word(bare) or self._approved(bare) or self._placing.is_in_place("link", bare)):
                return self._objection("link", slot, bare)
        return None

    def _object_to_source(self, slot: Slot, kind: str, value: str | float) -> Objection | None:
        is_found = False
        choosing = self._choosing()
        for sight in self._view.sights(plain_link(value), confirmed=bool(slot.sources)):
            if not self._placing.is_usable(slot, kind, value, sight):
                continue
            is_found = True
            if choosing.is_chosen(slot, value, sight, judges=self._judges) and not self._is_one_of_several(
                choosing, slot, value, sight
            ):
                return None
        if slot.choice is not None and self._saying.is_user_word(value):
            # "Which of the two is better rated? Book that one."
            asked = self._naming.asked_about(value)
            return (
                None
                if any(choosing.is_chosen(slot, value, each) for each in asked)
                else self._objection("not_chosen", slot, value)
            )
        is_listed = any(sight.source == "record" for sight in self._placing.sights(value))
        if is_listed and not is_found and any(self._naming.is_shown_by(source, value) for source in slot.sources):
            return None
        return self._objection("not_chosen" if is_found else "not_found", slot, value)

    def _is_one_of_several(self, choosing: Choosing, slot: Slot, value: str | float, sight: Traced) -> bool:
        """Whether others fit as well as a value, and only the user can say which is meant."""
        if slot.judged and not sight.is_whole and not self._saying.is_user_word(value):
            texts = self._naming.texts_beside(slot.sources, sight)
            return not self._naming.passages.stands_by_words(texts, slot.judged, value, as_well=self._judges)
        if slot.judged and self._judges:
            return False
        is_one = self._is_whole and slot.fill == "found" and not slot.every and slot.choice is None
        if not (is_one or slot.judged) or self._saying.is_user_word(value):
            return False
        leaving_out = self._leaving_out(slot)
        return choosing.has_rivals(slot, value, sight, lambda other: leaving_out.is_out(slot, other))

    def _objection(self, why: Why, slot: Slot, value: str | float) -> Objection:
        return Objection(why, slot.name, str(value), self._view.trace(value))
