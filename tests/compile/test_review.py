"""Reviews: a person's word holds for a sentence and its check as they were, and a shield enforces no other."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from bylaw.compile.assemble import assemble
from bylaw.compile.pipeline import compile_pack
from bylaw.compile.report import forecast, report_lines
from bylaw.compile.update import place
from bylaw.pack import Pack, load_pack
from bylaw.pack.review import held_to, standings
from bylaw.policy.tool import Postures
from bylaw.policy.yaml import read_yaml_file
from bylaw.review.check import check
from bylaw.shield import Decision, Shield
from tests.command import bylaw
from tests.compile.large import Reader, house
from tests.compile.shop import LIMIT, WINDOW, Scripted, compiled, source


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    return written(tmp_path / "shop", compiled()[1])


def written(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_a_compiled_pack_is_open_until_somebody_accepts_it(pack: Path) -> None:
    assert set(standings(pack).values()) == {"unsigned"}
    done = bylaw(pack.parent, "review", pack, "--accept", "refund-limit", "--by", "Ines")
    assert "1 accepted, 3 unsigned" in done.stdout
    assert standings(pack)["refund-limit"] == "accepted"


def test_a_check_says_why_a_compile_made_no_policy_of_a_sentence(pack: Path) -> None:
    assert (
        "uncovered: `bylaw compile` wrote no policy (a greeting"
        in bylaw(pack.parent, "check", pack, "--sentences").stdout
    )


def test_whoever_accepts_a_check_that_fails_its_cases_is_told(pack: Path) -> None:
    path = pack / "guards" / "refunds.py"
    path.write_text(path.read_text().replace('<= money("200.00")', '<= money("250.00")'))
    done = bylaw(pack.parent, "review", pack, "--accept", "refund-limit", "--accept", "refund-window", "--by", "Ines")
    assert "refund-limit is accepted, but 1 case failed: run `bylaw check`" in done.stdout
    assert "refund-window is accepted" not in done.stdout


def test_a_pack_written_by_hand_needs_no_review() -> None:
    from bylaw.policy.folder import find_folder

    assert set(standings(find_folder("clinic")).values()) == {"unreviewed"}


def test_a_pack_that_nobody_reviewed_is_never_called_accepted(tmp_path: Path) -> None:
    done = bylaw(tmp_path, "review", "clinic")
    assert "accepted" not in done.stdout
    assert "this pack has not been reviewed" in done.stdout
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("guards/refunds.py", '<= money("200.00")', '<= money("250.00")'),
        ("policies.yaml", "Gold customers get up to 500.00", "Gold customers get up to 600.00"),
        ("cases/refunds.yaml", "200.01", "200.02"),
    ],
)
def test_a_signature_lapses_when_either_side_changes(pack: Path, file: str, old: str, new: str) -> None:
    bylaw(pack.parent, "review", pack, "--accept", "refund-limit", "--accept", "refund-window", "--by", "Ines")
    text = (pack / file).read_text()
    assert old in text
    (pack / file).write_text(text.replace(old, new))
    assert standings(pack)["refund-limit"] == "lapsed"
    assert standings(pack)["refund-window"] == "accepted"


def test_a_signature_lapses_when_what_the_guard_calls_changes(pack: Path) -> None:
    path = pack / "guards/refunds.py"
    shared = '\n\ndef most():\n    return money("200.00")\n'
    path.write_text(path.read_text().replace('<= money("200.00")', "<= most()") + shared)
    assert bylaw(pack.parent, "check", pack).returncode == 0
    bylaw(pack.parent, "review", pack, "--accept", "refund-limit", "--accept", "refund-window", "--by", "Ines")
    path.write_text(path.read_text().replace('money("200.00")', 'money("250.00")'))
    assert (standings(pack)["refund-limit"], standings(pack)["refund-window"]) == ("lapsed", "accepted")


def test_layout_and_comments_of_a_guard_do_not_lapse_it(pack: Path) -> None:
    bylaw(pack.parent, "review", pack, "--accept", "refund-limit", "--by", "Ines")
    path = pack / "guards/refunds.py"
    text = path.read_text().replace("\n    return permit()", "\n    # fine\n    return permit()")
    path.write_text(f"# looked at\n{text}")
    assert standings(pack)["refund-limit"] == "accepted"


def enforcing(decision: Decision) -> set[tuple[str, str]]:
    """What stops a call."""
    return {(ground.kind, ground.answer) for ground in decision.grounds if ground.posture == "enforce"}


def test_a_shield_enforces_accepted_policies_only(pack: Path) -> None:
    call = ("refund", {"order_id": "A1", "customer_id": "C1", "amount": "900.00"})
    decision = Shield(pack).decide([], *call)
    assert enforcing(decision) == {("unguarded", "ask")}, "nobody has accepted what it says: a person is asked"
    bylaw(pack.parent, "review", pack, "--accept", "refund-limit", "--by", "Ines")
    decision = Shield(pack).decide([], *call)
    assert not decision.allowed
    assert enforcing(decision) == {("guard", "deny")}
    assert {ground.posture for ground in decision.grounds if ground.policy == "refund-window"} == {"shadow"}


def test_a_compiled_pack_from_texts_is_enforced_no_more_than_one_from_a_folder(pack: Path) -> None:
    call = ("refund", {"order_id": "A1", "customer_id": "C1", "amount": "900.00"})
    texts = {str(path.relative_to(pack)): path.read_text() for path in pack.rglob("*") if path.is_file()}
    unreviewed = Pack.from_files(texts)
    assert unreviewed.unaccepted == load_pack(pack).unaccepted == dict.fromkeys(unreviewed.policies, "unsigned")
    assert check(unreviewed).unaccepted == check(load_pack(pack)).unaccepted
    assert enforcing(Shield(unreviewed).decide([], *call)) == {("unguarded", "ask")}
    bylaw(pack.parent, "review", pack, "--accept", "refund-limit", "--by", "Ines")
    texts["review.yaml"] = (pack / "review.yaml").read_text()
    signed = Pack.from_files(texts)
    assert "refund-limit" not in signed.unaccepted
    assert enforcing(Shield(signed).decide([], *call)) == {("guard", "deny")}
    assert enforcing(Shield(signed, earlier=[unreviewed]).decide([], *call)) == {("guard", "deny")}


def test_what_the_pack_itself_holds_back_stays_so(pack: Path) -> None:
    bylaw(pack.parent, "review", pack, "--accept", "refund-limit", "--by", "Ines")
    held = held_to(Postures(policies={"refund-limit": "advise"}), load_pack(pack).unaccepted)
    assert held.policies["refund-limit"] == "advise"


def test_an_unenforced_policy_is_shown_and_accepted_by_name(tmp_path: Path) -> None:
    from tests.compile.shop import LIMIT

    chat = Scripted(guards="# cannot refund-window: no tool shows the day\n" + LIMIT)
    root = written(tmp_path / "shop", assemble(source(), compile_pack(source(), chat)[0], name="shop"))
    assert bylaw(root.parent, "check", root).returncode == 2
    shown = bylaw(root.parent, "review", root, "refund-window")
    assert "unenforced (not signed yet): no tool shows the day" in shown.stdout
    bylaw(root.parent, "review", root, "--unenforced", "refund-window", "--by", "Ines")
    assert bylaw(root.parent, "check", root).returncode == 0
    assert "accepted by Ines" in bylaw(root.parent, "check", root).stdout


def test_a_review_without_a_name_is_refused(pack: Path) -> None:
    done = bylaw(pack.parent, "review", pack, "--accept", "refund-limit")
    assert done.returncode == 2
    assert "requires your name" in done.stderr


def test_review_shows_sentence_check_cases_and_questions(pack: Path) -> None:
    shown = bylaw(pack.parent, "review", pack, "refund-limit").stdout
    sentence = "Gold customers are refunded up to $500.00"
    for part in (sentence, "def refund_limit", "permit: up to the limit", "unsigned"):
        assert part in shown


def test_an_audit_says_that_nobody_has_reviewed_the_pack(pack: Path) -> None:
    log = (
        '{"id": "a", "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "tool_calls": [{"id": "1",'
        ' "type": "function", "function": {"name": "get_order", "arguments": "{\\"order_id\\": \\"A1\\"}"}}]}]}\n'
    )
    (pack.parent / "logs.jsonl").write_text(log)
    assert (
        "4 policies of the pack are not accepted yet"
        in bylaw(pack.parent, "audit", "logs.jsonl", "--pack", pack, "--out", "o1").stdout
    )
    names = ("refund-window", "refund-limit", "today", "confirm-refunds")
    accepted = [part for name in names for part in ("--accept", name)]
    assert bylaw(pack.parent, "review", pack, *accepted, "--by", "Ines").returncode == 0
    assert "Nobody has" not in bylaw(pack.parent, "audit", "logs.jsonl", "--pack", pack, "--out", "o2").stdout


def test_the_page_shows_sentence_check_cases_writer_and_questions(pack: Path) -> None:
    path = pack / "cases/refunds.yaml"
    path.write_text(path.read_text().replace("a day late", "a <b>day</b> late"))
    bylaw(pack.parent, "review", pack, "--accept", "refund-limit", "--by", "Ines")
    done = bylaw(pack.parent, "review", pack, "--page", "review.html")
    assert "Wrote review.html" in done.stdout
    page = (pack.parent / "review.html").read_text()
    for part in (
        "A refund is made within 30 days after delivery.",
        "def refund_window(call, facts):",
        "ALWAYS (refunds IMPLIES agreed)",
        "written by a model",
        "accepted by Ines",
        "gold and a cent over",
        "a &lt;b&gt;day&lt;/b&gt; late",
    ):
        assert part in page, part
    assert "<b>day" not in page
    assert "<script" not in page


def test_review_begins_with_what_needs_a_decision_most(pack: Path) -> None:
    noted = read_yaml_file(pack / "compiled.yaml").data
    noted["policies"]["today"]["questions"] = [{"about": "a date", "text": "which day?"}]
    noted["policies"]["confirm-refunds"]["in_logs"] = {"broken": {"calls": 3, "first": []}}
    (pack / "compiled.yaml").write_text(json.dumps(noted))
    path = pack / "policies.yaml"
    first, mark, rest = path.read_text().partition("- id: confirm-refunds")
    path.write_text(first + mark + rest.replace("severity: medium", "severity: high", 1))
    shown = bylaw(pack.parent, "review", pack).stdout
    bylaw(pack.parent, "review", pack, "--page", "review.html")
    page = (pack.parent / "review.html").read_text()
    order = ["confirm-refunds", "today", "refund-window", "refund-limit"]
    for text, mark in ((shown, "{}  "), (page, "#{}")):
        places = [text.index(mark.format(name)) for name in order]
        assert places == sorted(places)


def test_all_that_nothing_enforces_is_accepted_in_one_step_with_the_model_s_reason(tmp_path: Path) -> None:
    given = "# cannot refund-window: no tool shows the day\n# cannot refund-limit: no tool shows the level\n"
    made = assemble(source(), compile_pack(source(), Scripted(guards=given))[0], name="shop")
    place(tmp_path / "shop", made)
    assert bylaw(tmp_path, "check", "shop").returncode == 2
    done = bylaw(tmp_path, "review", "shop", "--unenforced", "all", "--by", "Ines")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "2 accepted, 2 unsigned")
    assert bylaw(tmp_path, "review", "shop").returncode == 1, "two checks are not signed yet"
    assert bylaw(tmp_path, "check", "shop").returncode == 0
    bodies = {each["id"]: each for each in read_yaml_file(tmp_path / "shop" / "policies.yaml").data["policies"]}
    assert bodies["refund-window"]["unenforced"] == {"accepted_by": "Ines", "reason": "no tool shows the day"}
    assert bodies["refund-limit"]["unenforced"]["reason"] == "no tool shows the level"
    assert "unenforced" not in bodies["confirm-refunds"]


def test_a_reason_of_one_generation_reaches_the_reviewer_beside_the_guess_of_the_other() -> None:
    cannot = "# cannot refund-window: no tool shows the day\n" + LIMIT
    work, _ = compile_pack(source(), Scripted(guards=[WINDOW + LIMIT, cannot]))
    (question,) = work.checks["refund-window"].questions
    assert (question.about, question.text) == (
        "one of two generated versions says that the policy cannot be checked",
        "no tool shows the day",
    )


def test_the_numbers_of_a_compile_are_those_of_check_and_of_the_files(tmp_path: Path) -> None:
    work, _ = compile_pack(source(), Scripted())
    files = assemble(source(), work, name="shop")
    place(tmp_path / "shop", files)
    lines = report_lines(work, files, 10, tmp_path / "shop")
    assert {"cases: 8", "with a check: 3 of 3", "policies: 4 (2 guard, 1 knowledge, 1 rule)"} <= set(lines)
    assert len(check(load_pack(tmp_path / "shop")).cases) == 8


@pytest.mark.parametrize(("tools", "policies"), [(40, 4), (200, 12), (200, 24)])
def test_the_estimate_is_within_a_factor_of_two(tools: int, policies: int, tmp_path: Path) -> None:
    given, chat = house(tmp_path, tools=tools, policies=policies), Reader()
    told = re.search(r"about (\d+) requests in all", forecast(given)[-1])
    asked = len(compile_pack(given, chat)[1].asked)
    assert told is not None
    assert asked / 2 <= int(told[1]) <= 2 * asked, (told[1], asked)
