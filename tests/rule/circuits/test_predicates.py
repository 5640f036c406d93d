"""Ways to a value, cheap ones first; detectors; explanations and pictures."""

from xml.etree import ElementTree

import msgspec
import pytest

from bylaw.errors import CircuitError
from bylaw.rule.circuit import Circuit, WeightedRule
from bylaw.rule.circuit_drawing import draw_circuit
from bylaw.rule.detectors import personal
from bylaw.rule.explanation import explain
from bylaw.rule.inference import Inference, assess
from bylaw.rule.parser import parse
from bylaw.rule.predicate import (
    CircuitPredicate,
    Code,
    Detector,
    GuardVerdict,
    Means,
    Model,
    Pattern,
    Tool,
    cheapest_first,
    finder,
    settle,
)


class Call(msgspec.Struct):
    tool: str | None = "pay"
    arguments: dict[str, object] = {}
    text: str = ""


def circuit(*rules: tuple, **more) -> Circuit:
    return Circuit(
        action="pay",
        rules=tuple(WeightedRule(name=name, formula=parse(text), **how) for name, text, how in rules),
        **more,
    )


def test_each_way_finds_its_value():
    means = Means(
        code=lambda code: lambda act: act.arguments.get("amount") == int(code),
        guard=lambda policy: lambda act: {"p": "deny", "q": "undetermined"}[policy],
        model=lambda question, act: 0.8,
        detectors={"shouting": lambda act: act.text.isupper()},
    )
    act = Call(arguments={"amount": 5}, text="HELLO")

    def value(way):
        return finder(CircuitPredicate(name="x", way=way), means)(act)

    assert value(Tool("pay")) is True
    assert value(Tool("cancel")) is False
    assert value(Tool("pay", condition="6")) is False
    assert value(Code("5")) is True
    assert value(Pattern("hel+o")) is True
    assert value(Detector("shouting")) is True
    assert value(Detector("pii")) is False
    assert value(GuardVerdict("p")) is True
    assert value(GuardVerdict("p", "permit")) is False
    assert value(GuardVerdict("q")) is None
    assert value(Model("is it rude?")) == 0.8
    assert value(None) is None


def test_a_way_whose_means_are_missing_finds_nothing_and_never_false():
    for way in (Code("5"), GuardVerdict("p"), Model("?"), Tool("pay", condition="1")):
        assert finder(CircuitPredicate(name="x", way=way), Means())(Call()) is None
    with pytest.raises(CircuitError, match="nobody passed in"):
        finder(CircuitPredicate(name="x", way=Detector("unheard")), Means())


def test_a_sure_model_is_still_only_likely():
    found = finder(CircuitPredicate(name="x", way=Model("?")), Means(model=lambda question, act: 1.0))(Call())
    assert 0.999 < found < 1.0


def test_predicates_are_records_that_read_and_write():
    predicate = CircuitPredicate(name="x", way=Tool("pay"), keywords=("a",))
    assert msgspec.json.decode(msgspec.json.encode(predicate), type=CircuitPredicate) == predicate


def test_cheap_predicates_are_tried_first_and_dear_ones_not_at_all_where_the_answer_is_settled():
    asked = []

    def model(question, act):
        asked.append(question)
        return 0.5

    predicates = {
        "rude": CircuitPredicate(name="rude", way=Model("rude?")),
        "card": CircuitPredicate(name="card", way=Detector("card")),
    }
    assert [each.name for each in cheapest_first(predicates.values())] == ["card", "rude"]
    inference = Inference(circuit(("r", "pay IMPLIES NOT card", {"hard": True}), ("s", "pay IMPLIES NOT rude", {})))
    found, evidence = settle(inference, Call(text="4111 1111 1111 1111"), predicates, Means(model=model))
    assert found.decision == "deny"
    assert evidence == {"card": True}
    assert not asked
    found, evidence = settle(inference, Call(text="fine"), predicates, Means(model=model))
    assert asked == ["rude?"]
    assert found.decision == "ask", "a probability leaves both ends open"


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("write to jo.doe+x@mail.example.org now", ["email"]),
        ("call +49 30 1234567 or", ["phone"]),
        ("call (030) 123-4567", ["phone"]),
        ("card 4111 1111 1111 1111", ["card"]),
        ("card 4111111111111112", []),
        ("iban DE89 3704 0044 0532 0130 00", ["iban"]),
        ("iban DE89 3704 0044 0532 0130 05", []),
        ("ssn 123-45-6789", ["ssn"]),
        ("no ssn, but digits in groups: 000-45-6789", ["phone"]),
        ("on 2024-05-15 at 15:00", []),
        ("reservation 4WQ150 for 12345678", []),
        ("costs 1,200.50 dollars", []),
    ],
)
def test_detectors_find_what_their_page_says(text, kinds):
    assert list(personal(text)) == kinds


def test_explanations_name_the_sentence_and_what_would_make_it_pass():
    made = circuit(
        ("consent", "pay IMPLIES confirmed", {"hard": True, "policy": "p1", "sentence": "Ask first."}),
        ("limit", "pay IMPLIES (small OR manager)", {"weight": 2.0, "sentence": "Large sums: a manager."}),
    )
    evidence = {"confirmed": False, "small": False, "manager": False}
    told = explain(made, assess(made, evidence), evidence)
    assert told.summary == "`pay` is denied: vetoed by `consent`"
    assert [reason.text for reason in told.reasons] == [
        '`pay` would break hard rule `consent` ("Ask first."); it would pass if `confirmed` were true',
        '`pay` would break rule `limit` ("Large sums: a manager."), weight 2.00; it would pass if `small` were true',
    ]
    assert told.reasons[0].policy == "p1"
    evidence = {"confirmed": None, "small": True, "manager": False}
    told = explain(made, assess(made, evidence), evidence)
    assert told.summary == "`pay` is undecided: it hangs on `confirmed`"
    assert told.reasons[0].remedy == {"confirmed": True}
    evidence = {"confirmed": True, "small": True, "manager": False}
    assert "may proceed" in explain(made, assess(made, evidence), evidence).summary


def test_a_conflict_goes_to_a_person():
    made = circuit(("calm", "calm", {"hard": True}))
    told = explain(made, assess(made, {"calm": False}), {"calm": False})
    assert told.summary == "`pay` needs a person: `calm` cannot be kept either way"


def test_a_circuit_is_drawn_as_well_formed_svg_with_rules_weights_and_predicates():
    made = circuit(("a<b", "pay IMPLIES ok", {"weight": 1.5}), ("k", "x IMPLIES ok", {"physical": True, "hard": True}))
    picture = draw_circuit(made, assess(made, {"ok": False}))
    root = ElementTree.fromstring(picture)
    words = [each.text for each in root.iter() if each.tag.endswith("text")]
    assert {"ok", "x", "pay", "1.50", "knowledge"} <= set(words)
    assert "#fbd5d5" in picture
