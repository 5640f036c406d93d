"""Whether every value of a call was told for this deed, by exclusion: where another could be meant, it was not."""

import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from itertools import chain, islice

from bylaw.consent.answer import is_neutral
from bylaw.consent.argument import Argument
from bylaw.consent.hearing import Hearing, Why
from bylaw.consent.one_way import mixed
from bylaw.consent.passage import Passage, is_code, passage_of
from bylaw.consent.put import new_words
from bylaw.consent.quantity import is_fee_untold, tells_price, why_day, why_sum, why_time
from bylaw.consent.spot import (
    NO_LABELS,
    PLAIN,
    has_words,
    is_about,
    is_told_of_another,
    is_told_whole,
    may_stand_in,
    spoken,
    stands_in,
    stem_set,
    word_set,
)
from bylaw.facts.value import loose
from bylaw.policy.verb import words_of
from bylaw.text.identifier import is_prose
from bylaw.text.stem import stem

_OFF = re.compile(r"\b(?:no|not|none|without|0|zero|off|false|declin\w*|\w+n't)\b")
_VAGUE_NAMES = frozenset(("total", "number", "count", "quantity", "new", "nonfree", "amount", "num", "qty"))


_NOBODY = frozenset(
    ("it", "that", "here", "there", "what", "let", "today", "tomorrow", "thursday", "friday", "saturday")
)
_ENDS = re.compile(r"\bend(?:ing|s)(?: in| with)? (\d+)\b")
_POINTS = r"\b(?:your|the|this|that|a|an|his|her|their|my|our|from|to)"


def untold(heard: Hearing) -> list[tuple[Argument, Why]]:
    """The values that were not surely told."""

    def those(why: Why, is_so: Callable[[Hearing, Argument], bool], given: Sequence[Argument]) -> None:
        found.extend([(each, why) for each in given if is_so(heard, each)])

    given = heard.given
    found: list[tuple[Argument, Why]] = [
        (each, why) for each in given if (why := _known_why(heard, each)) and not _is_implied(heard, each)
    ]
    if not found:
        those("another", _is_of_another, given)
        those("beside", _may_be_another, given)
    those("fee", is_fee_untold, [each for each in given if each.kind == "id"])
    if not found:
        found.extend([(each, "order") for each in mixed(heard)])
    if not any(each.kind == "sum" for each in given):
        means = next((each for each in given if each.is_means), None)
        if means is not None and not tells_price(heard):
            found.append((means, "price"))
    return found


def _known_why(heard: Hearing, each: Argument) -> Why | None:
    """Why a value was not surely told, found once; None where it was."""
    place = id(each)
    if place not in heard.whys:
        heard.whys[place] = _why(heard, each)
    return heard.whys[place]


def _why(heard: Hearing, each: Argument) -> Why | None:
    match each.kind:
        case "id":
            return _thing(heard, each)
        case "sum":
            return why_sum(heard, each)
        case "day":
            return why_day(heard, each)
        case "time":
            return why_time(heard, each)
        case "count":
            return _count(heard, each)
        case "choice":
            return _choice(heard, each)
        case "flag":
            return _flag(heard, each)
        case "name":
            return _name(heard, each)


def _is_implied(heard: Hearing, each: Argument) -> bool:
    """Whether it is a part of a thing that was told: the date of birth of a passenger, the day of a flight."""
    if each.kind in ("name", "choice") and _is_of_record(heard, each):
        return True
    if each.name == each.top or each.kind in ("sum", "id"):
        return False
    if each.day is not None and any(day.may_be(each.day) for day in heard.bracketed.days):
        return True
    things = [other for other in heard.given if other.top == each.top and other is not each]
    records = [record for other in things for _, record in heard.records.of(other.key)]
    return any((each.name, each.key) in record.fields for record in records)


