"""What a question shows: the things within reach of the tools it is about, and no others."""

import json
from datetime import datetime

import pytest

from bylaw.compile.bench import Bench
from bylaw.compile.card import Card, Results
from bylaw.compile.context import bound_tools_text, code_notes, things_text
from bylaw.compile.inputs import WORLDS, World, pool_of, tried
from bylaw.compile.pipeline import CompileError, Source, compile_pack
from bylaw.compile.things import Things
from bylaw.policy.document import Document
from bylaw.policy.statement import Policy
from bylaw.trace import Call, Result, Trajectory
from tests.compile import shop

THINGS = Things(
    {
        "Order": {"key": "order_id", "fields": {"customer_id": "string", "total": "money"}},
        "Customer": {"key": "customer_id", "fields": {"level": ["none", "gold"], "home_shop_id": "string"}},
        "Shop": {"key": "shop_id", "fields": {"open": "boolean"}},
        "Consent": {"key": ["customer_id", "kind"], "fields": {"given": {"type": "boolean"}}},
        "Lorry": {"key": "lorry_id", "fields": {"driver": "string"}},
    },
    {},
    {},
)
CARDS = {
    "refund": Card("refund", "Pay back. In full.", {"order_id": {"type": "string"}}, ("order_id",)),
    "drive": Card("drive", "Go.", {"lorry_id": {"type": "string"}}, ("lorry_id",)),
}


def test_things_are_reached_through_records_that_point_to_others() -> None:
    told = things_text(THINGS, CARDS, ["refund"], {})
    assert [line.partition("[")[0] for line in told.splitlines()] == ["Order", "Customer", "Shop", "Consent"]
    assert "Customer[customer_id]: level none|gold; home_shop_id string" in told


def test_what_is_out_of_reach_is_left_out() -> None:
    assert things_text(THINGS, CARDS, ["drive"], {}) == "Lorry[lorry_id]: driver string"


def test_what_only_users_say_is_marked() -> None:
    told = things_text(THINGS, CARDS, ["drive"], {"reason": {"type": "enum", "values": ["a", "b"], "origin": "user"}})
    assert told.splitlines()[-1] == "Request[]: reason a|b  (what only the user can say)"
    told = things_text(THINGS, CARDS, ["drive"], {"reason": {"type": "enum?", "values": ["a", "b"], "origin": "user"}})
    assert told.splitlines()[-1] == "Request[]: reason a|b|None  (what only the user can say; `None`: they have not)"


def test_code_hears_of_the_calendar_only_where_a_day_is_part_of_a_key() -> None:
    flights = {"Flight": {"key": ["number", "date"], "fields": {"status": "string"}}, **THINGS.entities}
    cards = {**CARDS, "fly": Card("fly", "Fly.", {"number": {"type": "string"}}, ("number",))}
    things = Things(flights, {}, {})
    assert "a Flight of a day to come (`date(x.date) > date(now())`)" in code_notes(things, cards, ["fly"], "")
    assert code_notes(things, cards, ["drive"], "") == ""
    assert code_notes(THINGS, cards, ["drive"], "") == ""


def test_tools_are_told_in_the_order_of_the_catalogue() -> None:
    assert bound_tools_text(CARDS, ["drive", "refund"]).startswith("- refund(order_id: string): Pay back.")


def test_records_inside_a_field_are_shown_and_generated() -> None:
    flights = {
        "type": "array",
        "items": {"type": "object", "properties": {"number": {"type": "string"}, "price": {"type": "integer"}}},
    }
    cards = {
        "get_trip": Card(
            "get_trip",
            "Read.",
            {"trip_id": {"type": "string"}},
            ("trip_id",),
            "read",
            output={"type": "object", "properties": {"flights": flights, "tags": {"type": "array"}}},
        ),
        "cancel": Card("cancel", "Cancel.", {"trip_id": {"type": "string"}}, ("trip_id",), "write"),
    }
    entities = {"Trip": {"key": "trip_id", "read": "get_trip", "fields": {"flights": "list", "tags": "list"}}}
    things = Things(entities, {"get_trip": {"as": "Trip"}}, {"get_trip": {"effect": "read"}, "cancel": {}})
    told = things_text(things, cards, ["cancel"], {})
    assert told == "Trip[trip_id]: flights list [{number: string, price: integer}, ...]; tags list"
    bench = Bench(cards, things, {}, "2025-01-15T10:00:00")
    code = (
        "def dear(call, facts):\n    if any(each.price > 100 for each in facts.Trip(call.trip_id).flights):\n"
        '        return deny("dear")\n    return permit()\n'
    )
    policy = Policy("dear", "guard", "", ("cancel",))
    guard, faults = bench.guard(policy, code)
    assert guard is not None
    assert not faults
    now = datetime.fromisoformat(bench.now)
    trials = tried("dear", [guard], [code], [bench.base.schema.tools["cancel"]], now, bench.inside)
    assert {trial.outcomes[0] for trial in trials} == {"permit", "deny"}


