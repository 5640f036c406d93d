"""Writes of which a pack does not say what they change: what they are taken to change is told, and is so."""

from typing import Any

import pytest

from bylaw import Pack, Shield, check
from bylaw.cli.check import print_checked
from bylaw.cli.console import open_console

FILES = {
    "pack.yaml": "{format: 1, name: bank, document: policy.md}",
    "policy.md": "A transfer is never more than the balance of the account.\n",
    "entities.yaml": "entities: {Account: {key: account_id, read: get_account, fields: {balance: money}}}",
    "guards/g.py": (
        "def funds(call: transfer, facts):\n"
        '    """A transfer is never more than the balance of the account."""\n'
        '    return permit() if money(call.amount) <= facts.Account(call.NAME).balance else deny("not enough")\n'
    ),
}
TOOLS = """
tools:
  get_account: {effect: read, parameters: {account_id: string}}
  transfer: {effect: write, parameters: {NAME: string, target: string, amount: string}MORE}
"""


def bank(name: str, more: str = "") -> Pack:
    files = {**FILES, "tools.yaml": TOOLS.replace("MORE", more)}
    return Pack.from_files({file: text.replace("NAME", name) for file, text in files.items()})


def paid_twice(pack: Pack, name: str) -> list[str]:
    with Shield(pack).session() as session:
        session.decide("get_account", {"account_id": "A1"})
        session.result({"account_id": "A1", "balance": "100.00"})
        answers: list[str] = []
        for _ in range(2):
            decision = session.decide("transfer", {name: "A1", "target": "B", "amount": "80.00"})
            answers.append(decision.answer)
            if decision.allowed:
                session.result({"done": True})
        return answers


@pytest.mark.parametrize("name", ["source", "from_account", "account_id", "iban"])
def test_one_balance_does_not_pay_twice(name: str) -> None:
    assert paid_twice(bank(name), name) == ["allow", "look_up"]


def test_a_pack_may_say_that_a_write_changes_nothing() -> None:
    assert paid_twice(bank("source", ", changes: []"), "source") == ["allow", "allow"]


