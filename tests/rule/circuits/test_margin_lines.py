"""The contract of `bylaw rules margin`."""

import io
import json
import math

import pytest

from bylaw.rule.lines import margin_lines


def ask(*lines) -> tuple[int, list[dict]]:
    text = b"".join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines)
    out = io.BytesIO()
    status = margin_lines(io.BytesIO(text), out)
    return status, [json.loads(line) for line in out.getvalue().splitlines()]


def one(rules, evidence, **more) -> dict:
    status, (reply,) = ask({"action": "pay", "rules": rules, "evidence": evidence, **more})
    assert status == 0
    return reply


SOFT = {"formula": "pay IMPLIES ok", "weight": 2.0}
HARD = {"formula": "pay IMPLIES ok", "hard": True}


def test_a_broken_rule_gives_the_closed_form_and_every_key():
    margin = math.tanh(-1)
    assert one([SOFT], {"ok": False}) == {
        "safe": False,
        "decision": "deny",
        "p_action": pytest.approx((1 + margin) / 2),
        "margin": pytest.approx(margin),
        "interval": [pytest.approx(margin)] * 2,
        "veto": [],
        "conflict": [],
    }


def test_null_is_a_uniform_unknown_and_so_is_a_missing_predicate():
    broken = math.exp(-2.0)
    margin = ((1 + broken) - 2) / ((1 + broken) + 2)
    for evidence in ({"ok": None}, {}):
        reply = one([SOFT], evidence)
        assert reply["margin"] == pytest.approx(margin, abs=1e-12)
        assert reply["p_action"] == pytest.approx((1 + margin) / 2, abs=1e-12)
        assert reply["interval"] == [pytest.approx(math.tanh(-1)), 0.0]
        assert reply["decision"] == "ask"


def test_a_number_is_virtual_evidence():
    taken, without = 0.7 + 0.3 * math.exp(-2.0), 1.0
    assert one([SOFT], {"ok": 0.7})["margin"] == pytest.approx((taken - without) / (taken + without), abs=1e-12)
    assert one([SOFT], {"ok": 1})["margin"] == 0.0
    assert one([SOFT], {"ok": 0})["margin"] == pytest.approx(math.tanh(-1))


def test_eps_moves_the_answer():
    assert one([], {})["safe"]
    assert not one([], {}, eps=0.1)["safe"]
    assert one([SOFT], {"ok": False}, eps=-0.9)["decision"] == "allow"


def test_hard_rules_veto_conflict_or_wait_and_stay_out_of_the_margin():
    reply = one([HARD], {"ok": False})
    assert (reply["safe"], reply["interval"], reply["veto"]) == (False, [-1.0, -1.0], ["pay IMPLIES ok"])
    assert reply["margin"] == 0.0
    assert reply["p_action"] == 0.5
    reply = one([{**HARD, "name": "consent"}], {})
    assert (reply["safe"], reply["interval"], reply["decision"]) == (False, [-1.0, 0.0], "ask")
    assert reply["veto"] == reply["conflict"] == []
    reply = one([{"formula": "ok", "hard": True, "name": "always ok"}], {"ok": False})
    assert (reply["safe"], reply["conflict"]) == (False, ["always ok"])


def test_equal_rules_do_not_collide():
    assert one([SOFT, SOFT], {"ok": False})["margin"] == pytest.approx(math.tanh(-2))
    assert one([HARD, HARD], {"ok": False})["veto"] == ["pay IMPLIES ok"] * 2


def test_above_the_width_cap_margin_and_probability_are_null():
    rule = {"formula": "pay IMPLIES (" + " XOR ".join(f"x{i}" for i in range(14)) + ")", "weight": 1.0}
    reply = one([rule], {})
    assert reply["margin"] is None
    assert reply["p_action"] is None
    assert reply["interval"] == [pytest.approx(math.tanh(-0.5)), 0.0]
    assert not reply["safe"]
    assert one([rule], {}, width_cap=20)["margin"] is not None


def test_every_line_gives_one_line_and_a_faulty_one_makes_the_status_3():
    good = {"action": "pay", "rules": [SOFT], "evidence": {}}
    status, replies = ask(
        good,
        b"nonsense",
        b"",
        {"action": "pay", "rules": [{"formula": "pay IMPLIES ("}]},
        {"action": "pay", "rules": [{"formula": "EVENTUALLY pay"}]},
        {"action": "pay", "rules": [SOFT], "evidence": {"ok": 1.2}},
        {"action": "pay", "rules": [SOFT], "evidence": {"ok": "yes"}},
        {"rules": []},
        good,
    )
    assert status == 3
    assert [list(reply) == ["error"] for reply in replies] == [False, *[True] * 7, False]


def test_no_line_costs_the_lines_after_it():
    deep = b'{"action": "pay", "rules": [], "more": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    heavy = {"action": "pay", "rules": [{**SOFT, "weight": 1e308}] * 3, "evidence": {"ok": False}}
    status, replies = ask(deep, heavy, b"", {"action": "pay", "rules": [SOFT], "evidence": {"ok": True}})
    assert status == 3
    assert ["error" in reply for reply in replies] == [True, True, True, False]


def test_the_heaviest_weight_is_weighed():
    assert one([{**SOFT, "weight": 1e308}], {"ok": False})["margin"] == -1.0
    assert one([{**SOFT, "weight": 1e308}], {"ok": None})["margin"] == pytest.approx(-1 / 3)


def test_a_tie_is_a_margin_of_zero_whatever_rounding_does():
    for number in range(1, 60):
        rules = [
            {"formula": "pay IMPLIES a OR b", "weight": number / 7},
            {"formula": "NOT pay IMPLIES d OR c", "weight": number / 7},
            {"formula": "pay IMPLIES NOT a", "weight": 0.7},
            {"formula": "NOT pay IMPLIES NOT c", "weight": 0.7},
        ]
        p = round(number / 401, 3)
        found = one(rules, {"a": p, "c": p})
        assert (found["safe"], found["margin"]) == (True, 0.0)


def test_a_byte_order_mark_is_no_part_of_the_first_line():
    line = b'\xef\xbb\xbf{"action": "pay", "rules": [], "evidence": {}}'
    assert ask(line)[0] == 0
