"""Whether what was told can be put to the arguments of a call in one way only.

Two arguments that could take each other's value (the old and the new item, adults and children) are told apart by their
own names right beside the values, or by a record. What stands first, or after which preposition, tells nothing: "L1 for
L2". The records of a list are told apart only where each has a line of its own.
"""

import re
from collections.abc import Iterator, Sequence

from bylaw.consent.argument import Argument
from bylaw.consent.hearing import Hearing
from bylaw.consent.passage import Passage, passage_of, shape
from bylaw.consent.spot import PLAIN, spans_of
from bylaw.policy.verb import words_of
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
_WORD_AFTER = re.compile(r"\s?([a-z]+)")


def mixed(heard: Hearing) -> Iterator[Argument]:
    """The values that may have been told for another argument of the call."""
    for each in heard.given:
        kin = [other for other in heard.given if _could_swap(heard, each, other)]
        if (kin and not _is_told_apart(heard, each, kin)) or (each.item and _may_be_paired_otherwise(heard, each)):
            yield each


def _could_swap(heard: Hearing, each: Argument, other: Argument) -> bool:
    """Whether each of two arguments could be given the value of the other."""
    if each.name == other.name or each.key == other.key:
        return False
    one, two = each.kind, other.kind
    if {one, two} <= {"sum", "count"}:
        money = each if one == "sum" else other
        return one == two or not any(told.is_sum and told.value == money.number for told in heard.bracketed.numbers)
    if one == "choice":
        return each.value in other.others and other.value in each.others
    if not {one, two} <= {"id", "name"}:
        return one == two and one in ("day", "time")
    return _form(each) == _form(other)


def _form(each: Argument) -> str:
    """The same for ids and names that may stand for each other."""
    if "@" in each.key:
        return "@"
    return shape(each.key) if _PREFIXED.fullmatch(each.key) or each.key.isdigit() else ""


def _differ(heard: Hearing, each: Argument, other: Argument) -> bool:
    """Whether two values are of two kinds, although they look alike: one says for whom something is done, or records
    show them under different names."""
    shown = [heard.records.names_of(one.key) for one in (each, other)]
    return each.is_user != other.is_user or (all(shown) and set(shown[0]).isdisjoint(shown[1]))


def _is_told_apart(heard: Hearing, each: Argument, kin: Sequence[Argument]) -> bool:
    """Whether a value stands beside its own name; or beside no name, where all that could be meant instead do."""
    led = {at: _labels(heard, at, [other for other in (each, *kin) if other is not at]) for at in (each, *kin)}
    if led[each]:
        return led[each] == {True}
    return all(led[other] == {True} or _differ(heard, each, other) for other in kin)


def _labels(heard: Hearing, each: Argument, kin: Sequence[Argument]) -> set[bool]:
    """Whether the names beside a value are its own (true) or another's; where a record gives it the argument's own
    field, and no other's, that is one."""
    shown = heard.records.names_of(each.key)
    found = {True} if each.name in shown and not any(other.name in shown for other in kin) else set[bool]()
    own = set(map(stem, words_of(each.name)))
    others = {stem(word) for other in kin for word in words_of(other.name)}
    for start, end in spans_of(each, heard.bracketed):
        for word in _beside(heard.bracketed, start, end, own & others, is_counted=each.kind in ("count", "sum")):
            if word in own ^ others:
                found.add(word in own)
    return found


def _beside(passage: Passage, start: int, end: int, shared: set[str], *, is_counted: bool) -> Iterator[str]:
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
        if all(any(True for _ in spans_of(one, line)) for one in own):
            is_more = any(number.value not in numbers for number in line.numbers if line.counts or number.is_sum)
            is_other = any(shape(key) in map(shape, keys) and key not in keys for key in line.ids)
            if not is_more and not is_other:
                return False
    return True