def test_inputs_are_made_of_what_decides_and_lists_side_by_side_are_mostly_of_one_length() -> None:
    code = (
        "def in_pairs(call, facts):\n"
        '    if call.kind == "gift":\n'
        '        return deny(f"a gift of {call.kind} is not swapped")\n'
        "    return permit()\n"
    )
    ids = {"type": "array", "items": {"type": "string"}}
    card = Card("swap", "Swap.", {"kind": {"type": "string"}, "old_ids": ids, "new_ids": ids}, ("kind",))
    tool = Bench({"swap": card}, Things({}, {}, {"swap": {"effect": "write"}}), {}, "2025-01-15T10:00:00")
    pool = pool_of([code], datetime(2025, 1, 15))
    assert pool.words == ("gift",)
    assert not [amount for amount in pool.money if amount.startswith("-")]
    lengths: list[bool] = []
    for seed in range(WORLDS):
        made = World(str(seed), pool, {}).arguments(tool.base.schema.tools["swap"])
        assert {*made.get("old_ids", ()), *made.get("new_ids", ())} <= {"X1", "X2"}
        if "old_ids" in made and "new_ids" in made:
            lengths.append(len(made["old_ids"]) == len(made["new_ids"]))
    assert 0.85 < sum(lengths) / len(lengths) < 1


def test_a_record_that_is_gone_while_another_points_to_it_decides_nothing() -> None:
    cards = {"refund": CARDS["refund"]}
    things = Things(
        {
            "Order": {"key": "order_id", "fields": {"customer_id": "string"}},
            "Customer": {"key": "customer_id", "fields": {"level": ["none", "gold"]}},
        },
        {},
        {"refund": {"effect": "write", "changes": []}},
    )
    bench = Bench(cards, things, {}, "2025-01-15T10:00:00")
    code = (
        "def gold(call, facts):\n    if facts.Customer(facts.Order(call.order_id).customer_id).level == 'gold':\n"
        '        return permit()\n    return deny("not gold")\n'
    )
    guard, _ = bench.guard(Policy("gold", "guard", "", ("refund",)), code)
    assert guard is not None
    trials = tried("gold", [guard], [code], [bench.base.schema.tools["refund"]], datetime.fromisoformat(bench.now), {})
    gone = {True: set[str](), False: set[str]()}
    for trial in trials:
        gone[trial.is_broken] |= {name.partition("[")[0] for name, fields in trial.case["facts"].items() if not fields}
    assert gone[True] == {"Customer"}
    assert "Order" in gone[False], "what the call itself names may not be there"


def test_a_record_without_an_id_decides_nothing() -> None:
    cards = {"refund": CARDS["refund"]}
    things = Things(
        {
            "Order": {"key": "order_id", "fields": {"customers": "list"}},
            "Customer": {"key": "customer_id", "fields": {"level": ["none", "gold"]}},
        },
        {},
        {"refund": {"effect": "write", "changes": []}},
    )
    bench = Bench(cards, things, {}, "2025-01-15T10:00:00")
    code = (
        "def gold(call, facts):\n    for one in facts.Order(call.order_id).customers:\n"
        "        if one != '' or facts.Customer(one).level == 'gold':\n"
        '            return permit()\n    return deny("not gold")\n'
    )
    policy = Policy("gold", "guard", "", ("refund",))
    guard, faults = bench.guard(policy, code)
    assert guard is not None, faults
    trials = tried("gold", [guard], [code], [bench.base.schema.tools["refund"]], datetime.fromisoformat(bench.now), {})
    without = [trial for trial in trials if "Customer[]" in trial.case["facts"]]
    assert without, "the code compares with an empty text, so that some are made"
    assert all(trial.is_broken for trial in without)
    runnable = {**trials[0].case, "note": "", "want": "deny"}
    assert bench.misfits(policy, [{**without[0].case, "note": "", "want": "deny"}])
    assert trials[0].is_broken or not bench.misfits(policy, [runnable])


