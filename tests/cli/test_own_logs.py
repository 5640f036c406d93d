"""Somebody's own logs, whose tools answer as they like, under a pack written in an hour."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from bylaw import Shield
from tests.command import bylaw

FILES = {
    "pack/pack.yaml": "format: 1\nname: pack\ndocument: policy.md\n",
    "pack/policy.md": "An order that has been refunded cannot be refunded again.\n",
    "pack/entities.yaml": """\
entities:
  Order: {key: order_id, read: get_order, fields: {status: [paid, refunded]}}
""",
    "pack/tools.yaml": """\
tools:
  get_order: {effect: read, parameters: {order_id: string}}
  refund_order:
    effect: write
    parameters: {order_id: string, amount: string}
    effects: [{as: Order, key: $args.order_id, set: {status: =refunded}}]
""",
    "pack/guards/g.py": '''\
def refund_once(call: refund_order, facts):
    """An order that has been refunded cannot be refunded again."""
    return permit() if facts.Order(call.order_id).status == "paid" else deny("refunded already")
''',
    "world.json": '{"Order": [{"order_id": "T1", "status": "paid"}]}',
}
PAID = '{"order_id": "T1", "status": "paid"}'


def chat(id: str, *calls: tuple[str, str]) -> str:
    """A conversation of calls with their answers."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Refund T1"}]
    for place, (tool, answer) in enumerate(calls):
        arguments = {"order_id": "T1"} | ({"amount": "108.00"} if tool == "refund_order" else {})
        call = {"id": f"c{place}", "function": {"name": tool, "arguments": json.dumps(arguments)}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{place}", "content": answer})
    return json.dumps({"id": id, "messages": messages})


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def audit(folder: Path, *lines: str) -> dict[tuple[str, int], dict[str, Any]]:
    """The judged calls by conversation and step."""
    (folder / "logs.jsonl").write_text("\n".join(lines) + "\n")
    ran = bylaw(folder, "audit", "logs.jsonl", "--pack", "pack", "--world", "world.json", "--out", "out")
    assert ran.returncode == 0, ran.stderr
    found = map(json.loads, (folder / "out" / "calls.jsonl").read_text().splitlines())
    return {(each["trajectory"], each["step"]): each for each in found}


@pytest.mark.parametrize(
    "answer", ["Error 503: upstream timed out", "ERROR no funds", "HTTP 500", "timeout", '{"statusCode": 500}']
)
def test_a_retry_after_what_looks_like_an_error_is_not_accused(shop: Path, answer: str) -> None:
    found = audit(shop, chat("a", ("get_order", PAID), ("refund_order", answer), ("refund_order", '{"ok": true}')))
    assert (found["a", 3]["executed"], found["a", 3]["determined"]) == (None, "compliant")
    assert found["a", 5]["determined"] == "uninformed"
    assert found["a", 5]["policies"][0]["world"] == "unknown"


def test_a_retry_after_a_refund_that_was_made_is_still_accused(shop: Path) -> None:
    found = audit(shop, chat("a", ("get_order", PAID), ("refund_order", "Done."), ("refund_order", '{"ok": true}')))
    assert found["a", 5]["determined"] == "violation"


def test_the_line_that_settles_a_doubtful_write_is_shown_and_does_so(shop: Path) -> None:
    log = chat("a", ("get_order", PAID), ("refund_order", "ERROR no funds"), ("refund_order", '{"ok": true}'))
    audit(shop, log)
    line = "surely_refused: '^ERROR no funds'"
    for step in ("3", "5"):
        told = bylaw(shop, "explain", "out", "a", step).stdout
        assert "if the result means that the write was not executed, add this to" in told
        assert line in told
    tools = shop / "pack" / "tools.yaml"
    tools.write_text(tools.read_text().replace("    effects:", f"    {line}\n    effects:"))
    found = audit(shop, log)
    assert (found["a", 3]["executed"], found["a", 5]["determined"]) == (False, "compliant")


def test_an_audit_says_which_tools_answer_so_that_nobody_can_tell(shop: Path) -> None:
    (shop / "logs.jsonl").write_text(chat("a", ("get_order", PAID), ("refund_order", "HTTP 500")) + "\n")
    ran = bylaw(shop, "audit", "logs.jsonl", "--pack", "pack", "--out", "out")
    said = " ".join(ran.stdout.split())
    assert "refund_order: 1 of 1 results do not say whether the write was executed" in said
    assert "Add `surely_refused` to the tool in tools.yaml" in said
    assert json.loads((shop / "out" / "summary.json").read_text())["by_tool"]["refund_order"]["perhaps_done"] == 1


def test_the_line_that_settles_a_failed_look_up_is_shown_and_does_so(shop: Path) -> None:
    log = chat("a", ("get_order", "Error 503: upstream timed out"), ("refund_order", '{"ok": true}'))
    found = audit(shop, log)
    assert found["a", 3]["determined"] == "inconclusive"
    told = bylaw(shop, "explain", "out", "a", "3").stdout
    assert "get_order at step 1 returned: Error 503: upstream timed out" in told
    assert "refused: '^Error'" in told
    tools = shop / "pack" / "tools.yaml"
    tools.write_text(tools.read_text().replace("get_order: {", "get_order: {refused: '^Error', "))
    assert audit(shop, log)["a", 3]["determined"] == "near_miss"


def test_what_a_shield_could_not_tell_accuses_nobody_in_the_audit_of_its_log(shop: Path) -> None:
    refund = {"order_id": "T1", "amount": "108.00"}
    with Shield(shop / "pack", log=shop / "log.db").session("a") as session:
        session.user("Refund T1")
        session.decide("get_order", {"order_id": "T1"})
        session.result(PAID)
        assert session.decide("refund_order", refund).allowed
        session.result("Error 503: upstream timed out")
        assert session.decide("refund_order", refund).answer == "look_up"
    ran = bylaw(shop, "log", "export", "--log", "log.db", "--out", "export.jsonl")
    assert ran.returncode == 0, ran.stderr
    lines = (shop / "export.jsonl").read_text().splitlines()
    found = audit(shop, *lines)
    assert {each["determined"] for each in found.values()} == {"compliant", "uninformed"}


def test_parameters_that_were_left_out_are_missed_in_tools_yaml(shop: Path) -> None:
    tools = shop / "pack" / "tools.yaml"
    tools.write_text(
        tools.read_text().replace(
            "get_order: {effect: read, parameters: {order_id: string}}", "get_order: {effect: read}"
        )
    )
    told = bylaw(shop, "check", "pack").stderr
    assert "tools.yaml:2: `get_order` has no `parameters`, but entities.yaml:2 needs them to look up `Order`" in told
    assert "write `parameters: {order_id: string}`" in told


def test_a_table_of_orders_is_found_for_order(shop: Path) -> None:
    base = sqlite3.connect(shop / "shop.sqlite")
    base.execute("CREATE TABLE orders (order_id, status)")
    base.execute("INSERT INTO orders VALUES ('T1', 'refunded')")
    base.commit()
    base.close()
    (shop / "logs.jsonl").write_text(chat("a", ("refund_order", '{"ok": true}')) + "\n")
    ran = bylaw(shop, "audit", "logs.jsonl", "--pack", "pack", "--world", "shop.sqlite", "--fail-on", "violation")
    assert ran.returncode == 1, ran.stderr


CONFIRM = {
    "pack/policies.yaml": "policies:\n  - {id: confirm, spans: [Before a change wait for a yes.]}\n",
    "pack/policy.md": FILES["pack/policy.md"] + "Before a change wait for a yes.\n",
    "pack/rules.yaml": """\
predicates:
  change: {effect: write}
  agreed: {consented: told}
rules:
  - {id: confirm, formula: ALWAYS (change IMPLIES agreed)}
""",
}


def asked(put: str) -> str:
    """A conversation in which a refund was asked for in these words, and answered with yes."""
    told = json.loads(chat("a", ("get_order", PAID), ("refund_order", '{"ok": true}')))
    told["messages"][3:3] = [{"role": "assistant", "content": put}, {"role": "user", "content": "Yes."}]
    return json.dumps(told)


def test_the_sentence_that_nobody_has_to_read_is_shown_and_counts(shop: Path) -> None:
    for name, text in CONFIRM.items():
        (shop / name).write_text(text)
    found = audit(shop, asked("I will refund 108.00 for order T1. Shall I go ahead?"))
    assert [each["rule"] for each in found["a", 5]["open_rules"]] == ["confirm"]
    told = " ".join(bylaw(shop, "explain", "out", "a", "5").stdout.split())
    assert "a model or a person must read the messages up to step 4" in told
    assert "a sentence from `put_as` in tools.yaml" in told
    tools = shop / "pack" / "tools.yaml"
    line = 'put_as: "refund order with order id {order_id}, amount {amount}"'
    tools.write_text(tools.read_text().replace("    effects:", f"    {line}\n    effects:"))
    found = audit(shop, asked("Shall I refund order with order id T1, amount 108.00?"))
    assert not found["a", 5]["open_rules"]
    assert not found["a", 5]["rules"]


@pytest.mark.parametrize(
    ("file", "before", "after", "is_told"),
    [
        ("tools.yaml", "", "", True),
        ("tools.yaml", "    effects:", '    put_as: "refund {amount} for {order_id}"\n    effects:', False),
        ("rules.yaml", "consented: told", "consented: told, model: may settle", False),
        ("rules.yaml", "consented: told", "consented: requested", True),
        ("rules.yaml", "consented: told", "consented: card", False),
    ],
)
def test_a_pack_by_which_no_yes_in_words_counts_is_told_so(
    shop: Path, file: str, before: str, after: str, is_told: bool
) -> None:
    for name, text in CONFIRM.items():
        (shop / name).write_text(text)
    path = shop / "pack" / file
    path.write_text(path.read_text().replace(before, after, 1))
    told = bylaw(shop, "check", "pack", "--all").stdout
    assert ("spoken consent stays undecided: `agreed`\n  add `put_as` to the tools" in told) is is_told
    assert json.loads(bylaw(shop, "check", "pack", "--json").stdout)["unread"] == (["agreed"] if is_told else [])


def test_a_look_up_in_another_spelling_is_told(shop: Path) -> None:
    told = json.loads(chat("a", ("get_order", PAID), ("refund_order", '{"ok": true}')))
    told["messages"][1]["tool_calls"][0]["function"]["arguments"] = '{"order_id": "#T1"}'
    told["messages"][2]["content"] = '{"order_id": "#T1", "status": "paid"}'
    audit(shop, json.dumps(told))
    shown = " ".join(bylaw(shop, "explain", "out", "a", "3").stdout.split())
    assert "because: looked up under another spelling, so it may be a different record: Order[T1].status" in shown
    assert "no result of" not in shown
