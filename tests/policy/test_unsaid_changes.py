"""Writes of which a pack does not say what they change: what they are taken to change is told, and is so."""

import pytest

from bylaw import Pack, Shield, check
from bylaw.cli.checked import print_checked
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
        ("source", "", "transfer: whatever its arguments name"),
        ("account_id", "", "transfer: Account, and whatever else its arguments name"),
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
    assert ("1 write without `changes` is taken to change\n" in said) is bool(told)
    assert told in said
