"""The policy document: its sentences, and what becomes of a pack when it changes."""

from hashlib import sha256
from pathlib import Path

import pytest

from bylaw.errors import UsageError
from bylaw.pack import load_pack
from bylaw.policy.document import Document, digest_of
from bylaw.review.check import check, covered_sentences
from tests.policy.shop import FILES, edited, faults, load, write_pack


def sentences(text: str) -> list[str]:
    return [sentence.text for sentence in Document(text).sentences]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("See e.g. Dr. Smith at 9 a.m. He knows.", ["See e.g. Dr. Smith at 9 a.m. He knows."]),
        ("It costs $1.50 today. Pay it.", ["It costs $1.50 today.", "Pay it."]),
        ("Wrapped\nover lines. Next\none.", ["Wrapped over lines.", "Next one."]),
        ("# Heading\n\nText.\n## Another\nMore.", ["Text.", "More."]),
        ("- one item\n- another. With two.\n1. third", ["one item", "another.", "With two.", "third"]),
        ("| a | b |\n|---|---|\n| 1 | 2 |", ["| a | b |", "| 1 | 2 |"]),
        ("Payment:\n- cash only", ["cash only"]),
        ("Before.\n```\nnot. a. sentence.\n```\nAfter.", ["Before.", "After."]),
        ("", []),
        ("\n\n---\n\n", []),
        ("No end", ["No end"]),
        ('He said "yes." Then left.', ['He said "yes."', "Then left."]),
    ],
)
def test_sentences_are_what_a_reader_would_call_so(text: str, wanted: list[str]) -> None:
    assert sentences(text) == wanted


def test_a_sentence_knows_where_it_stands() -> None:
    document = Document("# Shop\n\n## Paying\n\nCash. Or\ncard.\n")
    second = document.sentences[1]
    assert (second.line, second.index, second.heading, second.text) == (5, 2, "Paying", "Or card.")
    assert document.text[second.start : second.end] == "Or\ncard."
    assert document.all_by_digest(digest_of("Or   card."))[0] is second


def test_a_quote_is_found_however_it_is_wrapped(tmp_path: Path) -> None:
    wrapped = FILES["policy.md"].replace("Only paid orders", "Only\npaid   orders")
    citation = load(tmp_path, {"policy.md": wrapped}).policies["only-paid"].citations[0]
    assert (citation.text, citation.line, citation.heading) == ("Only paid orders are shipped.", 5, "Shipping")


def test_a_quote_that_the_document_lacks_is_a_fault_at_its_line_with_the_nearest_sentence(tmp_path: Path) -> None:
    (fault,) = faults(tmp_path, edited("policy.md", "Gifts are never refunded.", "Gifts are seldom refunded."))
    assert fault == (
        "BY406 policies.yaml:12: `Gifts are never refunded.`, quoted by `no-gifts`, is not in policy.md;"
        " the nearest sentence is `Gifts are seldom refunded.`, policy.md:9 (Refunds): copy it exactly"
    )


def test_another_version_of_the_packs_own_document_makes_it_stale_and_names_the_policies(tmp_path: Path) -> None:
    given = tmp_path / "next.md"
    given.write_text(FILES["policy.md"].replace("Gifts are never refunded.", "Gifts are seldom refunded."))
    pack = load_pack(write_pack(tmp_path / "pack"), document=given)
    assert pack.stale == ("no-gifts",)
    assert pack.policies["no-gifts"].stale
    assert not pack.policies["only-paid"].stale
    assert str(pack.policies["no-gifts"].citations[0]) == "next.md"
    (lost,) = check(pack).lost
    assert (lost.place, "next.md:9 (Refunds)" in lost.hint) == ("policies.yaml:12", True)


def test_a_sentence_that_moved_is_not_stale(tmp_path: Path) -> None:
    assert load(tmp_path, {"policy.md": "A new preface.\n\n" + FILES["policy.md"]}).stale == ()


def outside(quote: str, line: int, sentence: int, *, digest: str | None = None) -> str:
    return f'{{heading: "x", line: {line}, sentence: {sentence}, digest: "{digest or digest_of(quote)}"}}'


def external(root: Path) -> Path:
    """The shop's pack with its document named by digest."""
    policies = FILES["policies.yaml"]
    for quote, line, number in (
        ("Only paid orders are shipped.", 5, 1),
        ("Gifts are never refunded.", 9, 1),
        ("Say what you are about to do.", 9, 2),
    ):
        policies = policies.replace(f'{{quote: "{quote}"}}', outside(quote, line, number))
    digest = sha256(FILES["policy.md"].encode()).hexdigest()
    manifest = FILES["pack.yaml"].replace("policy.md", f'{{title: The rules of the shop, sha256: "{digest}"}}')
    return write_pack(root, {"policies.yaml": policies, "pack.yaml": manifest, "policy.md": None})


def test_an_external_document_is_cited_by_heading_and_line(tmp_path: Path) -> None:
    pack = load_pack(external(tmp_path))
    assert pack.document is None
    assert pack.stale == ()
    citation = pack.policies["no-gifts"].citations[0]
    assert (citation.text, citation.line, str(citation)) == (None, 9, "The rules of the shop:9 (x)")
    assert covered_sentences(pack) == []


def test_an_external_document_is_cited_in_words_where_it_is_given(tmp_path: Path) -> None:
    given = tmp_path / "rules.md"
    given.write_text(FILES["policy.md"])
    pack = load_pack(external(tmp_path / "pack"), document=given)
    assert [policy.citations[0].text for policy in pack.policies.values()] == [
        "Only paid orders are shipped.",
        "Gifts are never refunded.",
        "Say what you are about to do.",
    ]
    assert pack.policies["no-gifts"].citations[0].heading == "Refunds"
    assert [entry.state for entry in covered_sentences(pack)] == ["enforced", "uncovered", "enforced", "listed"]


