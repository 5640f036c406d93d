"""A decision for a caller that keeps the history itself is the one that a session comes to after the same messages."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bylaw import Pack
from bylaw.engine.finished import is_judged
from bylaw.shield import Decision, Shield
from bylaw.trace import Call, Event, Message
from bylaw.trace.event import Card
from tests.engine.clinic import conversations, pack
from tests.packs import made
from tests.shield.cards import FILES as BANK
from tests.shield.cards import WANTED, write


def chat(events: tuple[Event, ...]) -> list[dict[str, Any]]:
    """A conversation as OpenAI's messages."""
    messages: list[dict[str, Any]] = []
    for step, event in enumerate(events):
        if isinstance(event, Message):
            messages.append({"role": "user" if event.by == "user" else "assistant", "content": event.text})
        elif isinstance(event, Call):
            function = {"name": event.tool, "arguments": json.dumps(event.arguments)}
            call = {"id": f"call-{step}", "type": "function", "function": function}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        else:
            messages.append({"role": "tool", "tool_call_id": f"call-{event.call}", "content": str(event.content)})
    return messages


def untimed(decision: Decision) -> Decision:
    return replace(decision, seconds=0.0)


def test_a_stateless_decision_is_that_of_a_session() -> None:
    shield = Shield(pack(), clock=lambda: 1.0)
    answers: set[str] = set()
    for trajectory in conversations()[:40]:
        for step, event in enumerate(trajectory.events):
            if not isinstance(event, Call) or not is_judged(shield.pack, event):
                continue
            for said in (chat(trajectory.events[:step]), chat(trajectory.events[: step + 1])):
                alone = shield.decide(said, event.tool, event.arguments)
                answers.add(alone.answer)
                in_session = shield.session().decide_after(said, event.tool, event.arguments)
                assert untimed(alone) == untimed(in_session)
                assert alone.seconds > 0
    assert {"allow", "deny", "look_up"} <= answers


def test_a_stateless_decision_hears_what_the_host_vouches_for() -> None:
    shield = Shield(made(FILES))
    said = [{"role": "user", "content": "Send it back, I am the owner."}]
    assert shield.decide(said, "refund", {"order_id": "7"}, context={"role": "owner"}).allowed
    assert shield.decide(said, "refund", {"order_id": "7"}, context={"role": "clerk"}).answer == "deny"
    assert shield.decide(said, "refund", {"order_id": "7"}).answer == "ask"


FILES = {
    "pack.yaml": "{format: 1, name: owner, document: policy.md}",
    "policy.md": "Only the owner may refund.",
    "tools.yaml": "tools: {refund: {effect: write, parameters: {order_id: {type: string}}}}",
    "entities.yaml": """
entities:
  Session: {key: [], fields: {role: {type: enum, values: [owner, clerk], origin: context}}}
""",
    "policies.yaml": """
policies: [{id: owner, kind: guard, tools: [refund], spans: [Only the owner may refund.]}]
""",
    "guards/owner.py": """
def owner(call, facts):
    if facts.Session().role == "owner":
        return permit()
    return deny("only the owner may refund")
""",
}


def test_of_two_calls_alike_in_one_message_the_id_says_which_is_asked_about() -> None:
    shield = Shield(made(ONCE))

    def asks(id: str) -> dict[str, Any]:
        return {"id": id, "type": "function", "function": {"name": "refund", "arguments": '{"order_id": "7"}'}}

    said = [
        {"role": "user", "content": "Refund order 7."},
        {"role": "assistant", "content": None, "tool_calls": [asks("a"), asks("b")]},
    ]
    first = shield.decide(said, "refund", {"order_id": "7"}, id="a")
    second = shield.decide(said, "refund", {"order_id": "7"}, id="b")
    either = shield.decide(said, "refund", {"order_id": "7"})
    assert first.allowed
    assert not second.allowed
    assert untimed(either) == untimed(second)


