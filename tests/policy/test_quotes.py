"""Sentences that stand more than once: a quote means all of them, unless it says which."""

from pathlib import Path

import pytest

from bylaw.policy.document import Document, places_of, read_quote
from bylaw.review.check import covered_sentences
from tests.policy.shop import FILES, faults, load

TWICE = """\
# Shop

## Shipping

Only paid orders are shipped. A manager must approve it.

### Exceptions

Ask first.

## Refunds

Gifts are never refunded. Say what you are about to do.
A manager must approve it.

### Exceptions

Ask first.
"""
DOCUMENT = Document(TWICE)


def lines(written: str, document: Document = DOCUMENT) -> list[int]:
    return [document.line_of(start) for start, _ in places_of(written, document)]


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("A manager must approve it.", [5, 14]),
        ("[Refunds] A manager must approve it.", [14]),
        ("[shipping] A manager  must approve it.", [5]),
        ("[Shop] A manager must approve it.", [5, 14]),
        ("[policy.md] A manager must approve it.", [5, 14]),
        ("[policy.md > Refunds] A manager must approve it.", [14]),
        ("[policy.md:5] A manager must approve it.", [5]),
        ("[policy.md:6] A manager must approve it.", []),
        ("[Exceptions] Ask first.", [9, 18]),
        ("[Refunds > Exceptions] Ask first.", [18]),
        ("[Shop > Exceptions] Ask first.", [9, 18]),
        ("[Exceptions > Refunds] Ask first.", []),
        ("[Refunds] Only paid orders are shipped.", []),
        ("[Returns] Ask first.", []),
        ("manager must", [5, 14]),
        ("", []),
    ],
)
def test_a_quote_means_every_place_unless_it_says_which(written: str, wanted: list[int]) -> None:
    assert lines(written) == wanted


def test_a_bracket_that_stands_in_the_document_is_part_of_the_words() -> None:
    document = Document("[Draft] Nobody is paid. [Terms](terms.md) apply.\n")
    assert read_quote("[Draft] Nobody is paid.", document).words == "[Draft] Nobody is paid."
    assert lines("[Draft] Nobody is paid.", document) == [1]
    assert read_quote("[Terms](terms.md) apply.").which.headings == ()


def test_the_number_of_a_clause_is_no_part_of_its_sentence() -> None:
    document = Document(
        "4.1 Look at the kind. It must be plain.\n\n(a) Look at the kind. Ask.\n\nThen look at the kind.\n"
    )
    assert lines("Look at the kind.", document) == [1, 3]
    assert lines("4.1 Look at the kind.", document) == [1]
    assert lines("ook at the kind", document) == [1, 3, 5]


def stated(*quotes: str) -> dict[str, str]:
    docstring = "\n    ".join(quotes)
    code = FILES["guards/shop.py"].replace(
        "def only_paid(call, facts):", f'def only_paid(call: ship, facts):\n    """{docstring}"""'
    )
    policies = FILES["policies.yaml"]
    entry = policies[policies.index("  - id: only-paid") : policies.index("  - id: no-gifts")]
    return {"policy.md": TWICE, "guards/shop.py": code, "policies.yaml": policies.replace(entry, "")}


def test_a_repeated_sentence_is_cited_once_with_all_its_places(tmp_path: Path) -> None:
    pack = load(tmp_path, stated("A manager must approve it."))
    (citation,) = pack.policies["only-paid"].citations
    assert citation.text == "A manager must approve it."
    assert str(citation) == "policy.md:5 (Shipping), policy.md:14 (Refunds)"
    covering = {each.sentence.line for each in covered_sentences(pack) if "only-paid" in each.checked}
    assert covering == {5, 14}


def test_a_docstring_says_which_sentence_it_means(tmp_path: Path) -> None:
    pack = load(tmp_path, stated("Only paid orders are shipped.", "[Refunds] A manager must approve it."))
    first, second = pack.policies["only-paid"].citations
    assert (str(first), str(second)) == ("policy.md:5 (Shipping)", "policy.md:14 (Refunds)")
    left = [
        each.sentence.line for each in covered_sentences(pack) if "manager" in each.sentence.text and not each.checked
    ]
    assert left == [5]


@pytest.mark.parametrize(
    "span",
    [
        "{quote: Ask first., heading: Refunds}",
        '"[Refunds] Ask first."',
        "{quote: Ask first., line: 18}",
        "{quote: Ask first., document: policy.md, line: 18}",
    ],
)
def test_policies_yaml_says_it_in_keys_or_as_a_docstring_does(span: str, tmp_path: Path) -> None:
    policies = FILES["policies.yaml"].replace('{quote: "Only paid orders are shipped."}', span)
    pack = load(tmp_path, {"policy.md": TWICE, "policies.yaml": policies})
    assert [str(each) for each in pack.policies["only-paid"].citations] == ["policy.md:18 (Exceptions)"]


def test_a_heading_that_is_out_of_date_beside_a_quote_that_stands_once_is_as_before(tmp_path: Path) -> None:
    span = '{quote: "Only paid orders are shipped.", heading: Sending, line: 77}'
    policies = FILES["policies.yaml"].replace('{quote: "Only paid orders are shipped."}', span)
    pack = load(tmp_path, {"policy.md": TWICE, "policies.yaml": policies})
    assert [each.line for each in pack.policies["only-paid"].citations] == [5]


def test_a_quote_that_does_not_stand_where_it_says_is_told_where_it_does(tmp_path: Path) -> None:
    (fault,) = faults(tmp_path, stated("Only paid orders are shipped.", "[Returns] Ask first."))
    assert fault == (
        "BY406 guards/shop.py:3: `Ask first.`, quoted by `only-paid`, is not at `Returns`;"
        " it is at policy.md:9 (Exceptions), policy.md:18 (Exceptions)"
    )


def test_a_digest_means_the_place_that_it_names(tmp_path: Path) -> None:
    digest = DOCUMENT.sentences[-1].digest
    span = f'{{heading: Exceptions, line: 16, digest: "{digest}"}}'
    policies = FILES["policies.yaml"].replace('{quote: "Only paid orders are shipped."}', span)
    pack = load(tmp_path, {"policy.md": TWICE, "policies.yaml": policies})
    assert [each.line for each in pack.policies["only-paid"].citations] == [18], "the nearest to where it stood"


def test_two_quotes_of_one_sentence_are_told_as_that_sentence(tmp_path: Path) -> None:
    pack = load(tmp_path, stated("Only paid orders", "orders are shipped"))
    assert [each.text for each in pack.policies["only-paid"].citations] == ["Only paid orders are shipped."]
