"""Facts that the user is shown with a call: looked up first, bound to the card, and checked in live sessions and audits
alike."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from bylaw import Pack, Shield, check, load_pack, verdicts
from bylaw.errors import PackError
from bylaw.shield import Decision, LiveSession
from bylaw.trace import Call, Trajectory
from tests.command import bylaw

TOOLS = """
tools:
  get_plan: {effect: read, parameters: {plan_id: string}}
  set_price: {effect: write, title: set the price, parameters: {plan_id: string}, changes: [Plan.price_per_gb]}
  add_data:
    effect: write
    title: add data
    put_as: "add {gb} to plan {plan_id} for {price}"
    show: {price: {value: facts.Plan(call.plan_id).price_per_gb * call.gb, title: total price}}
    parameters: {plan_id: string, gb: {type: number, unit: GB}}
    changes: []
"""
PLAN = "Plan: {key: plan_id, read: get_plan, fresh_for: 600, fields: {price_per_gb: {type: money, currency: EUR}"
ADD: dict[str, Any] = {"plan_id": "P1", "gb": 2}
SENTENCE = "Shall I add 2 GB to plan P1 for €5.00?"


def pack(tools: str = TOOLS, **parts: str) -> Pack:
    """A desk that must confirm what it sells."""
    return Pack.from_files(files(tools, **parts))


def files(
    tools: str = TOOLS, *, consented: str = "told", card: str = "", more: str = "", plan: str = PLAN
) -> dict[str, str]:
    """The files of its pack."""
    return {
        "pack.yaml": "{format: 1, name: phone, document: policy.md, shield: {unguarded: allow}}",
        "policy.md": "Confirm the price before you sell.\n",
        "policies.yaml": "policies:\n  - {id: ask, kind: rule, spans: [Confirm the price before you sell.]}\n",
        "entities.yaml": f"entities:\n  {plan}{more}}}}}\ncontext:\n  signed_in_as: string\n",
        "tools.yaml": tools,
        "rules.yaml": (
            f"predicates:\n  change: {{tool: add_data}}\n  agreed: {{consented: {consented}{card}}}\n"
            "rules:\n  - {id: ask, formula: ALWAYS (change IMPLIES agreed)}\n"
        ),
    }


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Desk:
    """A live conversation at the desk, and the decisions on its sales."""

    def __init__(self, sold: Pack) -> None:
        self.pack, self.clock = sold, Clock()
        self.session: LiveSession = Shield(sold, clock=self.clock).session("c")
        self.session.user("I need more data.")
        self.decisions: list[Decision] = []

    def sees(self, price: Any = "2.50", **fields: Any) -> None:
        """The agent looks the plan up."""
        assert self.session.decide("get_plan", {"plan_id": "P1"}).allowed
        self.session.result(json.dumps({"plan_id": "P1", "price_per_gb": price, **fields}))

    def asks(self, text: str, answer: str = "Yes, please.") -> None:
        self.session.agent(text)
        self.session.user(answer)

    def sells(self, arguments: dict[str, Any] = ADD) -> Decision:
        decision = self.session.decide("add_data", arguments)
        self.decisions.append(decision)
        if decision.allowed:
            self.session.result("done")
        return decision

    def card(self, arguments: dict[str, Any] = ADD) -> str:
        decision = self.sells(arguments)
        assert decision.answer == "ask"
        assert decision.card is not None
        return decision.card.text


def audited(sold: Pack, trajectory: Trajectory) -> list[tuple[bool | None, str]]:
    """Of each sale in a log, whether the customer had agreed, and the reason of a yes that does not count."""
    found: list[tuple[bool | None, str]] = []
    for call in verdicts(sold, trajectory).calls:
        if call.made.call.tool == "add_data":
            finding = next(iter((*call.rules, *call.open_rules)), None)
            why: Mapping[str, Any] = dict(finding.whys).get("agreed", {}) if finding is not None else {}
            found.append((True if finding is None else None if call.open_rules else False, str(why.get("reason", ""))))
    return found


def told(desk: Desk) -> list[tuple[bool | None, str]]:
    """What an audit says of the sales of a live conversation; it allows what the shield allowed."""
    found = audited(desk.pack, desk.session.trajectory())
    assert [value is True for value, _ in found] == [decision.allowed for decision in desk.decisions]
    return found


def test_an_unknown_fact_is_looked_up_before_the_user_is_asked() -> None:
    desk = Desk(pack())
    decision = desk.sells()
    assert (decision.answer, decision.card) == ("look_up", None)
    assert [(each.tool, each.arguments) for ground in decision.grounds for each in ground.look_ups] == [
        ("get_plan", {"plan_id": "P1"})
    ]
    assert "Look up: get_plan(plan_id=P1)." in decision.feedback
    assert "Please confirm" not in decision.feedback
    desk.sees()
    assert desk.card().splitlines()[1:4] == ["- plan id: P1", "- gb: 2 GB", "- total price: €5.00"]
    told(desk)


def test_a_yes_counts_for_the_price_that_was_shown() -> None:
    for consented in ("told", "card"):
        desk = Desk(pack(consented=consented))
        desk.sees()
        desk.asks(desk.card())
        assert desk.sells().allowed
        assert [value for value, _ in told(desk)] == [False, True]


def test_another_price_needs_another_card() -> None:
    desk = Desk(pack())
    desk.sees()
    first = desk.sells().card
    assert first is not None
    desk.asks(first.text)
    desk.sees("3.50")
    again = desk.sells()
    assert again.card is not None
    assert again.card.digest != first.digest
    assert "- total price: €7.00" in again.card.text
    desk.session.confirm(again.card, True)
    desk.sees("3.5")
    assert desk.sells().allowed
    told(desk)


@pytest.mark.parametrize(("price", "allowed"), [("2.50", True), ("3.50", False)])
def test_a_look_up_in_the_calls_own_turn_may_show_another_price(price: str, allowed: bool) -> None:
    desk = Desk(pack())
    desk.sees()
    desk.asks(desk.card())
    with desk.session.turn():
        desk.sees(price)
        assert desk.sells().allowed is allowed
        card = desk.decisions[-1].card
        assert allowed or (card is not None and "- total price: €7.00" in card.text)
    told(desk)


def test_a_press_on_the_card_of_an_old_price_does_not_count() -> None:
    desk = Desk(pack())
    desk.sees()
    old = desk.sells().card
    assert old is not None
    desk.sees("3.50")
    new = desk.sells().card
    assert new is not None
    desk.session.confirm(old, True)
    assert not desk.sells().allowed
    desk.session.confirm(new, True)
    assert desk.sells().allowed
    told(desk)


def test_the_pack_s_sentence_counts_with_the_true_price_alone() -> None:
    spellings = {
        "€5.00": True,
        "€5": True,
        "5.00 EUR": True,
        "5.00 €": True,
        "€5.01": False,
        "€50": False,
        "5.00": False,
    }
    for price, counts in spellings.items():
        desk = Desk(pack())
        desk.sees()
        desk.asks(f"Shall I add 2 GB to plan P1 for {price}?")
        assert (price, desk.sells().allowed) == (price, counts)
        assert told(desk)[0][0] is (True if counts else None)


@pytest.mark.parametrize(
    ("answer", "counts"), [("Yes, add it.", True), ("Yes, add it for €1,234.50.", False), ("Yes, for 1234.50", False)]
)
def test_a_yes_may_repeat_the_verb_but_no_value(answer: str, counts: bool) -> None:
    for as_card in (False, True):
        desk = Desk(pack())
        desk.sees("617.25")
        desk.asks(desk.card() if as_card else "Shall I add 2 GB to plan P1 for €1,234.50?", answer)
        assert desk.sells().allowed is counts
        told(desk)


def test_a_price_that_was_never_looked_up_was_not_confirmed() -> None:
    desk = Desk(pack())
    desk.asks(SENTENCE)
    assert desk.sells().answer == "look_up"
    assert told(desk) == [(None, "unseen")]
    desk.sees()
    assert desk.sells().allowed


def test_a_stale_price_is_unknown() -> None:
    for outdate in ("write", "age"):
        desk = Desk(pack())
        desk.sees()
        desk.asks(SENTENCE)
        if outdate == "write":
            assert desk.session.decide("set_price", {"plan_id": "P1"}).allowed
            desk.session.result("done")
        else:
            desk.clock.now += 601
        assert desk.sells().answer == "look_up"
        desk.sees("2.60")
        assert desk.sells().answer == "ask"
        told(desk)


def test_a_no_to_one_price_stands_for_another_until_the_user_says_more() -> None:
    desk = Desk(pack())
    desk.sees()
    desk.asks(desk.card(), "No.")
    desk.sees("1.00")
    assert (desk.sells().answer, desk.decisions[-1].card) == ("deny", None)
    desk.session.user("What if it is cheaper?")
    assert "- total price: €2.00" in desk.card()
    told(desk)


def test_no_model_agrees_to_a_price_that_nobody_looked_up() -> None:
    def says_yes(predicate: str, act: Any) -> bool:
        return True

    sold = pack(consented="requested, model: may settle")
    session = Shield(sold, answers=lambda pack, events: says_yes).session("c")
    session.user("Add 2 GB to plan P1.")
    assert session.decide("add_data", ADD).answer == "look_up"
    session.decide("get_plan", {"plan_id": "P1"})
    session.result('{"plan_id": "P1", "price_per_gb": "2.50"}')
    assert session.decide("add_data", ADD).allowed
    session.result("done")
    assert session.decide("set_price", {"plan_id": "P1"}).allowed
    session.result("done")
    assert session.decide("add_data", ADD).answer == "look_up"


def test_a_log_without_a_shield_is_read_the_same_way() -> None:
    desk = Desk(pack())
    desk.sees()
    desk.asks(SENTENCE)
    assert desk.sells().allowed
    events = [event for event in desk.session.trajectory().events if not (isinstance(event, Call) and event.refused)]
    assert audited(desk.pack, Trajectory("log", events)) == [(True, "")]
    unseen = [events[0], *events[3:]]
    assert audited(desk.pack, Trajectory("log", unseen))[0][0] is None


def test_a_fact_that_no_look_up_shows_keeps_the_call_from_being_confirmed() -> None:
    for shown in (None, "5 EUR and more", "nothing"):
        desk = Desk(pack())
        desk.sees(shown)
        desk.asks(SENTENCE)
        decision = desk.sells()
        assert (decision.allowed, decision.card) == (False, None)
        told(desk)
    gone = Desk(pack(TOOLS.replace("call.gb, title", "call.gb / 0, title")))
    gone.sees()
    decision = gone.sells()
    assert (decision.answer, decision.card) == ("deny", None)
    assert "division by zero" in decision.feedback


@pytest.mark.parametrize(
    ("code", "record", "steps", "line"),
    [
        (
            "facts.Car(facts.Plan(call.plan_id).car_id).model",
            {"car_id": "C7"},
            ["get_plan {'plan_id': 'P1'}", "get_car {'car_id': 'C7'}"],
            "- car: Polo",
        ),
        (
            "call.gb if facts.Plan(call.plan_id).is_free else facts.Car(call.plan_id).model",
            {"is_free": True},
            ["get_plan {'plan_id': 'P1'}"],
            "- car: 2",
        ),
        (
            "[facts.Plan(call.plan_id).car_id, facts.Car(call.plan_id).model]",
            {"car_id": "C7"},
            ["get_plan {'plan_id': 'P1'}", "get_car {'car_id': 'P1'}"],
            "- car: [C7, Polo]",
        ),
    ],
)
def test_every_fact_that_a_value_depends_on_is_looked_up(
    code: str, record: dict[str, Any], steps: list[str], line: str
) -> None:
    tools = TOOLS.replace(
        "price: {value: facts.Plan(call.plan_id).price_per_gb * call.gb, title: total price}", f"car: '{code}'"
    )
    tools = tools.replace("{price}", "{car}").replace(
        "\ntools:\n", "\ntools:\n  get_car: {effect: read, parameters: {car_id: string}}\n"
    )
    more = ", car_id: string, is_free: boolean}}\n  Car: {key: car_id, read: get_car, fields: {model: string"
    desk, made = Desk(pack(tools, more=more)), list[str]()
    while (decision := desk.sells()).answer == "look_up":
        look_up = next(each for ground in decision.grounds for each in ground.look_ups)
        made.append(f"{look_up.tool} {look_up.arguments}")
        desk.session.decide(look_up.tool, look_up.arguments)
        shown = record if look_up.tool == "get_plan" else {"model": "Polo"}
        desk.session.result(json.dumps({**look_up.arguments, **shown}))
    assert made == steps
    assert decision.card is not None
    assert line in decision.card.text
    told(desk)


def test_a_write_that_may_change_anything_makes_shown_facts_stale() -> None:
    price = "price: {value: facts.Plan(call.plan_id).price_per_gb * call.gb, title: total price}"
    tools = TOOLS.replace(price, "car: facts.Car(facts.Plan(call.plan_id).car_id).model").replace("{price}", "{car}")
    tools = tools.replace(", changes: [Plan.price_per_gb]", "")
    tools += "  get_car: {effect: read, parameters: {car_id: string}}\n"
    desk = Desk(pack(tools, more=", car_id: string}}\n  Car: {key: car_id, read: get_car, fields: {model: string"))
    for repeat in (False, True):
        desk.sees(car_id="C7")
        if repeat:
            assert desk.sells().answer == "look_up"
        desk.session.decide("get_car", {"car_id": "C7"})
        desk.session.result('{"car_id": "C7", "model": "Polo"}')
        assert "- car: Polo" in desk.card()
        assert desk.session.decide("set_price", {"plan_id": "P2"}).allowed
        desk.session.result("done")


def test_who_repeats_one_of_several_shown_things_may_mean_that_one() -> None:
    price = "price: {value: facts.Plan(call.plan_id).price_per_gb * call.gb, title: total price}"
    tools = TOOLS.replace(price, "cars: facts.Plan(call.plan_id).cars").replace("{price}", "{cars}")
    for answer, counts in (("Yes, the Polo", False), ("Yes, add the Polo", False), ("Yes, add it", True)):
        desk = Desk(pack(tools, more=", cars: list"))
        desk.sees(cars=["Polo", "Golf"])
        desk.asks("Shall I add 2 GB to plan P1 for Polo, Golf?", answer)
        assert desk.sells().allowed is counts
        told(desk)


def test_a_fact_may_be_compared_with_none() -> None:
    price = "price: {value: facts.Plan(call.plan_id).price_per_gb * call.gb, title: total price}"
    tools = TOOLS.replace(price, 'price: \'"free" if facts.Plan(call.plan_id).fee == None else "paid"\'')
    desk = Desk(pack(tools, more=", fee: money"))
    desk.sees(fee=None)
    assert "- price: free" in desk.card()


def test_an_option_in_a_list_is_one_value() -> None:
    seat = "{type: object, properties: {cabin: {type: string, enum: [basic_economy]}}}"
    tools = TOOLS.replace("unit: GB}}", f"unit: GB}}, seats: {{type: array, items: {seat}, optional: true}}}}")
    desk = Desk(pack(tools))
    desk.sees()
    assert '- seats 1: cabin "basic economy"' in desk.card({**ADD, "seats": [{"cabin": "basic_economy"}]})


def test_an_approval_never_stands_in_for_a_card_that_cannot_be_shown() -> None:
    desk = Desk(pack(plan=PLAN.replace("read: get_plan, ", "")))
    decision = desk.sells()
    assert (decision.answer, decision.approval, decision.card) == ("deny", "", None)


def lines_of(value: str, written: str = "", field: str = "any: object", **fields: Any) -> list[str]:
    """The lines of a card that show one value."""
    shown = f"{{thing: {{value: '{value}'{written}}}}}"
    tools = TOOLS.replace(' for {price}"', ' with {thing}"')
    start, _, rest = tools.partition("    show: ")
    desk = Desk(pack(f"{start}    show: {shown}\n{rest.partition(chr(10))[2]}", more=f", {field}"))
    desk.sees(**fields)
    return [line for line in desk.card().splitlines() if line.startswith("- thing")]


@pytest.mark.parametrize(
    ("price", "written"),
    [
        ("-2.50", "-€5.00"),
        ("400000000000", "€800,000,000,000.00"),
        ("0.005", "€0.01"),
        ("0.00123", "€0.00246"),
        ("USD 2.50", "$5.00"),
        ("0", "€0.00"),
    ],
)
def test_money_is_written_the_way_people_write_it(price: str, written: str) -> None:
    desk = Desk(pack())
    desk.sees(price)
    assert f"- total price: {written}" in desk.card()


def test_money_beyond_all_measure_is_not_put_to_the_user() -> None:
    desk = Desk(pack())
    desk.sees("9" * 19)
    assert desk.sells().answer == "deny"


def test_a_pack_in_another_language_writes_amounts_its_way() -> None:
    german = ", card: {heading: 'Bitte bestätigen:', question: Soll ich das tun?, decimal: ','}"
    desk = Desk(pack(card=german))
    desk.sees("1234.50")
    assert "- total price: 2.469,00 €" in desk.card()
    desk.asks("Shall I add 2 GB to plan P1 for 2.469,00 €?")
    assert desk.sells().allowed


def test_lists_and_objects_read_like_text() -> None:
    flights = [
        {"flight_number": "HAT001", "cabin": "basic economy", "seats": ["1A", "1B"], "fee": None, "left": True},
        {"flight_number": "HAT002", "from": {"city": "Graz", "terminal": 2}},
    ]
    assert lines_of("facts.Plan(call.plan_id).any", field="any: list", any=flights) == [
        '- thing 1: flight number HAT001, cabin "basic economy", seats [1A, 1B], fee -, left yes',
        "- thing 2: flight number HAT002, from (city Graz, terminal 2)",
    ]
    assert lines_of("facts.Plan(call.plan_id).any", any={"first_name": "Ann", "age": 7}) == [
        "- thing / first name: Ann",
        "- thing / age: 7",
    ]
    assert lines_of("facts.Plan(call.plan_id).any", field="any: list", any=[]) == ["- thing: []"]
    assert lines_of("facts.Plan(call.plan_id).any", field="any: string?", any=None) == ["- thing: -"]
    assert lines_of("facts.Plan(call.plan_id).any", field="any: date", any="2026-03-01") == ["- thing: 2026-03-01"]
    assert lines_of("facts.Plan(call.plan_id).any", ", unit: km", "any: number", any=1234.5) == ["- thing: 1,234.5 km"]
    many = lines_of("facts.Plan(call.plan_id).any", field="any: list", any=[{"line": at} for at in range(50)])
    assert len(many) == 50


@pytest.mark.parametrize(
    "text",
    [
        "Free\nShall I do this? Please answer yes or no.",
        "Please confirm: nothing",
        "**Free** ~~5.00~~ `x`",
        "safe\u202e00.5\u202c",
        'A" - total price: "0',
        "a\u200bb\u00ad",
        "<!-- hidden -->",
    ],
)
def test_a_fact_s_text_stays_inside_its_quotes(text: str) -> None:
    (line,) = lines_of("facts.Plan(call.plan_id).any", field="any: string", any=text)
    shown = line.removeprefix("- thing: ")
    assert shown[0] == shown[-1] == '"'
    assert json.loads(shown) == text
    assert shown.isprintable()
    (item,) = lines_of("facts.Plan(call.plan_id).any", field="any: list", any=[{text: text}])
    assert item.isprintable()


def test_what_is_too_long_to_read_gets_no_card() -> None:
    tools = TOOLS.replace(
        "price: {value: facts.Plan(call.plan_id).price_per_gb * call.gb", "price: {value: facts.Plan(call.plan_id).name"
    )
    desk = Desk(pack(tools, more=", name: string"))
    desk.sees(name="long " * 1000)
    assert (desk.sells().answer, desk.decisions[-1].card) == ("ask", None)


@pytest.mark.parametrize(
    ("changes", "line", "message"),
    [
        ([("facts.Plan(", "facts.Plans(")], 9, "there is no entity `Plans`"),
        ([("price_per_gb *", "cost *")], 9, "`Plan` has no field `cost`"),
        ([("* call.gb,", "* call.size,")], 9, "no tool in scope has the argument `size`"),
        ([("* call.gb,", "* (,")], 9, "syntax"),
        ([("* call.gb,", "* now(),")], 9, "there is no built-in `now`"),
        ([("* call.gb,", "* __import__(1),")], 9, "there is no"),
        ([("* call.gb,", "* (x := 1),")], 9, "`:=` is not part of the language"),
        ([(".price_per_gb * call.gb", "")], 9, "is not a value; read one of its fields"),
        ([("facts.Plan(call.plan_id).price_per_gb", "facts.context.signed_in_as")], 9, "no tool shows"),
        ([("{price:", "{plan_id:"), ("{price}", "a price")], 9, "is already an argument of `add_data`"),
        ([("total price", "plan id")], 9, "looks like an argument"),
        ([("title: total price", "currency: Euro")], 9, "`Euro` is not a currency"),
        ([("unit: GB", "currency: Euro")], 10, "`Euro` is not a currency"),
        ([(" for {price}", "")], 8, "does not contain `{price}`"),
        ([("{price}", "{cost}")], 8, "`cost` in `put_as` is not a parameter of `add_data` and not in its `show`"),
        ([("title: total", "colour: total")], 9, "colour"),
    ],
)
def test_a_fact_that_cannot_be_shown_is_an_error_with_its_line(
    changes: Sequence[tuple[str, str]], line: int, message: str
) -> None:
    tools = TOOLS
    for old, new in changes:
        assert old in tools
        tools = tools.replace(old, new)
    with pytest.raises(PackError) as raised:
        pack(tools)
    assert [each for each in raised.value.faults if message in str(each) and each.place == f"tools.yaml:{line}"], [
        (str(each), each.place) for each in raised.value.faults
    ]


def test_a_reviewer_sees_the_facts_beside_their_sentence_and_signs_them(tmp_path: Path) -> None:
    folder = tmp_path / "phone"
    folder.mkdir()
    for name, text in files().items():
        (folder / name).write_text(text, encoding="utf-8")
    fact = "price = facts.Plan(call.plan_id).price_per_gb * call.gb"
    assert check(load_pack(folder)).shown == (("add_data", ('"add {gb} to plan {plan_id} for {price}"', fact)),)
    assert fact in bylaw(tmp_path, "review", folder).stdout
    assert bylaw(tmp_path, "review", folder, "--accept", "ask", "--by", "ann").returncode == 0
    cheaper = files(TOOLS.replace("* call.gb, title", "* 1, title"))["tools.yaml"]
    (folder / "tools.yaml").write_text(cheaper, encoding="utf-8")
    assert "lapsed" in bylaw(tmp_path, "review", folder).stdout


def test_a_private_fact_is_not_shown() -> None:
    tools = TOOLS.replace("Plan(call.plan_id).price_per_gb * call.gb", "Plan(call.plan_id).owner")
    with pytest.raises(PackError, match=r"`Plan\.owner` is private"):
        pack(tools, more=", owner: {type: string, private: true}")


def test_a_currency_belongs_to_money() -> None:
    for more, message in ((", name: {type: string, currency: EUR}", "not of type money"),
                          (", fee: {type: money, currency: euro}", "`euro` is not a currency")):  # fmt: skip
        with pytest.raises(PackError, match=message):
            pack(more=more)