def test_another_version_of_an_external_document_names_the_policies_it_left_behind(tmp_path: Path) -> None:
    given = tmp_path / "rules.md"
    given.write_text(FILES["policy.md"].replace("Only paid", "Only wrapped"))
    assert load_pack(external(tmp_path / "pack"), document=given).stale == ("only-paid",)


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00\x01"])
def test_a_document_that_cannot_be_read_is_said(content: bytes | None, tmp_path: Path) -> None:
    given = tmp_path / "rules.md"
    if content is not None:
        given.write_bytes(content)
    with pytest.raises(UsageError, match=r"rules\.md: the document (cannot be read: no such file|is not UTF-8 text)"):
        load_pack(external(tmp_path / "pack"), document=given)


def test_every_sentence_is_enforced_listed_or_uncovered(tmp_path: Path) -> None:
    assert {entry.sentence.text: entry.state for entry in covered_sentences(load(tmp_path))} == {
        "Only paid orders are shipped.": "enforced",
        "Nothing is shipped to somebody else.": "uncovered",
        "Gifts are never refunded.": "enforced",
        "Say what you are about to do.": "listed",
    }


def test_what_is_accepted_as_unenforced_does_not_count_as_enforced(tmp_path: Path) -> None:
    accepted = edited("policies.yaml", "severity: high", "unenforced: {accepted_by: Ada, reason: later}")
    only_gifts = FILES["guards/shop.py"].partition("\n\n\n")[2]
    pack = load(tmp_path, {**accepted, "guards/shop.py": only_gifts, "cases/shop.yaml": ""})
    assert [entry.state for entry in covered_sentences(pack)] == ["listed", "uncovered", "enforced", "listed"]


def test_quotes_that_the_document_lacks_never_load(tmp_path: Path) -> None:
    found = faults(tmp_path, {"policy.md": "# Nothing\n\nof the kind\n"})
    assert [fault.split(":")[1] for fault in found] == ["6", "12", "16"]
    assert all("policy.md:0" not in fault and "changed" not in fault for fault in found)


def test_a_quote_is_found_where_it_is_a_sentence_of_its_own() -> None:
    document = Document("Ask for the user id and the zip code.\n\n- user id\n- zip\n  code\n")
    assert [document.find(quote) for quote in ("user id", "zip code", "code", "mail")] == [
        (41, 48),
        (51, 61),
        (32, 36),
        None,
    ]


def test_a_beginning_is_told_as_the_whole_sentence() -> None:
    document = Document("One. The fee is 5.00 for adults. Three.\n")
    start = document.text.index("The fee")
    assert document.whole(start, start + 7) == "The fee is 5.00 for adults."
    assert document.whole(0, start + 7) == "One. The fee is 5.00 for adults."


def test_a_check_names_a_quote_that_may_mean_two_sentences_and_is_sound_all_the_same(tmp_path: Path) -> None:
    text = FILES["policy.md"] + "\nOnly paid orders are shipped abroad.\n"
    quote = {"policies.yaml": FILES["policies.yaml"].replace("Only paid orders are shipped.", "Only paid orders")}
    pack = load(tmp_path, {"policy.md": text, **quote})
    (found,) = pack.ambiguous
    assert (found.policy, found.quote, found.places) == ("only-paid", "Only paid orders", "policy.md:5, policy.md:11")
    assert found.example == "[policy.md:5] Only paid orders"
    cited = [citation.text for citation in pack.policies["only-paid"].citations]
    assert cited == ["Only paid orders are shipped.", "Only paid orders are shipped abroad."]
    report = check(pack)
    assert report.ambiguous == (found,)
    assert report.record()["ambiguous"][0]["policy"] == "only-paid"
    assert not load(tmp_path / "whole", {"policy.md": text}).ambiguous


def test_a_sentence_ends_after_its_quotation_marks_not_inside_them() -> None:
    text = 'Say "Please hold. I am looking it up." before you look. Then wait. He said "Yes." Go on.'
    assert [each.text for each in Document(text).sentences] == [
        'Say "Please hold. I am looking it up." before you look.',
        "Then wait.",
        'He said "Yes."',
        "Go on.",
    ]
    inches = 'A 5" screen is small. A 6" screen is not. Send either.'
    assert len(Document(inches).sentences) == 3, "marks that quote nothing"


def test_a_whole_section_is_knowledge_in_one_line(tmp_path: Path) -> None:
    text = FILES["policy.md"] + "\n## Tone\n\nBe kind. Be brief.\n\n### By phone\n\nSmile.\n\n## Last\n\nStop.\n"
    tone = "  - {id: tone, kind: knowledge, spans: [{heading: Tone}]}\n"
    files = {"policy.md": text, "policies.yaml": FILES["policies.yaml"] + tone}
    covered = {each.sentence.text: each.state for each in covered_sentences(load(tmp_path, files))}
    assert [covered[each] for each in ("Be kind.", "Be brief.", "Smile.", "Stop.")] == ["listed"] * 3 + ["uncovered"]
    wrong = {**files, "policies.yaml": files["policies.yaml"].replace("heading: Tone", "heading: Tune")}
    (found,) = faults(tmp_path / "wrong", wrong)
    assert "no sentence is under the heading `Tune`, which policy `tone` cites; did you mean `Tone`?" in found
