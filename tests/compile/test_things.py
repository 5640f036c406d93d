"""What is said of the data behind the tools is held against what tools returned."""

import json
from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from bylaw.compile.card import Card
from bylaw.compile.context import things_text
from bylaw.compile.desk import Desk
from bylaw.compile.pipeline import compile_pack
from bylaw.compile.things import Things, describe, schema_files
from bylaw.compile.tools import with_logs
from bylaw.pack import Pack
from bylaw.policy.document import Document
from bylaw.trace import Call, Result, Trajectory
from tests.compile import shop
from tests.compile.shop import Scripted, source

CARDS = {"get_order": Card("get_order", "Read.", {"order_id": {"type": "string"}}, ("order_id",), "read")}
RECORD = """
entities:
  Order: {key: order_id, read: get_order, fields: {status: string, returned: list, why: string, gift: boolean}}
observations:
  get_order: {as: Order}
tools:
  get_order: {effect: read}
"""
SAID = """
entities:
  Order:
    key: order_id
    read: get_order
    fields: {status: [open, paid], why: {type: enum, values: [late]}, gift: boolean}
observations:
  get_order: {as: Order}
tools:
  get_order: {effect: read}
"""


def described(*records: Mapping[str, object], said: str = SAID) -> tuple[Things, Scripted]:
    """What comes of the answer, and who was asked, where these records were recorded."""
    logs = [
        Trajectory(
            str(n), (Call("get_order", {"order_id": f"O{n}"}), Result(0, json.dumps({"order_id": f"O{n}", **each})))
        )
        for n, each in enumerate(records)
    ]
    chat, desk = Scripted(things=said), Desk()
    while (made := describe(desk, CARDS, logs)) is None:
        desk.fetch(chat)
        desk.begin()
    return made, chat


def test_words_that_results_have_are_added_without_asking_again() -> None:
    made, chat = described({"status": "open"}, {"status": "sent (part)"}, {"why": "early"}, {"why": "late"})
    fields = made.entities["Order"]["fields"]
    assert fields["status"] == ["open", "paid", "sent (part)"]
    assert fields["why"] == {"type": "enum", "values": ["late", "early"]}
    assert len(chat.asked("things")) == 1
    assert not made.misfits
    assert [each.partition(":")[0] for each in made.unshown] == ["`Order.gift`"]


@pytest.mark.parametrize(("odd", "kind"), [([None], ["open", "paid"]), ([f"word{n}" for n in range(24)], "string")])
def test_too_many_words_are_plain_text_and_none_at_all_is_no_word(odd: list[str | None], kind: object) -> None:
    made, chat = described(*[{"status": "open"}] * len(odd), *({"status": each} for each in odd))
    assert made.entities["Order"]["fields"]["status"] == kind
    assert len(chat.asked("things")) == 1


def test_where_most_values_are_no_word_of_it_the_path_is_wrong() -> None:
    made, chat = described({"status": "O1"}, {"status": "O2"}, {"status": "open"})
    assert len(chat.asked("things")) > 1
    assert "Order.status" in made.misfits[0]


def test_other_misfits_are_sent_back() -> None:
    made, chat = described({"gift": "perhaps"}, {"gift": "perhaps"})
    assert len(chat.asked("things")) > 1
    assert "Order.gift" in made.misfits[0]


def test_a_thing_that_conversations_make_and_no_tool_shows_is_left_out() -> None:
    said = SAID.replace("entities:\n", "entities:\n  Caller: {key: [], origin: conversation, fields: {id: string}}\n")
    for text, there in (
        (said, False),
        (said.replace("{as: Order}", "[{as: Order}, {as: Caller, fields: {id: $}}]"), True),
    ):
        desk = Desk()
        while (made := describe(desk, CARDS, [])) is None:
            desk.fetch(Scripted(things=text))
            desk.begin()
        assert ("Caller" in made.entities) is there


def test_a_field_that_whole_records_lack_at_times_has_a_default() -> None:
    made, _ = described(
        {"status": "open"}, {"status": "sent", "returned": ["A"], "why": "late", "gift": True}, said=RECORD
    )
    assert made.entities["Order"]["fields"] == {
        "status": "string",
        "returned": {"type": "list", "default": []},
        "why": {"type": "string", "default": None},
        "gift": "boolean",
    }
    assert "returned list ([] where it is not set)" in things_text(made, CARDS, ["get_order"], {})