@pytest.mark.parametrize(
    ("name", "more", "told"),
    [
        ("source", "", "transfer: every record that its arguments name"),
        ("account_id", "", "transfer: Account, and every other record that its arguments name"),
        ("source", ", changes: []", ""),
        ("source", ", changes: [{as: Account, key: $args.source}]", ""),
    ],
)
def test_check_tells_what_a_write_is_taken_to_change(
    name: str, more: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    report = check(bank(name, more))
    kinds = ["Account"] if name == "account_id" else []
    assert report.record()["unsaid"] == ({"transfer": kinds} if told else {})
    print_checked(report, open_console(), whole=True)
    said = capsys.readouterr().out
    assert ("1 write without `changes`, assumed to change\n" in said) is bool(told)
    assert told in said


def test_check_lists_the_writes_that_a_model_may_allow_without_a_request(capsys: pytest.CaptureFixture[str]) -> None:
    report = check(bank("source", ", prepares: true"))
    assert report.record()["preparing"] == ["transfer"]
    print_checked(report, open_console(), whole=True)
    assert "a model may allow these calls without a request: transfer" in capsys.readouterr().out


SHOP = {
    "pack.yaml": "{format: 1, name: shop, document: policy.md}",
    "policy.md": "A refund is never more than is left.\n",
    "tools.yaml": (
        "tools:\n"
        "  get_wallet: {effect: read, parameters: {}}\n"
        "  get_line: {effect: read, parameters: {line_id: string}}\n"
        "  get_order: {effect: read, parameters: {order_id: string}}\n"
        "  refund:\n"
        "    effect: write\n"
        "    parameters: {line_id: string, number: string, amount: string, of: string, parts: array}\n"
    ),
    "entities.yaml": (
        "entities:\n"
        "  Wallet: {key: [], read: {tool: get_wallet, arguments: {}}, fields: {left: money}}\n"
        "  Line: {key: line_id, read: get_line, fields: {order: string}}\n"
        "  Order: {key: order_id, read: get_order, fields: {left: money, shop: string}}\n"
        "context: {mine: string}\n"
    ),
}
GUARD = 'def funds(call: refund, facts):\n    """A refund is never more than is left."""\n'
ENOUGH = '    return permit() if {} else deny("not enough")\n'


def shop(code: str, more: str = "", helper: str = "") -> Pack:
    *before, test = code.split("; ")
    guard = GUARD + "".join(f"    {each}\n" for each in before) + ENOUGH.format(test) + helper
    return Pack.from_files(SHOP | {"guards/g.py": guard, "tools.yaml": SHOP["tools.yaml"] + more})


def refunded(pack: Pack, *orders: str, named: bool = False) -> list[str]:
    """The answers to refunds of 80.00, each of an order that had 100.00 left before the first."""
    with Shield(pack).session(context={"mine": "O1"}) as session:

        def look(tool: str, arguments: dict[str, str], shown: dict[str, str]) -> None:
            session.decide(tool, arguments)
            session.result(shown)

        look("get_wallet", {}, {"left": "100.00"})
        for order in dict.fromkeys(orders):
            look("get_order", {"order_id": order}, {"order_id": order, "left": "100.00", "shop": "S"})
        answers: list[str] = []
        for order in orders:
            line = order.replace("O", "L")
            look("get_line", {"line_id": line}, {"line_id": line, "order": order})
            given: dict[str, Any] = {"line_id": line, "number": f"no_{order}", "amount": "80.00"}
            names: dict[str, Any] = {"of": order, "parts": [{"of": order}]} if named else {"of": "", "parts": []}
            decision = session.decide("refund", given | names)
            answers.append(decision.answer)
            if decision.allowed:
                session.result({"done": True})
        return answers


GIVEN_BY_HAND = "\n\ndef by(key, facts):\n    return facts.Order(key)\n"
FOUND = "\n\ndef order(call, facts):\n    return facts.Order(facts.Line(call.line_id).order)\n"


@pytest.mark.parametrize(
    ("code", "helper", "kinds"),
    [
        ("money(call.amount) <= facts.Wallet.left", "", ["Wallet", "Line"]),
        ("wallet = facts.Wallet; money(call.amount) <= wallet.left", "", ["Wallet", "Line"]),
        ("money(call.amount) <= facts.Order(facts.context.mine).left", "", ["Wallet", "Line", "Order"]),
        ("mine = facts.context.mine; money(call.amount) <= facts.Order(mine).left", "", ["Wallet", "Line", "Order"]),
        ('money(call.amount) <= facts.Order("O1").left', "", ["Wallet", "Line", "Order"]),
        ('money(call.amount) <= facts.Order(call.number.split("_")[1]).left', "", ["Wallet", "Line", "Order"]),
        ("money(call.amount) <= facts.Order(facts.Line(call.line_id).order).left", "", ["Wallet", "Line", "Order"]),
        (
            "line = facts.Line(call.line_id); it = facts.Order(order_id=line.order); money(call.amount) <= it.left",
            "",
            ["Wallet", "Line", "Order"],
        ),
        ("money(call.amount) <= order(call, facts).left", FOUND, ["Wallet", "Line", "Order"]),
        (
            "money(call.amount) <= by(facts.Line(call.line_id).order, facts).left",
            GIVEN_BY_HAND,
            ["Wallet", "Line", "Order"],
        ),
        (
            'any(money(call.amount) <= order.left for order in facts.Order.seen(shop="S"))',
            "",
            ["Wallet", "Line", "Order"],
        ),
    ],
)
def test_what_a_guard_reads_and_no_argument_names_does_not_pay_twice(code: str, helper: str, kinds: list[str]) -> None:
    pack = shop(code, helper=helper)
    first, second = refunded(pack, "O1", "O1")
    assert first == "allow"
    assert second != "allow"
    assert set(check(pack).record()["unsaid"]["refund"]) == set(kinds)
    assert refunded(shop(code, "    changes: []\n", helper), "O1", "O1") == ["allow", "allow"]


@pytest.mark.parametrize(
    ("code", "helper"),
    [
        ("money(call.amount) <= facts.Order(call.of).left", ""),
        ('money(call.amount) <= facts.Order(get(call, "of")).left', ""),
        ("key = call.of; money(call.amount) <= facts.Order(key).left", ""),
        ("all(money(call.amount) <= facts.Order(part.of).left for part in call.parts)", ""),
        ('all(money(call.amount) <= facts.Order(part["of"]).left for part in call.parts)', ""),
        ("money(call.amount) <= by(call.of, facts).left", GIVEN_BY_HAND),
    ],
)
def test_what_the_arguments_name_leaves_the_others_known(code: str, helper: str) -> None:
    pack = shop(code, helper=helper)
    assert refunded(pack, "O1", "O2", "O1", named=True) == ["allow", "allow", "look_up"]
    assert set(check(pack).record()["unsaid"]["refund"]) == {"Wallet", "Line"}


@pytest.mark.parametrize(
    ("order", "is_named"),
    [
        ("facts.context.mine", False),
        ("facts.Line(act.arguments['line_id']).order", False),
        ("act.arguments['of']", True),
    ],
)
def test_what_a_predicate_reads_and_no_argument_names_does_not_pay_twice(order: str, is_named: bool) -> None:
    test = f"act.tool == 'refund' and money(act.arguments['amount']) > facts.Order({order}).left"
    rules = (
        f'predicates: {{too_much: {{code: "{test}"}}}}\n'
        "rules: [{id: funds, formula: ALWAYS NOT too_much, hard: true}]\n"
    )
    policies = "policies: [{id: funds, kind: rule, spans: [A refund is never more than is left.]}]"
    pack = Pack.from_files(SHOP | {"rules.yaml": rules, "policies.yaml": policies})
    first, second = refunded(pack, "O1", "O1", named=is_named)
    assert first == "allow"
    assert second != "allow"
    assert ("Order" in check(pack).record()["unsaid"]["refund"]) is not is_named
