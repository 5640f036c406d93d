"""Whether every value of a call was told for this deed, by exclusion: where another could be meant, it was not.

Nor was it where what was told can be put to the arguments of the call in more ways than one. Two that could take each
other's value (the old and the new item, adults and children) are told apart by their own names right beside the values,
or by a record. What stands first, or after which preposition, tells nothing: "L1 for L2". The records of a list are
told apart only where each has a line of its own.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice

from bylaw.consent.answer import is_neutral
from bylaw.consent.argument import Argument
from bylaw.consent.clause import is_told_for
from bylaw.consent.hearing import Hearing, Thing, Why
from bylaw.consent.passage import Passage, passage_of, shape
from bylaw.consent.put import new_words
from bylaw.consent.quantity import (
    VAGUE_NAMES,
    is_fee_untold,
    share,
    tells_price,
    why_count,
    why_day,
    why_sum,
    why_time,
)
from bylaw.consent.spot import (
    NO_LABELS,
    PLAIN,
    is_about,
    is_told_of_another,
    is_told_whole,
    may_stand_in,
    spans_of,
    spans_of_word,
    spoken,
    stands_in,
    stem_set,
    tells_text,
)
from bylaw.facts.value import loose
from bylaw.policy.verb import words_of
from bylaw.text.identifier import is_prose
from bylaw.text.stem import stem

_SKIPPED = frozenset(
    map(
        stem,
        (
            *("the", "a", "an", "your", "this", "that", "is", "are", "be", "will", "at", "on", "as", "it's"),
            *("number", "no", "id", "date", "day", "time"),
        ),
    )
)
"""Words that may stand between a name and its value: "the old item is number L1"."""
_PREFIXED = re.compile(r"[a-z]+[-_ /]?\d+")
_CUT = re.compile(r".*[,;.!?\n]", re.DOTALL)
_ON = frozenset(("yes", "on", "true", "enabled", "included", "added"))
_ROW = re.compile(
    r"([a-z][^:=|]{0,40}?)\s*[:=|]\s*(yes|on|true|enabled|included|added|no|off|false|disabled|none|removed)\W*"
)
"""A row that says whether something is so."""
_QUOTED = re.compile(r"\"([^\"\n]*)\"")
_WORD_AFTER = re.compile(r"\s?([a-z]+)")


def untold(heard: Hearing) -> list[tuple[Argument, Why]]:
    """The values that were not surely told."""
    given, kinds = heard.given, {each.kind for each in heard.given}
    whys: dict[int, Why] = {}
    for each in given:
        if why := _WHY[each.kind](heard, each):
            whys[id(each)] = why
    found: list[tuple[Argument, Why]] = []
    if whys:
        left = [each for each in given if id(each) in whys and not _is_implied(heard, each, whys)]
        found = [(each, whys[id(each)]) for each in left]
    if not found:
        told = [each for each in given if heard.spans[id(each)] or each.at or each.kind == "id"]
        found += _those("another", [each for each in told if _is_of_another(heard, each)])
        if "count" in kinds:
            found += _those("beside", [each for each in given if _may_be_another(heard, each)])
    if "id" in kinds:
        found += _those("fee", [each for each in given if each.kind == "id" and is_fee_untold(heard, each)])
    if not found and len(given) > 1:
        found += _those("order", list(_mixed(heard)))
    if "sum" not in kinds:
        means = next((each for each in given if each.is_means), None)
        if means is not None and not tells_price(heard):
            found.append((means, "price"))
    return found


def _those(why: Why, given: Sequence[Argument]) -> list[tuple[Argument, Why]]:
    return [(each, why) for each in given] if given else []


def _is_implied(heard: Hearing, each: Argument, whys: Mapping[int, Why]) -> bool:
    """Whether it is a part of a thing that was told: the date of birth of a passenger, the day of a flight."""
    if each.kind in ("name", "choice") and _is_of_record(heard, each, whys):
        return True
    if each.name == each.top or each.kind in ("sum", "id"):
        return False
    if each.day is not None and any(day.may_be(each.day) for day in heard.bracketed.days):
        return True
    things = [other for other in heard.given if other.top == each.top and other is not each]
    records = [record for other in things for _, record in heard.records.of(other.key)]
    return any((each.name, each.key) in record.fields for record in records)


def _is_of_record(heard: Hearing, each: Argument, whys: Mapping[int, Why]) -> bool:
    """Whether a thing that was told has the value, or the value names the field that held what was told."""
    for other in heard.given:
        if other.kind == "id" and not other.is_person and id(other) not in whys:
            entries = heard.records.of(other.key)
            held = [[key for name, key in record.fields if name == each.name] for _, record in entries]
            if [each.key] in held:
                return True
    ids = [other for other in heard.given if other.kind == "id"]
    fields = [at for other in ids for _, record in heard.records.of(other.key) for at in record.fields]
    return any(loose(name) == each.key and len(key) > 2 and heard.put.place_of(key) >= 0 for name, key in fields)


def _is_of_another(heard: Hearing, each: Argument) -> bool:
    """Whether a value was told only to say where another lies, or whose something is, or of something else."""
    spans = heard.spans[id(each)]
    if not spans and each.kind == "id" and not each.is_person:
        marks = heard.records.marks_of(each.key) & heard.bracketed.marks
        spans = [at for mark in marks if ":" not in mark for at in spans_of_word(mark, heard.bracketed)]
        if spans and all(is_told_of_another(each, heard.bracketed, [at], heard.knows) for at in spans):
            return True
        return bool(spans) and not is_told_for(heard, each, spans)
    if is_told_of_another(each, heard.bracketed, spans, heard.knows):
        return True
    if not spans or each.number == 0 or each.is_user or (each.kind == "name" and is_prose(each.value)):
        return False
    return not is_told_for(heard, each, spans)


def _may_be_another(heard: Hearing, each: Argument) -> bool:
    """Whether a figure that was told may have been told for another value of the call: "buy 2 of item 7" tells no item
    2, and "item 7" no seven of them."""
    if each.kind == "count" and each.number is not None:
        alike = [other for other in heard.given if other.number == each.number or other.key == str(each.number)]
        told = sum(number.value == each.number for number in heard.bracketed.numbers)
        if len(alike) > max(told, 1) and not all(other is each or share(other, each) for other in alike):
            return True
        names = "|".join(word for word in words_of(each.name) if len(word) > 2 and word not in NO_LABELS | VAGUE_NAMES)
        led = re.findall(rf"\b(?:{names}) #?(\d+)\b", heard.raw) if names else []
        return bool(led) and each.key not in led
    if each.kind != "id" or not each.key.isdigit():
        return False
    names = "|".join(re.escape(word) for word in words_of(each.name) if word not in NO_LABELS) or "id"
    return re.search(rf"(?:\b(?:{names})s?(?: (?:number|no\.?|id))?:? ?#?|#){each.key}\b", heard.raw) is None


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
    """A yes or a no is told in a row of its own, "Insurance: yes": in a sentence, words beyond number turn it round."""
    names = [word for word in words_of(each.name) if len(word) > 3]
    rows = [row for row in map(_ROW.fullmatch, heard.raw.split("\n")) if row is not None]
    told = {row[2] in _ON for row in rows if any(is_about(row[1], name) for name in names)}
    if not told and not each.is_on and not any(is_about(heard.raw, name) for name in names):
        return "never"
    return None if told == {each.is_on} else "beside" if told else "never"


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
        return None if is_stated and tells_text(heard.raw, each.value) else "never"
    if is_neutral(phrase) or _is_nobodys_word(heard, phrase):
        return "never"
    if not is_told_whole(phrase, heard.bracketed):
        return "never"
    quoted = [spoken(each).strip(" .!?,") for each in _QUOTED.findall(heard.raw)]
    if any(phrase in each and phrase != each for each in quoted):
        # A part of what is quoted says something else than the whole.
        return "beside"
    is_current = each.top == each.name and any((each.name, each.key) in record.fields for record in heard.current)
    return "beside" if is_current and not is_told_whole(phrase, heard.asked) else None


_WHY: Mapping[str, Callable[[Hearing, Argument], Why | None]] = {
    "id": lambda heard, each: Thing(heard, each).why(),
    "sum": why_sum,
    "day": why_day,
    "time": why_time,
    "count": why_count,
    "choice": _choice,
    "flag": _flag,
    "name": _name,
}
"""By its kind, why a value was not surely told."""


def _mixed(heard: Hearing) -> Iterator[Argument]:
    """The values that may have been told for another argument of the call."""
    alike: dict[str, list[Argument]] = {}
    for each in heard.given:
        alike.setdefault(_likeness(each), []).append(each)
    for each in heard.given:
        others = alike[_likeness(each)]
        kin = _kin(heard, each, others) if len(others) > 1 else ()
        if (kin and not _is_told_apart(heard, each, kin)) or (each.item and _may_be_paired_otherwise(heard, each)):
            yield each


def _likeness(each: Argument) -> str:
    """The same for values that could be taken for one another."""
    if each.kind in ("id", "name"):
        return _form(each.key)
    return "sum" if each.kind == "count" else each.kind


def _kin(heard: Hearing, each: Argument, alike: Sequence[Argument]) -> list[Argument]:
    """Those arguments that could be given its value, while it is given theirs."""
    kind = each.kind
    others = [other for other in alike if other.name != each.name and other.key != each.key]
    if not others or kind in ("id", "name", "day", "time"):
        return others
    if kind == "choice":
        return [other for other in others if each.value in other.others and other.value in each.others]
    sums = {told.value for told in heard.bracketed.numbers if told.is_sum}
    is_money = kind == "sum"
    return [
        other
        for other in others
        if kind != "flag" and (other.kind == kind or (each if is_money else other).number not in sums)
    ]


@lru_cache(maxsize=4096)
def _form(key: str) -> str:
    """The same for ids and names that may stand for each other, and for no other kind of values."""
    if "@" in key:
        return "@"
    return shape(key) if _PREFIXED.fullmatch(key) or key.isdigit() else "@-"


def _differ(heard: Hearing, each: Argument, other: Argument) -> bool:
    """Whether two values are of two kinds, although they look alike: one says for whom something is done, or records
    show them under different names."""
    shown = [heard.records.names_of(one.key) for one in (each, other)]
    return each.is_user != other.is_user or (all(shown) and set(shown[0]).isdisjoint(shown[1]))


def _is_told_apart(heard: Hearing, each: Argument, kin: Sequence[Argument]) -> bool:
    """Whether a value stands beside its own name; or beside no name, where all that could be meant instead do."""
    if led := _labels(heard, each, kin):
        return led == {True}
    every = (each, *kin)
    return all(
        _labels(heard, other, [at for at in every if at is not other]) == {True} or _differ(heard, each, other)
        for other in kin
    )


def _labels(heard: Hearing, each: Argument, kin: Sequence[Argument]) -> set[bool]:
    """Whether the names beside a value are its own (true) or another's; where a record gives it the argument's own
    field, and no other's, that is one."""
    shown = heard.records.names_of(each.key)
    found: set[bool] = set()
    if each.name in shown and not any(other.name in shown for other in kin):
        found.add(True)
    if spans := heard.spans[id(each)]:
        own = stem_set(each.name)
        others = frozenset[str]().union(*[stem_set(other.name) for other in kin])
        for start, end in spans:
            for word in _beside(heard.bracketed, start, end, own & others, is_counted=each.kind in ("count", "sum")):
                if word in own ^ others:
                    found.add(word in own)
    return found


