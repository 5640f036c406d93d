"""A document that changed: only the change is asked about, and words of people lapse only where it reaches."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bylaw.compile.pipeline import Source, compile_pack
from bylaw.compile.update import (
    MadeOf,
    Update,
    differences,
    owner_of,
    place,
    read_before,
    recover,
    rejections,
    stage,
    write_pack,
)
from bylaw.llm import Answer, Request
from bylaw.llm.recorded import Recordings
from bylaw.pack.review import standings
from bylaw.policy.document import Document
from bylaw.policy.folder import read_folder
from bylaw.trace import Call, Message, Trajectory
from tests.command import bylaw
from tests.compile import shop
from tests.compile.shop import CARDS, CASES, LIMIT, POLICY, Scripted, source, tools_file
from tests.compile.test_recordings import Keeping

OLD = "Gold customers are refunded up to $500.00 at once, everybody else up to $200.00."
NEW = "Gold customers are refunded up to $600.00 at once, everybody else up to $200.00."
ADDED = "Nothing is refunded on a Sunday."


def _cover(text: str, name: str) -> str:
    policy = {"id": name, "definition": f"It says: {text}", "scope": "refunds", "description": "", "quotes": [text]}
    return json.dumps({"policies": [policy], "others": []})


def compiled(root: Path, chat: Scripted, document: str = POLICY, *, rejects: bool = False) -> Update:
    """Compile the shop's document into a folder; over the pack there, if there is one."""
    before = read_before(root) if (root / "pack.yaml").exists() else None
    given = Source(Document(document), "Shop", CARDS)
    if before is not None:
        rejected = rejections(before, Document(document)) if rejects else {}
        given = replace(given, earlier=before.work, owner=owner_of(before), rejected=rejected)
    work, _ = compile_pack(given, chat)
    return write_pack(root, given, work, MadeOf(("policy.md",), name="shop"), before=before)


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    write_pack(tmp_path / "shop", source(), shop.compiled()[0], MadeOf(("policy.md",), name="shop"))
    return tmp_path / "shop"


class Silent(Scripted):
    """Whoever must not be asked."""

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        raise AssertionError([request.name for request in requests])


def test_nothing_changed_nothing_is_asked_and_no_byte_differs(pack: Path) -> None:
    files = [path for path in pack.rglob("*.*") if path.name != "work.json"]
    before = [path.read_bytes() for path in files]
    compiled(pack, Silent())
    assert [path.read_bytes() for path in files] == before


def test_a_changed_sentence_asks_for_its_policy_alone_and_keeps_its_name(pack: Path) -> None:
    bylaw(pack.parent, "review", pack, "--accept", "refund-limit", "--accept", "refund-window", "--by", "Ines")
    before = read_folder(pack)
    chat = Scripted(
        cover=_cover(NEW, "gold-limit"),
        sort=_sorted("refund-limit"),
        guards=LIMIT.replace("500.00", "600.00"),
        cases=_only("refund-limit", "600.0"),
    )
    compiled(pack, chat, POLICY.replace(OLD, NEW))
    assert sorted(request.name for asked in chat.rounds for request in asked) == [
        "cases",
        "cover",
        "guards",
        "guards",
        "sort",
    ]
    assert "30 days" not in chat.asked("guards")[0].messages[1].content.split("The policies:")[1]
    found = differences(pack, before, read_folder(pack))
    assert [(each.policy, each.change, each.was_signed) for each in found] == [("refund-limit", "both", True)]
    assert any("600.00" in line for line in found[0].lines)
    assert standings(pack)["refund-limit"] == "lapsed"
    assert standings(pack)["refund-window"] == "accepted"


def test_a_new_sentence_is_a_new_policy_and_a_removed_one_is_gone(pack: Path) -> None:
    before = read_folder(pack)
    document = POLICY.replace(OLD, ADDED)
    kinds = _sorted("no-sunday", "conversation")
    compiled(pack, Scripted(cover=_cover(ADDED, "no-sunday"), sort=kinds), document)
    found = {each.policy: each.change for each in differences(pack, before, read_folder(pack))}
    assert found == {"no-sunday": "new", "refund-limit": "gone"}


def test_a_way_of_reading_that_changes_touches_every_guard(pack: Path) -> None:
    document = POLICY.replace("is the day of the call", "is the day before the call")
    text = '"Today" is the day before the call.'
    chat = Scripted(cover=_cover(text, "today"), sort=_sorted("today", "knowledge"))
    compiled(pack, chat, document)
    assert len(chat.asked("guards")) == 2


