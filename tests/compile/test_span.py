"""Where quotes stand: words that stand twice are cited where the rest of the policy stands."""

from bylaw.compile.span import ranges, spans
from bylaw.policy.document import Document

DOCUMENT = Document(
    """# Desk

5.1 First look at the kind. Plain ones need nothing.

5.2 First look at the kind. For the others
ask the caller.
"""
)


def test_words_that_stand_once_are_quoted_however_they_are_wrapped() -> None:
    assert spans(["For the others ask the caller."], DOCUMENT) == [{"quote": "For the others ask the caller."}]


def test_words_that_stand_again_are_cited_by_the_sentence_beside_the_other_quotes() -> None:
    first, second = spans(["First look at the kind.", "For the others ask the caller."], DOCUMENT)
    assert (first["line"], first["sentence"]) == (5, 1)
    assert first["digest"] == DOCUMENT.sentences[2].digest
    assert second == {"quote": "For the others ask the caller."}
    assert spans(["First look at the kind.", "Plain ones need nothing."], DOCUMENT)[0] == {
        "quote": "First look at the kind."
    }


def test_what_does_not_stand_in_the_document_has_no_place() -> None:
    assert ranges(["Look elsewhere.", ""], DOCUMENT) == []
