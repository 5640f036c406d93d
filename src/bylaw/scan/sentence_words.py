"""What a sentence of a policy speaks of: the deeds of tools, the things, and looking up before doing.

Words are compared by rough stems, and verbs also by what else people call the same deed. This guides a draft that
people correct, never a verdict.
"""

import re
from collections.abc import Collection, Iterable, Sequence

from bylaw.policy.verb import VERBS, words_of
from bylaw.text.stem import stem

_SAME_DEED = (
    "book schedule reserve arrange",
    "cancel drop delete remove void terminate",
    "move reschedule postpone change update modify edit adjust",
    "create add register insert",
    "send notify forward",
    "refund reimburse",
    "renew extend prolong",
    "approve accept authorize",
    "reject decline refuse",
    "transfer wire",
    "waive forgive",
    "suspend pause",
    "block lock freeze",
    "unblock unlock unfreeze",
    "discharge release",
    "charge bill",
    "issue grant",
)
_LIGHT = {"set", "make", "put", "place", "do", "perform", "process", "submit", "run", "execute"}
"""Verbs that say little: what is done stands in the rest of the name, as in set_late_checkout."""
_GIVING = {"send", "issue", "make", "create", "write", "place", "set", "give", "apply"}
"""Verbs beside which the thing is the deed: who is emailed is sent an email."""
_LOOK_UP = "check verify confirm read review retrieve consult inspect validate fetch ensure lookup"
_LOOK_SOMETHING_UP = re.compile(r"\blook(?:s|ed|ing)?\b(?:\W{1,3}\w{1,30}){0,5}?\W{1,3}up\b", re.IGNORECASE)
_BEFORE = {"before", "first", "prior", "until", "unless"}
_RECORD = {"record", "records", "file", "details", "entry", "profile"}
_LAYS_DOWN = {"must", "cannot", "only", "should", "never", "not", "may", "unless", "until", "if"}
_FILLER = {"the", "and", "for", "with", "new"}
_LOOKING = {stem(word) for word in _LOOK_UP.split()}
_DEED = {stem(word): number for number, words in enumerate(_SAME_DEED) for word in words.split()}


class Wording:
    """The words of one sentence, ready to be compared."""

    def __init__(self, text: str) -> None:
        self._text = text
        joined = (word.replace("-", "") for word in re.findall(r"[a-z]+(?:-[a-z]+)+", text.lower()))  # check-out
        self.words = list(dict.fromkeys([*re.findall(r"[a-z]+", text.lower()), *joined]))
        self.stems = {stem(word) for word in self.words}

    def names(self, words: Iterable[str]) -> int:
        """How many of these words the sentence uses, in any form."""
        return len({stem(word) for word in words} & self.stems)

    def _names_all(self, words: Collection[str]) -> bool:
        return bool(words) and self.names(words) == len({stem(word) for word in words})

    def deeds(self, writes: Sequence[str], tools: Iterable[str]) -> list[str]:
        """The writes it speaks of. A deed that no write is named after means those that are called alike.

        Of several, those whose other words it uses most. `tools` are all that there are: what they are about is no
        deed, as in `a booking may be moved` where there is a get_booking.
        """
        things = {word for tool in tools for word in objects_of(tool)}
        meant = {tool for tool in writes if verb_of(tool) in _LIGHT and self._names_all(objects_of(tool))}
        for word in self.words:
            said = stem(word)
            named = [tool for tool in writes if stem(verb_of(tool)) == said]
            if not named and said in _DEED and not {word, word.removesuffix("s")} & things:
                named = [tool for tool in writes if _DEED.get(stem(verb_of(tool))) == _DEED[said]]
            if not named and word.endswith("ed"):
                named = [tool for tool in writes if verb_of(tool) in _GIVING and said in map(stem, objects_of(tool))]
            most = max((self.names(objects_of(tool)) for tool in named), default=0)
            meant.update(tool for tool in named if self.names(objects_of(tool)) == most)
        return [tool for tool in writes if tool in meant]

    def speaks_of(self, thing: str) -> bool:
        """Whether it names a thing, or the record that must be looked up first."""
        return self.names(words_of(thing)) > 0 or (self.looks_up_first and not _RECORD.isdisjoint(self.words))

    @property
    def looks_up(self) -> bool:
        """Whether it speaks of looking something up; a confirmed visit was not confirmed just now."""
        looking = {stem(word) for word in self.words if word != "confirmed"} & _LOOKING
        return bool(looking) or _LOOK_SOMETHING_UP.search(self._text) is not None

    @property
    def looks_up_first(self) -> bool:
        """Whether it speaks of looking something up before doing something."""
        return self.looks_up and not _BEFORE.isdisjoint(self.words)

    @property
    def lays_down(self) -> bool:
        """Whether it allows, forbids or sets a condition."""
        return not _LAYS_DOWN.isdisjoint(self.words)


def verb_of(tool: str) -> str:
    """The word of a tool's name that says what it does."""
    words = words_of(tool)
    return next((word for word in words if word in VERBS or stem(word) in _DEED), words[0] if words else "")


def objects_of(tool: str) -> Collection[str]:
    """The words of a tool's name that say what it is about."""
    words = words_of(tool)
    return {word for word in words if word != verb_of(tool) and len(word) > 2 and word not in _FILLER}