def _is_of_record(heard: Hearing, each: Argument) -> bool:
    """Whether a thing that was told has the value, or the value names the field that held what was told."""
    for other in heard.given:
        if other.kind == "id" and not other.is_person and not _known_why(heard, other):
            entries = heard.records.of(other.key)
            held = [[key for name, key in record.fields if name == each.name] for _, record in entries]
            if [each.key] in held:
                return True
    ids = [other for other in heard.given if other.kind == "id"]
    fields = [at for other in ids for _, record in heard.records.of(other.key) for at in record.fields]
    return any(loose(name) == each.key and len(key) > 2 and heard.put.place_of(key) >= 0 for name, key in fields)


def _is_of_another(heard: Hearing, each: Argument) -> bool:
    """Whether a value was told only to say where another lies, or whose something is."""

    def is_known(word: str) -> bool:
        own = (heard.tool, heard.described, *(other.name for other in heard.given))
        return any(stem(word) in stem_set(name) for name in own) or heard.deed is None or heard.deed.is_called((word,))

    return is_told_of_another(each, heard.bracketed, is_known)


def _may_be_another(heard: Hearing, each: Argument) -> bool:
    """Whether a figure that was told may have been told for another value of the call: "buy 2 of item 7" tells no item
    2, and "item 7" no seven of them."""
    if each.kind == "count" and each.number is not None:
        alike = [other for other in heard.given if other.number == each.number or other.key == str(each.number)]
        told = sum(number.value == each.number for number in heard.bracketed.numbers)
        if len(alike) > max(told, 1) and not all(other is each or _share(other, each) for other in alike):
            return True
        names = "|".join(word for word in words_of(each.name) if len(word) > 2 and word not in NO_LABELS | _VAGUE_NAMES)
        led = re.findall(rf"\b(?:{names}) #?(\d+)\b", heard.raw) if names else []
        return bool(led) and each.key not in led
    if each.kind != "id" or not each.key.isdigit() or not any(other.kind == "count" for other in heard.given):
        return False
    names = "|".join(re.escape(word) for word in words_of(each.name) if word not in NO_LABELS) or "id"
    return re.search(rf"(?:\b(?:{names})s?(?: (?:number|no\.?|id))?:? ?#?|#){each.key}\b", heard.raw) is None


def _thing(heard: Hearing, each: Argument) -> Why | None:
    """Why the thing that an id names was not surely told; None where it was.

    It may be told by what its record holds and no other of its kind does, or in an older message, where nothing of its
    kind was said since. What only the answer says the user asked for, but nobody told it.
    """
    if _is_plain(heard, each):
        return None
    is_seen = bool(heard.records.of(each.key))
    is_alone = not heard.beside(each)
    is_seen_alone = is_seen and is_alone and heard.is_clear
    if each.is_person and is_alone:
        is_of_user = _is_of_user(heard, each)
        rivals = heard.rivals(each, heard.put) or heard.rivals(each, heard.answer)
        if (is_seen_alone or is_of_user) and not rivals:
            return None if is_of_user else _person(heard, each)
    for passage in heard.regions(each):
        found = _thing_in(heard, each, passage)
        if found is None and passage is heard.answer and not each.is_means:
            # Of what the user names alone nothing was told.
            found = "never" if _thing_in(heard, each, heard.bracketed) in ("never", "another") else None
        if found != "never":
            return found
    if is_seen_alone:
        # The only one of its kind that anybody has seen, where nobody named another.
        return "another" if _is_called_otherwise(heard, each) else None
    for passage in heard.older():
        if (found := _thing_in(heard, each, passage)) != "never":
            return found
    return "never"


def _person(heard: Hearing, each: Argument) -> Why | None:
    """The same of the only person whose records anybody has seen: "your membership" is that of somebody who has said
    who they are."""
    is_told = heard.answer.place_of(each.key) >= 0 or heard.put.place_of(each.key) >= 0
    if not is_told and _is_called_otherwise(heard, each):
        return "another"
    return None if heard.is_met(each.key) else "never"


