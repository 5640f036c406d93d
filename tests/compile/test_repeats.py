"""A sentence that stands in several parts of the document: one policy, one coverage, and nothing asked twice."""

import json
from pathlib import Path
from typing import Any

import pytest

from bylaw.compile.extract import UNSAID, sections, told_apart
from bylaw.compile.pipeline import Source, Work, compile_pack
from bylaw.compile.span import Draft, covered
from bylaw.compile.update import MadeOf, owner_of, read_before, write_pack
from bylaw.llm import Request
from bylaw.pack import load_pack
from bylaw.policy.document import Document
from bylaw.policy.folder import read_folder
from bylaw.review.check import covered_sentences
from tests.compile.shop import CARDS, Scripted
from tests.compile.test_update import Silent

AGAIN = "Before any refund, tell the customer what you will do and wait for a yes."
PADDING = "\n\n".join(f"Note {number}: {'we thank you for your patience ' * 6}." for number in range(18))
POLICY = f"""# Shop

## Refunds

{AGAIN}

{PADDING}

## Returns

{AGAIN}
A manager must approve it.

## Exchanges

A manager must approve it.
"""


def draft(name: str, definition: str, *quotes: str) -> dict[str, Any]:
    return {"id": name, "definition": definition, "scope": "", "description": "", "quotes": list(quotes)}


def extracted(second: str = "Every refund is told and agreed to.") -> Any:
    def answer(request: Request) -> str:
        text = request.messages[1].content.partition("The part:")[2]
        if "## Refunds" in text:
            return json.dumps({"policies": [draft("confirm-refunds", "Every refund is told and agreed to.", AGAIN)]})
        return json.dumps({"policies": [draft("confirm-returns", second, AGAIN)]})

    return answer


def covering(request: Request) -> str:
    asked = request.messages[1].content.partition("Sentences that no policy cites:")[2].strip().splitlines()
    others = [{"number": at, "why": "thanks"} for at, line in enumerate(asked, 1) if "manager" not in line]
    if len(others) == len(asked):
        return json.dumps({"policies": [], "others": others})
    ask = draft("ask-a-manager", "A manager approves it.", "A manager must approve it.")
    return json.dumps({"policies": [ask], "others": others})


def sorting(request: Request) -> str:
    names = [line for line in request.messages[1].content.splitlines() if line.startswith(("confirm-", "ask-"))]
    body = {"kind": "conversation", "tools": [], "severity": "medium", "general": False, "user_facts": [], "why": "so"}
    return json.dumps({"policies": [{"id": name, **body} for name in names]})


def compiled(root: Path, chat: Scripted, document: str = POLICY) -> Work:
    before = read_before(root) if (root / "pack.yaml").exists() else None
    edits = {"earlier": before.work, "owner": owner_of(before)} if before is not None else {}
    source = Source(Document(document), "Shop", CARDS, **edits)
    work, _ = compile_pack(source, chat)
    write_pack(root, source, work, MadeOf(("policy.md",), name="shop"), before=before)
    return work


def chat(second: str = "Every refund is told and agreed to.") -> Scripted:
    return Scripted(extract=extracted(second), cover=covering, sort=sorting)


def test_a_later_part_is_told_what_stands_earlier_too(tmp_path: Path) -> None:
    asking = chat()
    compiled(tmp_path, asking)
    first, second = asking.asked("extract")
    assert "stand in an earlier part" not in first.messages[1].content
    assert f"- {AGAIN} (policy.md:5 (Refunds))" in second.messages[1].content


def test_the_same_said_twice_is_one_policy_that_covers_both_places(tmp_path: Path) -> None:
    work = compiled(tmp_path, chat())
    assert [each.id for each in work.drafts] == ["confirm-refunds", "ask-a-manager"]
    assert work.first is not None
    assert work.first.left_out == ("`confirm-returns` duplicates `confirm-refunds`: both quote the same words",)
    pack = load_pack(tmp_path)
    lines = {name: str(policy.citations[0]) for name, policy in pack.policies.items()}
    assert lines["confirm-refunds"].startswith("policy.md:5 (Refunds), policy.md:")
    assert [each.state for each in covered_sentences(pack) if each.sentence.text == AGAIN] == ["listed", "listed"]
    assert "confirm-returns" not in (tmp_path / "policies.yaml").read_text()


def test_the_same_words_that_say_something_else_are_cited_in_their_own_place_and_the_owner_is_asked(
    tmp_path: Path,
) -> None:
    work = compiled(tmp_path, chat("Every return is told and agreed to."))
    cited = {name: str(policy.citations[0]) for name, policy in load_pack(tmp_path).policies.items()}
    assert cited["confirm-refunds"] == "policy.md:5 (Refunds)"
    assert cited["confirm-returns"].endswith("(Returns)")
    (question,) = work.questions["confirm-returns"]
    assert question.about == "quotes the same words as confirm-refunds"
    assert "`Every refund is told and agreed to.`" in question.text
    assert "quotes the same words as confirm-refunds" in (tmp_path / "compiled.yaml").read_text()


@pytest.mark.parametrize("second", ["Every refund is told and agreed to.", "Every return is told and agreed to."])
def test_an_update_of_the_same_document_asks_nothing(second: str, tmp_path: Path) -> None:
    compiled(tmp_path, chat(second))
    before = {path.name: path.read_bytes() for path in tmp_path.rglob("*.yaml")}
    compiled(tmp_path, Silent())
    assert {path.name: path.read_bytes() for path in tmp_path.rglob("*.yaml")} == before


def test_a_sentence_that_an_answer_passes_over_is_listed_and_not_asked_about_again(tmp_path: Path) -> None:
    quiet = Scripted(extract=extracted(), cover='{"policies": [], "others": []}', sort=sorting)
    work = compiled(tmp_path, quiet)
    assert work.second is not None
    assert set(work.second.aside.values()) == {UNSAID}
    compiled(tmp_path, Silent())


@pytest.mark.parametrize("second", ["Every refund is told and agreed to.", "Every return is told and agreed to."])
def test_the_compiler_and_the_check_find_the_same_sentences_covered(second: str, tmp_path: Path) -> None:
    work = compiled(tmp_path, chat(second))
    pack = load_pack(tmp_path)
    document = Document(POLICY)
    checked = {each.sentence.start for each in covered_sentences(pack) if each.policies}
    assert checked == covered((each.quotes for each in work.drafts), document)
    assert len(read_folder(tmp_path).parts["policies"].data["policies"]) == len(work.drafts)


def test_drafts_of_one_part_that_share_a_sentence_are_two_policies() -> None:
    document = Document(POLICY)
    part = sections(document)[0]
    two = [Draft("tell", "Tell the customer.", quotes=(AGAIN,)), Draft("wait", "Wait for a yes.", quotes=(AGAIN,))]
    found = told_apart([(part, each) for each in two], document)
    assert (found.drafts, found.dropped, found.questions) == (tuple(two), {}, {})
