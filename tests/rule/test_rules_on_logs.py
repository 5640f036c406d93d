"""`bylaw rules learn`, `risk` and `clusters` on a small pack."""

import json
import shutil
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import yaml

from bylaw.compile.lesson import Label, episodes, labelled
from bylaw.engine.session import Session
from bylaw.errors import PackError
from bylaw.pack import load_pack
from bylaw.policy.folder import find_folder
from bylaw.review.check import check
from bylaw.trace import Call, Message, Trajectory
from tests.command import bylaw

FILES = {
    "pack.yaml": "{format: 1, name: till, document: policy.md}",
    "policy.md": "Ask before you pay. Never say hello. Nothing twice. Never more than 100.",
    "tools.yaml": "tools: {pay: {effect: write, parameters: {account: string, amount: number}, changes: []}}",
    "policies.yaml": """
policies:
  - {id: consent, kind: rule, spans: [Ask before you pay.]}
  - {id: hello, kind: rule, spans: [Never say hello.]}
  - {id: once, kind: rule, spans: [Nothing twice.]}
  - {id: limit, kind: guard, tools: [pay], spans: [Never more than 100.]}
""",
    "guards/limit.py": """
def limit(call, facts):
    if call.amount > 100:
        return deny("more than 100")
    return permit()
""",
    "rules.yaml": """
predicates:
  pays: {tool: pay}
  agreed: {said: "yes"}
  greeted: {pattern: hello}
  polite: {question: polite?}
rules:
  - {id: consent, formula: "ALWAYS (pays IMPLIES agreed)"}
  - {id: hello, formula: "ALWAYS NOT (ONCE greeted AND pays)"}
  - {id: once, formula: "FOR EACH account: ALWAYS (pays IMPLIES NOT YESTERDAY ONCE pays)", hard: true}
  - {id: polite, policy: hello, formula: "ALWAYS polite"}
""",
}