def test_what_a_person_edited_stays(pack: Path) -> None:
    path = pack / "guards/refunds.py"
    path.write_text(path.read_text().replace("more than 30 days ago", "too late, says Ines"))
    compiled(pack, Silent())
    assert "too late, says Ines" in path.read_text()


def test_an_edit_that_uses_a_shared_function_stays(pack: Path) -> None:
    path = pack / "guards/refunds.py"
    text = path.read_text().replace('return deny("more than 30 days ago")', "return too_late()")
    text = text.replace('return deny("more than may be refunded at once")', "return too_late()")
    path.write_text(f'{text}\n\ndef too_late():\n    return deny("too late, says Ines")\n')
    before = path.read_text()
    for _ in range(2):
        compiled(pack, Silent())
        assert path.read_text() == before


def test_a_rejected_check_is_asked_for_again_with_the_note_and_what_stands_beside_it(pack: Path) -> None:
    note = "the limit is for the whole day, not for one call"
    bylaw(pack.parent, "review", pack, "--reject", "refund-limit", "--note", note, "--by", "Ines")
    assert rejections(read_before(pack), Document(POLICY)).keys() == {"refund-limit"}
    chat = Scripted(
        sort=_sorted("refund-limit"),
        guards=LIMIT.replace("more than may be refunded at once", "more than may be refunded in a day"),
        cases=_only("refund-limit", "500.0"),
    )
    compiled(pack, chat, rejects=True)
    assert {request.name for asked in chat.rounds for request in asked} == {"sort", "guards", "cases"}
    shown = chat.asked("guards")[0].messages[1].content.partition("The policies:")[2]
    assert f"Ines rejected an earlier check of this policy: {note}" in shown
    assert "The rejected check was: def refund_limit(call, facts): amount = money(call.amount) if" in shown
    assert "Beside it stands refund-window: A refund is made at most 30 days after delivery." in shown
    assert "30 days" not in shown.replace("at most 30 days after delivery", ""), "no other policy is asked for"
    assert "in a day" in (pack / "guards/refunds.py").read_text()
    assert standings(pack)["refund-limit"] == "lapsed"
    assert rejections(read_before(pack), Document(POLICY)) == {}
    compiled(pack, Silent())


def test_the_calls_that_a_rejected_check_flagged_are_shown(pack: Path, tmp_path: Path) -> None:
    seen = {"conversation": "talk", "step": 1, "why": "more than may be refunded at once"}
    noted = {"policies": {"refund-limit": {"in_logs": {"violation": {"calls": 1, "first": [seen]}}}}}
    (pack / "compiled.yaml").write_text(json.dumps(noted))
    bylaw(tmp_path, "review", pack, "--reject", "refund-limit", "--note", "no", "--by", "Ines")
    events = (Message("user", "Hello."), Call("refund", {"order_id": "A1", "amount": "900.00"}))
    given = (read_before(pack), Document(POLICY), [Trajectory("talk", events)])
    assert "It flagged in the logs: refund(order_id, amount): violation\n" in rejections(*given)["refund-limit"]
    found = rejections(*given, with_values=True)
    assert "refund({'order_id': 'A1', 'amount': '900.00'}): violation, more than may be" in found["refund-limit"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ALWAYS (refunds IMPLIES agreed)", "ALWAYS (NOT refunds OR agreed)"),
        ("consented: told", "consented: requested"),
    ],
)
def test_a_rule_or_a_predicate_that_a_person_edited_stays(pack: Path, old: str, new: str) -> None:
    path = pack / "rules.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    compiled(pack, Silent())
    assert new in path.read_text()


def commanded(tmp_path: Path, chat: Scripted) -> Path:
    """A pack that `bylaw compile` made from answers of this model."""
    (tmp_path / "policy.md").write_text(POLICY)
    (tmp_path / "tools.json").write_text(tools_file())
    compile_pack(source(), Keeping(chat, Recordings(tmp_path / "shop" / "answers")))
    given = ("--document", "policy.md", "--tools", "tools.json", "--llm", "recorded", "--out", "shop")
    done = bylaw(tmp_path, "compile", *given)
    assert (tmp_path / "shop" / "pack.yaml").is_file(), done.stderr
    return tmp_path / "shop"


