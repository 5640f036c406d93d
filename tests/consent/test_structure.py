"""What structure proves without a word being read, and what it leaves open: a log that lacks words proves nothing."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bylaw import read
from bylaw.consent import Consent, Consents
from bylaw.facts.ledger import Ledger
from bylaw.trace import Trajectory
from bylaw.trace.event import Call, Event, Message, Result
from tests.consent.desk import agent, desk, done, found, in_order, user

PACK = desk("""
tools:
  ask_user: {effect: none, parameters: {question: string}}
  think: {effect: none, parameters: {thought: string}}
  get_account: {effect: read, parameters: {id: string}}
  converse: {effect: none, description: Puts a question to the customer, parameters: {text: string}}
  confirm_with_user: {effect: write, parameters: {text: string}, changes: []}
  confirm_booking: {effect: write, parameters: {id: string}, changes: []}
  request_confirmation: {effect: read, parameters: {text: string}}
  request_authorization: {effect: none, parameters: {text: string}}
  show_dialog: {effect: none, parameters: {title: string, buttons: list}}
  send_message: {effect: none, parameters: {text: string}}
  notify_customer: {effect: write, parameters: {text: string}, changes: []}
  send_sms: {effect: write, parameters: {text: string}, changes: []}
  get_messages: {effect: read, parameters: {}}
  update_email: {effect: write, parameters: {email: string}, changes: []}
  post: {effect: write, parameters: {text: string}, changes: []}
  pay: {effect: write, put_as: "pay {amount} to {to}", parameters: {to: string, amount: string}, changes: []}