@pytest.fixture
def till(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "till" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "till"


def run(*arguments: object) -> CompletedProcess[str]:
    return bylaw(Path.cwd(), "rules", *arguments)


def record(number: int, *, agreed: bool, greeted: bool, amount: int = 5) -> dict[str, Any]:
    function = {"name": "pay", "arguments": json.dumps({"account": "A", "amount": amount})}
    return {
        "id": f"c{number}",
        "messages": [
            {"role": "assistant", "content": "hello" if greeted else "so?"},
            {"role": "user", "content": "yes" if agreed else "hm"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "1", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": "1", "content": "{}"},
        ],
    }


def write_lines(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def logs(folder: Path) -> tuple[Path, Path]:
    """Forty calls of which those without consent were not safe, and a greeting did no harm."""
    cases = [(number % 4 > 0, number % 3 == 0) for number in range(40)]
    lines = [record(n, agreed=agreed, greeted=greeted) for n, (agreed, greeted) in enumerate(cases)]
    labels = [{"trajectory": f"c{n}", "step": 2, "safe": agreed} for n, (agreed, _) in enumerate(cases)]
    return write_lines(folder / "logs.jsonl", lines), write_lines(folder / "labels.jsonl", labels)


def test_learned_weights_are_written_into_the_pack_and_loaded_with_it(till: Path, tmp_path: Path) -> None:
    talks, labels = logs(tmp_path)
    done = run("learn", talks, "--pack", till, "--labels", labels, "--out", till / "weights.yaml")
    assert done.returncode == 0, done.stdout
    assert "Learned from 32 examples, 24 of them safe (labels.jsonl)" in done.stdout
    assert "learned from: 75.0% with the pack's weights, 100.0% with the new weights" in done.stdout
    assert "8 held back: 75.0% with the pack's weights, 100.0% with the new weights" in done.stdout
    assert "Rules that no example breaks: polite" in done.stdout
    assert "Rules that no longer deny on their own: hello" in done.stdout
    written = yaml.safe_load((till / "weights.yaml").read_text())
    loaded = load_pack(till)
    assert {rule.name: rule.weight for rule in loaded.book.rules if not rule.hard} == written["weights"]
    assert written["weights"]["hello"] < 0.001
    assert written["weights"]["consent"] > 1.0
    assert loaded.book.eps == written["eps"] < 0


def test_the_papers_loss_and_a_share_of_false_alarms_can_be_asked_for(till: Path, tmp_path: Path) -> None:
    talks, labels = logs(tmp_path)
    given = ("learn", talks, "--pack", till, "--labels", labels, "--out", tmp_path / "w.yaml")
    assert run(*given, "--loss", "paper").returncode == 0
    assert yaml.safe_load((tmp_path / "w.yaml").read_text())["eps"] == 0.0
    assert run(*given, "--false-alarms", "0").returncode == 0
    assert yaml.safe_load((tmp_path / "w.yaml").read_text())["eps"] == pytest.approx(0.0, abs=1e-3), (
        "no safe call is held up by a weight"
    )
    assert not (till / "weights.yaml").exists()


def test_verdicts_of_guards_are_no_labels(till: Path, tmp_path: Path) -> None:
    talks, _ = logs(tmp_path)
    ran = run("learn", talks, "--pack", till)
    assert ran.returncode == 2
    assert "Missing option '--labels'" in ran.stderr


def test_weights_are_written_only_where_asked(till: Path, tmp_path: Path) -> None:
    talks, labels = logs(tmp_path)
    before = sorted(till.iterdir())
    assert run("learn", talks, "--pack", till, "--labels", labels).returncode == 0
    assert sorted(till.iterdir()) == before


def test_weights_that_do_not_help_on_held_back_conversations_are_not_written(till: Path, tmp_path: Path) -> None:
    talks, labels = logs(tmp_path)
    lines = [json.loads(line) for line in labels.read_text().splitlines()]
    for number, line in enumerate(lines):
        if number % 5 != 4:
            # Those who labelled what is learned from never heard of consent.
            line["safe"] = True
    write_lines(labels, lines)
    target = tmp_path / "w.yaml"
    ran = bylaw(tmp_path, "rules", "learn", talks, "--pack", till, "--labels", labels, "--out", target)
    assert ran.returncode == 1
    assert "Not written: accuracy on the 8 held-back examples does not rise (75.0% to 75.0%)" in ran.stdout
    assert not target.exists()
    few = write_lines(tmp_path / "few.jsonl", [json.loads(line) for line in talks.read_text().splitlines()[:4]])
    write_lines(labels, lines[:4])
    assert "no labelled conversation was held back" in run("learn", few, "--pack", till, "--labels", labels).stdout


def test_a_label_teaches_nothing_about_a_rule_it_does_not_judge(till: Path, tmp_path: Path) -> None:
    talks, labels = logs(tmp_path)
    lines = [{**json.loads(line), "safe": True, "rules": ["hello"]} for line in labels.read_text().splitlines()]
    write_lines(labels, lines)
    target = till / "weights.yaml"
    ran = run("learn", talks, "--pack", till, "--labels", labels, "--out", target)
    assert "Rules that no example breaks: consent, polite" in ran.stdout
    assert "Rules that no longer deny on their own: hello\n" in ran.stdout
    book = load_pack(till).book
    assert [rule.name for rule in book.disarmed] == ["hello"]


def test_a_rule_without_a_learned_weight_still_denies_under_the_learned_margin(till: Path) -> None:
    (till / "weights.yaml").write_text("weights: {hello: 0.1}\neps: -0.9\n")
    assert [rule.name for rule in load_pack(till).book.disarmed] == ["hello"]


def test_check_lists_every_rule_that_does_not_deny_on_its_own(till: Path) -> None:
    (till / "weights.yaml").write_text("weights: {hello: 0.1, consent: 3, polite: 3, once: 0}\neps: -0.9\n")
    found = check(load_pack(till))
    assert found.disarmed == (("hello", 0.1),), "a hard rule denies whatever it weighs"
    assert found.record()["disarmed"] == {"hello": 0.1}
    shown = bylaw(till, "check", till).stdout
    assert "1 rule no longer denies a call on its own\n  hello: weight 0.1" in shown


def test_no_weight_lets_a_change_pass_that_nobody_agreed_to(tmp_path: Path) -> None:
    """With the demo's logs and the guards' verdicts as labels, the clinic's consent rule used to weigh 0.12."""
    pack = shutil.copytree(find_folder("clinic"), tmp_path / "clinic")
    weights = {"confirm-before-change": 0.12, "one-change-at-a-time": 0.0, "say-transfer": 1.71}
    (pack / "weights.yaml").write_text(yaml.safe_dump({"weights": weights, "eps": -0.34}))
    loaded = load_pack(pack)
    assert [rule.name for rule in loaded.book.disarmed] == ["one-change-at-a-time"]
    call = Call("update_contact", {"patient_id": "P1001", "email": "new@example.org"}, turn=1)
    session = Session(loaded)
    session.observe(Message("user", "Hello, I am P1001.", turn=0))
    weighed = session.weigh(call)
    assert weighed is not None
    assert (weighed.decision, weighed.veto) == ("deny", ("confirm-before-change",))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ('{"trajectory": "c0", "safe": 1}', "not a label"),
        ('{"trajectory": "c0", "safe": true, "stepp": 2}', "not a label"),
        ('{"trajectory": "nobody", "safe": true}', "no conversation `nobody`"),
        ('{"trajectory": "c0", "step": 1, "safe": true}', "step 1 of `c0` is not a call"),
        ('{"trajectory": "c0", "safe": true, "rules": ["helo"]}', "`helo`, but the pack has no such rule"),
        ("", "no call in these logs has a label"),
    ],
)
def test_labels_that_do_not_fit_are_told(till: Path, tmp_path: Path, labels: str, message: str) -> None:
    talks, file = logs(tmp_path)
    file.write_text(labels)
    ran = run("learn", talks, "--pack", till, "--labels", file)
    assert (ran.returncode, message in ran.stderr) == (2, True)
    assert not (till / "weights.yaml").exists()


def test_weights_of_a_rule_that_is_gone_are_a_fault_of_the_pack(till: Path) -> None:
    (till / "weights.yaml").write_text("weights:\n  consent: 2\n  gone: 1\n")
    with pytest.raises(PackError) as caught:
        load_pack(till)
    assert [str(fault) for fault in caught.value.faults] == [
        "weights.yaml:3: `gone` is not a rule; learn the weights again"
    ]


def test_a_label_of_a_whole_conversation_takes_each_rule_where_it_spoke_hardest(till: Path) -> None:
    pay = Call("pay", {"account": "A", "amount": 5}, turn=1)
    talk = Trajectory("t", [pay, Message("user", "yes", 2), Call("pay", {"account": "B", "amount": 5}, turn=2)])
    (example,) = labelled(load_pack(till), talk, [Label("t", False)])
    assert example.leans == (-1.0, 0.0, 0.0)


def test_risk_counts_what_a_rule_saw_and_leaves_out_what_nobody_knows(till: Path, tmp_path: Path) -> None:
    talks, _ = logs(tmp_path)
    rows = {row.split()[0]: row.split()[1:] for row in run("risk", talks, "--pack", till).stdout.splitlines() if row}
    assert rows["consent"] == ["40", "0", "25.0%", "25.0%", "0.0%"]
    assert rows["hello"] == ["40", "0", "35.0%", "35.0%", "0.0%"]
    assert rows["once"] == ["40", "0", "0.0%", "0.0%", "0.0%"]
    assert rows["polite"] == ["0", "40", "-", "-", "-"]


def test_a_rule_for_each_value_sees_one_episode_for_each(till: Path) -> None:
    calls = [Call("pay", {"account": account, "amount": 5}, turn=turn) for turn, account in enumerate("ABA")]
    found = {each.rule.name: each for each in episodes(load_pack(till), [Trajectory("t", calls)])}
    assert [[act["pays"] for act in seen] for seen in found["once"].seen] == [
        [True, False, True],
        [False, True, False],
    ]


def test_clusters_name_every_state_predicate_and_every_action(till: Path) -> None:
    printed = run("clusters", till).stdout
    for name in ("agreed", "greeted", "polite", "pays", "consent", "hello", "once"):
        assert name in printed
