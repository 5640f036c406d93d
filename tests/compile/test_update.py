"""A document that changed: only the change is asked about, and words of people lapse only where it reaches."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from bylaw.compile.assemble import assemble
from bylaw.compile.pipeline import Source, Work, compile_pack
from bylaw.compile.update import MadeOf, accepted_unenforced, differences, keep, read_work, with_words
from bylaw.compile.writing import digests, write_files
from bylaw.engine.review import sides_of, standings
from bylaw.llm import Answer, Request
from bylaw.policy.document import Document
from bylaw.policy.folder import read_folder
from tests.command import bylaw
from tests.compile import shop
from tests.compile.shop import CARDS, CASES, LIMIT, POLICY, Scripted, source, tools_file

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
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    keep(root, MadeOf(("policy.md",)), work)
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
    from bylaw.llm.recorded import Recordings
    from tests.compile.test_recordings import Keeping

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
    assert done.stderr.endswith("bylaw: stopped before the end\n")


def test_an_edited_file_that_would_now_differ_gets_the_new_one_beside_it(tmp_path: Path) -> None:
    first = {"tools.yaml": "a: 1\n", "guards/one.py": "x = 1\n", "guards/gone.py": "y = 1\n"}
    assert write_files(tmp_path, first, {}) == ([], [])
    (tmp_path / "tools.yaml").write_text("a: 1\nrefused: mine\n")
    kept, told = write_files(tmp_path, {"tools.yaml": "a: 2\n", "guards/one.py": "x = 2\n"}, digests(first))
    assert kept == ["tools.yaml"]
    assert "tools.yaml.new" in told[0]
    assert (tmp_path / "tools.yaml").read_text() == "a: 1\nrefused: mine\n"
    assert (tmp_path / "tools.yaml.new").read_text() == "a: 2\n"
    assert (tmp_path / "guards/one.py").read_text() == "x = 2\n", "nobody edited it"
    assert not (tmp_path / "guards/gone.py").exists()


def _sorted(name: str, kind: str = "guard") -> str:
    body = {"kind": kind, "tools": ["refund"] if kind == "guard" else [], "general": kind == "knowledge", "why": "so"}
    return json.dumps({"policies": [{"id": name, "severity": "medium", "user_facts": [], **body}]})


def _only(policy: str, limit: str) -> str:
    entries = CASES.replace("500.0", limit).strip().split("\n- ")
    return "\n".join(f"- {entry.removeprefix('- ')}" for entry in entries if f"policy: {policy}" in entry)
