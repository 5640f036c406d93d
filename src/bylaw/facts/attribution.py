"""Who a text is from and which one it is: by the fields that say so, not by those that its writer fills in at will.

Whoever sends a mail chooses its subject, whom it is copied to and what its attachments are called. So where a record
says who wrote it, a name that the user said points to it by that, by its own name or id, or by a field that its tool
vouches for; by another field only where the user speaks of it: "the mail with the subject Rent".
"""

import re
from collections.abc import Callable, Mapping

from bylaw.text.folding import fold

_WHO = frozenset(("from", "sender", "author", "owner", "by", "creator", "writer", "poster", "uploader", "organizer"))
_WHICH = frozenset(("id", "ids", "uuid", "name", "filename", "file", "path", "folder", "channel", "url", "uri", "link"))
_FILE = frozenset(("name", "filename", "file", "path"))
_WHEN = frozenset(
    ("date", "time", "timestamp", "day", "at", "sent", "received", "created", "posted", "modified", "last")
)
_OF = frozenset(("user", "username", "email", "mail", "address", "message", "msg", "display", "full", "first"))
"""Words beside those: `sender_email`, `message_id`."""
_SEARCHED = frozenset(("query", "q", "search", "keyword", "keywords", "text", "term", "terms", "contains"))
_SPOKEN_OF = "subject|title|titled|entitled|headed|headline|called|named|about|regarding|concerning"
_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_QUOTES = "\"'\u201c\u2018\u00ab`"


def own_fields(fields: Mapping[str, str], vouched: Callable[[str], bool]) -> frozenset[str] | None:
    """Of the fields of a record those that tell what it is, folded; None where none says who wrote it, and all may."""
    words = {name: {*_words(name)} for name in fields}
    if not any(_is_who(words[name]) and not _is_nobody(value) for name, value in fields.items()):
        return None
    return frozenset(fold(name) for name, each in words.items() if _is_own(each) or vouched(name))


def is_file_name(field: str) -> bool:
    """Whether a field says what a file is called."""
    return {*_words(field)} <= _FILE


def is_search(argument: str) -> bool:
    """Whether an argument of a look-up is words to be found anywhere, and not what the thing is called."""
    return bool({*_words(argument)} & _SEARCHED)


def is_spoken_of(before: str, field: str = "") -> bool:
    """Whether words of the user, after what stands before them, are in quotes or what a text is about or called, or
    what a field of that name says."""
    if before[-1:] and before[-1] in _QUOTES and not before[-2:-1].isalnum():
        return True
    names = "|".join([_SPOKEN_OF, *(re.escape(word) for word in _words(field))])
    return re.search(rf"\b(?:{names})s?(?:\W+(?:is|of|the|a|an|my|our|line|it))*\W*$", before.lower()) is not None


def _is_who(words: set[str]) -> bool:
    return bool(words & _WHO) and words <= _WHO | _WHICH | _WHEN | _OF


def _is_nobody(value: str) -> bool:
    """Whether a value does not say which other person: an account or a telephone number, by which nobody is called, or
    the user, who may call things of their own by anything in them."""
    digits, letters = sum(map(str.isdigit, value)), sum(map(str.isalpha, value))
    return value == "me" or (digits > letters and "@" not in value)


def _is_own(words: set[str]) -> bool:
    return bool(words) and words <= _WHO | _WHICH | _WHEN | _OF


def _words(name: str) -> list[str]:
    return _WORD.findall(_CAMEL.sub("_", name).lower())
