"""`bylaw explain` says what became of a look-up, what made a fact stale, and which rules the call broke."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bylaw.cli.explain import explain
from bylaw.engine.wording import rule_words
from tests.audit.logs import CAREFUL, HASTY, WRONG, Shop, record
from tests.audit.logs import call as call_log
from tests.docs.walkthrough import run
from tests.suite import Demo

Record = dict[str, Any]
LOOKUP: Record = {"tool": "get_usage", "args": {"account_id": "7"}}


def told(events: list[Record], *, step: int, rules: tuple[Record, ...] = (), **missing: Any) -> str:
    fact = {"entity": "Usage", "key": ["7"], "field": "users", "lookup": LOOKUP, "claimed_at": None, "stale_by": None}
    policy = {"id": "p", "determined": "near_miss", "because": "", "asks": [], "missing": [fact | missing]}
    line = {"trajectory": "t", "tool": "set_seats", "step": step, "executed": True, "rules": list(rules)}
    out = StringIO()
    verdicts = {"strict": "near_miss", "determined": "near_miss", "policies": [policy]}
    explain(line | verdicts, {}, events, Console(file=out, width=80, highlight=False))
    return out.getvalue()


def call(tool: str, **arguments: Any) -> Record:
    return {"type": "call", "tool": tool, "arguments": arguments, "by": "agent"}


def result(of: int) -> Record:
    return {"type": "result", "call": of, "text": "...", "error": None}


def test_an_answer_that_came_after_the_call_is_named() -> None:
    events = [call("get_usage", account_id=7), call("set_seats", account_id=7), result(0), result(1)]
    text = told(events, step=1, reason="never_seen")
    assert "get_usage was called at step 0, but its result arrived after this call, at step 2" in " ".join(text.split())


def test_an_answer_that_did_not_show_the_fact_is_named() -> None:
    events = [call("get_usage", account_id=7), result(0), call("set_seats", account_id=7), result(2)]
    text = told(events, step=2, reason="never_seen")
    assert "get_usage was called at step 0; its result at step 1 did not show this fact" in " ".join(text.split())


def test_an_answer_that_was_not_recorded_is_named() -> None:
    events = [call("get_usage", account_id=7), call("set_seats", account_id=7)]
    assert "called at step 0; no result was recorded" in told(events, step=1, reason="never_seen")


def test_a_look_up_of_another_thing_is_none() -> None:
    events = [call("get_usage", account_id=8), result(0), call("set_seats", account_id=7)]
    assert "was called" not in told(events, step=2, reason="never_seen")


def test_the_write_that_made_a_fact_stale_is_named() -> None:
    events = [call("get_usage", account_id=7), result(0), call("add_user", id=1), result(2), call("set_seats")]
    text = told(events, step=4, reason="stale", stale_by=2)
    assert "out of date since step 2: add_user" in text
    assert "was called" not in text


def test_broken_rules_are_told() -> None:
    broken = {"rule": "confirm", "sentence": "Ask first.", "because": "change, not agreed"}
    text = told([call("set_seats", account_id=7)], step=0, reason="never_seen", rules=(broken,))
    assert "confirm  rule broken" in text
    assert "Ask first." in text
    assert "at this step: change, not agreed" in text


def test_a_broken_rule_is_told_in_the_words_of_the_pack() -> None:
    broken = {
        "rule": "confirm", "policy": "confirm", "because": "change, not agreed (id 7)", "sentence": "Ask first.",
        "standing": "broken", "binding": {"name": "id", "value": "7"},
        "predicates": [{"name": "change", "value": True}, {"name": "agreed", "value": False}],
    }  # fmt: skip
    line = {"trajectory": "t", "step": 0, "policies": [], "rules": [broken]}
    out = StringIO()
    policies = {"confirm": {"predicates": {"change": "the act changes something", "agreed": "the user has said yes"}}}
    explain(line, policies, [call("set_seats", account_id=7)], Console(file=out, width=80, highlight=False))
    assert "step 0 of t\n  set_seats" in out.getvalue()
    assert "the act changes something; not true: the user has said yes (id 7)" in " ".join(out.getvalue().split())


def test_a_call_that_broke_a_rule_is_not_called_compliant() -> None:
    broken = {"rule": "confirm", "policy": "confirm", "because": "not agreed", "sentence": "Ask first."}
    kept = {"id": "fee", "determined": "compliant", "strict": "compliant", "missing": [], "asks": [], "because": ""}
    line = {"trajectory": "t", "tool": "set_seats", "step": 0, "executed": True, "policies": [kept], "rules": [broken]}
    out = StringIO()
    explain(line | {"determined": "compliant"}, {}, [call("set_seats")], Console(file=out, width=200))
    assert out.getvalue().splitlines()[2] == "broke confirm (guards alone: compliant)"


def test_a_rule_that_is_open_is_told() -> None:
    unsure = {"rule": "confirm", "policy": "confirm", "because": "not known: agreed", "sentence": "Ask first."}
    kept = {"id": "fee", "determined": "compliant", "strict": "compliant", "missing": [], "asks": [], "because": ""}
    line = {"trajectory": "t", "tool": "set_seats", "step": 0, "executed": True, "policies": [kept], "rules": []}
    out = StringIO()
    explain(line | {"determined": "compliant", "open_rules": [unsure]}, {}, [call("set_seats")], Console(file=out))
    assert out.getvalue().splitlines()[2] == "compliant; undecided: confirm"
    assert "confirm  rule undecided" in out.getvalue()
    assert "at this step: not known: agreed" in out.getvalue()


def test_a_call_that_no_guard_binds_is_not_called_compliant() -> None:
    out = StringIO()
    line = {"trajectory": "t", "tool": "x", "step": 0, "executed": True, "strict": "compliant", "policies": []}
    explain(line | {"determined": "compliant"}, {}, [call("x", a=1)], Console(file=out, width=80, highlight=False))
    assert "not judged: no guard applies to this tool" in out.getvalue()
    assert "compliant" not in out.getvalue()


def test_a_compliant_call_shows_its_arguments_and_what_was_checked(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.logs(record(*CAREFUL, id="t1"))
    run(f"bylaw audit logs.jsonl --pack {shop.pack}", tmp_path)
    shown = run("bylaw explain out t1 3", tmp_path).stdout
    assert '{"order_id": "PAID"}' in shown
    assert "\ncompliant\n" in shown
    assert "determined" not in shown
    assert "checked, compliant:" in shown
    assert "only-paid: " in shown
    (tmp_path / "logs.jsonl").unlink()
    assert "the log that contains its arguments was moved" in run("bylaw explain out t1 3", tmp_path).stdout


def test_a_step_that_only_broke_a_rule_can_be_explained(tmp_path: Path) -> None:
    rule = {"trajectory": "t1", "step": 4, "rule": "say-transfer", "policy": "say-transfer", "because": "handed over"}
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "calls.jsonl").write_text("")
    (tmp_path / "out" / "policies.json").write_text("{}")
    (tmp_path / "out" / "summary.json").write_text("{}")
    (tmp_path / "out" / "findings.jsonl").write_text(json.dumps(rule) + "\n")
    assert "say-transfer  rule broken" in run("bylaw explain out t1 4", tmp_path).stdout
    assert "known steps: 4" in run("bylaw explain out t1 1", tmp_path).stdout


def test_a_private_argument_stays_private_where_it_is_read_from_the_log_again(demo: Demo) -> None:
    out = demo.folder / "bylaw-demo"
    kept = {json.loads(line)["trajectory"] for line in (out / "conversations.jsonl").read_text().splitlines()}
    calls = [json.loads(line) for line in (out / "calls.jsonl").read_text().splitlines()]
    call_ = next(line for line in calls if line["tool"] == "update_contact" and line["trajectory"] not in kept)
    shown = run(f"bylaw explain bylaw-demo {call_['trajectory']} {call_['step']}", demo.folder).stdout
    assert '"patient_id": "P' in shown
    assert "[Patient." in shown
    assert "@" not in shown


def test_without_the_document_the_packs_words_stand_once_with_every_place() -> None:
    cite = {"document": "handbook", "heading": "Fees", "text": None}
    policies = {"p": {"definition": "Fees are paid.", "citations": [cite | {"line": 7}, cite | {"line": 9}]}}
    policy = {"id": "p", "determined": "violation", "because": "no", "asks": [], "missing": []}
    line = {"trajectory": "t", "tool": "x", "step": 0, "executed": True, "policies": [policy]}
    out = StringIO()
    verdicts = {"strict": "violation", "determined": "violation"}
    explain(line | verdicts, policies, [call("x")], Console(file=out, width=80, highlight=False))
    assert out.getvalue().count("Fees are paid.") == 1
    assert "handbook:7, 9 (Fees): in the pack's words: Fees are paid." in out.getvalue()


def told_asks(*facts: str, because: str = "", otherwise: str = "") -> str:
    asks = [{"fact": fact, "question": f"what is {fact}?"} for fact in facts]
    reason = {"kind": "user", "words": otherwise}
    policy = {
        "id": "p",
        "determined": "inconclusive",
        "because": because,
        "asks": asks,
        "missing": [],
        "reason": reason,
    }
    policies = [policy | {"reason": reason}]
    line = {"trajectory": "t", "tool": "x", "step": 0, "executed": True, "policies": policies}
    out = StringIO()
    verdicts = {"strict": "inconclusive", "determined": "inconclusive"}
    explain(line | verdicts, {}, [call("x")], Console(file=out, width=80, highlight=False))
    return " ".join(out.getvalue().split())


def test_a_missing_clock_is_not_blamed_on_the_user() -> None:
    text = told_asks(
        "context.now",
        because="depends on a fact that only the user knows; possible reason: too old",
        otherwise="too old",
    )
    assert "user" not in text
    assert "because: depends on a fact that only the host knows; possible reason: too old" in text
    assert "the log has no readable time and the pack has no `now:`" in text
    assert "set `now:` in pack.yaml" in text


def test_what_the_host_supplies_is_told_apart_from_what_the_user_can_say() -> None:
    text = told_asks("context.principal", "Request.reason", because="depends on a fact that only the user knows")
    assert "only the host knows context.principal" in text
    assert "only the user knows: Request.reason - what is Request.reason?" in text
    assert "only the user can say: context" not in text
    assert "because: depends on a fact that only the user knows" in text


def test_without_a_step_what_can_be_explained_is_listed_or_explained_where_it_is_one(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    twice = (*CAREFUL, *CAREFUL)
    shop.logs(record(*CAREFUL, id="t1"), record(*twice, id="t 2"))
    run(f"bylaw audit logs.jsonl --pack {shop.pack}", tmp_path)
    assert run("bylaw explain out t1", tmp_path).stdout == run("bylaw explain out t1 3", tmp_path).stdout
    rule = {"trajectory": "t 2", "step": 1, "rule": "say-hello", "policy": "say-hello", "because": "no greeting"}
    (tmp_path / "out" / "findings.jsonl").write_text(json.dumps(rule) + "\n")
    shown = run("bylaw explain out 't 2'", tmp_path).stdout.splitlines()
    assert shown[0] == "judged steps of t 2:"
    assert [line.split()[0] for line in shown[1:4]] == ["1", "3", "8"]
    assert shown[1].split(maxsplit=1)[1].split("  ") == ["say-hello", "rule broken"]
    assert "compliant" in shown[2]
    assert shown[4] == "to explain one: bylaw explain out 't 2' STEP"


def test_piped_lines_end_in_no_blanks(tmp_path: Path, demo: Demo) -> None:
    shop = Shop(tmp_path)
    shop.logs(record(*CAREFUL, id="t1"))
    (tmp_path / "logs.jsonl").open("a").write("{broken\n")
    audited = run(f"bylaw audit logs.jsonl --pack {shop.pack}", tmp_path).stdout
    assert "bylaw: BY102 logs.jsonl:2: not JSON" in audited
    for text in (audited, run("bylaw explain out t1 3", tmp_path).stdout, demo.shown):
        assert text.splitlines() == [line.rstrip() for line in text.splitlines()]


def test_the_start_of_an_id_is_enough_and_a_findings_id_will_do(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.logs(record(*HASTY, id="alpha-1"), record(*HASTY, id="alpha-2"), record(*WRONG, id="beta"))
    run(f"bylaw audit logs.jsonl --pack {shop.pack} --world world.json", tmp_path)
    calls = [json.loads(line) for line in (tmp_path / "out/calls.jsonl").read_text().splitlines()]
    whole = run("bylaw explain out beta 1", tmp_path).stdout
    assert "ship at step 1 of beta" in whole
    assert run("bylaw explain out be", tmp_path).stdout == whole
    assert run(f"bylaw explain out {calls[2]['finding']}", tmp_path).stdout == whole
    assert run(f"bylaw explain out {calls[2]['finding'][:8]}", tmp_path).stdout == whole
    several = run("bylaw explain out alpha", tmp_path)
    assert several.returncode == 2
    assert "several ids start with `alpha`; alpha-1, alpha-2" in several.stdout


def test_the_findings_are_listed_the_most_severe_first(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    gift = call_log("refund", {"order_id": "OPEN", "amount": "1.00"})
    shop.logs(record(gift, id="low"), record(*HASTY, id="near"), record(*WRONG, id="wrong"))
    run(f"bylaw audit logs.jsonl --pack {shop.pack} --world world.json", tmp_path)
    shown = run("bylaw explain out", tmp_path).stdout.splitlines()
    heads = [line.split() for line in shown if line.startswith(("high", "medium", "low"))]
    assert [(head[0], head[2], head[3]) for head in heads] == [
        ("high", "violation", "only-paid"),
        ("high", "near-miss", "only-paid"),
        ("medium", "violation", "no-gifts"),
    ]
    assert shown[-1] == "to explain one: bylaw explain out ID"


def test_policies_that_overlap_are_one_finding_on_several_grounds() -> None:
    said = {"determined": "violation", "strict": "violation", "missing": [], "asks": [], "severity": "high"}
    fee = said | {"id": "fee", "because": "the fee is $40.00"}
    others = [
        said | {"id": "fee-list", "because": "the fee is $40.00"},
        said | {"id": "owner", "because": "not theirs"},
    ]
    cited = {"document": "desk.md", "line": 3, "heading": ""}
    policies = {
        "fee": {"citations": [cited | {"text": "It costs $40."}]},
        "fee-list": {"citations": [cited | {"line": 9, "text": "Late: $40."}]},
    }
    line = {"trajectory": "t", "tool": "bill", "step": 0, "executed": True, "policies": [fee, *others]}
    out = StringIO()
    explain(line | {"determined": "violation"}, policies, [call("bill")], Console(file=out, width=200))
    text = out.getvalue()
    assert text.count("because: the fee is $40.00") == 1
    assert "high  fee, fee-list  violation" in text
    assert "It costs $40." in text
    assert "Late: $40." in text
    assert "high  owner  violation" in text


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"change": True, "agreed": False}, "`change` holds; `agreed` does not hold"),
        (
            {"reads_information": True, "not_found": False, "locates_user": False},
            "`reads_information` holds; `not_found` and `locates_user` do not hold",
        ),
        ({"promised": True, "rude": None}, "`promised` holds; it is unknown whether `rude` holds"),
        ({"a": None, "b": None, "c": None}, "it is unknown whether `a`, `b` and `c` hold"),
    ],
)
def test_what_broke_a_rule_reads_as_english(values: dict[str, bool | None], words: str) -> None:
    predicates = [{"name": name, "value": value} for name, value in values.items()]
    assert rule_words({"standing": "broken", "predicates": predicates}) == words
