"""What structure proves: a bare no to this deed alone, or nothing of the call in anything that the agent said."""

import re
from collections.abc import Sequence
from typing import Literal

from bylaw.consent.argument import Argument
from bylaw.consent.deed import Deed
from bylaw.consent.passage import Passage
from bylaw.consent.records import Records
from bylaw.consent.talk import Exchange, Talk

_NAMED = 3
"""In so many exchanges nothing of a call may stand before it counts as never named."""
_SHORT = 3
"""So short a word of a value says nothing by itself."""
_WHETHER = re.compile(
    r"(?:\b(?:shall|should|may|can) (?:i|we)|\b(?:do|would) you (?:like|want) (?:me|us) to)"
    r"(?: (?:now|then|also|please|go ahead and))*(?: ([a-z]+)|\W*$)"
)
"""How one asks whether to do something; to "is it a problem if I do?" or "shall I wait?" a no means another thing."""


def why_not_agreed(
    talk: Talk, given: Sequence[Argument], deed: Deed, records: Records
) -> Literal["declined", "unnamed"] | None:
    """Why nobody agreed to a call; None where that is not proved."""
    last = talk.exchanges[-1]
    is_asked = last.put.asks_leave and len(last.put.questions) == 1 and not last.put.is_no_proposal
    if last.said == "no" and is_asked and _is_whether(deed, last):
        return "declined"
    may_agree = last.said in ("yes", "echo") or (last.said != "no" and "leave" in last.put.asks)
    if may_agree and (deed.stands_in(last.stated.words) or not _are_seen(given, records)):
        return None
    told = [exchange.unread for exchange in talk.exchanges[-_NAMED:]]
    return "unnamed" if not _is_said(given, told, records) and talk.is_english else None


def _is_whether(deed: Deed, last: Exchange) -> bool:
    """Whether the one question is whether to do this deed, or to go ahead with it where it was told right before."""
    words = last.put.questions[0].words
    asked = _WHETHER.search(words)
    if asked is None or len(_WHETHER.findall(words)) > 1:
        return False
    is_told = any(deed.is_called(line.heads) for line in last.put.proposed)
    return (asked[1] is not None and deed.is_called((asked[1],))) or (
        asked[1] in (None, "go", "proceed", "do") and is_told
    )


def _are_seen(given: Sequence[Argument], records: Records) -> bool:
    """Whether look-ups have shown the call's things: of another nobody knows by what words it was put."""
    things = (each for each in given if each.kind == "id" and not each.is_person)
    return all(records.of(each.key) for each in things)


def _is_said(given: Sequence[Argument], told: Sequence[Passage], records: Records) -> bool:
    """Whether an agent's message held anything of the call: a value, the key of a thing, a value of its record."""
    given = [each for each in given if each.number != 0]
    values = [each for each in given if each.kind not in ("flag", "count") and not each.is_person]
    if not values or any(_is_in(each, passage) for each in given for passage in told):
        return True
    held = (records.marks_of(each.key) for each in values if each.kind == "id")
    return any(not marks.isdisjoint(passage.marks) for marks in held for passage in told if marks)


def _is_in(each: Argument, passage: Passage) -> bool:
    """Whether a value stands in a passage in any way."""
    if each.kind == "id":
        return passage.may_tell(each.key) >= 0
    if each.number is not None:
        return any(number.value == each.number for number in passage.numbers)
    if each.day is not None:
        return any(day.may_be(each.day) for day in passage.days)
    words = each.value.lower().replace("_", " ").replace("-", " ").split()
    return any(passage.may_tell(word.strip(",.")) >= 0 for word in words if len(word) > _SHORT)
