"""Every reward equals a value worked out by hand, and stays in its range."""

import io
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bylaw.align.lines import read_turn, score_lines
from bylaw.align.reward import Judged, Switches, Text, ToolCall, Turn, matched, same, score, turn_reward
from tests.written import load

_FILE = load(Path(__file__).parent / "rewards.yaml")
CASES: list[dict[str, Any]] = _FILE["cases"]
BASE: dict[str, Any] = _FILE["base"]

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-3, 3, width=16) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=5,
)
CALLS = st.builds(ToolCall, st.sampled_from("tuv"), st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4))
POLICIES = st.frozensets(st.sampled_from([f"P{number}" for number in range(6)]))
VERDICTS = st.sampled_from(["compliant", "violation", "near_miss", "uninformed", "inconclusive", None])
TURNS = st.builds(
    Turn,
    POLICIES,
    POLICIES,
    st.integers(0, 9),
    st.integers(0, 600),
    st.booleans(),
    CALLS | st.builds(Judged, st.floats(0, 10)),
    CALLS | st.builds(Text, st.text(max_size=5)),
    VERDICTS,
)


def _line(case: dict[str, Any]) -> bytes:
    return json.dumps({**BASE, **case.get("of", {})}).encode()


@pytest.mark.parametrize("case", CASES, ids=[case["note"] for case in CASES])
def test_a_reward_is_what_was_worked_out_by_hand(case: dict[str, Any]) -> None:
    switches = msgspec.convert(case.get("switches", {}), Switches)
    out = io.BytesIO()
    assert score_lines(io.BytesIO(_line(case)), out, switches) == 0
    found = json.loads(out.getvalue())
    for term, value in case["want"].items():
        assert found.get(term) == (value if value is None else float(Fraction(str(value)))), term


def test_there_are_cases_enough_and_no_two_are_one() -> None:
    assert len(CASES) >= 60
    assert len({_line(case) + repr(case.get("switches")).encode() for case in CASES}) == len(CASES)


@given(TURNS, st.sampled_from(["paper", "floor"]))
def test_every_term_stays_in_its_range(turn: Turn, mismatch: Any) -> None:
    found = score(turn, Switches(mismatch=mismatch))
    assert found.format in (0, 1)
    assert -3 <= found.turn <= 3
    assert 0 <= found.policy_recall <= 1
    assert 0 <= found.hallucination <= 1
    assert 0 <= found.length <= 1
    assert -5 <= found.total <= 5
    assert found.compliance is None


@given(TURNS, st.floats(0.25, 4))
def test_the_compliance_term_only_takes_off_and_at_most_its_weight(turn: Turn, weight: float) -> None:
    plain, strict = score(turn), score(turn, Switches(compliance=weight))
    assert strict.compliance is not None
    assert 0 <= strict.compliance <= weight
    assert strict.total == pytest.approx(plain.total - strict.compliance)


@given(TURNS)
def test_the_total_is_the_sum_of_its_terms(turn: Turn) -> None:
    found = score(turn)
    terms = found.format + found.turn + found.policy_recall - found.hallucination - found.length
    assert found.total == pytest.approx(terms)


@given(CALLS, CALLS)
def test_only_the_expected_call_has_the_full_reward(expected: ToolCall, predicted: ToolCall) -> None:
    is_it = expected.tool == predicted.tool and same(expected.arguments, predicted.arguments)
    assert (turn_reward(expected, predicted) == 3) == is_it
    assert 0 <= matched(expected, predicted) <= 2 + len(expected.arguments)


@given(VALUES, VALUES, VALUES)
def test_equality_of_values_is_an_equivalence_and_survives_json(one: Any, two: Any, three: Any) -> None:
    assert same(one, one)
    assert same(one, two) == same(two, one)
    assert not (same(one, two) and same(two, three)) or same(one, three)
    assert same(one, json.loads(json.dumps(one)))


BAD = [
    (b"{", "input data was truncated"),
    (b"\n", "input data was truncated"),
    (b"[]", "expected `object`, got `array`"),
    (b'{"required": []}', "missing required field `recalled`"),
    ({"hallucinated": -1}, "`int` >= 0 - at `$.hallucinated`"),
    ({"hallucinated": [1]}, "got `array` - at `$.hallucinated`"),
    ({"thought_words": -5}, "`int` >= 0 - at `$.thought_words`"),
    ({"format_ok": 1}, "expected `bool`, got `int` - at `$.format_ok`"),
    ({"required": "P1"}, "got `str` - at `$.required`"),
    ({"expected": {"judge": 11}}, "`float` <= 10.0 - at `$.expected.judge`"),
    ({"expected": {"judge": 1, "tool": "t"}}, "expected has both of `tool` and `judge`, but must have exactly one"),
    ({"expected": {}}, "expected has neither of `tool` and `judge`"),
    ({"expected": {"tool": "t"}}, "missing required field `arguments` - at `$.expected`"),
    ({"expected": {"tool": "t", "arguments": []}}, "got `array` - at `$.expected.arguments`"),
    ({"predicted": {"tool": "t", "arguments": {}, "text": ""}}, "predicted has both of `tool` and `text`"),
    ({"predicted": {"txt": ""}}, "predicted has neither of `tool` and `text`"),
    ({"predicted": {"text": "a", "texts": "b"}}, "unknown field `texts` - at `$.predicted`"),
    ({"verdict": "fine"}, "at `$.verdict`"),
]


@pytest.mark.parametrize(("bad", "why"), BAD, ids=[why for _, why in BAD])
def test_a_bad_line_is_reported_with_its_place_and_the_others_are_scored(
    bad: Any, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = bad if isinstance(bad, bytes) else _line({"of": bad})
    good = _line({})
    out = io.BytesIO()
    status = score_lines(io.BytesIO(b"\n".join([good, line.strip(), good])), out)
    first, second, third = map(json.loads, out.getvalue().splitlines())
    assert status == 3
    assert first["total"] == third["total"] == 5
    assert second["error"].startswith("<stdin>:2: not a turn: ")
    assert why in second["error"].lower() or why in second["error"]
    assert f"bylaw: BY102 {second['error']}" in capsys.readouterr().err


def test_a_deeply_nested_line_is_refused_not_fatal() -> None:
    deep = b'{"required": [], "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    out = io.BytesIO()
    assert score_lines(io.BytesIO(deep + b"\n" + _line({})), out) == 3
    assert b"error" in out.getvalue().splitlines()[0]


def test_a_byte_order_mark_and_keys_of_ones_own_do_no_harm() -> None:
    line = b"\xef\xbb\xbf" + _line({"of": {"id": "turn-7"}})
    out = io.BytesIO()
    assert score_lines(io.BytesIO(line), out) == 0
    assert set(json.loads(out.getvalue())) == {"format", "turn", "policy_recall", "hallucination", "length", "total"}


def test_a_line_is_read_as_the_turn_it_says() -> None:
    turn = read_turn(_line({}), "x:1")
    assert turn.required == {"P1"}
    assert turn.expected == turn.predicted == ToolCall("cancel", {"id": "A1", "fee": 25})
