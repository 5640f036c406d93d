"""The rules that `init` drafts: from sentences that ask for a yes before a change, or for one call at a time."""

from pathlib import Path

import pytest

from bylaw import Conversation
from bylaw.cli.init import init_pack
from bylaw.pack import load_pack
from bylaw.policy.document import Document
from bylaw.scan.confirmation import drafted_rules, rules_file

from .library import visits
from .test_init import openai, sound

TAU = (
    "Before taking any actions that update the booking database (booking, modifying flights, editing baggage), you must"
    " list the action details and obtain explicit user confirmation (yes) to proceed."
)


@pytest.mark.parametrize(
    ("sentence", "wanted"),
    [
        (TAU, ["confirm-before-change"]),
        ("Before you make any change, tell the caller what it is and wait for a clear yes.", ["confirm-before-change"]),
        ("Always get the customer's consent before you cancel an order.", ["confirm-before-change"]),
        ("You should only make one tool call at a time, and not respond at the same time.", ["one-call-at-a-time"]),
        ("You should at most make one tool call.", ["one-call-at-a-time"]),
        ("Never make several tool calls in one turn.", ["one-call-at-a-time"]),
        ("2.2 Make one change at a time, and read its result first.", ["one-change-at-a-time"]),
        ("A refund is paid within ten days.", []),
        ("You need not ask for confirmation before you update a note.", []),
        ("Orders are confirmed by mail.", []),
        ("An order can be cancelled until it has been shipped.", []),
        ("Say yes politely.", []),
    ],
)
def test_a_sentence_that_asks_for_it_gets_a_rule_and_no_other_does(sentence: str, wanted: list[str]) -> None:
    assert [rule.id for rule in drafted_rules(Document(sentence))] == wanted


@pytest.mark.parametrize(
    ("sentence", "wanted"),
    [
        (
            "Before any discount, say the deal and the percentage and wait for a yes.",
            {"confirm-set-discount": "set_discount"},
        ),
        ("A contact is deleted only after the user said yes to it.", {"confirm-delete-contact": "delete_contact"}),
        ("Get the caller's consent before you delete a contact.", {"confirm-delete-contact": "delete_contact"}),
        (
            "Before you delete a contact or set a discount, the user must agree.",
            {"confirm-set-discount": ["set_discount", "delete_contact"]},
        ),
        ("Before any change, including a discount, wait for a clear yes.", {"confirm-before-change": None}),
        ("Before you enter a discount, look at the contract.", {}),
    ],
)
def test_a_yes_before_certain_deeds_binds_these_alone(sentence: str, wanted: dict[str, object]) -> None:
    writes = ["set_discount", "delete_contact", "send_email"]
    rules = drafted_rules(Document(sentence), writes, [*writes, "get_contact"])
    bound = {rule.id: next(iter(rule.predicates.values())).get("tool") for rule in rules}
    assert bound == wanted


ANY = "Before you make any change, say what it is and wait for a yes."


@pytest.mark.parametrize(
    ("text", "spared", "cited"),
    [
        (f"{ANY} This is not needed to send an email.", "send_email", 1),
        (f"{ANY} You need not ask before you send an email.", "send_email", 1),
        (f"Be kind. {ANY} Speak plainly. No confirmation is needed, nor asking: an email needs no yes.", None, 1),
        ("Before any change, except sending an email, wait for a clear yes.", "send_email", 0),
        (f"{ANY} Discounts are for members, except at Christmas.", None, 0),
        (f"{ANY} Be kind.", None, 0),
    ],
)
def test_an_exception_stays_by_the_drafted_rule(text: str, spared: str | None, cited: int) -> None:
    writes = ["set_discount", "delete_contact", "send_email"]
    (rule,) = drafted_rules(Document(text), writes, [*writes, "get_contact"])
    assert rule.predicates.get("spared", {}).get("tool") == spared
    assert ("AND NOT spared" in rule.formula) is (spared is not None)
    assert len(rule.exceptions) == cited
    assert rules_file([rule], Document(text)).count("an exception?") == cited


def test_the_drafted_rules_find_what_their_sentences_forbid(tmp_path: Path) -> None:
    policy = tmp_path / "policy.md"
    policy.write_text(
        "# Desk\n\nBefore you make any change, say what it is and wait for a yes.\nMake one change at a time.\n"
    )
    made = init_pack([openai(tmp_path / "log.jsonl", visits(20))], policy, tmp_path / "desk")
    assert made.rules == ("confirm-before-change", "one-change-at-a-time")
    sound(tmp_path / "desk")
    pack = load_pack(tmp_path / "desk")
    assert {policy.id for policy in pack.policies.values() if policy.kind == "rule"} == set(made.rules)
    asked = Conversation(pack)
    asked.user("Renew L0001.")
    asked.agent("Shall I renew loan L0001?")
    asked.user("Yes.")
    assert not asked.call("renew_loan", {"loan_id": "L0001"}).rules
    unasked = Conversation(pack)
    unasked.user("Hello.")
    broken = unasked.call("renew_loan", {"loan_id": "L0001"}).rules
    assert [finding.rule.name for finding in broken] == ["confirm-before-change"]