def _beside(passage: Passage, start: int, end: int, shared: frozenset[str], *, is_counted: bool) -> Iterator[str]:
    """The stems of the word before a value, with nothing between but such as may stand there, and of that after a
    number."""
    lead = _CUT.sub("", passage.words[max(0, start - 60) : start])
    for word in map(stem, reversed(PLAIN.findall(lead))):
        if word not in shared and word not in _SKIPPED:
            yield word
            break
    if is_counted and (after := _WORD_AFTER.match(passage.words, end)):
        yield stem(after[1])


def _may_be_paired_otherwise(heard: Hearing, each: Argument) -> bool:
    """Whether an argument has several records that differ in more than one value, and the one that this value is of
    stands in no line of its own, with all its values and none beside them."""
    records: dict[int, list[Argument]] = {}
    for other in heard.given:
        if other.top == each.top and other.item:
            records.setdefault(other.item, []).append(other)
    if len(records) < 2 or max(map(len, records.values())) < 2:
        return False
    own = [one for one in records[each.item] if one.kind != "flag"]
    numbers, keys = {one.number for one in own}, {one.key for one in own}
    for line in (passage_of((line,)) for line in heard.bracketed.lines):
        if all(spans_of(one, line) for one in own):
            is_more = any(number.value not in numbers for number in line.numbers if line.counts or number.is_sum)
            is_other = any(shape(key) in map(shape, keys) and key not in keys for key in line.ids)
            if not is_more and not is_other:
                return False
    return True
