"""A document of several files: a span says which, coverage goes by file, and hundreds of them load in seconds."""

import time
from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from bylaw.cli.check import print_checked, print_sentences
from bylaw.cli.console import open_console
from bylaw.errors import PackError
from bylaw.pack import load_pack
from bylaw.policy.document import Document, places_of
from bylaw.review.check import check, covered_sentences
from tests.command import bylaw
from tests.policy.handbook import articles, pack_files
from tests.policy.shop import FILES, edited, faults, load, write_pack

SHIPPING, _, REFUNDS = FILES["policy.md"].partition("## Refunds")
PARTS: dict[str, str | bytes | None] = {
    "policy.md": None,
    "help/shipping.md": SHIPPING,
    "help/refunds.md": f"# Refunds{REFUNDS}Only paid orders are shipped.\n",
    "fees.txt": "Nothing is shipped to somebody else.\n",
}
NAMED = {"a folder": "help", "files": "[help/shipping.md, help/refunds.md]", "both": "[fees.txt, help]"}


def several(named: str = "help", **changes: str) -> dict[str, str | bytes | None]:
    return {**PARTS, **edited("pack.yaml", "document: policy.md", f"document: {named}"), **changes}


@pytest.mark.parametrize("named", NAMED.values(), ids=NAMED.keys())
def test_a_document_may_be_several_files_or_a_folder(named: str, tmp_path: Path) -> None:
    pack = load(tmp_path, several(named))
    assert pack.document is not None
    assert {file.name for file in pack.document.files} >= {"help/shipping.md", "help/refunds.md"}
    places = [str(each) for each in pack.policies["only-paid"].citations]
    assert sorted(places[0].split(", ")) == ["help/refunds.md:4 (Refunds)", "help/shipping.md:5 (Shipping)"]
    assert str(pack.policies["no-gifts"].citations[0]) == "help/refunds.md:3 (Refunds)"


@pytest.mark.parametrize(
    "span",
    [
        '"[refunds.md] Only paid orders are shipped."',
        '"[help/refunds.md:4] Only paid orders are shipped."',
        '"[refunds.md > Refunds] Only paid orders are shipped."',
        "{quote: Only paid orders are shipped., document: help/refunds.md}",
    ],
)
def test_a_span_says_which_document(span: str, tmp_path: Path) -> None:
    policies = FILES["policies.yaml"].replace('{quote: "Only paid orders are shipped."}', span)
    pack = load(tmp_path, several(**{"policies.yaml": policies}))
    assert [str(each) for each in pack.policies["only-paid"].citations] == ["help/refunds.md:4 (Refunds)"]


def test_a_digest_is_looked_for_in_the_document_that_its_span_names(tmp_path: Path) -> None:
    digest = Document("Only paid orders are shipped.").sentences[0].digest
    span = f'{{document: help/refunds.md, line: 5, digest: "{digest}"}}'
    policies = FILES["policies.yaml"].replace('{quote: "Only paid orders are shipped."}', span)
    pack = load(tmp_path, several(**{"policies.yaml": policies}))
    assert str(pack.policies["only-paid"].citations[0]) == "help/refunds.md:4 (Refunds)"


def test_a_quote_never_goes_from_one_document_to_the_next() -> None:
    document = Document.joined([("a.md", "One two."), ("b.md", "Three four.")], name="both")
    assert document.places("two. Three") == ()
    assert [document.text[start:end] for start, end in document.places("Three four.")] == ["Three four."]
    assert [(each.text, each.line) for each in document.sentences] == [("One two.", 1), ("Three four.", 1)]
    assert places_of("[b.md] four", document) == ((16, 20),)


def test_what_no_document_says_is_told_with_the_nearest_sentence_of_any(tmp_path: Path) -> None:
    policies = FILES["policies.yaml"].replace("Gifts are never refunded.", "Gifts are seldom refunded.")
    (fault,) = faults(tmp_path, several(**{"policies.yaml": policies}))
    assert "is not in any of the 2 documents; the nearest sentence is `Gifts are never refunded.`" in fault
    assert "help/refunds.md:3 (Refunds)" in fault


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("[help, nowhere.md]", "document `nowhere.md` does not exist"),
        (
            "empty",
            "document `empty` is a folder without text files; the name of a text file must end in .md, .markdown, .txt",
        ),
        ("[../../etc]", "document `../../etc` does not exist"),
        (".", "document `.` is the pack's own folder; name a file or a folder in it"),
    ],
)
def test_a_document_that_cannot_be_had_is_a_fault_at_its_line(named: str, said: str, tmp_path: Path) -> None:
    found = faults(tmp_path / "pack", several(named, **{"empty/picture.png": "x"}))
    assert any(fault.startswith(f"BY405 pack.yaml:5: {said}") for fault in found), found


