"""Text without addresses, links, paths and ids, whose parts are not words anybody said."""

import re

_JOINED = re.compile(
    r"""
      [\w.+'%-]+@[\w-]+(?:\.[\w-]+)*                        # an address
    | (?:[a-z][a-z+.-]*://|www\.)[^\s<>"]+                  # a link
    | [\w.-]+\.(?:com|org|net|edu|gov|io|co\.[a-z]{2})\b(?:/[^\s<>"]*)?
    | (?:~|\.{1,2}|[a-z]:)?[/\\][\w.-]+[/\\][^\s<>"]*       # a path, or a file by its name
    | (?:[\w.-]+[/\\])*[\w-]+\.(?:csv|docx?|eml|html?|jpe?g|json|md|pdf|png|pptx?|py|txt|xlsx?|xml|ya?ml|zip)\b
    | (?<![\w-])(?:[^\W\d_]+[-_\#])+\d[\w-]*                # an id
    """,
    re.VERBOSE | re.IGNORECASE,
)
_ENDS = ".,;:!?'\"()"
_NOT_A_WORD = re.compile(r"[\d@/\\.#]")


def without_joined(text: str) -> str:
    """Remove addresses, links, paths and ids from a text."""
    # The pattern is slow. Most words are letters followed by a full stop or a comma and can skip it.
    tokens = text.split()
    return " ".join(each if each.strip(_ENDS).isalpha() else _JOINED.sub(" | ", each) for each in tokens)


def is_word(value: str) -> bool:
    """Whether a value is one or more words, so that it could appear in an address by chance; false for addresses and
    ids.
    """
    return _NOT_A_WORD.search(value) is None