def test_a_word_that_nothing_enforces_a_policy_stays_while_its_sentence_does(tmp_path: Path) -> None:
    lacking = "# cannot refund-window: no tool shows the day\n" + LIMIT
    pack = commanded(tmp_path, Scripted(guards=lacking))
    bylaw(tmp_path, "review", pack, "--unenforced", "refund-window", "--by", "Ines")
    assert bylaw(tmp_path, "check", pack).returncode == 0
    told = bylaw(tmp_path, "compile", "--update", "shop", "--llm", "recorded").stdout
    assert "edited by hand" not in told, told
    assert bylaw(tmp_path, "check", pack).returncode == 0
    old, new = "A refund is made within 30 days after delivery.", "A refund is made within 40 days after delivery."
    cover, kind = _cover(new, "forty-days"), _sorted("refund-window")
    chat = Scripted(cover=cover, sort=kind, guards=lacking, cases=_only("refund-window", "500.0"))
    assert "unenforced" in (pack / "policies.yaml").read_text()
    compiled(pack, chat, POLICY.replace(old, new))
    assert "unenforced" not in (pack / "policies.yaml").read_text()


def test_the_command_updates_a_pack_from_what_it_was_made_of(tmp_path: Path) -> None:
    commanded(tmp_path, Scripted())
    again = bylaw(tmp_path, "compile", "--update", "shop", "--llm", "recorded")
    assert "policies that differ: 0" in again.stdout, again.stderr
    pack = tmp_path / "shop"
    forecast = bylaw(tmp_path, "compile", "--update", "shop", "--dry-run").stdout
    assert forecast.startswith("first round: 0 requests"), forecast
    edits = {
        "pack.yaml": "description: our shop\n",
        "entities.yaml": "# fresh for a day, says Ines\n",
        "policies.yaml": "# a policy of ours will stand here\n",
        "guards/refunds.py": "# Ines: look at this again\n",
    }
    for name, text in edits.items():
        (pack / name).write_text((pack / name).read_text() + text)
    (pack / "guards" / "ours.py").write_text("# ours\n")
    before = {path: path.read_bytes() for path in pack.rglob("*") if path.is_file()}
    kept = bylaw(tmp_path, "compile", "--update", "shop", "--llm", "recorded")
    assert {path: path.read_bytes() for path in pack.rglob("*") if path.is_file()} == before
    assert all(f"{name} was edited by hand and is kept\n" in kept.stdout for name in edits), kept.stdout
    assert "guards/ours.py was written by hand and is kept" in kept.stdout
    (tmp_path / "policy.md").write_text(POLICY.replace(OLD, NEW))
    asks = bylaw(tmp_path, "compile", "--update", "shop", "--llm", "batch:questions")
    assert "1 request waits for an answer" in asks.stderr


def test_without_tools_the_tools_are_asked_for_and_not_a_model(tmp_path: Path) -> None:
    (tmp_path / "policy.md").write_text(POLICY)
    done = bylaw(tmp_path, "compile", "--document", "policy.md")
    assert done.returncode == 2
    assert "no tools" in done.stderr


def test_a_review_that_nobody_answers_stops_without_a_traceback(pack: Path) -> None:
    done = bylaw(pack.parent, "review", pack, "--ask", "--by", "Ines")
    assert done.returncode == 130
    assert done.stderr.endswith("bylaw: interrupted\n")


ASKED = "Nothing is refunded that was a gift."
GIFT: dict[str, Any] = {"name": "is_gift", "type": "boolean", "values": [], "question": "Was it a gift?"}
NO_GIFTS = """
def no_gifts(call, facts):
    if facts.Request.is_gift:
        return deny("it was a gift")
    return permit()
"""
GIFT_CASES = """
- {note: a gift, policy: no-gifts, call: {refund: {order_id: A1, customer_id: C1, amount: "1.00"}},
   facts: {Request: {is_gift: true}}, want: deny}
- {note: no gift, policy: no-gifts, call: {refund: {order_id: A1, customer_id: C1, amount: "1.00"}},
   facts: {Request: {is_gift: false}}, want: permit}
"""