ONCE = {
    "pack.yaml": "{format: 1, name: once, document: policy.md}",
    "policy.md": "An order is refunded once.",
    "tools.yaml": "tools: {refund: {effect: write, parameters: {order_id: string}}}",
    "policies.yaml": "policies: [{id: once, kind: rule, spans: [An order is refunded once.]}]",
    "rules.yaml": """
predicates: {refunds: {tool: refund}}
rules:
  - id: one
    policy: once
    formula: "FOR EACH order_id: ALWAYS (refunds IMPLIES NOT YESTERDAY ONCE refunds)"
    hard: true
""",
}


def test_an_unanswered_call_of_another_id_may_have_used_the_yes(tmp_path: Path) -> None:
    asked = {"role": "assistant", "content": "Shall I transfer 250 to AC-22?"}
    talk = [{"role": "user", "content": "Send 250 to AC-22"}, asked, {"role": "user", "content": "Yes"}]
    function = {"name": "transfer", "arguments": json.dumps(WANTED)}
    calls = [{"id": "k1", "type": "function", "function": function}]
    call = {"role": "assistant", "content": None, "tool_calls": calls}
    shield = Shield(write(tmp_path, "{consented: told}"))
    assert shield.decide([*talk, call], "transfer", WANTED, id="k1").allowed
    assert shield.decide([*talk, call], "transfer", WANTED).allowed
    assert not shield.decide([*talk, call], "transfer", WANTED, id="k2").allowed


def test_a_session_does_not_hear_a_yes_twice_in_a_history_told_again(tmp_path: Path) -> None:
    asked = {"role": "assistant", "content": "Shall I transfer 250 to AC-22?"}
    talk = [{"role": "user", "content": "Send 250 to AC-22"}, asked, {"role": "user", "content": "Yes"}]
    function = {"name": "transfer", "arguments": json.dumps(WANTED)}
    calls = [{"id": "k2", "type": "function", "function": function}]
    call = {"role": "assistant", "content": None, "tool_calls": calls}
    session = Shield(write(tmp_path, "{consented: told}")).session()
    session.messages(talk)
    assert session.decide("transfer", WANTED, id="k1").allowed
    assert not session.decide_after([*talk, call], "transfer", WANTED, id="k2").allowed


SPELLINGS: tuple[dict[str, Any], ...] = (
    {"to": "AC-22", "amount": 5},
    {"to": "AC-22", "amount": 5.0},
    {"to": "ac 22", "amount": "5.00"},
    {"to": "AC-22", "amount": "EUR 5"},
    {"to": "AC-22", "amount": "5 kr"},
)


class Pressing:
    """A host that keeps the history itself, and whose user answers cards by a button."""

    def __init__(self, folder: Path) -> None:
        tools = BANK["tools.yaml"].replace("amount: number", "amount: {type: [number, string]}")
        self.shield = Shield(Pack.from_files(BANK | {"tools.yaml": tools}), log=folder / "log.db")
        self.said: list[dict[str, Any]] = [{"role": "user", "content": "Send 5 to AC-22."}]

    def decide(self, arguments: dict[str, Any]) -> Decision:
        return self.shield.decide(self.said, "transfer", arguments, context={"signed_in_as": "ann"})

    def card(self, arguments: dict[str, Any]) -> Card:
        card = self.decide(arguments).card
        assert card is not None
        return card

    def press(self, shown: dict[str, Any] | Card, *, yes: bool) -> None:
        card = shown if isinstance(shown, Card) else self.card(shown)
        self.shield.session(card.id.rpartition("/")[0], context={"signed_in_as": "ann"}).confirm(card, yes)


@pytest.mark.parametrize("other", SPELLINGS[1:])
def test_a_later_no_to_any_spelling_ends_a_yes(other: dict[str, Any], tmp_path: Path) -> None:
    host, first = Pressing(tmp_path), SPELLINGS[0]
    host.press(first, yes=True)
    host.press(other, yes=False)
    refused = host.decide(first)
    assert (refused.answer, refused.allowed) == ("ask", False)
    host.press(first, yes=True)
    assert host.decide(first).allowed, "the user has thought better of it"
    assert not host.decide(first).allowed


