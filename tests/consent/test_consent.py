"""Consent, case by case, and its laws: sound before all, so open where anybody could be wrong."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bylaw import Conversation, load_pack
from bylaw.consent import Consents
from bylaw.facts.ledger import Ledger
from bylaw.trace.event import Call, Event, Message, Result
from tests.consent.shop import SCHEMA, ask, events_of
from tests.written import load

CASES: list[dict[str, Any]] = [
    case
    for name in ("cases.yaml", "families.yaml", "parties.yaml", "standing.yaml", "trades.yaml")
    for case in load(Path(__file__).parent / name)
]
NEITHER = object()
"""What a reader leaves open may come out as anything."""


def last_call(events: list[Event]) -> int:
    return max(step for step, event in enumerate(events) if isinstance(event, Call))


@pytest.mark.parametrize("case", CASES, ids=[case["note"] for case in CASES])
def test_no_case_without_consent_is_agreed_and_no_clear_yes_is_accused(case: dict[str, Any]) -> None:
    events = list(events_of(case["events"]))
    found = ask(events, last_call(events), case.get("basis", "told"))
    never = {"yes": False, "no": True, "open": NEITHER}[case["want"]]
    assert found.value is not never, found
    is_asked = found.value is None and found.reason != "perhaps_spent"
    assert is_asked is (found.question("tool", {}) is not None)


@pytest.mark.parametrize("case", CASES, ids=[case["note"] for case in CASES])
def test_an_answer_is_the_same_where_what_was_said_is_read_as_it_comes(case: dict[str, Any]) -> None:
    events = list(events_of(case["events"]))
    step = last_call(events)
    ledger = Ledger(SCHEMA)
    consents = Consents(events[:step], ledger)
    for at, event in enumerate(events[: step + 1]):
        if isinstance(event, Message) and event.by == "user":
            consents.prepare(at + 1)
        ledger.observe(at, event)
    record = next(write for write in ledger.writes if write.step == step)
    assert consents.find(record, case.get("basis", "told")) == ask(events, step, case.get("basis", "told"))


@pytest.mark.parametrize(("told", "open_rules"), [("move A0469 to S0011", 1), ("cancel A0469 with no fee", 0)])
def test_a_yes_to_another_deed_than_the_user_asked_for_leaves_it_open(told: str, open_rules: int) -> None:
    conversation = Conversation(load_pack("clinic"))
    conversation.user("I'm P121 and ill. Please cancel A0469.")
    conversation.agent(f"I will {told}. Is that all right?")
    conversation.user("Yes, please.")
    arguments = {"patient_id": "P121", "appointment_id": "A0469", "late_fee": "0.00", "reason": "illness"}
    judged = conversation.call("cancel_appointment", arguments)
    assert not judged.rules
    assert len(judged.open_rules) == open_rules


@pytest.mark.parametrize(
    ("told", "said"),
    [
        *(
            ("cancel A0469 with no fee", said)
            for said in ("Yes to keeping it", "go ahead and keep it", "do it tomorrow")
        ),
        *(
            ("cancel A0469 with no fee", said)
            for said in ("yes but not today", "Yeah right, as if", "Yes, keep A0469.")
        ),
        ("not cancel A0469", "Yes."),
    ],
)
def test_a_yes_to_leaving_it_or_put_off_or_in_mockery_is_never_consent(told: str, said: str) -> None:
    conversation = Conversation(load_pack("clinic"))
    conversation.user("I'm P121 and ill. Please cancel A0469.")
    conversation.agent(f"I will {told}. Is that right?")
    conversation.user(said)
    arguments = {"patient_id": "P121", "appointment_id": "A0469", "late_fee": "0.00", "reason": "illness"}
    judged = conversation.call("cancel_appointment", arguments)
    assert [finding.rule.name for finding in (*judged.rules, *judged.open_rules)] == ["confirm-before-change"]


ORDERS = ("R-1001", "R-1002", "R-1003")
REPLIES = ("Yes.", "No.", "Go ahead.", "Yes, if it is free.", "Thanks.", "What does it cost?", "Cancel R-1002 instead.")


@st.composite
def shop_talk(draw: st.DrawFn) -> list[Event]:
    """Proposals, answers and calls in any order, accepted, refused, pending or not recorded."""
    written: list[dict[str, Any]] = []
    for number in range(draw(st.integers(1, 8))):
        match draw(st.sampled_from(("propose", "reply", "call", "call"))):
            case "propose":
                orders = draw(st.lists(st.sampled_from(ORDERS), min_size=1, max_size=2, unique=True))
                written.append({"agent": f"I would cancel {' and '.join(orders)}. Shall I go ahead?"})
            case "reply":
                written.append({"user": draw(st.sampled_from(REPLIES))})
            case _:
                body = {"call": "cancel_order", "args": {"order_id": draw(st.sampled_from(ORDERS))}}
                result = draw(st.sampled_from((None, {"status": "cancelled"}, "Error: no")))
                written.append({**body, "turn": f"t{number}"} | ({} if result is None else {"result": result}))
    return list(events_of(written))


@given(shop_talk())
def test_no_later_event_changes_an_answer(events: list[Event]) -> None:
    for step, event in enumerate(events):
        if isinstance(event, Call):
            assert ask(events, step) == ask(events[: step + 1], step)


@given(shop_talk())
def test_asked_as_events_arrive_the_answers_are_the_same(events: list[Event]) -> None:
    ledger, seen = Ledger(SCHEMA), list[Event]()
    consents = Consents(seen, ledger)
    for step, event in enumerate(events):
        seen.append(event)
        ledger.observe(step, event)
        if isinstance(event, Call):
            assert consents.find(ledger.calls[step]) == ask(events, step)


@given(
    st.lists(
        st.sampled_from(("accepted", "pending", "unrecorded", "refused", "failed", "says so")), min_size=1, max_size=5
    )
)
def test_a_consent_is_spent_by_the_first_call_that_may_have_been_accepted(fates: list[str]) -> None:
    """Of an error nobody knows whether it came after the deed; a call that was refused before it ran gives it back."""
    written: list[dict[str, Any]] = [{"agent": "I would cancel R-1001. Shall I go ahead?"}, {"user": "Yes."}]
    results = {"accepted": {"status": "cancelled"}, "refused": "no", "failed": "no", "says so": "Error: no"}
    for number, fate in enumerate(fates):
        body: dict[str, Any] = {"call": "cancel_order", "args": {"order_id": "R-1001"}}
        body["turn"] = "same" if fate == "pending" else f"t{number}"
        error = {"error": True} if fate in ("refused", "failed") else {}
        written.append(body | ({"result": results[fate]} | error if fate in results else {}))
    events = list(events_of(written))
    calls = [step for step, event in enumerate(events) if isinstance(event, Call)]
    by_call = dict(zip(calls, fates, strict=True))
    for step, event in enumerate(events):
        if isinstance(event, Result) and event.call is not None and by_call[event.call] == "refused":
            events[step] = replace(event, refused=True)
    agreed: bool | None = True
    for step, fate in by_call.items():
        assert ask(events, step).value is agreed
        if fate in ("says so", "failed"):
            agreed = agreed and None
        elif fate != "refused":
            agreed = False


@given(st.permutations(ORDERS), st.integers(1, 3))
def test_one_yes_covers_each_told_action_once_in_any_order(order: list[str], told: int) -> None:
    named = sorted(order)[:told]
    written: list[dict[str, Any]] = [
        {"agent": f"I would cancel {', '.join(named)}. Shall I go ahead?"},
        {"user": "Yes."},
        *({"call": "get_order", "args": {"order_id": each}, "result": {"order_id": each}} for each in ORDERS),
    ]
    written += [
        {"call": "cancel_order", "args": {"order_id": each}, "result": {"status": "cancelled"}} for each in order
    ]
    events = list(events_of(written))
    for step, event in enumerate(events):
        if isinstance(event, Call) and event.tool == "cancel_order":
            assert (ask(events, step).value is True) is (event.arguments["order_id"] in named)


def test_a_text_costs_no_more_than_its_length() -> None:
    long = "is that " * 20_000 + "want to " * 20_000
    events = list(
        events_of(
            [{"agent": long}, {"user": "yes if " * 30_000}, {"call": "cancel_order", "args": {"order_id": "R-1001"}}]
        )
    )
    assert ask(events, last_call(events)).value is not True
