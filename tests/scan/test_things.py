"""What `bylaw init` finds in results: things and their keys, which tools show them, and how they are typed."""

from pathlib import Path

import msgspec
import pytest

from bylaw.pack import load_pack
from bylaw.policy.document import Document
from bylaw.scan.skeleton import skeleton
from bylaw.trace import Call, Result, Trajectory

from .library import Talk, order_log


def test_lists_wrappers_and_absence_are_recognised() -> None:
    made = Talk("t").user("hi").call("get_slot", {"error": "slot S9 not found"}, slot_id="S9")
    made.call("get_slot", {"slot_id": "S1", "kind": "short"}, slot_id="S1")
    made.call(
        "search_slots", {"slots": [{"slot_id": "S1", "kind": "short"}, {"slot_id": "S2", "kind": "long"}]}, day="mon"
    )
    made.call("list_rooms", [[{"room_code": "R1", "beds": 2}], [{"room_code": "R2", "beds": 2}]])
    made.call("book_slot", {"slot_id": "S1", "kind": "short"}, slot_id="S1")
    entities = skeleton([made.done()], Document("Book it."), name="x").files["entities.yaml"]
    assert "get_slot" not in entities.partition("observations:")[2], "a look-up shows what it looks up"
    assert "  Slot:\n    key: slot_id\n    read: get_slot\n" in entities
    assert "search_slots: {each: '$.slots[*]', as: Slot}" in entities
    assert "list_rooms: {each: '$[*][*]', as: Room}" in entities
    assert "book_slot: {as: Slot}" in entities
    assert "  Room:\n    key: room_code\n    fields:" in entities


def test_records_in_an_envelope_are_found() -> None:
    made = Talk("t").user("hi").call("get_account", {"account": {"account_id": "A1", "seats": 4}}, account_id="A1")
    made.call("get_plan", {"ok": True, "data": {"plan_id": "P1", "price": "9.00"}}, plan_id="P1")
    made.call("get_tags", {"tags": {"red": {"n": 1}, "blue": {"n": 2}}}, tag_id="T1")
    entities = skeleton([made.done()], Document("Book it."), name="x").files["entities.yaml"]
    assert "get_account: {each: $.account, as: Account}" in entities
    assert "get_plan: {each: $.data, as: Plan}" in entities
    assert "  Tag:\n    key: tag_id\n    read: get_tags\n" in entities


def test_amounts_in_one_currency_are_money() -> None:
    made = Talk("t").user("hi")
    for one, other, room, sum_ in (("£96.00", "9,00 €", "R2", "£5"), ("£1,120.00", "$9.00", "R3", "£7.50")):
        found = {"booking_id": room, "price": one, "paid": other, "room": room, "deposit": sum_}
        made.call("get_booking", found, booking_id=room)
    entities = skeleton([made.done()], Document("Book it."), name="x").files["entities.yaml"]
    assert "price: money" in entities
    assert "deposit: money" in entities
    assert "paid: string" in entities, "amounts in two currencies"
    assert "room: string" in entities, "ids are no amounts"


def test_a_list_shows_what_it_is_named_after_not_what_it_was_asked_with() -> None:
    invoice = {"account_id": "A1", "invoice_id": "I1", "amount": "9.00"}
    made = Talk("t").user("hi").call("get_account", {"account_id": "A1", "seats": 4}, account_id="A1")
    made.call("list_invoices", {"invoices": [invoice]}, account_id="A1")
    alone = skeleton([made.done()], Document("Book it."), name="x").files["entities.yaml"]
    assert "  Invoice:\n    key: invoice_id\n    fields:" in alone
    assert "list_invoices: {each: '$.invoices[*]', as: Invoice}" in alone
    made.call("get_invoice", invoice, invoice_id="I1")
    beside = skeleton([made.done()], Document("Book it."), name="x").files["entities.yaml"]
    assert "  Invoice:\n    key: invoice_id\n    read: get_invoice\n" in beside
    assert "list_invoices: {each: '$.invoices[*]', as: Invoice}" in beside


