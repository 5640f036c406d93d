"""`bylaw explain` says what became of a look-up, what made a fact stale, and which rules the call broke."""

from io import StringIO
from typing import Any

from rich.console import Console

from bylaw.cli.explain import explain

Record = dict[str, Any]
LOOKUP: Record = {"tool": "get_usage", "args": {"account_id": "7"}}


def told(events: list[Record], *, step: int, rules: tuple[Record, ...] = (), **missing: Any) -> str:
    fact = {"entity": "Usage", "key": ["7"], "field": "users", "lookup": LOOKUP, "claimed_at": None, "stale_by": None}
    policy = {"id": "p", "strict": "near_miss", "because": "", "asks": [], "missing": [fact | missing]}
    line = {"trajectory": "t", "tool": "set_seats", "step": step, "executed": True, "rules": list(rules)}
    out = StringIO()
    verdicts = {"strict": "near_miss", "determined": "near_miss", "policies": [policy]}
    explain(line | verdicts, {}, events, Console(file=out, width=80, highlight=False))
    return out.getvalue()


def call(tool: str, **arguments: Any) -> Record:
    return {"type": "call", "tool": tool, "arguments": arguments, "by": "agent"}


def result(of: int) -> Record:
    return {"type": "result", "call": of, "text": "...", "error": None}


def test_an_answer_that_came_after_the_call_is_named() -> None:
    events = [call("get_usage", account_id=7), call("set_seats", account_id=7), result(0), result(1)]
    text = told(events, step=1, reason="never_seen")
    assert "get_usage was called at step 0, but answered after this call, at step 2" in text


def test_an_answer_that_did_not_show_the_fact_is_named() -> None:
    events = [call("get_usage", account_id=7), result(0), call("set_seats", account_id=7), result(2)]
    text = told(events, step=2, reason="never_seen")
    assert "get_usage was called at step 0; its answer at step 1 did not show it" in text


def test_an_answer_that_was_not_recorded_is_named() -> None:
    events = [call("get_usage", account_id=7), call("set_seats", account_id=7)]
    assert "called at step 0; no answer was recorded" in told(events, step=1, reason="never_seen")


def test_a_look_up_of_another_thing_is_none() -> None:
    events = [call("get_usage", account_id=8), result(0), call("set_seats", account_id=7)]
    assert "was called" not in told(events, step=2, reason="never_seen")


def test_the_write_that_made_a_fact_stale_is_named() -> None:
    events = [call("get_usage", account_id=7), result(0), call("add_user", id=1), result(2), call("set_seats")]
    text = told(events, step=4, reason="stale", stale_by=2)
    assert "what was seen is out of date since step 2: add_user" in text
    assert "was called" not in text


def test_broken_rules_are_told() -> None:
    broken = {"rule": "confirm", "sentence": "Ask first.", "because": "change, not agreed"}
    text = told([call("set_seats", account_id=7)], step=0, reason="never_seen", rules=(broken,))
    assert "confirm  rule: broken" in text
    assert "Ask first." in text
    assert "at this call: change, not agreed" in text