def test_where_a_tool_shows_a_part_of_a_thing_nothing_is_taken_for_empty() -> None:
    said = RECORD.replace(
        "tools:\n", "  list_orders: {each: '$[*]', as: Order}\ntools:\n  list_orders: {effect: read}\n"
    )
    listed = (Call("list_orders", {}), Result(0, '[{"order_id": "A"}]'))
    record: dict[str, object] = {"order_id": "A", "status": "open", "returned": []}
    read = (Call("get_order", {"order_id": "A"}), Result(0, json.dumps(record)))
    cards = CARDS | {"list_orders": Card("list_orders", "List.", {}, (), "read")}
    desk = Desk()
    while (made := describe(desk, cards, [Trajectory("a", listed), Trajectory("b", read)])) is None:
        desk.fetch(Scripted(things=said))
        desk.begin()
    assert made.entities["Order"]["fields"]["returned"] == "list"


CUSTOMER = {"customer_id": "C1", "name": "Ann", "cards": {"K1": {"balance": "3.00"}, "K2": {"balance": "4.00"}}}
LISTING = {"customer_id": "C1", "orders": {"O1": {"status": "open"}, "O2": {"status": "paid"}}}


@pytest.mark.parametrize(("result", "is_told"), [(CUSTOMER, True), ([CUSTOMER], True), (LISTING, False)])
def test_tables_inside_records_are_spoken_of_where_there_are_some(result: object, is_told: bool) -> None:
    logs = [Trajectory("1", (Call("get_order", {"order_id": "O1"}), Result(0, json.dumps(result))))]
    cards, _ = with_logs(CARDS, logs)
    desk = Desk()
    describe(desk, cards, logs)
    (asked,) = desk.wanted.values()
    assert ("Name the table itself under `changes` only" in asked.messages[1].content) == is_told


CLOSING = """
entities:
  Order:
    key: order_id
    read: get_order
    fields: {status: string, closed: {type: boolean, claims: {true: [it is closed]}}, gift: boolean}
observations:
  get_order: {as: Order}
tools:
  get_order: {effect: read}
  close_order:
    effect: write
    changes: [Order.closed]
    effects: [{as: Order, key: $args.order_id, set: {closed: true}}]
"""


@pytest.mark.parametrize(("record", "is_false"), [({"status": "open"}, True), ({"closed": True}, False)])
def test_what_no_record_has_and_a_write_makes_true_is_false_until_then(
    record: dict[str, object], is_false: bool
) -> None:
    logs = [Trajectory("1", (Call("get_order", {"order_id": "O"}), Result(0, json.dumps({"order_id": "O"} | record))))]
    cards = CARDS | {"close_order": Card("close_order", "Close.", {"order_id": {"type": "string"}}, ("order_id",))}
    desk = Desk()
    while (made := describe(desk, cards, logs)) is None:
        desk.fetch(Scripted(things=CLOSING))
        desk.begin()
    fields = made.entities["Order"]["fields"]
    assert fields["closed"].get("default", "unknown") == (False if is_false else "unknown")
    assert "it is closed" in str(fields["closed"])
    assert fields["gift"] == "boolean", "no write makes it true, so that nobody knows what its absence means"


@pytest.mark.parametrize("complete", [", complete: true", ""])
def test_a_missing_caller_is_a_missing_look_up_unless_a_check_makes_one(complete: str) -> None:
    said = f"""
entities:
  Caller: {{key: [], origin: conversation{complete}, fields: {{customer_id: string}}}}
observations:
  find_customer: {{as: Caller}}
tools:
  find_customer: {{effect: read}}
"""
    cards = {"find_customer": Card("find_customer", "Find.", {"email": {"type": "string"}}, ("email",), "read")}
    body = finished(cards, [], said).entities["Caller"]
    assert body.get("read") == (None if complete else {"tool": "find_customer", "arguments": {}})


def looked_up(*kinds: str) -> Things:
    """What comes of a look-up by id that returned records of these kinds."""
    said = """
entities:
  Bill: {key: bill_id, fields: {total: money}}
  Line: {key: line_id, fields: {status: string}}
observations:
  get_details_by_id: [{as: Bill}, {as: Line}]
tools:
  get_details_by_id: {effect: read}
"""
    cards = {"get_details_by_id": Card("get_details_by_id", "Read.", {"id": {"type": "string"}}, ("id",), "read")}
    logs = [
        Trajectory(str(n), (Call("get_details_by_id", {"id": f"{n}"}), Result(0, json.dumps({f"{kind}_id": f"{n}"}))))
        for n, kind in enumerate(kinds)
    ]
    return finished(cards, logs, said)


def test_a_look_up_of_several_kinds_shows_one_of_them_at_a_time() -> None:
    assert looked_up("bill", "line", "line", "line").misfits == ()
    (told,) = looked_up("bill", "line", "device", "device").misfits
    assert "2 of 4 recorded results show no `Bill`, no `Line`" in told


RENTALS = """
entities:
  Rental: {key: rental_id, fields: {days: integer}}
  Charge: {key: charge_id, fields: {total: money}}
observations:
  get_rental: [{as: Rental}, {as: Charge, each: "$.charges[*]"}]
tools:
  get_rental: {effect: read}
"""