def _is_plain(heard: Hearing, each: Argument) -> bool:
    """Whether an id stands in what was put with none that could be meant instead, and neither the answer nor the
    question calls a thing by anything else: nothing need be read passage by passage."""
    answer, asked, put = heard.answer, heard.asked, heard.put
    if heard.spot(each, put) < 0 or answer.marks or answer.ids or answer.endings or heard.rivals(each, put):
        return False
    return heard.spot(each, asked) >= 0 or not (asked.marks or asked.endings)


def _is_called_otherwise(heard: Hearing, each: Argument) -> bool:
    """Whether the agent spoke of somebody's thing, of another kind of it, or of one with a number or an id, that
    the thing's records do not hold: "Bob's order", "your savings account", "order 7", "the one ending in 99"."""
    held = heard.records.marks_of(each.key)

    def is_its_own(word: str) -> bool:
        is_end = word.isdigit() and each.key.endswith(word) and not each.key.removesuffix(word)[-1:].isdigit()
        return word == each.key or is_end or word in held or f"n:{word}" in held

    def is_known(code: str) -> bool:
        return code in heard.own or heard.records.holds(code)

    for name in (word for word in words_of(each.name) if word not in NO_LABELS):
        called = rf"\b([a-z]+)'s (?:\w+ )?{name}\b|\b{name}s?(?: number| no\.?| id)? #?(\w*\d\w*)"
        for found in re.finditer(called, heard.raw):
            word = found[1] or found[2]
            if word not in _NOBODY and not is_its_own(word) and not (is_code(word) and is_known(word)):
                return True
        kinds = re.findall(rf"{_POINTS} ([a-z]+) {name}\b", heard.raw)
        if not all(is_its_own(kind) or _is_of_call(heard, kind) for kind in kinds):
            return True
    endings = {found[1] for found in _ENDS.finditer(heard.raw)}
    if not all(heard.records.ends(figures) for figures in endings):
        return True
    return not all(is_known(key) for passage in (heard.answer, heard.bracketed) for key in passage.ids)


def _is_of_call(heard: Hearing, word: str) -> bool:
    """Whether a word tells no thing from another, or is one of the call's own."""
    is_own = any(stem(word) in stem_set(name) for name in (heard.tool, *(other.name for other in heard.given)))
    return is_neutral(word) or is_own or (heard.deed is not None and heard.deed.is_called((word,)))


def _is_of_user(heard: Hearing, each: Argument) -> bool:
    """Whether it only says for whom something is done: who that is, the user need not be told."""
    return each.is_user and len(heard.given) > 1 and word_set(heard.tool).isdisjoint(word_set(each.name))


def _thing_in(heard: Hearing, each: Argument, passage: Passage) -> Why | None:
    """The same in one passage."""
    place = passage.place_of(each.key)
    rivals = heard.rivals(each, passage)
    if place < 0 and not rivals:
        return heard.by_marks(each, passage)
    if place < 0:
        return "another"
    if not rivals:
        return None
    if any(other.kind in ("sum", "count") for other in heard.given):
        # Of "50 to AC-22 and AC-33" nobody knows whether each is paid as much.
        return "beside"
    spots = [(place, place + len(each.key)), *((at, at + len(key)) for key, at in rivals.items())]
    is_asked = passage in (heard.answer, heard.asked)
    is_meant = is_asked or (heard.deed is not None and heard.deed.stands_in(passage.line_at(place)))
    return None if is_meant and passage.joins(spots, each.name) else "beside"