def test_an_empty_list_that_no_record_shows_is_nobodys_question() -> None:
    results = Results()
    for number in range(30):
        order = {"order_id": f"A{number}", "payments": [{"sum": 3}] * (1 + number % 2), "tags": ["x"] * (number % 2)}
        shown = json.dumps(order)
        results.add(Trajectory(str(number), (Call("get_order", {}), Result(0, shown))))
    parts = results.schema("get_order")["properties"]
    assert parts["payments"]["minItems"] == 1
    assert "minItems" not in parts["tags"]
    look = Card("get_order", "", {"order_id": {"type": "string"}}, ("order_id",), "read", output={"properties": parts})
    cards = {"get_order": look, "refund": CARDS["refund"]}
    order = {"key": "order_id", "read": "get_order", "fields": {"payments": "list", "tags": "list"}}
    effects = {"get_order": {"effect": "read"}, "refund": {"effect": "write"}}
    things = Things({"Order": order}, {"get_order": {"as": "Order"}}, effects)
    bench = Bench(cards, things, {}, "2025-01-15T10:00:00")
    code = (
        "def paid(call, facts):\n    order = facts.Order(call.order_id)\n"
        '    if len(order.payments) == 0 or len(order.tags) == 0:\n        return deny("none")\n    return permit()\n'
    )
    guard, _ = bench.guard(Policy("paid", "guard", "", ("refund",)), code)
    assert guard is not None
    now = datetime.fromisoformat(bench.now)
    trials = tried("paid", [guard], [code], [bench.base.schema.tools["refund"]], now, bench.inside, bench.plausible)
    orders = [(trial.is_broken, order) for trial in trials for order in trial.case["facts"].values() if order]
    assert {is_broken for is_broken, order in orders if order.get("payments") == []} == {True}
    sound = [(is_broken, order) for is_broken, order in orders if "-" not in str(order)]
    assert {is_broken for is_broken, order in sound if order.get("payments") and order.get("tags") == []} == {False}


def test_requests_tell_what_the_catalogue_says_of_arguments() -> None:
    words = "As on the slip,\n without the dash."
    told = {"order_id": {"type": "string", "description": words}, "speed": {"type": "string"}}
    card = Card("ship", "Send it.", told, ("order_id",), "write")
    want = "- ship(order_id: string, speed?: string) [write]: Send it.\n    order_id: As on the slip, without the dash."
    assert bound_tools_text({"ship": card}, ["ship"]) == want
    assert "order_id: As on the slip, without the dash." in card.whole


@pytest.mark.parametrize(
    ("argument", "is_told"), [("id", True), ("order_number", True), ("order_id", False), ("colour", False)]
)
def test_a_look_up_whose_argument_has_another_name_is_told_how_to_say_so(argument: str, is_told: bool) -> None:
    output = {"type": "object", "properties": {"order_id": {"type": "string"}, "total": {"type": "string"}}}
    look = Card("get_order", "Read.", {argument: {"type": "string"}}, (argument,), "read", output=output)
    chat = shop.Scripted(things="not asked for here")
    with pytest.raises(CompileError):
        compile_pack(Source(Document(shop.POLICY), "Shop", {**shop.CARDS, "get_order": look}), chat)
    shown = chat.asked("things")[0].messages[-1].content
    assert (f"get_order({argument})" in shown.partition("Some tools that fetch a record")[2]) == is_told


def test_what_the_sentences_name_is_offered_though_no_argument_leads_to_it() -> None:
    fields = {"bill_id": "string", "total": "money"}
    entities = {
        "Line": {"key": "line_id", "fields": {"line_id": "string", "status": "string"}},
        "Bill": {"key": "bill_id", "fields": fields},
        "PlanOption": {"key": "name", "fields": {"name": "string", "data_limit": "number"}},
    }
    cards = {"resume": Card("resume", "Lift a suspension.", {"line_id": {"type": "string"}}, ("line_id",))}
    things = Things(entities, {}, {"resume": {"effect": "write"}})

    def shown(sentences: str) -> set[str]:
        return {line.partition("[")[0] for line in things_text(things, cards, ["resume"], {}, sentences).splitlines()}

    assert shown("A line is resumed when it was asked for.") == {"Line"}
    assert shown("It is resumed once all overdue bills are paid.") == {"Line", "Bill"}
    assert shown("It is resumed under the same plan option.") == {"Line", "PlanOption"}
    assert shown("It is resumed below its data limit.") == {"Line", "PlanOption"}
    assert shown("Billing is another matter.") == {"Line"}
