"""A document that changed: only the change is asked about, and words of people lapse only where it reaches."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from bylaw.compile.assemble import assemble
from bylaw.compile.pipeline import Source, Work, compile_pack
from bylaw.compile.update import MadeOf, accepted_unenforced, differences, read_work, records, rejections, with_words
from bylaw.compile.writing import digests, merged, place, planned, recover, stage
from bylaw.llm import Answer, Request
from bylaw.llm.recorded import Recordings
from bylaw.pack.review import sides_of, standings
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


def compiled(root: Path, chat: Scripted, document: str = POLICY, earlier: Work | None = None) -> Work:
    given = Source(Document(document), "Shop", CARDS, earlier=earlier)
    work, _ = compile_pack(given, chat)
    written(root, work, assemble(given, work, name="shop"))
    return work


def written(root: Path, work: Work, files: Mapping[str, str]) -> Path:
    place(root, {**files, **records(MadeOf(("policy.md",)), work)})
    return root


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    return written(tmp_path / "shop", *shop.compiled())


class Silent(Scripted):
    """Whoever must not be asked."""

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        raise AssertionError([request.name for request in requests])


def test_nothing_changed_nothing_is_asked_and_no_byte_differs(pack: Path) -> None:
    files = [path for path in pack.rglob("*.*") if path.name != "work.json"]
    before = [path.read_bytes() for path in files]
    compiled(pack, Silent(), earlier=read_work(pack))
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
    compiled(pack, chat, POLICY.replace(OLD, NEW), read_work(pack))
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
    compiled(pack, Scripted(cover=_cover(ADDED, "no-sunday"), sort=kinds), document, read_work(pack))
    found = {each.policy: each.change for each in differences(pack, before, read_folder(pack))}
    assert found == {"no-sunday": "new", "refund-limit": "gone"}


def test_a_way_of_reading_that_changes_touches_every_guard(pack: Path) -> None:
    document = POLICY.replace("is the day of the call", "is the day before the call")
    text = '"Today" is the day before the call.'
    chat = Scripted(cover=_cover(text, "today"), sort=_sorted("today", "knowledge"))
    compiled(pack, chat, document, read_work(pack))
    assert len(chat.asked("guards")) == 2


def test_what_a_person_edited_stays(pack: Path) -> None:
    path = pack / "guards/refunds.py"
    path.write_text(path.read_text().replace("more than 30 days ago", "too late, says Ines"))
    compiled(pack, Silent(), earlier=read_work(pack))
    assert "too late, says Ines" in path.read_text()


def test_an_edit_that_uses_a_shared_function_stays(pack: Path) -> None:
    path = pack / "guards/refunds.py"
    text = path.read_text().replace('return deny("more than 30 days ago")', "return too_late()")
    text = text.replace('return deny("more than may be refunded at once")', "return too_late()")
    path.write_text(f'{text}\n\ndef too_late():\n    return deny("too late, says Ines")\n')
    work = compiled(pack, Silent(), earlier=read_work(pack))
    assert path.read_text().count("def too_late") == 1
    assert path.read_text().count("return too_late()") == 2
    assert "too late, says Ines" in work.checks["refund-limit"].code
    compiled(pack, Silent(), earlier=read_work(pack))


def test_a_rejected_check_is_asked_for_again_with_the_note_and_what_stands_beside_it(pack: Path) -> None:
    note = "the limit is for the whole day, not for one call"
    bylaw(pack.parent, "review", pack, "--reject", "refund-limit", "--note", note, "--by", "Ines")
    earlier = read_work(pack)
    rejected = rejections(pack, earlier, Document(POLICY))
    assert rejected.keys() == {"refund-limit"}
    chat = Scripted(
        sort=_sorted("refund-limit"),
        guards=LIMIT.replace("more than may be refunded at once", "more than may be refunded in a day"),
        cases=_only("refund-limit", "500.0"),
    )
    given = Source(Document(POLICY), "Shop", CARDS, earlier=earlier, rejected=rejected)
    work, _ = compile_pack(given, chat)
    assert {request.name for asked in chat.rounds for request in asked} == {"sort", "guards", "cases"}
    shown = chat.asked("guards")[0].messages[1].content.partition("The policies:")[2]
    assert f"Ines rejected an earlier check of this policy: {note}" in shown
    assert "The rejected check was: def refund_limit(call, facts): amount = money(call.amount) if" in shown
    assert "Beside it stands refund-window: A refund is made at most 30 days after delivery." in shown
    assert "30 days" not in shown.replace("at most 30 days after delivery", ""), "no other policy is asked for"
    written(pack, work, assemble(given, work, name="shop"))
    assert standings(pack)["refund-limit"] == "lapsed"
    assert rejections(pack, read_work(pack), Document(POLICY)) == {}
    compiled(pack, Silent(), earlier=read_work(pack))


def test_the_calls_that_a_rejected_check_flagged_are_shown(tmp_path: Path) -> None:
    made = {**shop.compiled()[1]}
    seen = {"conversation": "talk", "step": 1, "why": "more than may be refunded at once"}
    noted = {"policies": {"refund-limit": {"in_logs": {"violation": {"calls": 1, "first": [seen]}}}}}
    pack = written(tmp_path / "shop", shop.compiled()[0], {**made, "compiled.yaml": json.dumps(noted)})
    bylaw(tmp_path, "review", pack, "--reject", "refund-limit", "--note", "no", "--by", "Ines")
    events = (Message("user", "Hello."), Call("refund", {"order_id": "A1", "amount": "900.00"}))
    found = rejections(pack, read_work(pack), Document(POLICY), [Trajectory("talk", events)])
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
    compiled(pack, Silent(), earlier=read_work(pack))
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
    before = read_folder(pack)
    old, new = "A refund is made within 30 days after delivery.", "A refund is made within 40 days after delivery."
    cover, kind = _cover(new, "forty-days"), _sorted("refund-window")
    chat = Scripted(cover=cover, sort=kind, guards=lacking, cases=_only("refund-window", "500.0"))
    compiled(pack, chat, POLICY.replace(old, new), read_work(pack))
    after = sides_of(read_folder(pack))
    assert accepted_unenforced(before).keys() == {"refund-window"}
    text = (pack / "policies.yaml").read_text()
    assert "unenforced" not in with_words(text, accepted_unenforced(before), sides_of(before), after)


def test_the_command_updates_a_pack_from_what_it_was_made_of(tmp_path: Path) -> None:
    commanded(tmp_path, Scripted())
    again = bylaw(tmp_path, "compile", "--update", "shop", "--llm", "recorded")
    assert "policies that differ: 0" in again.stdout, again.stderr
    pack = tmp_path / "shop"
    forecast = bylaw(tmp_path, "compile", "--update", "shop", "--dry-run").stdout
    assert forecast.startswith("first round, as it is: 0 requests"), forecast
    edits = {
        "pack.yaml": "shield: {default: observe}\n",
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
    assert "no tool is given" in done.stderr


def test_a_review_that_nobody_answers_stops_without_a_traceback(pack: Path) -> None:
    done = bylaw(pack.parent, "review", pack, "--ask", "--by", "Ines")
    assert done.returncode == 130
    assert done.stderr.endswith("bylaw: interrupted\n")


def test_an_edited_file_that_would_now_differ_gets_the_new_one_beside_it(tmp_path: Path) -> None:
    first = {"tools.yaml": "a: 1\n", "guards/one.py": "x = 1\n", "guards/gone.py": "y = 1\n"}
    place(tmp_path, planned(tmp_path, first, {}).files)
    (tmp_path / "tools.yaml").write_text("a: 1\nrefused: mine\n")
    plan = planned(tmp_path, {"tools.yaml": "a: 2\n", "guards/one.py": "x = 2\n"}, digests(first))
    assert plan.kept == ("tools.yaml",)
    assert "tools.yaml.new" in plan.notes[0]
    assert plan.files == {"tools.yaml": "a: 1\nrefused: mine\n", "guards/one.py": "x = 2\n"}, "one.py: nobody edited it"
    assert plan.beside == {"tools.yaml.new": "a: 2\n"}
    assert plan.removed == ("guards/gone.py",)


def test_an_edit_and_a_change_of_other_lines_aremerged() -> None:
    base = "a: 1\nb: 2\nc: 3\nd: 4\n"
    mine, theirs = f"# ours\n{base}world: {{}}\n", base.replace("b: 2", "b: 2\nb2: 5")
    for found, text in ((mine, theirs), (theirs, mine)):
        assert merged(base, found, text) == "# ours\na: 1\nb: 2\nb2: 5\nc: 3\nd: 4\nworld: {}\n"
    assert merged(base, base.replace("b: 2", "b: 7"), base.replace("b: 2", "b: 8")) is None
    assert merged(base, base + "e: 1\n", base + "f: 1\n") is None
    assert merged(base, theirs, theirs) == theirs
    assert merged(base, base, theirs) == theirs


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
    given = Source(Document(f"{POLICY}{ASKED}\n"), "Shop", CARDS, earlier=read_work(pack))
    compile_pack(given, Keeping(chat, Recordings(pack / "answers")))
    return pack


def test_an_update_merges_what_a_person_added_elsewhere_in_the_same_file(tmp_path: Path) -> None:
    pack = asked_for_more(tmp_path, ("entities:\n", "# ours: see the world below\nentities:\n"))
    done = bylaw(tmp_path, "compile", "--update", "shop", "--llm", "recorded")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "entities.yaml was edited by hand; the edit is kept, and what changed is merged into it" in done.stdout
    text = (pack / "entities.yaml").read_text()
    assert text.startswith("# ours: see the world below")
    assert "is_gift" in text
    assert not (pack / "entities.yaml.new").exists()
    assert bylaw(tmp_path, "check", pack).returncode == 0
    again = bylaw(tmp_path, "compile", "--update", "shop", "--llm", "recorded")
    assert "policies that differ: 0" in again.stdout, again.stdout


def test_an_update_that_would_not_load_with_an_edited_file_changes_nothing(tmp_path: Path) -> None:
    pack = asked_for_more(tmp_path, ("observations:\n", "# here we wrote a line\nobservations:\n"))
    before = {path: path.read_bytes() for path in pack.rglob("*") if path.is_file()}
    done = bylaw(tmp_path, "compile", "--update", "shop", "--llm", "recorded")
    assert done.returncode == 2
    assert "the pack would not load with these files, so it was not changed" in done.stderr
    new = pack / "entities.yaml.new"
    assert {path: path.read_bytes() for path in pack.rglob("*") if path.is_file() and path != new} == before
    assert bylaw(tmp_path, "check", pack).returncode == 0
    (pack / "entities.yaml").write_text("# merged by hand\n" + new.read_text())
    done = bylaw(tmp_path, "compile", "--update", "shop", "--llm", "recorded")
    assert done.returncode == 0, done.stderr
    assert "no-gifts is new" in done.stdout
    assert not new.exists()
    assert bylaw(tmp_path, "check", pack).returncode == 0


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
