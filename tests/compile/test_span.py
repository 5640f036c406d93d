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


def test_words_that_stand_again_are_cited_beside_the_other_quotes_and_say_so() -> None:
    first, second = spans(["First look at the kind.", "For the others ask the caller."], DOCUMENT)
    assert first == {"quote": "5.2 First look at the kind."}
    assert second == {"quote": "For the others ask the caller."}
    assert spans(["First look at the kind.", "Plain ones need nothing."], DOCUMENT)[0] == {
        "quote": "5.1 First look at the kind."
    }


def test_words_that_stand_again_and_alone_are_meant_everywhere() -> None:
    assert spans(["First look at the kind."], DOCUMENT) == [{"quote": "First look at the kind."}]
    assert [len(places) for places in ranges(["First look at the kind."], DOCUMENT)] == [2]


HEADED = Document(
    """# Desk

## Fees

Ask a manager. Fees are in cash.

## Gifts

Ask a manager. Gifts are small.

Ask a manager. Gifts are few.
"""
)


def test_a_sentence_of_the_same_words_is_told_by_its_heading_else_by_its_line() -> None:
    assert spans(["Ask a manager.", "Fees are in cash."], HEADED)[0] == {"quote": "[Fees] Ask a manager."}
    last = spans(["Ask a manager.", "Gifts are few."], HEADED)[0]
    assert (last["heading"], last["line"], last["digest"]) == ("Gifts", 11, HEADED.sentences[0].digest)
    for quotes in (["Ask a manager.", "Fees are in cash."], ["Ask a manager.", "Gifts are few."]):
        assert spans([span["quote"] for span in spans(quotes, HEADED) if "quote" in span], HEADED)


def test_what_does_not_stand_in_the_document_has_no_place() -> None:
    assert ranges(["Look elsewhere.", ""], DOCUMENT) == []
