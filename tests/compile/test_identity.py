"""Who the user is: asked about only where the document does, shown to whoever writes guards, and tried both ways."""

from datetime import datetime

import pytest

from bylaw.compile.bench import Bench
from bylaw.compile.card import Card
from bylaw.compile.context import code_notes, things_text
from bylaw.compile.desk import Desk
from bylaw.compile.inputs import tried
from bylaw.compile.things import Things, asks_who_it_is, describe
from bylaw.policy.document import Document
from bylaw.policy.statement import Policy

STRING = {"type": "string"}
CARDS = {
    "find_account": Card("find_account", "Find an account id by email.", {"email": STRING}, ("email",), "read"),
    "close": Card("close", "Close an account.", {"account_id": STRING}, ("account_id",)),
    "swap": Card(
        "swap",
        "Swap items.",
        {"old_ids": {"type": "array", "items": STRING}, "new_ids": {"type": "array", "items": STRING}},
        ("old_ids", "new_ids"),
    ),
}
THINGS = Things(
    {"Caller": {"key": [], "origin": "conversation", "complete": True, "fields": {"account_id": "string"}}},
    {"find_account": [{"as": "Caller", "fields": {"account_id": "$"}}]},
    {"find_account": {"effect": "read"}, "close": {"effect": "write", "changes": []}, "swap": {"effect": "write"}},
)


@pytest.mark.parametrize(
    "sentence",
    [
        "At the start you have to authenticate the user identity by locating their user id via email.",
        "At the start of the conversation you have to establish who the customer is.",
        "Verify the caller's identity first.",
        "Identify the customer by phone number.",
        "Once the customer has been identified, you may tell them about their orders.",
    ],
)
def test_documents_that_ask_who_it_is(sentence: str) -> None:
    assert asks_who_it_is(Document(f"# Rules\n\n{sentence}\n"))


@pytest.mark.parametrize("sentence", ["Check the order first.", "Identify the broken item.", "Be kind to customers."])
def test_documents_that_do_not(sentence: str) -> None:
    assert not asks_who_it_is(Document(f"# Rules\n\n{sentence}\n"))


def test_it_is_asked_about_only_there() -> None:
    plain, asking = Desk(), Desk()
    describe(plain, CARDS, [])
    describe(asking, CARDS, [], asks_who=True)
    (short,), (long,) = ([each.messages[-1].content for each in desk.wanted.values()] for desk in (plain, asking))
    assert "Who the user is" not in short
    assert long.startswith(short)
    assert "origin: conversation" in long


def test_a_thing_that_the_conversation_makes_is_told_with_how_it_comes_about() -> None:
    told = things_text(THINGS, CARDS, ["close"], {})
    assert told.startswith("Caller[]: account_id string  (made by the conversation, with find_account:")


def test_generated_worlds_have_users_whom_nobody_identified() -> None:
    code = (
        "def known_only(call, facts):\n"
        "    if not facts.Caller.exists:\n"
        '        return deny("nobody was identified")\n'
        "    return permit()\n"
    )
    bench = Bench(CARDS, THINGS, {}, "2025-01-15T10:00:00")
    policy = Policy("known-only", "guard", "", ("close",))
    guard, wrong = bench.guard(policy, code)
    assert guard is not None, wrong
    tools = [bench.base.schema.tools["close"]]
    trials = tried(policy.id, [guard], [code], tools, datetime(2025, 1, 15, 10), bench.inside)
    assert {trial.outcomes[0] for trial in trials} == {"permit", "deny"}
    assert {str(trial.case["facts"]) for trial in trials} >= {"{'Caller': None}"}


def test_lists_side_by_side_are_spoken_of_only_where_a_tool_has_two() -> None:
    assert code_notes(THINGS, CARDS, ["close"], "") == ""
    assert "zip(call.old_ids, call.new_ids)" in code_notes(THINGS, CARDS, ["close", "swap"], "")
