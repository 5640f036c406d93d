"""Several documents: read each by itself, kept apart in the pack, and asked about again only where one has changed."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bylaw.compile.card import Card
from bylaw.compile.extract import with_references
from bylaw.compile.pipeline import Source, Work, compile_pack
from bylaw.compile.reading import read_documents
from bylaw.compile.span import Draft
from bylaw.compile.update import MadeOf, owner_of, read_before, write_pack
from bylaw.llm import Request
from bylaw.pack import load_pack
from bylaw.policy.document import Document
from bylaw.review.check import covered_sentences
from tests.compile.shop import Scripted
from tests.compile.test_update import Silent
from tests.policy.handbook import articles, letters, rule_of

INTEGER = {"type": "integer"}
CARDS = {"grant": Card("grant", "Grant something.", {"kind": INTEGER, "days": INTEGER}, ("kind", "days"))}
THINGS = "entities: {}\nobservations: {}\ntools:\n  grant: {effect: write}\n"
GUARDED = 20
"""Articles whose policies get a guard; one for each of all 700 would be tried for minutes."""


def _draft(name: str, quote: str) -> dict[str, Any]:
    return {"id": name, "definition": f"It says: {quote}", "scope": "", "description": "", "quotes": [quote]}


def _listed(text: str) -> list[dict[str, Any]]:
    """What there is to list in a text: its rule, and that it goes by the article before."""
    found = [
        _draft(f"within-days-{each[1]}", each[0]) for each in re.finditer(r"A \w+ of class (\d+) is granted .*", text)
    ]
    before = re.finditer(r"What \[the article before\].* says holds for class (\d+) as well\.", text)
    return found + [_draft(f"as-before-{each[1]}", each[0]) for each in before]


def _extract(request: Request) -> str:
    return json.dumps({"policies": _listed(request.messages[1].content.partition("The part:")[2])})


def _cover(request: Request) -> str:
    asked = request.messages[1].content.partition("Sentences that no policy cites:")[2].strip().splitlines()
    new = _listed("\n".join(line.partition(". ")[2] for line in asked))
    quotes = [each["quotes"][0] for each in new]
    others = [
        {"number": at, "why": "how it works"}
        for at, line in enumerate(asked, 1)
        if line.partition(". ")[2] not in quotes
    ]
    return json.dumps({"policies": new, "others": others})


def _names(request: Request) -> list[str]:
    return re.findall(r"^((?:within-days|as-before)-\d+)$", request.messages[1].content, re.MULTILINE)


def _sort(request: Request) -> str:
    listed: list[dict[str, Any]] = []
    for name in _names(request):
        guard = int(name.rpartition("-")[2]) < GUARDED
        body = {"kind": "guard" if guard else "conversation", "tools": ["grant"] if guard else []}
        listed.append({"id": name, "severity": "low", "general": False, "user_facts": [], "why": "so", **body})
    return json.dumps({"policies": listed})


def _days(request: Request, number: int, name: str) -> int:
    """As the article says it, or the one that it refers to."""
    of = number - 1 if name.startswith("as-before") else number
    found = re.search(rf"of class {of} is granted within (\d+) days", request.messages[1].content)
    assert found is not None, name
    return int(found[1])


def _guards(request: Request) -> str:
    made: list[str] = []
    for name in _names(request):
        number = int(name.rpartition("-")[2])
        test = f"call.kind == {number} and call.days > {_days(request, number, name)}"
        deny = f'    if {test}:\n        return deny("too late")\n    return permit()\n'
        made.append(f"def {name.replace('-', '_')}(call, facts):\n{deny}")
    return "\n\n".join(made)


def _cases(request: Request) -> str:
    lines: list[str] = []
    for name in _names(request):
        number = int(name.rpartition("-")[2])
        days = _days(request, number, name)
        for value, want in ((days, "permit"), (days + 1, "deny")):
            call = f"{{grant: {{kind: {number}, days: {value}}}}}"
            lines.append(f"- {{note: {want} at {value}, policy: {name}, call: {call}, want: {want}}}")
    return "\n".join(lines)


def model() -> Scripted:
    """A model that reads the handbook as it is written."""
    return Scripted(things=THINGS, extract=_extract, cover=_cover, sort=_sort, guards=_guards, cases=_cases)


def written(root: Path, texts: Mapping[str, str]) -> Path:
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def compiled(root: Path, folder: Path, chat: Scripted) -> Work:
    reading = read_documents([folder])
    before = read_before(root) if root.exists() else None
    edits = {"earlier": before.work, "owner": owner_of(before)} if before is not None else {}
    source = Source(reading.document, reading.title, CARDS, now="2025-01-01T10:00:00", **edits)
    work, _ = compile_pack(source, chat)
    write_pack(root, source, work, MadeOf(("help",), name="help"), before=before)
    return work


def _documents_asked(requests: list[Request]) -> set[str]:
    return {found[1] for each in requests if (found := re.search(r'called "help: ([^"]+)"', each.messages[1].content))}


@pytest.mark.parametrize("count", [40, pytest.param(700, marks=pytest.mark.slow)])
def test_after_one_edit_only_that_article_and_what_cites_it_is_asked_about(count: int, tmp_path: Path) -> None:
    texts = articles(count)
    folder, pack = written(tmp_path / "source", texts) / "help", tmp_path / "pack"
    first = model()
    work = compiled(pack, folder, first)
    assert len(first.asked("extract")) == count
    assert len(work.drafts) == count + count // 10
    compiled(pack, folder, Silent())
    rule = rule_of(8, texts[f"help/{letters(8)}.md"])
    days = re.search(r"within (\d+) days", rule)
    assert days is not None
    changed = rule.replace(f"within {days[1]} days", f"within {int(days[1]) + 100} days")
    path = folder / f"{letters(8)}.md"
    path.write_text(path.read_text().replace(rule, changed))
    again = model()
    compiled(pack, folder, again)
    asked = [request for requests in again.rounds for request in requests]
    assert {each.name for each in asked} == {"cases", "cover", "guards", "sort"}
    assert _documents_asked(again.asked("cover")) == {f"documents/{letters(8)}.md"}
    assert {name for request in asked for name in _names(request)} == {"within-days-8", "as-before-9"}
    assert f"> {int(days[1]) + 100}:" in (pack / "guards" / f"{letters(9)}.py").read_text(), "the article that cites it"


def test_each_document_is_a_file_of_the_pack_and_every_policy_says_which(tmp_path: Path) -> None:
    texts = articles(14)
    work = compiled(tmp_path / "pack", written(tmp_path / "source", texts) / "help", model())
    pack = load_pack(tmp_path / "pack")
    assert [file.name for file in pack.document.files] == [f"documents/{letters(number)}.md" for number in range(14)]
    assert pack.policies["within-days-3"].citations[0].document == f"documents/{letters(3)}.md"
    assert pack.policies["within-days-3"].citations[0].line == 3
    assert "document: documents\n" in (tmp_path / "pack" / "pack.yaml").read_text()
    covered = {each.document for each in covered_sentences(pack) if each.policies}
    assert covered == {f"documents/{letters(number)}.md" for number in range(14)}
    assert len(work.drafts) == len(pack.policies)


def test_a_document_that_is_gone_goes_from_the_pack_and_an_edited_copy_is_replaced(tmp_path: Path) -> None:
    folder, pack = written(tmp_path / "source", articles(14)) / "help", tmp_path / "pack"
    compiled(pack, folder, model())
    first, last = (f"{letters(number)}.md" for number in (0, 13))
    (folder / last).unlink()
    (pack / "documents" / first).write_text("A copy that somebody edited.\n")
    compiled(pack, folder, Silent())
    assert not (pack / "documents" / last).exists()
    assert (pack / "documents" / first).read_text() == (folder / first).read_text()
    assert "within-days-13" not in (pack / "policies.yaml").read_text()


LATE = "A parcel that comes late is refunded in full within 14 days."
DOCUMENT = Document.joined(
    [
        ("manual.md", f"# The manual\n\n{LATE}\nFor fees see Late Fees.\n"),
        ("fees.md", "# Late fees\n\nA late fee is 5.00.\n"),
        (
            "help.md",
            "# Help\n\nA parcel that comes late is refunded in full within 30 days. Gifts are wrapped for free.\n",
        ),
        ("faq.md", "# FAQ\n\nIn full refunded is a parcel that comes late, within 14 days.\n"),
    ],
    name="documents",
)


def _of(name: str, quote: str) -> Draft:
    return Draft(name, quote, quotes=(quote,))


def test_a_policy_is_shown_with_the_document_that_its_sentence_refers_to() -> None:
    one, other = with_references([_of("fees", "For fees see Late Fees."), _of("late", LATE)], DOCUMENT)
    assert one.refers == "fees.md: # Late fees A late fee is 5.00."
    assert other.refers == ""


def test_a_policy_is_shown_with_the_sentence_that_its_own_leans_on() -> None:
    text = "# Shop\n\nMembers pay $5.00. Otherwise the fee is $9.00.\n\n## Late\n\nThen a fine is due.\n"
    drafts = [
        _of("others", "Otherwise the fee is $9.00."),
        _of("members", "Members pay $5.00."),
        _of("late", "Then a fine is due."),
    ]
    both = Draft("both", "Fees.", quotes=("Members pay $5.00.", "Otherwise the fee is $9.00."))
    found = with_references([*drafts, both], Document(text))
    assert [draft.refers for draft in found] == ["the sentence before it: Members pay $5.00.", "", "", ""]
