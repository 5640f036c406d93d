"""Whether a document has the assistant establish who the user is."""

import re

from bylaw.policy.document import Document

_PERSON = r"(?:user|customer|caller|client|member|guest|patient|person|traveller|passenger)s?"
_WORDS = r"(?:[\w'’]+\s+)"
_ESTABLISHES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\bauthenticat",
        rf"\b(?:verif|establish|confirm|check)\w*\s+{_WORDS}{{0,4}}?identity\b",
        rf"\b(?:(?:verif|establish|confirm|check)\w*|find\w*\s+out)\s+who\s+{_WORDS}{{0,3}}?(?:is|are)\b",
        rf"\bidentif(?:y|ies|ying)\s+{_WORDS}{{0,3}}?{_PERSON}\b",
        rf"\b{_PERSON}\s+{_WORDS}{{0,4}}?(?:identified|verified)\b",
        rf"\b(?:locat|find)\w*\s+{_WORDS}{{0,2}}?(?:user|customer|account)\s+(?:id|number|profile)\b",
    )
)


def asks_who_it_is(document: Document) -> bool:
    """Whether some sentence speaks of authenticating or identifying users."""
    return any(pattern.search(sentence.text) for sentence in document.sentences for pattern in _ESTABLISHES)