@pytest.mark.parametrize(("rental", "is_told"), [({"charges": []}, False), ({"fees": []}, True)])
def test_an_empty_list_is_an_answer_and_a_missing_one_is_not(rental: dict[str, object], is_told: bool) -> None:
    cards = {"get_rental": Card("get_rental", "Read.", {"rental_id": {"type": "string"}}, ("rental_id",), "read")}
    shown = json.dumps({"rental_id": "R1", "days": 3, **rental})
    logs = [Trajectory("1", (Call("get_rental", {"rental_id": "R1"}), Result(0, shown)))]
    assert any("no `Charge`" in each for each in finished(cards, logs, RENTALS).misfits) is is_told


@pytest.mark.parametrize(("effect", "is_told"), [("read", True), ("none", False)])
def test_a_calculator_that_the_catalogue_calls_read_only_has_no_effect(effect: str, is_told: bool) -> None:
    cards = {"calculate": Card("calculate", "Add up.", {"expression": {"type": "string"}}, ("expression",), "read")}
    logs = [Trajectory("1", (Call("calculate", {"expression": "1 + 1"}), Result(0, "2")))]
    made = finished(cards, logs, f"{{entities: {{}}, observations: {{}}, tools: {{calculate: {{effect: {effect}}}}}}}")
    assert any("says nothing of its results" in each for each in made.misfits) is is_told
    assert Pack.from_files(schema_files(cards, made)).schema.tools["calculate"].effect == effect


def finished(cards: dict[str, Card], logs: list[Trajectory], said: str) -> Things:
    """The description of tools after all rounds of the same answer."""
    chat, desk = Scripted(things=said), Desk()
    while (made := describe(desk, cards, logs)) is None:
        desk.fetch(chat)
        desk.begin()
    return made


def test_that_null_is_an_answer_is_explained_where_a_result_has_one() -> None:
    records = [{"status": "open", "why": why} for why in (None, "late")]
    logs = [
        Trajectory(str(n), (Call("get_order", {"order_id": "O1"}), Result(0, json.dumps(each))))
        for n, each in enumerate(records)
    ]
    for given, is_told in ((logs, True), (logs[1:], False)):
        cards, read = with_logs(CARDS, given)
        desk = Desk()
        describe(desk, cards, read)
        (request,) = desk.wanted.values()
        assert ("`closed_on: date?`" in request.messages[1].content) is is_told


def test_a_write_that_makes_a_thing_must_say_what_is_shown_of_it() -> None:
    output = {"type": "object", "properties": {"refund_id": {"type": "string"}, "order_id": {"type": "string"}}}
    cards = {**shop.CARDS, "refund": replace(shop.CARDS["refund"], output=output)}
    refund = "\n  Refund: {key: refund_id, fields: {order_id: string, amount: money}}"
    lacking = shop.THINGS.replace("\n  Customer:", f"{refund}\n  Customer:")
    shown = lacking.replace("\ntools:", "\n  refund: {as: Refund, fields: {amount: $args.amount}}\ntools:")
    chat = Scripted(things=[lacking, shown])
    work, _ = compile_pack(replace(source(), cards=cards), chat)
    told = chat.asked("things")[1].messages[-1].content
    assert "`refund` returns a `refund_id` that is not among its arguments" in told
    assert work.things is not None
    assert "refund" in work.things.observations


def test_a_field_of_what_a_write_shows_may_point_to_a_thing_that_it_did_not_make() -> None:
    output = {"type": "object", "properties": {"customer_id": {"type": "string"}, "order_id": {"type": "string"}}}
    cards = {**shop.CARDS, "refund": replace(shop.CARDS["refund"], output=output)}
    shown = shop.THINGS.replace("\ntools:", "\n  refund: {as: Order, fields: {customer_id: $.customer_id}}\ntools:")
    chat = Scripted(things=[shown])
    compile_pack(replace(source(), cards=cards), chat)
    assert len(chat.asked("things")) == 1


def test_sentences_that_name_a_word_of_an_enumeration_are_shown_for_its_further_words() -> None:
    status = {"type": "object", "properties": {"status": {"type": "string", "enum": ["active", "in_arrears"]}}}
    cards = {"get_order": replace(CARDS["get_order"], output=status)}
    text = "An account in arrears or suspended is not ended. Be kind."
    for document, is_told in ((Document(text), True), (Document("Be kind."), False)):
        desk = Desk()
        describe(desk, cards, [], document=document)
        (request,) = desk.wanted.values()
        assert ("- An account in arrears or suspended is not ended." in request.messages[1].content) is is_told
        assert "Be kind" not in request.messages[1].content
