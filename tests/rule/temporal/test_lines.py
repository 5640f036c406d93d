"""`bylaw rules eval`: one line out for every line in, whatever comes."""

import io
import json

from bylaw.rule.lines import eval_lines


def answers(*lines: object) -> tuple[list[dict[str, object]], int]:
    given = b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines) + b"\n"
    out = io.BytesIO()
    status = eval_lines(io.BytesIO(given), out)
    return [json.loads(line) for line in out.getvalue().splitlines()], status


def ask(formula: str, *trace: dict[str, bool | None]) -> tuple[object, object]:
    [found], status = answers({"formula": formula, "trace": list(trace)})
    assert status == 0, found
    assert set(found) == {"holds", "verdict"}
    return found["holds"], found["verdict"]


def test_the_four_verdicts() -> None:
    assert ask("EVENTUALLY a", {"a": True}) == (True, "permanently_satisfied")
    assert ask("ALWAYS a", {"a": True}) == (True, "currently_satisfied")
    assert ask("EVENTUALLY a", {"a": False}) == (False, "currently_violated")
    assert ask("ALWAYS (a IMPLIES ONCE b)", {"a": True, "b": False}) == (False, "permanently_violated")


def test_a_formula_that_no_values_can_meet_is_hopeless_from_the_start() -> None:
    assert ask("ALWAYS a AND EVENTUALLY NOT a", {"a": True}) == (False, "permanently_violated")
    assert ask("ALWAYS (a OR b) AND EVENTUALLY (NOT a AND NOT b)", {}) == (False, "permanently_violated")
    assert ask("ALWAYS (a OR NOT a)", {}) == (True, "permanently_satisfied")


def test_unknown_and_absent_predicates_leave_open_what_they_decide() -> None:
    assert ask("a OR b", {"a": None, "b": True}) == (True, "permanently_satisfied")
    assert ask("a OR b", {"b": False}) == (None, None)
    assert ask("EVENTUALLY a OR EVENTUALLY NOT a", {}) == (True, "permanently_satisfied")
    assert ask("EVENTUALLY a", {"a": None}, {"a": True}) == (True, "permanently_satisfied")
    assert ask("ALWAYS a", {"a": None}, {"a": False}) == (False, "permanently_violated")
    assert ask("NEXT b AND a", {"a": None}, {"b": False}) == (False, "permanently_violated")
    assert ask("NEXT b AND a", {"a": None}) == (False, None)


def test_next_is_strong_weak_next_is_weak_and_yesterday_is_false_at_first() -> None:
    assert ask("NEXT TRUE", {})[0] is False
    assert ask("WEAK_NEXT FALSE", {})[0] is True
    assert ask("YESTERDAY TRUE", {})[0] is False
    assert ask("HISTORICALLY a", {"a": True})[0] is True


def test_every_line_gets_an_answer_and_a_bad_one_the_status_three() -> None:
    deep = b'{"formula": "a", "trace": [{}], "more": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    good = {"formula": "a", "trace": [{"a": True}]}
    bad = [
        b"",
        b"nonsense",
        b"\xff\xfe",
        b"[]",
        deep,
        {"formula": "a"},
        {"formula": "a", "trace": []},
        {"formula": "a", "trace": [{"a": 1}]},
        {"formula": "a", "trace": {"a": True}},
        {"formula": "ONCE NEXT a", "trace": [{}]},
        {"formula": 3, "trace": [{}]},
        {"formula": "(" * 10_000, "trace": [{}]},
    ]
    found, status = answers(good, *bad, good)
    assert status == 3
    assert len(found) == len(bad) + 2
    assert [set(line) for line in found[1:-1]] == [{"error"}] * len(bad)
    assert found[0] == found[-1] == {"holds": True, "verdict": "permanently_satisfied"}
    assert "column 6" in str(found[10]["error"])


def test_the_last_line_needs_no_line_end_and_no_lines_are_fine() -> None:
    out = io.BytesIO()
    assert eval_lines(io.BytesIO(b'{"formula":"a","trace":[{"a":false}]}'), out) == 0
    assert out.getvalue() == b'{"holds":false,"verdict":"permanently_violated"}\n'
    assert eval_lines(io.BytesIO(b""), out) == 0


def test_many_predicates_and_many_steps_are_answered() -> None:
    wide = " OR ".join(f"p{i}" for i in range(60))
    assert ask(f"ALWAYS ({wide})", {"p7": True})[0] is True
    assert ask(f"ALWAYS ({wide})", {})[0] is None
    assert ask(f"ALWAYS ({wide})", {f"p{i}": False for i in range(60)}) == (False, "permanently_violated")
    many = " AND ".join(f"EVENTUALLY p{i}" for i in range(30))
    assert ask(many, *({f"p{i}": i == step for i in range(30)} for step in range(30))) == (
        True,
        "permanently_satisfied",
    )
    assert ask(many, {f"p{i}": i == 3 for i in range(30)}) == (False, "currently_violated")
    never = " AND ".join(f"ALWAYS NOT p{i}" for i in range(30))
    assert ask(never, dict.fromkeys((f"p{i}" for i in range(30)), False)) == (True, "currently_satisfied")
    assert ask(f"({many}) AND ALWAYS NOT p7", {f"p{i}": i == 3 for i in range(30)})[1] in (None, "permanently_violated")
    assert ask("ALWAYS (a IMPLIES EVENTUALLY b)", *({"a": True, "b": False} for _ in range(5000)))[0] is False
    nexts = "NEXT " * 100 + "a"
    assert ask(nexts, {"a": True}) == (False, "currently_violated")


def test_a_change_that_lies_far_ahead_is_found() -> None:
    seen = {"a": True, "b": True}
    assert ask("ALWAYS (a IMPLIES " + "NEXT " * 14 + "b)", seen, seen) == (False, "currently_violated")
    assert ask("EVENTUALLY (a AND " + "NEXT " * 14 + "b)", seen, seen) == (False, "currently_violated")


def test_a_formula_too_large_to_follow_still_has_a_value() -> None:
    huge = " XOR ".join(f"(p{i} UNTIL (q{i} AND NEXT p{i}))" for i in range(14))
    step = {f"p{i}": True for i in range(14)} | {f"q{i}": i == 0 for i in range(14)}
    assert ask(huge, step, step)[0] is True
    assert ask(huge, step) == (False, None)


def test_a_long_row_of_conditions_is_no_deep_nesting() -> None:
    names = [f"p{i}" for i in range(200)]
    assert ask(" AND ".join(names), dict.fromkeys(names, True))[0] is True
    assert ask(" AND ".join(names), {"p199": False}) == (False, "permanently_violated")


def test_a_byte_order_mark_is_no_part_of_the_first_line() -> None:
    found, status = answers(b'\xef\xbb\xbf{"formula": "a", "trace": [{"a": true}]}\r')
    assert (found[0]["holds"], status) == (True, 0)


def test_an_empty_line_is_said_to_be_empty() -> None:
    found, status = answers(b"")
    assert "empty" in str(found[0]["error"])
    assert status == 3