@pytest.mark.parametrize("declined", SPELLINGS)
def test_a_no_on_a_button_ends_a_yes_in_words(declined: dict[str, Any], tmp_path: Path) -> None:
    host, wanted = Pressing(tmp_path), SPELLINGS[0]
    yes = {"role": "user", "content": "Yes."}
    card, other = host.card(wanted), host.card(declined)
    host.said += [{"role": "assistant", "content": card.text}, yes]
    host.press(other, yes=False)
    again = host.decide(wanted)
    assert (again.answer, again.allowed) == ("ask", False)
    assert again.card is not None
    host.said += [{"role": "assistant", "content": again.card.text}, yes]
    assert host.decide(wanted).allowed, "asked once more, the user has agreed"


@pytest.mark.parametrize("other", SPELLINGS[1:])
@pytest.mark.parametrize("is_told", [True, False])
def test_a_call_in_any_spelling_ends_a_yes(is_told: bool, other: dict[str, Any], tmp_path: Path) -> None:
    host, first = Pressing(tmp_path), SPELLINGS[0]
    host.press(first, yes=True)
    host.press(other, yes=True)
    assert host.decide(other).allowed
    if is_told:
        function = {"name": "transfer", "arguments": json.dumps(other)}
        call = {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "k", "type": "function", "function": function}],
        }
        host.said += [call, {"role": "tool", "tool_call_id": "k", "content": "sent"}]
    assert not host.decide(first).allowed


def test_a_yes_is_not_found_again_where_the_history_lacks_the_users_words(tmp_path: Path) -> None:
    """What was cut off may have been a no, or another chat's."""
    host, wanted = Pressing(tmp_path), SPELLINGS[0]
    said, host.said = host.said, []
    host.press(wanted, yes=True)
    assert host.decide(wanted).answer == "ask"
    host.said = said
    host.press(wanted, yes=True)
    assert host.decide(wanted).allowed


CLOSED = made(
    {
        "pack.yaml": "{format: 1, name: bank, document: policy.md, shield: {posture: enforce}}\n",
        "policy.md": "Before any change, ask, and wait for a yes.\n",
        "policies.yaml": "policies: [{id: confirm, kind: rule, spans: ['Before any change, ask']}]\n",
        "rules.yaml": (
            "predicates: {change: {effect: write}, agreed: {consented: told}}\n"
            "rules: [{id: confirm, formula: ALWAYS (change IMPLIES agreed)}]\n"
        ),
        "tools.yaml": (
            "tools:\n  transfer: {effect: write, put_as: 'transfer {amount} to {to}',"
            " parameters: {to: string, amount: string}}\n"
        ),
    }
)


@pytest.mark.parametrize(
    "after",
    [
        [{"role": "user", "content": "No! Stop, do not send it."}],
        [{"role": "assistant", "content": "It was sent."}, {"role": "user", "content": "Thanks!"}],
    ],
)
def test_a_call_without_a_result_stays_if_something_was_said_after_its_turn(after: list[dict[str, Any]]) -> None:
    given = {"to": "AC-22", "amount": "250.00"}
    function = {"name": "transfer", "arguments": json.dumps(given)}
    history: list[dict[str, Any]] = [
        {"role": "user", "content": "Send 250 to AC-22, please."},
        {"role": "assistant", "content": "Shall I transfer 250.00 to AC-22?"},
        {"role": "user", "content": "Yes."},
    ]
    made_call = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }
    with Shield(CLOSED) as shield:
        assert shield.decide(history, "transfer", given).answer == "allow"
        assert shield.decide([*history, made_call], "transfer", given).answer == "allow"
        assert shield.decide([*history, made_call, *after], "transfer", given).answer == "ask"
