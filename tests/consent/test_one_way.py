"""A yes counts where what was told can be put to the arguments of the call in one way only."""

from typing import Any

import pytest

from bylaw import Pack, Shield

PACK = Pack.from_files(
    {
        "pack.yaml": "{format: 1, name: x, document: policy.md}",
        "policy.md": "Ask before you act.\n",
        "tools.yaml": """
tools:
  exchange_items: {effect: write, parameters: {old_item: string, new_item: string}, changes: []}
  swap_room: {effect: write, parameters: {room: string, new_room: string}, changes: []}
  rename_file: {effect: write, parameters: {old: string, new: string}, changes: []}
  book_table: {effect: write, parameters: {table_id: string, adults: integer, children: integer}, changes: []}
  change_plan:
    effect: write
    parameters: {old_plan: {type: string, enum: [basic, pro]}, new_plan: {type: string, enum: [basic, pro]}}
    changes: []
  book_trip: {effect: write, parameters: {trip_id: string, start_date: string, end_date: string}, changes: []}
  change_email: {effect: write, parameters: {user_id: string, old_email: string, new_email: string}, changes: []}
  set_hours: {effect: write, parameters: {shop_id: string, opens: string, closes: string}, changes: []}
  transfer: {effect: write, parameters: {from: string, to: string, amount: number}, changes: []}
  book_slot: {effect: write, parameters: {patient_id: string, slot_id: string}, changes: []}
  pay: {effect: write, description: Pay money to an account, parameters: {to: string, amount: number}, changes: []}
  cancel_booking: {effect: write, parameters: {booking_id: string}, changes: []}
  move_booking: {effect: write, parameters: {booking_id: string, starts_at: string}, changes: []}
  pay_many:
    effect: write
    parameters:
      payments:
        type: array
        items: {type: object, properties: {to: {type: string}, amount: {type: number}}, required: [to, amount]}
    changes: []
""",
        "policies.yaml": "policies: [{id: confirm, kind: rule, spans: [Ask before you act.]}]",
        "rules.yaml": (
            "predicates: {change: {effect: write}, agreed: {consented: told}}\n"
            "rules: [{id: confirm, formula: ALWAYS (change IMPLIES agreed), hard: true}]"
        ),
    }
)


def is_allowed(told: str, tool: str, arguments: dict[str, Any]) -> bool:
    with Shield(PACK).session() as session:
        session.user("Hello")
        session.agent(told)
        session.user("Yes.")
        return session.decide(tool, arguments).allowed


@pytest.mark.parametrize(
    ("told", "tool", "one", "two"),
    [
        ("exchange item L1 for L2", "exchange_items", "L1", "L2"),
        ("exchange item L1 for item L2", "exchange_items", "L1", "L2"),
        ("exchange L1 with L2", "exchange_items", "L1", "L2"),
        ("swap room R1 for room R2", "swap_room", "R1", "R2"),
        ("rename the file a.txt to b.txt", "rename_file", "a.txt", "b.txt"),
        ("rename the file a.txt to b2.txt", "rename_file", "a.txt", "b2.txt"),
        ("change the plan from basic to pro", "change_plan", "basic", "pro"),
    ],
)
def test_what_no_name_tells_apart_is_open_either_way(told: str, tool: str, one: str, two: str) -> None:
    first, second = PACK.schema.tools[tool].parameters
    assert not is_allowed(f"Shall I {told}?", tool, {first: one, second: two})
    assert not is_allowed(f"Shall I {told}?", tool, {first: two, second: one})


@pytest.mark.parametrize(
    ("told", "tool", "right"),
    [
        (
            "exchange the old item L1 for the new item L2",
            "exchange_items",
            {"old_item": "L1", "new_item": "L2"},
        ),
        ("exchange L1 for the new item L2", "exchange_items", {"old_item": "L1", "new_item": "L2"}),
        ("swap room R1 for the new room R2", "swap_room", {"room": "R1", "new_room": "R2"}),
        (
            "book table T1 for 2 adults and 3 children",
            "book_table",
            {"table_id": "T1", "adults": 2, "children": 3},
        ),
        (
            "book trip T1, start date 2027-03-05, end date 2027-03-08",
            "book_trip",
            {"trip_id": "T1", "start_date": "2027-03-05", "end_date": "2027-03-08"},
        ),
        (
            "change the old email a@x.org of user U1 to the new email bob@y.org",
            "change_email",
            {"user_id": "U1", "old_email": "a@x.org", "new_email": "bob@y.org"},
        ),
        (
            "set the hours of shop S1: opens 09:00, closes 17:00",
            "set_hours",
            {"shop_id": "S1", "opens": "09:00", "closes": "17:00"},
        ),
        ("transfer 50.00 from AC-1 to AC-2", "transfer", {"from": "AC-1", "to": "AC-2", "amount": 50}),
    ],
)
def test_its_own_name_beside_a_value_tells_it_apart(told: str, tool: str, right: dict[str, Any]) -> None:
    assert is_allowed(f"Shall I {told}?", tool, right)
    *rest, one, two = [name for name in right if name not in ("amount", "trip_id", "table_id", "user_id", "shop_id")]
    assert not rest
    assert not is_allowed(f"Shall I {told}?", tool, right | {one: right[two], two: right[one]})


