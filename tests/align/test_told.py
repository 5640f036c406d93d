"""Slots of recorded texts: values that were there before, and nothing that the agent made up or denied."""

import pytest

from bylaw.align.slot import f1, recorded_slots
from bylaw.align.turn_evidence import TargetWrite, TurnEvidence
from bylaw.trace import Call, Result

FLIGHT = '{"reservation_id": "IIHXDG", "cabin": "basic_economy", "passengers": [{"first_name": "Ada"}], "price": 1286, '
FLIGHT += '"departs": "2024-05-17T16:30:00", "status": "available"}'
BEFORE = (Call("get", {}), Result(0, FLIGHT))
NOTHING = TurnEvidence("other", None, ())


def said(text: str, evidence: TurnEvidence = NOTHING) -> list[tuple[str, str]]:
    return [(slot.kind, slot.value) for slot in recorded_slots(text, BEFORE, evidence)]


@pytest.mark.parametrize(
    ("text", "slots"),
    [
        ("Reservation IIHXDG costs $1,286.", [("amount", "1286.00"), ("thing", "IIHXDG")]),
        ("You leave on May 17 at 4:30 PM, Ada.", [("date", "2024-05-17"), ("time", "16:30"), ("thing", "Ada")]),
        ("It is 2024-05-18 and $99.", []),  # values that stand nowhere
        ("All set, it is available.", []),  # a plain word of a record names nothing
        ("I'm sorry, IIHXDG cannot be changed.", []),  # the same values could be told of the contrary
        ("Thank you!", []),
    ],
)
def test_a_text_must_tell_the_values_it_told_from_results(text: str, slots: list[tuple[str, str]]) -> None:
    assert said(text) == slots


def test_an_announcement_must_name_what_is_written_and_ask() -> None:
    call = Call("book", {"slot_id": "S0180", "copay": "30.00"})
    evidence = TurnEvidence("announce", TargetWrite(call), ())
    text = "I will book S0180 for $30.00. Shall I?"
    slots = recorded_slots(text, (), evidence)
    assert [(slot.kind, slot.value) for slot in slots] == [
        ("amount", "30.00"),
        ("thing", "S0180"),
        ("question", "asks"),
    ]
    for other, mark in (
        (text, 1.0),
        ("S0180 at 30 dollars, all right?", 1.0),
        ("ok", 0.0),
        ("ok?", 0.0),
        ("Shall I book S0181 for $31.00?", 0.0),
        ("I can't book S0180 for $30.00. Is that all right?", 0.0),
    ):
        assert f1(slots, other, gold=text) == pytest.approx(mark), other


def test_naming_everything_does_not_pay() -> None:
    slots = recorded_slots(
        "Reservation IIHXDG2 is yours.", (Call("get", {}), Result(0, '["IIHXDG2", "COVE6R"]')), NOTHING
    )
    assert f1(slots, "IIHXDG2, COVE6R", gold="Reservation IIHXDG2 is yours.") == pytest.approx(2 / 3)