def test_no_document_of_a_folder_lies_outside_of_the_pack(tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("Nobody may read this.\n")
    root = write_pack(tmp_path / "pack", several())
    (root / "help" / "link.md").symlink_to(tmp_path / "secret.md")
    with pytest.raises(PackError, match=r"`help/link\.md` is outside the pack's folder"):
        load_pack(root)


def test_coverage_goes_by_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pack = load(tmp_path, several("[fees.txt, help]"))
    states = Counter((each.document, each.state) for each in covered_sentences(pack))
    assert states["fees.txt", "uncovered"] == 1
    assert states["help/refunds.md", "enforced"] == 2
    report = check(pack)
    assert report.record()["sentences"][0]["document"] == "fees.txt"
    print_checked(report, open_console(), whole=True)
    print_sentences(report, open_console(), {})
    said = capsys.readouterr().out
    assert "  help/refunds.md: 2 enforced, 1 listed, 0 uncovered\n" in said
    assert "  fees.txt:1  Nothing is shipped to somebody else." in said
    assert "\nhelp/refunds.md > Refunds\n" in said


def test_what_waits_for_review_is_enforced_in_no_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = check(load(tmp_path, several("[fees.txt, help]")))
    held_back = tuple((name, "unsigned") for each in report.sentences for name in each.checked)
    print_checked(replace(report, unaccepted=held_back), open_console(), whole=True)
    said = capsys.readouterr().out
    assert "; 0 enforced, " in said
    assert "  help/refunds.md: 0 enforced, 2 not accepted, 1 listed, 0 uncovered\n" in said


def test_review_goes_by_document(tmp_path: Path) -> None:
    root = write_pack(tmp_path / "pack", several())
    shown = bylaw(tmp_path, "review", root, "--document", "refunds.md").stdout
    assert [name for name in ("only-paid", "no-gifts", "say-it") if f"{name}  " in shown] == [
        "only-paid",
        "no-gifts",
        "say-it",
    ]
    shown = bylaw(tmp_path, "review", root, "--document", "shipping.md").stdout
    assert "only-paid  " in shown
    assert "no-gifts  " not in shown
    unknown = bylaw(tmp_path, "review", root, "--document", "fees.md")
    assert "the pack has no document `fees.md`; known: help/refunds.md, help/shipping.md" in unknown.stderr


def test_every_document_counts_for_the_digest(tmp_path: Path) -> None:
    first = load(tmp_path / "a", several())
    changed = load(tmp_path / "b", several(**{"help/refunds.md": f"{PARTS['help/refunds.md']!s}\n"}))
    added = load(tmp_path / "c", several(**{"help/more.md": "More.\n"}))
    assert len({first.digest, changed.digest, added.digest}) == 3
    assert load_pack(tmp_path / "a").digest == first.digest


def test_a_folder_may_be_given_in_place_of_the_packs_own(tmp_path: Path) -> None:
    root = write_pack(tmp_path / "pack", several())
    pack = load_pack(root, document=root / "help")
    assert pack.stale == ()
    (root / "help" / "refunds.md").write_text("# Refunds\n\nGifts are refunded.\n")
    assert load_pack(root, document=root / "help").stale == ("no-gifts", "say-it")


LIMIT = 5.0
"""Seconds that a check of 700 articles may take."""


def test_a_check_of_700_articles_takes_seconds(tmp_path: Path) -> None:
    files = pack_files(700)
    assert files == pack_files(700), "by seed"
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    # The processor's time, so that a busy machine tells nothing else.
    before = time.process_time()
    report = check(load_pack(tmp_path))
    taken = time.process_time() - before
    assert report.is_sound
    assert (len(report.cases), len({each.document for each in report.sentences})) == (1400, 700)
    assert taken < LIMIT, taken


def test_the_handbook_has_sentences_that_stand_again_and_articles_that_cite_others() -> None:
    texts = articles(700)
    document = Document.joined(list(texts.items()), name="help")
    assert len(document.sentences) > 9_000
    assert len(document.places("A manager must approve it.")) > 100
    assert sum("the article before" in text for text in texts.values()) == 70