def test_ids_of_two_things_are_told_apart_as_well() -> None:
    assert is_allowed("Shall I book slot S44 for patient P12?", "book_slot", {"patient_id": "P12", "slot_id": "S44"})
    assert not is_allowed(
        "Shall I book slot S44 for patient P12?", "book_slot", {"patient_id": "S44", "slot_id": "P12"}
    )


@pytest.mark.parametrize(
    "word", ["for", "via", "through", "with", "using", "over", "on", "as", "at", "in", "by", "towards", "from", "plus"]
)
def test_another_id_after_a_preposition_is_not_agreed_to(word: str) -> None:
    assert not is_allowed(f"Shall I pay 50 to AC-22 {word} AC-33?", "pay", {"to": "AC-33", "amount": 50})
    assert not is_allowed(f"Shall I cancel booking K1 {word} K2?", "cancel_booking", {"booking_id": "K2"})


def test_a_plain_list_is_a_yes_to_each() -> None:
    for told in ("cancel bookings K1 and K2", "cancel booking K1, booking K2 and booking K3"):
        assert is_allowed(f"Shall I {told}?", "cancel_booking", {"booking_id": "K1"})
        assert is_allowed(f"Shall I {told}?", "cancel_booking", {"booking_id": "K2"})


@pytest.mark.parametrize(
    "told",
    [
        "pay 50 in total to AC-22 and AC-33",
        "pay a total of 50 to AC-22 and AC-33",
        "pay 50 altogether to AC-22 and AC-33",
        "pay 50, shared, to AC-22 and AC-33",
        "split 50: pay AC-22 and AC-33",
        "pay 50 to AC-22 and AC-33",
    ],
)
def test_one_sum_for_two_is_paid_to_neither(told: str) -> None:
    for account in ("AC-22", "AC-33"):
        assert not is_allowed(f"Shall I {told}?", "pay", {"to": account, "amount": 50})


@pytest.mark.parametrize("way", ["away from", "off", "out of", "from", "against", "ahead of", "away from Friday,"])
def test_the_time_that_is_left_is_not_moved_to(way: str) -> None:
    moved = {"booking_id": "K1", "starts_at": "2027-03-05T10:00:00"}
    assert not is_allowed(f"Shall I move booking K1 {way} 2027-03-05 10:00?", "move_booking", moved)
    assert is_allowed("Shall I move booking K1 to 2027-03-05 10:00?", "move_booking", moved)


RECORDS = [
    [("AC-22", 500), ("AC-33", 500)],
    [("AC-22", 10), ("AC-33", 10)],
    [("AC-22", 500)],
    [("AC-33", 10)],
    [("AC-33", 500), ("AC-33", 500)],
    [("AC-22", 10), ("AC-33", 500), ("AC-33", 500)],
    [("AC-22", 500), ("AC-22", 500)],
    [("AC-22", 500), ("AC-33", 10)],
]


@pytest.mark.parametrize(
    "told", ["Shall I pay 10 to AC-22 and 500 to AC-33?", "- 10 to AC-22\n- 500 to AC-33\n\nShall I pay?"]
)
@pytest.mark.parametrize("payments", RECORDS)
def test_records_of_a_list_are_not_paired_anew(told: str, payments: list[tuple[str, int]]) -> None:
    given = {"payments": [{"to": to, "amount": amount} for to, amount in payments]}
    assert not is_allowed(told, "pay_many", given)


def test_records_of_a_list_are_told_line_by_line() -> None:
    given = {"payments": [{"to": "AC-22", "amount": 10}, {"to": "AC-33", "amount": 500}]}
    assert is_allowed("I would pay:\n- 10 to AC-22\n- 500 to AC-33\n\nShall I go ahead?", "pay_many", given)
    assert not is_allowed("Shall I pay 10 to AC-22 and 500 to AC-33?", "pay_many", given)
