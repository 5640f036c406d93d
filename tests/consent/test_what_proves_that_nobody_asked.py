"""A log that lacks words, and a question that a tool put, prove nothing: whether the user agreed is open then."""

import json
from pathlib import Path
from typing import Any

import pytest

from bylaw import Pack, read
from bylaw.consent import Consents
from bylaw.facts.ledger import Ledger
from bylaw.trace import Trajectory

PACK = Pack.from_files(
    {
        "pack.yaml": "{format: 1, name: bank, document: policy.md}",
        "policy.md": "Ask before you pay.\n",
        "tools.yaml": """
tools:
  ask_user: {effect: none, parameters: {question: string}}
  think: {effect: none, parameters: {thought: string}}
  get_account: {effect: read, parameters: {id: string}}
  converse: {effect: none, description: Puts a question to the customer, parameters: {text: string}}
  confirm_with_user: {effect: write, parameters: {text: string}, changes: []}
  confirm_booking: {effect: write, parameters: {id: string}, changes: []}
  post: {effect: write, parameters: {text: string}, changes: []}
  pay: {effect: write, parameters: {to: string, amount: string}, changes: []}
""",
    }
)


def user(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


def agent(text: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def call(tool: str, arguments: Any, answer: str = "Yes", said: str | None = None) -> list[dict[str, Any]]:
    made = {"id": tool, "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}
    return [agent(said) | {"tool_calls": [made]}, {"role": "tool", "tool_call_id": tool, "content": answer}]


REQUEST = user("Send 100 to AC-22.")
ASKED = agent("Shall I pay 100 to AC-22?")
TEXT = "Pay 100 to AC-22."
PAID: dict[str, Any] = {"to": "AC-22", "amount": "100"}


def found(tmp_path: Path, *messages: Any, last: list[dict[str, Any]] | None = None) -> tuple[bool | None, str]:
    """Whether the user agreed to the payment, and why that is thought."""
    flat: list[dict[str, Any]] = []
    for part in messages:
        flat += part if isinstance(part, list) else [part]
    file = tmp_path / "log.jsonl"
    file.write_text(json.dumps({"id": "one", "messages": [*flat, *(last or call("pay", PAID, "paid"))]}) + "\n")
    (trajectory,) = read(file)
    assert isinstance(trajectory, Trajectory)
    ledger = Ledger(PACK.schema)
    ledger.observe_all(0, trajectory.events)
    consent = Consents(trajectory.events, ledger).find(ledger.writes[-1])
    return consent.value, consent.reason


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        pytest.param([ASKED], "unrecorded", id="no message of the user's"),
        pytest.param([user(None), ASKED, user(None)], "unrecorded", id="empty messages of the user's"),
        pytest.param([REQUEST, agent(None), user("Yes.")], "unrecorded", id="an empty message of the agent's"),
        pytest.param([REQUEST, user("Yes.")], "unrecorded", id="a yes to nothing"),
        pytest.param(
            [REQUEST, call("get_account", {"id": "AC-22"}), user("Yes.")], "unrecorded", id="a look-up between"
        ),
        pytest.param([REQUEST, ASKED], "unanswered", id="no answer"),
        pytest.param([REQUEST, call("ask_user", {"question": "Pay AC-22?"})], "unanswered", id="declared"),
        pytest.param([REQUEST, call("converse", {"text": TEXT})], "unanswered", id="described"),
        pytest.param([REQUEST, call("confirm_with_user", {"text": TEXT})], "unanswered", id="a write by its name"),
        pytest.param([REQUEST, call("post", {"text": "Pay AC-22? Thanks."})], "unanswered", id="any tool, a question"),
        pytest.param(
            [REQUEST, call("AskUserQuestion", {"questions": [{"header": "x"}]})], "unanswered", id="undeclared"
        ),
        pytest.param([REQUEST, call("other", {"o": [{"q": "Pay AC-22?"}]})], "unanswered", id="undeclared, a question"),
        pytest.param(
            [REQUEST, ASKED, user("No."), call("ask_user", {"question": "Really not?"})], "unanswered", id="after a no"
        ),
    ],
)
def test_it_is_open_where_an_answer_may_have_been_given(tmp_path: Path, messages: list[Any], reason: str):
    assert found(tmp_path, *messages) == (None, reason)


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        pytest.param([REQUEST], "never_put", id="at once"),
        pytest.param([REQUEST, user("It is urgent.")], "never_put", id="two messages"),
        pytest.param([REQUEST, call("get_account", {"id": "AC-22"})], "never_put", id="a look-up"),
        pytest.param([REQUEST, call("think", {"thought": "Should I ask the user?"})], "never_put", id="a thought"),
        pytest.param([REQUEST, call("confirm_booking", {"id": "K1"})], "never_put", id="a write named like it"),
        pytest.param([REQUEST, agent("I will see to it.")], "never_put", id="nothing asked"),
        pytest.param([REQUEST, ASKED, user("No.")], "declined", id="a no"),
        pytest.param(
            [REQUEST, call("ask_user", {"question": "Now?"}), ASKED, user("No.")],
            "declined",
            id="a no after a tool asked",
        ),
    ],
)
def test_it_is_broken_where_nobody_can_have_answered(tmp_path: Path, messages: list[Any], reason: str):
    assert found(tmp_path, *messages) == (False, reason)


def test_a_question_beside_the_call_is_none_that_was_answered(tmp_path: Path):
    beside = call("pay", PAID, "paid", said="Shall I pay 100 to AC-22?")
    assert found(tmp_path, REQUEST, last=beside) == (False, "never_put")
