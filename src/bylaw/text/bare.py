"""Words that stand by themselves: a part of an address, a link, a path or an id is not a word that somebody said."""

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
    """A text without its addresses, links, paths and ids."""
    # Most words are letters and a full stop or a comma: the pattern is slow, and need not look at them.
    tokens = text.split()
    return " ".join(each if each.strip(_ENDS).isalpha() else _JOINED.sub(" | ", each) for each in tokens)


def is_word(value: str) -> bool:
    """Whether a value is a word or several, and may stand in an address by chance; not itself an address or an id."""
    return _NOT_A_WORD.search(value) is None