def _count(heard: Hearing, each: Argument) -> Why | None:
    names = [word for word in words_of(each.name) if len(word) > 2 and word not in _VAGUE_NAMES]
    if not each.number:
        # "No bags" is none of them; and where two bags were told, none of them need be said to cost anything.
        told = [line for line in heard.raw.split("\n") if any(is_about(line, name) for name in names)]
        is_part = any(other.kind == "count" and other.number and _share(other, each) for other in heard.given)
        others = any(passage_of((line,)).counts - heard.numbers for line in told)
        if told and not others and (is_part or all(map(_OFF.search, told))):
            return None
    for passage in islice(heard.regions(each), 1, None):
        lines = [line for line in passage.lines if any(is_about(line, name) for name in names)]
        for told in ([passage_of((line,)) for line in lines], [passage]):
            bare = {number for line in told for number in line.counts | _of_unit(line, names)}
            if each.number in bare:
                return "beside" if bare - heard.numbers else None
    return "never"


def _share(one: Argument, other: Argument) -> bool:
    """Whether two arguments count the same: `total_baggages` and `nonfree_baggages`."""
    return bool(set(words_of(one.name)) & set(words_of(other.name)) - _VAGUE_NAMES)


def _of_unit(line: Passage, names: Sequence[str]) -> set[Decimal]:
    """Numbers that stand before the name of what they count: 12 of "for 12 months", where the call has `months`."""
    return {
        number.value
        for number in line.numbers
        if (after := PLAIN.match(line.words, number.end + 1)) and any(is_about(after[0], name) for name in names)
    }


def _choice(heard: Hearing, each: Argument) -> Why | None:
    own = spoken(each.value)
    others = [spoken(word) for word in each.others]
    every = [own, *others]
    if not any(may_stand_in(word, passage) for word in every for passage in {heard.answer, heard.bracketed}):
        passages: Iterable[Passage] = heard.older()
    else:
        is_told = stands_in(own, others, heard.bracketed)
        if not is_told and any(stands_in(word, every, heard.bracketed) for word in others):
            return "another"
        rest = islice(heard.regions(each), 2, None)
        passages = chain((heard.answer, heard.asked), islice(rest, 1), (heard.bracketed,), rest)
    for passage in passages:
        stands = stands_in(own, others, passage)
        rivals = [word for word in others if stands_in(word, every, passage)]
        rivals = rivals and [word for word in rivals if word not in {spoken(other.value) for other in heard.given}]
        if stands and rivals:
            current = {key for record in heard.current for name, key in record.fields if name == each.name}
            left = [word for word in rivals if word.replace(" ", "_") not in current]
            return None if not left and each.key not in current else "beside"
        if stands:
            return None
        if rivals:
            return "another"
    return "never"


def _flag(heard: Hearing, each: Argument) -> Why | None:
    names = [word for word in words_of(each.name) if len(word) > 3]
    lines = [line for line in heard.raw.split("\n") if any(is_about(line, name) for name in names)]
    off = [line for line in lines if _OFF.search(line)]
    if each.is_on:
        return None if lines and not off else "beside" if lines else "never"
    return "never" if not lines else None if len(off) == len(lines) else "beside"


def _is_nobodys_word(heard: Hearing, phrase: str) -> bool:
    """Whether a value has no word but such as any sentence about the deed has: "Shall I", "transfer"."""
    return all(
        is_neutral(word)
        or (word.isalpha() and len(word) > 2 and not new_words(word, frozenset()))
        or (heard.deed is not None and heard.deed.is_called((word,)))
        for word in PLAIN.findall(phrase)
    )


def _name(heard: Hearing, each: Argument) -> Why | None:
    phrase = spoken(each.value)
    if is_prose(each.value):
        # What is written in the user's name is told as it is; with its words in another order it says something else.
        is_stated = set(PLAIN.findall(phrase)) <= set(PLAIN.findall(heard.bracketed.unjoined))
        return None if is_stated and has_words(heard.raw, each.value) else "never"
    if is_neutral(phrase) or _is_nobodys_word(heard, phrase):
        return "never"
    if not is_told_whole(phrase, heard.bracketed):
        return "never"
    is_current = each.top == each.name and any((each.name, each.key) in record.fields for record in heard.current)
    return "beside" if is_current and not is_told_whole(phrase, heard.asked) else None