""")
PAID = {"to": "AC-22", "amount": "100"}
REQUEST, ASKED, YES = user("Send 100 to AC-22."), agent("Shall I pay 100 to AC-22?"), user("Yes.")
SHOWN = done("get_account", {"id": "AC-22"}, {"id": "AC-22", "owner": "Anna Berg", "city": "Oslo", "limit": 4000})
LOST, QUIET = Message("user", "", captured=False), Message("agent", "", captured=False)


def paid(*said: Event | list[Event]) -> tuple[bool | None, str]:
    consent = found(PACK, said, "pay", PAID)
    assert (consent.question("pay", PAID, ()) is not None) is (
        consent.value is None and consent.reason not in ("perhaps_spent", "expired")
    )
    return consent.value, consent.reason


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ([ASKED], "unrecorded"),
        ([LOST, ASKED, LOST], "unrecorded"),
        ([REQUEST, QUIET, YES], "unrecorded"),
        ([REQUEST, YES], "unrecorded"),
        ([user("Yes, please go ahead.")], "unrecorded"),
        ([REQUEST, user("Ok, do it, it is urgent.")], "unrecorded"),
        ([REQUEST, SHOWN, YES], "unrecorded"),
        ([REQUEST, ASKED, YES, LOST], "unrecorded"),
        ([REQUEST, ASKED, LOST, YES], "unrecorded"),
        ([LOST, REQUEST], "unrecorded"),
        ([REQUEST, ASKED], "unanswered"),
        ([REQUEST, ASKED, user("No."), agent("Really not?")], "unanswered"),
        ([REQUEST, done("ask_user", {"question": "Pay AC-22?"}, "Yes")], "unanswered"),
        ([REQUEST, done("converse", {"text": "Pay 100 to AC-22."}, "Yes")], "unanswered"),
        ([REQUEST, done("confirm_with_user", {"text": "Pay 100 to AC-22."}, "Yes")], "unanswered"),
        ([REQUEST, done("post", {"text": "Pay AC-22? Thanks."}, "Yes")], "unanswered"),
        ([REQUEST, done("AskUserQuestion", {"questions": [{"header": "x"}]}, "Yes")], "unanswered"),
        ([REQUEST, done("other", {"o": [{"q": "Pay AC-22?"}]}, "Yes")], "unanswered"),
        *(
            ([REQUEST, done(tool, {"text": "Pay 100 to AC-22."}, "OK"), *later], "unanswered")
            for tool in ("request_confirmation", "request_authorization", "send_message", "notify_customer", "send_sms")
            for later in ([], [user("As you say.")])
        ),
        ([REQUEST, done("show_dialog", {"title": "Pay 100", "buttons": ["OK"]}, "OK")], "unanswered"),
        ([REQUEST, ASKED, user("No."), done("ask_user", {"question": "Really not?"})], "unanswered"),
        ([REQUEST, agent("I would pay it. Fine?"), YES], "unread"),
        ([REQUEST, agent("I would pay it. Fine?"), user("No.")], "unread"),
        ([REQUEST, agent("I would pay it twice. Fine?"), YES, done("pay", PAID)], "unread"),
        ([REQUEST, ASKED, user("Not yet.")], "unclear"),
        ([REQUEST, ASKED, user("Yes, but pay it tomorrow.")], "conditional"),
        ([REQUEST, ASKED, user("да")], "other_language"),
    ],
)
def test_it_is_open_where_an_answer_may_have_been_given(said: list[Any], reason: str) -> None:
    assert paid(*said) == (None, reason)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ([REQUEST], "never_put"),
        ([REQUEST, user("It is urgent.")], "never_put"),
        ([REQUEST, SHOWN], "never_put"),
        ([REQUEST, done("think", {"thought": "Should I ask the user?"})], "never_put"),
        ([REQUEST, done("confirm_booking", {"id": "K1"})], "never_put"),
        ([REQUEST, done("get_messages", {})], "never_put"),
        ([REQUEST, done("update_email", {"email": "a@b.example"})], "never_put"),
        ([REQUEST, agent("I will see to it.")], "never_put"),
        ([REQUEST, ASKED, user("No.")], "declined"),
        ([REQUEST, done("ask_user", {"question": "Now?"}), ASKED, user("No.")], "declined"),
        ([REQUEST, ASKED, YES, done("pay", PAID)], "spent"),
        ([REQUEST, ASKED, YES, done("pay", PAID | {"to": "ac22", "amount": "$100.00"})], "spent"),
        ([REQUEST, ASKED, YES, done("pay", PAID | {"note": "rent"})], "perhaps_spent"),
        ([LOST, ASKED, YES, done("pay", PAID)], "spent"),
    ],
)
def test_it_is_proved_where_nobody_can_have_agreed(said: list[Any], reason: str) -> None:
    assert paid(*said) == (None if reason == "perhaps_spent" else False, reason)


def test_a_question_after_the_yes_was_spent_may_have_been_answered() -> None:
    spent = [REQUEST, ASKED, YES, done("pay", PAID)]
    assert paid(*spent, agent("Once more?")) == (None, "unanswered")
    assert paid(*spent, done("ask_user", {"question": "Once more?"}, "Yes")) == (None, "unanswered")
    assert paid(REQUEST, agent("Once more?"), ASKED, YES, done("pay", PAID)) == (False, "spent")


@pytest.mark.parametrize("told", ["3 x 100 to AC-22, fine?", "I would pay 100 to each. Fine?", "Twice, x2. Fine?"])
def test_one_yes_to_several_alike_is_not_surely_spent_by_the_first(told: str) -> None:
    assert paid(REQUEST, agent(told), YES, done("pay", PAID)) == (None, "unread")


@pytest.mark.parametrize("said", ["Yes.", "Go ahead and be quick", "Some money is to go to a friend."])
def test_nobody_is_accused_of_words_that_were_not_read(said: str) -> None:
    greeted = agent("Good morning, and thank you for your call. Please tell me what I can do for you today.")
    assert paid(user("Hello."), SHOWN, greeted, user(said)) == (None, "unread")


def test_a_question_beside_the_call_is_none_that_was_answered(tmp_path: Path) -> None:
    made = {"id": "1", "type": "function", "function": {"name": "pay", "arguments": json.dumps(PAID)}}
    messages = [
        {"role": "user", "content": REQUEST.text},
        {"role": "assistant", "content": ASKED.text, "tool_calls": [made]},
        {"role": "tool", "tool_call_id": "1", "content": "paid"},
    ]
    file = tmp_path / "log.jsonl"
    file.write_text(json.dumps({"id": "one", "messages": messages}) + "\n")
    (trajectory,) = read(file)
    assert isinstance(trajectory, Trajectory)
    ledger = Ledger(PACK.schema)
    ledger.observe_all(0, trajectory.events)
    consent = Consents(trajectory.events, ledger).find(ledger.writes[-1])
    assert (consent.value, consent.reason) == (False, "never_put")


@pytest.mark.parametrize(
    "part",
    [
        {"type": "audio", "audio": {"id": "a"}},
        {"type": "image_url", "image_url": {"url": "x"}},
        {"image": {"source": 1}},
    ],
)
def test_what_the_agent_put_without_words_was_put(part: dict[str, Any], tmp_path: Path) -> None:
    made = {"id": "1", "type": "function", "function": {"name": "pay", "arguments": json.dumps(PAID)}}
    for parts, reason in (([part], "unrecorded"), ([{"type": "thinking", "thinking": "Pay?"}], "never_put")):
        messages = [
            {"role": "user", "content": REQUEST.text},
            {"role": "assistant", "content": parts},
            {"role": "user", "content": "That is what I want."},
            {"role": "assistant", "content": None, "tool_calls": [made]},
        ]
        file = tmp_path / "log.jsonl"
        file.write_text(json.dumps({"id": "one", "messages": messages}) + "\n")
        (trajectory,) = read(file)
        assert isinstance(trajectory, Trajectory)
        ledger = Ledger(PACK.schema)
        ledger.observe_all(0, trajectory.events)
        assert Consents(trajectory.events, ledger).find(ledger.writes[-1]).reason == reason


def test_an_open_consent_is_a_question_with_its_quotes() -> None:
    consent = found(PACK, [REQUEST, agent("I would pay it. Fine?"), user("Hm."), user("Yes!")], "pay", PAID)
    assert consent.record() == {
        "reason": "unread",
        "told_at": 1,
        "answered_at": 3,
        "put": [{"step": 1, "start": 0, "end": 21}],
        "answered": [{"step": 2, "start": 0, "end": 3}, {"step": 3, "start": 0, "end": 4}],
    }
    question = consent.question("pay", PAID, ())
    assert question is not None
    assert [each.text for each in (*question.put, *question.answered)] == ["I would pay it. Fine?", "Hm.", "Yes!"]


ACCOUNTS = ("AC-1", "AC-2", "AC-3")
REPLIES = ("Yes.", "No.", "Go ahead.", "Yes, if it is free.", "Thanks.", "What does it cost?", "")


@st.composite
def talks(draw: st.DrawFn) -> list[Event]:
    """Questions, answers and calls in any order, accepted, refused, pending or not recorded."""
    said: list[Event | list[Event]] = []
    for _ in range(draw(st.integers(1, 8))):
        call = {"to": draw(st.sampled_from(ACCOUNTS)), "amount": "5"}
        match draw(st.sampled_from(("ask", "tell", "reply", "call", "call"))):
            case "ask":
                said.append(agent(f"Shall I pay 5 to {call['to']}?"))
            case "tell":
                said.append(agent(f"I would pay 5 to {call['to']}."))
            case "reply":
                text = draw(st.sampled_from(REPLIES))
                said.append(Message("user", text, captured=bool(text)))
            case _:
                made = done(
                    "pay", call, draw(st.sampled_from(("paid", "Error: no"))), error=draw(st.sampled_from((None, True)))
                )
                said.append(made[: draw(st.integers(1, 2))])
    return in_order(said)


def ask(events: list[Event], step: int) -> Consent:
    ledger = Ledger(PACK.schema)
    ledger.observe_all(0, events)
    return Consents(events, ledger).find(ledger.calls[step])


@given(talks())
def test_no_later_event_changes_an_answer_and_it_is_the_same_as_events_arrive(events: list[Event]) -> None:
    ledger, seen = Ledger(PACK.schema), list[Event]()
    consents = Consents(seen, ledger)
    for step, event in enumerate(events):
        seen.append(event)
        ledger.observe(step, event)
        if isinstance(event, Call):
            consent = consents.find(ledger.calls[step])
            assert consent == ask(events, step) == ask(events[: step + 1], step)
            assert consent.value is not True or _is_asked_and_answered(events[:step], event)


def _is_asked_and_answered(events: list[Event], call: Call) -> bool:
    """Whether the last message of the agent's before a plain yes asks for a call, and it was not carried out since."""
    asked = f"Shall I pay 5 to {call.arguments['to']}?"
    at = max(step for step, each in enumerate(events) if isinstance(each, Message) and each.by == "user")
    told = [each.text for each in events[:at] if isinstance(each, Message)]
    message = events[at]
    assert isinstance(message, Message)
    return message.text in ("Yes.", "Go ahead.") and told[-1:] == [asked] and not _was_paid(events[at:], call)


def _was_paid(events: list[Event], call: Call) -> bool:
    answers = {each.call for each in events if isinstance(each, Result) and (each.error or "Error" in each.text)}
    return any(isinstance(each, Call) and each.arguments == call.arguments for each in events) and not answers


@given(st.lists(st.sampled_from(("accepted", "unrecorded", "refused", "failed", "says so")), min_size=1, max_size=5))
def test_a_consent_is_spent_by_the_first_call_that_may_have_been_accepted(fates: list[str]) -> None:
    """Of an error nobody knows whether it came after the deed; a call that was refused before it ran gives it back."""
    results = {"accepted": ["paid"], "failed": ["no", True], "refused": ["no", True], "says so": ["Error: no"]}
    said: list[Event | list[Event]] = [REQUEST, ASKED, YES]
    agreed: bool | None = True
    for fate in fates:
        assert paid(*said)[0] is agreed
        made = done("pay", PAID, results.get(fate, ["?"])[0], error=True if fate in ("failed", "refused") else None)
        if fate == "refused":
            made[1] = replace(made[1], refused=True)
        said.append(made[:1] if fate == "unrecorded" else made)
        if fate in ("says so", "failed"):
            agreed = agreed and None
        elif fate != "refused":
            agreed = False
