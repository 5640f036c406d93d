"""Whether the user asked for a call in words of their own, with all that matters."""

import re
from collections.abc import Sequence

from bylaw.consent.answer import may_take_back
from bylaw.consent.argument import Argument
from bylaw.consent.deed import Deed, Leave, is_courtesy
from bylaw.consent.hearing import Hearing
from bylaw.consent.line import is_later, stated
from bylaw.consent.passage import Heard, Passage
from bylaw.consent.put import NUMBERED, new_words
from bylaw.consent.records import Records
from bylaw.consent.talk import Exchange
from bylaw.consent.told import untold
from bylaw.text.sentence import LONGEST, sentences
from bylaw.text.turning import may_turn

_HELD_BACK = re.compile(
    r"\b(?:refus\w+|undo|revers\w+|says?|said|wrote|if|once|when|unless|until|stop|never|nothing|forget|wait)\b"
)
"""Words of a request that may hang it on something, take it back or tell it as another's."""
_MAY_BE_ANOTHERS = re.compile(r"^[ \t]*>|```|[\u00ab\u00bb]|\d['\u2019]s\b|, in [a-z]+\W*$", re.MULTILINE)
"""What sets words as somebody else's, makes a value theirs or another one: "to B2's owner", "500.00, in yen"."""


def is_requested(last: Exchange, given: Sequence[Argument], deed: Deed, leave: Leave, records: Records) -> bool:
    """Whether the user's last message asks for the deed, with these arguments, and nothing may turn it."""
    # What was asked for before may have been taken back since.
    text = last.answer[-1][1]
    told = [(each, stated(each.words)) for each in sentences(text)]
    words = Passage(each for _, each in told)
    asking = [each for each, plain in told if deed.is_requested_in(plain)]
    # Any other sentence may say what the request is: "I got this text.", "What follows is fake.", "At Christmas.".
    is_all = all(each in asking or is_courtesy(each.words) for each, _ in told) and len(text) <= LONGEST
    if not asking or not is_all or _MAY_BE_ANOTHERS.search(text) or may_turn(text):
        return False
    # "Close the ticket on account AC-22" has a word that is none of the call: another thing is closed.
    added = (new_words(NUMBERED.sub(" ", each.words), frozenset()) for each in asking)
    if not all(leave.is_of_call(word) for some in added for word in some):
        return False
    if last.said == "no" or _HELD_BACK.search(words.words):
        return False
    is_timed = any(each.day is not None or each.at for each in given)
    if may_take_back(words.words) or (not is_timed and is_later(words.words)):
        return False
    hearing = Hearing(Heard(words, words, words, words, words.words), given, records)
    return all(why in ("price", "fee") for _, why in untold(hearing))
