"""The recipes of the guide to packs do what they say; they are taken from the page as they stand there."""

import re
from pathlib import Path

import pytest

from bylaw import Conversation, Pack

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "write-a-pack.md").read_text(encoding="utf-8")
FILES = {
    name: text
    for name, text in re.findall(r"<!-- file: till/(\S+) -->\n```\w+\n(.*?)```", PAGE, re.DOTALL)
    if not name.startswith("cases/")
}


def recipe(title: str) -> list[str]:
    """The blocks of code of one recipe."""
    part = PAGE.partition(f"**{title}")[2].partition("\n**")[0]
    return re.findall(r"```\w+\n(.*?)```", part, re.DOTALL)


def pack(**changed: str) -> Pack:
    return Pack.from_files(FILES | changed)


@pytest.mark.parametrize(
    ("found", "evidence"), [((), "deny"), (("C1",), "permit"), (("C2",), "deny"), (("C1", "C2"), "deny")]
)
def test_one_customer_in_a_conversation(found: tuple[str, ...], evidence: str) -> None:
    entities, guard = recipe("Only one customer")
    caller, shown = (line.partition("#")[0].rstrip() for line in entities.splitlines())
    yaml = re.sub(r"  Caller: .*", lambda _: caller, FILES["entities.yaml"])
    yaml = re.sub(r"  find_customer: .*", lambda _: shown, yaml)
    guards = guard + "\n\n" + FILES["guards/till.py"].partition("\n\n\n")[2]
    conversation = Conversation(pack(**{"entities.yaml": yaml, "guards/till.py": guards}))
    for each in found:
        conversation.call("find_customer", {"email": f"{each}@mail.example"})
        conversation.result(each)
        conversation.agent("Thank you.")
    conversation.call("get_order", {"order_id": "A1"})
    conversation.result({"customer_id": "C1", "status": "delivered", "delivered_on": "2025-05-05", "items": []})
    conversation.agent("I see.")
    judged = conversation.call("take_back", {"order_id": "A1"})
    assert {each.policy.id: each.outcome for each in judged.evidence}["own-order"] == evidence


SWAPS = """
predicates:
  swap: {tool: swap_items}
  reminded: {pattern: remember}
rules:
  - {id: confirm, formula: "%s"}
"""


@pytest.mark.parametrize(
    ("talk", "wanted"),
    [
        (["swap"], [True]),
        (["remind", "swap"], [False]),
        (["remind", "swap", "swap"], [False, True]),
        (["remind", "swap", "remind", "swap"], [False, False]),
    ],
)
def test_a_reminder_before_each_swap(talk: list[str], wanted: list[bool]) -> None:
    (formula,) = re.findall(r"`(ALWAYS \(swap IMPLIES YESTERDAY .*?)`", PAGE)
    conversation = Conversation(pack(**{"rules.yaml": SWAPS % formula}))
    found: list[bool] = []
    for each in talk:
        if each == "remind":
            conversation.agent("Please remember that swaps are final.")
            conversation.user("I do.")
        else:
            judged = conversation.call("swap_items", {"order_id": "A1", "old": [], "new": []})
            found.append(any(finding.rule.name == "confirm" for finding in judged.rules))
            conversation.result("ok")
    assert found == wanted


@pytest.mark.parametrize(
    ("answers", "is_broken"),
    [("ww", False), ("www", True), ("wrww", False), ("wwrwww", True), ("wwrww", False), ("", False)],
)
def test_three_wrong_answers_in_a_row(answers: str, is_broken: bool) -> None:
    (rules,) = recipe("Three wrong answers in a row")
    conversation = Conversation(pack(**{"rules.yaml": rules.replace("three-wrong", "confirm")}))
    for each in answers:
        conversation.call("find_customer", {"email": "a@mail.example"})
        conversation.result({"verified": each == "r"})
        conversation.agent("Let me see.")
        conversation.user("Yes?")
    judged = conversation.call("get_order", {"order_id": "A1"})
    assert bool(judged.rules) is is_broken


def test_a_tool_may_be_spared_the_question() -> None:
    formula, minor = re.findall(r"`(ALWAYS \(change AND NOT minor IMPLIES agreed\))` with `(minor: .*?)`", PAGE)[0]
    rules = FILES["rules.yaml"].replace("ALWAYS (change IMPLIES agreed)", formula)
    rules = rules.replace("predicates:\n", f"predicates:\n  {minor.replace('add_note', 'take_back')}\n")
    conversation = Conversation(pack(**{"rules.yaml": rules}))
    conversation.user("Take A1 back and swap the lamp.")
    assert not conversation.call("take_back", {"order_id": "A1"}).rules
    assert conversation.call("swap_items", {"order_id": "A1", "old": ["L1"], "new": ["L2"]}).rules
