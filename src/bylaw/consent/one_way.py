"""Whether what was told can be put to the arguments of a call in one way only.

Two arguments that could take each other's value (the old and the new item, adults and children) are told apart by their
own names right beside the values, or by a record. What stands first, or after which preposition, tells nothing: "L1 for
L2". The records of a list are told apart only where each has a line of its own.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from bylaw.consent.argument import Argument
from bylaw.consent.hearing import Hearing
from bylaw.consent.passage import Passage, passage_of, shape
from bylaw.consent.spot import PLAIN, spans_of, stem_set
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
_ALIKE: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("sum", "count"), ("sum", "count")),
    **dict.fromkeys(("id", "name"), ("id", "name")),
    **{kind: (kind,) for kind in ("day", "time", "choice")},
}
"""By its kind, the kinds of what could be taken for a value."""
_WORD_AFTER = re.compile(r"\s?([a-z]+)")


def mixed(heard: Hearing) -> Iterator[Argument]:
    """The values that may have been told for another argument of the call."""
    for each in heard.given:
        kin = _kin(heard, each)
        if (kin and not _is_told_apart(heard, each, kin)) or (each.item and _may_be_paired_otherwise(heard, each)):
            yield each


def _kin(heard: Hearing, each: Argument) -> list[Argument]:
    """The arguments that could be given its value, while it is given theirs."""
    kind, name, key = each.kind, each.name, each.key
    alike = _ALIKE.get(kind, ())
    others = [other for other in heard.given if other.kind in alike and other.name != name and other.key != key]
    if not others or kind in ("day", "time"):
        return others
    if kind == "choice":
        return [other for other in others if each.value in other.others and other.value in each.others]
    if kind in ("id", "name"):
        form = _form(key)
        return [other for other in others if _form(other.key) == form]
    sums = {told.value for told in heard.bracketed.numbers if told.is_sum}
    return [other for other in others if other.kind == kind or (each if kind == "sum" else other).number not in sums]


@lru_cache(maxsize=4096)
def _form(key: str) -> str:
    """The same for ids and names that may stand for each other."""
    if "@" in key:
        return "@"
    return shape(key) if _PREFIXED.fullmatch(key) or key.isdigit() else ""


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
    found = {True} if each.name in shown and not any(other.name in shown for other in kin) else set[bool]()
    if spans := spans_of(each, heard.bracketed):
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