def test_tools_with_one_key_show_one_thing_only_where_they_share_a_field() -> None:
    made = Talk("t").user("hi").call("get_approval", {"invoice_id": "I1", "approval": "none"}, invoice_id="I1")
    made.call("get_invoice", {"invoice_id": "I1", "amount": "9.00"}, invoice_id="I1")
    made.call("audit_invoice_totals", "nothing", invoice_id="I1")
    made.call("get_bill", {"invoice_id": "I1", "amount": "9.00", "tax": "1.00"}, invoice_id="I1")
    entities = skeleton([made.done()], Document("Book it."), name="x").files["entities.yaml"]
    assert "  Approval:\n    key: invoice_id\n    read: get_approval\n" in entities
    assert "  Invoice:\n    key: invoice_id\n    read: get_invoice\n" in entities
    assert "get_bill: {as: Invoice}" in entities
    assert "  Bill:" not in entities


def test_an_argument_of_other_values_and_another_name_is_not_taken_for_a_key() -> None:
    talks = [
        Talk(f"t{n}")
        .user("hi")
        .call("get_room", {"room_id": f"R{n}0"}, room_id=f"R{n}0")
        .call("set_mode", "done", mode="eco")
        for n in range(4)
    ]
    assert skeleton([talk.done() for talk in talks], Document("Set it."), name="x").example == ""


def test_types_come_from_writes_too_and_changes_are_proposed() -> None:
    made = skeleton(map(order_log, range(6)), Document("An order is returned only once.", name="policy.md"), name="x")
    entities, tools = made.files["entities.yaml"], made.files["tools.yaml"]
    assert "items: list" in entities
    assert "difference: number" in entities
    assert "changes:" in tools
    assert tools.count("changes:") == 1
    assert "exists" not in tools


@pytest.mark.parametrize(("is_record", "place"), [(False, "$"), (True, "$.member_id")])
def test_a_look_up_that_answers_with_an_id_alone_shows_whose_it_is(is_record: bool, place: str) -> None:
    talks = [
        Talk(f"t{n}")
        .user("hi")
        .call("find_member", {"member_id": f"M{n}00"} if is_record else f"M{n}00", email=f"{n}@x.org")
        .call("get_member", {"member_id": f"M{n}00", "gold": n > 2}, member_id=f"M{n}00")
        .call("set_mode", "ok", member_id=f"M{n}00")
        .done()
        for n in range(5)
    ]
    entities = skeleton(talks, Document("Be kind."), name="x").files["entities.yaml"]
    assert "  MemberByEmail:\n    key: email\n    read: find_member\n" in entities
    assert ("  find_member: {as: MemberByEmail, fields: {member_id: $}}\n" in entities) == (not is_record)
    assert "#   Caller: {key: [], origin: conversation, complete: true, fields: {member_id: string}}\n" in entities
    assert f"`find_member: {{as: Caller, fields: {{member_id: {place}}}}}`" in entities


def loan_log(number: int) -> Trajectory:
    loans = {"loans": [{"id": f"L{number}", "who": "M1", "due": "2026-03-01", "renewals": 1}]}
    events = (
        Call("list_loans", {"member_id": "M1"}, turn=1),
        Result(0, msgspec.json.encode(loans).decode()),
        Call("renew_loan", {"loan_id": f"L{number}"}, turn=2),
        Result(2, '{"ok": true}'),
    )
    definition = {"name": "renew_loan", "parameters": {"properties": {"loan_id": {"type": "string"}}}}
    return Trajectory(str(number), events, tools=(definition,))


def test_a_write_changes_what_it_names_by_another_word(tmp_path: Path) -> None:
    made = skeleton(map(loan_log, range(6)), Document("A loan is renewed twice.", name="policy.md"), name="x")
    assert "key: id\n" in made.files["entities.yaml"]
    changes = "changes: [{as: Loan, key: $args.loan_id, fields: [who, due, renewals]}]"
    assert changes in " ".join(made.files["tools.yaml"].split())
    for name, text in made.files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (change,) = load_pack(tmp_path).schema.changes["renew_loan"]
    assert change.fields == {"who", "due", "renewals"}