def asked_for_more(tmp_path: Path, edit: tuple[str, str]) -> Path:
    """A compiled pack with an edited `entities.yaml`, and answers for a new sentence that adds to that file."""
    pack = commanded(tmp_path, Scripted())
    entities = pack / "entities.yaml"
    assert edit[0] in entities.read_text()
    entities.write_text(entities.read_text().replace(*edit))
    (tmp_path / "policy.md").write_text(f"{POLICY}{ASKED}\n")
    kinds = json.loads(_sorted("no-gifts"))
    kinds["policies"][0]["user_facts"] = [{**GIFT, "argument": "", "sayings": []}]
    chat = Scripted(cover=_cover(ASKED, "no-gifts"), sort=json.dumps(kinds), guards=NO_GIFTS, cases=GIFT_CASES)
    before = read_before(pack)
    given = Source(Document(f"{POLICY}{ASKED}\n"), "Shop", CARDS, earlier=before.work, owner=owner_of(before))
    compile_pack(given, Keeping(chat, Recordings(pack / "answers")))
    return pack


def test_an_update_merges_what_a_person_added_elsewhere_in_the_same_file(tmp_path: Path) -> None:
    pack = asked_for_more(tmp_path, ("entities:\n", "# ours: see the world below\nentities:\n"))
    done = bylaw(tmp_path, "compile", "--update", "shop", "--llm", "recorded")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "entities.yaml was edited by hand; the edit is kept, and the changes are merged into it" in done.stdout
    text = (pack / "entities.yaml").read_text()
    assert text.startswith("# ours: see the world below")
    assert "is_gift" in text
    assert not (pack / "entities.yaml.new").exists()
    assert bylaw(tmp_path, "check", pack).returncode == 0
    again = bylaw(tmp_path, "compile", "--update", "shop", "--llm", "recorded")
    assert "policies that differ: 0" in again.stdout, again.stdout


@pytest.mark.parametrize(
    ("name", "edit", "place"),
    [
        ("entities.yaml", ("refunded: money", "refunded: mony"), "entities.yaml:3: `mony`"),
        ("guards/refunds.py", ("return permit()", "return maybe()"), "guards/refunds.py:4"),
        ("guards/refunds.py", ("return permit()", "return permit("), "guards/refunds.py:4"),
        ("policies.yaml", ("kind: rule", "kind: [rule"), "policies.yaml:2"),
    ],
)
def test_an_edit_that_does_not_load_is_told_with_its_place_as_often_as_one_tries(
    name: str, edit: tuple[str, str], place: str, tmp_path: Path
) -> None:
    pack = asked_for_more(tmp_path, ("entities:\n", "# ours\nentities:\n"))
    path = pack / name
    assert edit[0] in path.read_text()
    path.write_text(path.read_text().replace(*edit, 1))
    before = {path: path.read_bytes() for path in pack.rglob("*") if path.is_file()}
    for _ in range(2):
        done = bylaw(pack.parent, "compile", "--update", "shop", "--llm", "recorded")
        assert done.returncode == 2
        assert place in done.stderr, done.stderr
        assert {path: path.read_bytes() for path in pack.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("moves", range(5))
def test_whoever_is_killed_while_writing_leaves_the_old_pack_or_one_that_is_finished_next_time(
    moves: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = {"pack.yaml": "old", "guards/a.py": "old", "guards/gone.py": "old"}
    new = {"pack.yaml": "new", "guards/a.py": "new", "cases/a.yaml": "new"}
    place(tmp_path, old)
    left, move = [moves], os.replace

    def killed(source: Path, target: Path) -> None:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        move(source, target)

    monkeypatch.setattr(os, "replace", killed)
    try:
        place(tmp_path, new, ["guards/gone.py"])
    except KeyboardInterrupt:
        assert moves < 4
    monkeypatch.undo()
    recover(tmp_path)
    found = {path.relative_to(tmp_path).as_posix(): path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    assert found == (old if moves == 0 else new)


def test_what_was_not_staged_as_a_whole_is_dropped(tmp_path: Path) -> None:
    stage(tmp_path, {"pack.yaml": "half"})
    recover(tmp_path)
    assert list(tmp_path.iterdir()) == []


def _sorted(name: str, kind: str = "guard") -> str:
    body = {"kind": kind, "tools": ["refund"] if kind == "guard" else [], "general": kind == "knowledge", "why": "so"}
    return json.dumps({"policies": [{"id": name, "severity": "medium", "user_facts": [], **body}]})


def _only(policy: str, limit: str) -> str:
    entries = CASES.replace("500.0", limit).strip().split("\n- ")
    return "\n".join(f"- {entry.removeprefix('- ')}" for entry in entries if f"policy: {policy}" in entry)
