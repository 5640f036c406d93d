"""Pictures of circuits."""

from xml.etree import ElementTree

from bylaw.rule.circuit import Circuit
from bylaw.rule.drawing import draw_circuit
from bylaw.rule.formula import parse
from bylaw.rule.rule import Rule


def circuit(*rules: tuple, **more) -> Circuit:
    return Circuit(
        action="pay",
        rules=tuple(Rule(name=name, formula=parse(text), **how) for name, text, how in rules),
        **more,
    )


def test_a_circuit_is_drawn_as_well_formed_svg_with_rules_weights_and_predicates():
    made = circuit(("a<b", "pay IMPLIES ok", {"weight": 1.5}), ("k", "x IMPLIES ok", {"physical": True, "hard": True}))
    picture = draw_circuit(made)
    root = ElementTree.fromstring(picture)
    words = [each.text for each in root.iter() if each.tag.endswith("text")]
    assert {"ok", "x", "pay", "1.50", "knowledge"} <= set(words)
