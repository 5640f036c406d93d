"""What makes a fact stale and what does not, one situation at a time."""

from decimal import Decimal
from typing import Any

import pytest

from bylaw.facts.entity import EXISTS, UNSEEN, Between
from bylaw.facts.seen import SeenFacts, TrueFacts
from bylaw.trace.event import Call, Event, Message, Result
from tests.facts.boxes import BOX, LOOK, SEEN, A, B, judged, ledger_of, sees


def test_what_was_looked_at_is_seen() -> None:
    assert sees([LOOK, SEEN]) == (5, 6)


def test_a_look_without_a_result_shows_nothing() -> None:
    assert sees([LOOK]) == (UNSEEN, UNSEEN)
    assert sees([LOOK, Result(0, '{"a": 5}', captured=False)]) == (UNSEEN, UNSEEN)


@pytest.mark.parametrize(
    ("tool", "arguments", "wanted"),
    [
        ("set_a", {"box_id": "1"}, (UNSEEN, 6)),
        ("set_a", {"box_id": "2"}, (5, 6)),
        ("set_a", {"box_id": 1}, (UNSEEN, 6)),
        ("set_both", {"box_id": "1"}, (UNSEEN, UNSEEN)),
        ("wipe", {}, (5, UNSEEN)),
        ("smash", {"box_id": "1"}, (UNSEEN, UNSEEN)),
        ("smash", {"box_id": "2"}, (5, 6)),
        ("set_many", {"ids": ["2", "1"]}, (UNSEEN, 6)),
        ("set_many", {"ids": ["2"]}, (5, 6)),
        ("set_many", {"ids": []}, (5, 6)),
        ("set_many", {}, (5, 6)),
        ("look", {"box_id": "2"}, (5, 6)),
        ("set_a", {"box_id": " 1"}, (UNSEEN, 6)),
        ("set_a", {"box_id": "1.0"}, (UNSEEN, 6)),
        ("set_a", {"box_id": "'1'"}, (UNSEEN, 6)),
        ("set_a", {"box_id": "１"}, (UNSEEN, 6)),
        ("set_a", {"box_id": ["1"]}, (UNSEEN, 6)),
        ("set_a", {"box_id": {"id": "1"}}, (UNSEEN, 6)),
        ("set_a", {"box_id": '["1", "2"]'}, (UNSEEN, 6)),
        ("set_a", {"box_id": "11"}, (5, 6)),
        ("set_a", {"box_id": "_1"}, (UNSEEN, 6)),
        ("set_a", {"box_id": "1-"}, (UNSEEN, 6)),
        ("set_a", {"box_id": "-1"}, (5, 6)),
        ("set_many", {"ids": "1"}, (UNSEEN, 6)),
        ("set_many", {"ids": {"first": "1"}}, (UNSEEN, 6)),
        ("set_many", {"ids": [["1"]]}, (UNSEEN, 6)),
    ],
)
def test_a_write_makes_stale_what_it_declares(tool: str, arguments: dict[str, Any], wanted: tuple[Any, Any]) -> None:
    assert sees([LOOK, SEEN, Call(tool, arguments, turn=2), Result(2, '{"ok": true}')]) == wanted


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ({"box_id": "1"}, (UNSEEN, UNSEEN)),
        ({"id": 1}, (UNSEEN, UNSEEN)),
        ({"boxes": [{"id": "2"}, {"id": " 1 "}]}, (UNSEEN, UNSEEN)),
        ({"query": "UPDATE boxes SET a = 0 WHERE id = '1'"}, (UNSEEN, UNSEEN)),
        ({"box_id": "2"}, (5, 6)),
        ({"thought": "box 11 is next"}, (5, 6)),
        ({}, (5, 6)),
    ],
)
def test_a_tool_that_nobody_declared_may_have_changed_what_it_names(
    arguments: dict[str, Any], wanted: tuple[Any, Any]
) -> None:
    call = Call("unheard_of", arguments, turn=2)
    assert sees([LOOK, SEEN, call, Result(2, '{"done": 1}')]) == wanted
    assert sees([LOOK, SEEN, call]) == wanted
    assert sees([LOOK, SEEN, call, Result(2, "unknown tool", error=True)]) == (5, 6)


@pytest.mark.parametrize(
    ("tool", "arguments", "wanted"),
    [
        ("move", {"source": "1", "to": "7"}, (UNSEEN, UNSEEN)),
        ("move", {"source": "7", "to": 1}, (UNSEEN, UNSEEN)),
        ("move", {"source": "7", "to": [{"id": " 1 "}]}, (UNSEEN, UNSEEN)),
        ("move", {"source": "7", "note": "put it into box 1"}, (UNSEEN, UNSEEN)),
        ("move", {"source": "7", "to": "11"}, (5, 6)),
        ("move", {}, (5, 6)),
        ("smash", {"box_id": "2", "into": "1"}, (UNSEEN, UNSEEN)),
        ("note", {"source": "1"}, (5, 6)),
    ],
)
def test_a_write_that_does_not_say_what_it_changes_may_have_changed_what_it_names(
    tool: str, arguments: dict[str, Any], wanted: tuple[Any, Any]
) -> None:
    write = Call(tool, arguments, turn=2)
    assert sees([LOOK, SEEN, write, Result(2, "done")]) == wanted
    assert sees([LOOK, SEEN, write]) == wanted
    assert sees([LOOK, SEEN, write, Result(2, "Error: no")]) == (5, 6)
    assert sees([write, Result(0, "done"), LOOK, Result(2, SEEN.content)]) == (5, 6)
    assert sees([write, LOOK, Result(1, SEEN.content), Result(0, "done")]) == wanted


@pytest.mark.parametrize("tool", ["check_box", "getBox", "think", "search", "transfer_to_human_agents"])
def test_a_tool_that_nobody_declared_and_that_sounds_harmless_is_taken_at_its_word(tool: str) -> None:
    events: list[Event] = [Call("look", {"box_id": "1"}, turn=1), Result(0, '{"box_id": "1", "a": 1}')]
    events += [Call(tool, {"box": "1"}, turn=2), Result(2, "ok")]
    seen, _ = judged(events)
    assert seen.read(BOX, ("1",), BOX.fields["a"]) == 1


def test_a_tool_that_nobody_declared_with_arguments_nobody_captured_may_have_changed_anything() -> None:
    call = Call("unheard_of", {}, turn=2, fault="arguments not captured")
    assert sees([LOOK, SEEN, call, Result(2, "ok")]) == (UNSEEN, UNSEEN)


def test_a_write_whose_arguments_do_not_say_which_makes_all_of_the_kind_stale() -> None:
    write = Call("set_a", {"to": 3}, turn=2)
    assert sees([LOOK, SEEN, write, Result(2, '{"ok": true}')]) == (UNSEEN, 6)


@pytest.mark.parametrize("tool", ["set_a", "set_many"])
def test_a_write_whose_arguments_were_not_captured_may_have_touched_any_box(tool: str) -> None:
    write = Call(tool, {}, turn=2, fault="arguments not captured")
    assert sees([LOOK, SEEN, write, Result(2, '{"ok": true}')]) == (UNSEEN, 6)


def test_an_undeclared_write_puts_existence_in_doubt() -> None:
    events: list[Event] = [LOOK, SEEN, Call("smash", {"box_id": "1"}, turn=2), Result(2, "done")]
    assert judged(events)[0].read(BOX, ("1",), EXISTS) is UNSEEN
    assert judged(events[:2])[0].read(BOX, ("1",), EXISTS) is True


@pytest.mark.parametrize("answer", ['{"error": "no"}', "Error: no", '{"isError": true}'])
def test_a_refused_write_changes_nothing(answer: str) -> None:
    assert sees([LOOK, SEEN, Call("set_both", {"box_id": "1"}, turn=2), Result(2, answer)]) == (5, 6)
    flagged = Result(2, "anything", error=True)
    assert sees([LOOK, SEEN, Call("set_both", {"box_id": "1"}, turn=2), flagged]) == (5, 6)


def test_a_write_whose_result_was_not_captured_counts_as_done() -> None:
    write = Call("set_both", {"box_id": "1"}, turn=2)
    assert sees([LOOK, SEEN, write]) == (UNSEEN, UNSEEN)
    assert sees([LOOK, SEEN, write, Result(2, "", captured=False)]) == (UNSEEN, UNSEEN)


def test_what_a_write_shows_anew_is_seen() -> None:
    write = Call("set_a", {"box_id": "1"}, turn=2)
    assert sees([LOOK, SEEN, write, Result(2, '{"a": 7}')]) == (7, 6)


def test_a_look_after_the_write_shows_it_anew() -> None:
    write = Call("set_both", {"box_id": "1"}, turn=2)
    again = Call("look", {"box_id": "1"}, turn=3)
    assert sees([LOOK, SEEN, write, Result(2, "ok"), again, Result(4, '{"a": 8, "b": 9}')]) == (8, 9)


def test_a_look_asked_before_a_write_and_answered_after_it_is_stale() -> None:
    look, write = Call("look", {"box_id": "1"}, turn=1), Call("set_a", {"box_id": "1"}, turn=1)
    events: list[Event] = [look, write, Result(1, "ok"), Result(0, '{"a": 5, "b": 6}')]
    assert sees(events) == (UNSEEN, 6)
    turned: list[Event] = [look, write, Result(0, '{"a": 5, "b": 6}'), Result(1, "ok")]
    assert sees(turned) == (UNSEEN, 6)


def test_calls_side_by_side_do_not_see_each_others_results() -> None:
    look, write = Call("look", {"box_id": "1"}, turn=1), Call("set_a", {"box_id": "1"}, turn=1)
    events: list[Event] = [look, write, Result(0, '{"a": 5}'), Result(1, "ok")]
    ledger = ledger_of(events)
    assert SeenFacts(ledger, ledger.calls[1], {}).read(BOX, ("1",), A) is UNSEEN
    interleaved: list[Event] = [look, Result(0, '{"a": 5}'), write, Result(2, "ok")]
    ledger = ledger_of(interleaved)
    assert SeenFacts(ledger, ledger.calls[2], {}).read(BOX, ("1",), A) is UNSEEN


def test_an_earlier_write_of_the_same_turn_makes_stale_for_later_calls_of_it() -> None:
    first, second = Call("set_a", {"box_id": "1"}, turn=2), Call("set_both", {"box_id": "1"}, turn=2)
    ledger = ledger_of([LOOK, SEEN, first, second, Result(2, '{"error": "no"}'), Result(3, "ok")])
    seen = SeenFacts(ledger, ledger.calls[3], {})
    assert (seen.read(BOX, ("1",), A), seen.read(BOX, ("1",), B)) == (UNSEEN, 6)


def test_sub_agents_do_not_see_what_was_shown_to_others() -> None:
    helper = Call("look", {"box_id": "1"}, turn=1, agent="helper")
    assert sees([helper, SEEN]) == (UNSEEN, UNSEEN)
    assert sees([helper, SEEN], Call("set_a", {"box_id": "1"}, turn=9, agent="helper")) == (5, 6)
    assert sees([LOOK, SEEN], Call("set_a", {"box_id": "1"}, turn=9, agent="helper")) == (UNSEEN, UNSEEN)


def test_a_sub_agents_write_makes_stale_for_everybody() -> None:
    write = Call("set_a", {"box_id": "1"}, turn=2, agent="helper")
    assert sees([LOOK, SEEN, write, Result(2, '{"a": 7}')]) == (UNSEEN, 6)


def test_what_the_user_looked_up_on_their_side_the_agent_has_not_seen() -> None:
    theirs = Call("look", {"box_id": "1"}, turn=1, by="user")
    assert sees([theirs, SEEN]) == (UNSEEN, UNSEEN)
    assert sees([theirs, SEEN], Call("set_a", {"box_id": "1"}, turn=9, by="user")) == (5, 6)


@pytest.mark.parametrize(
    ("shown", "asked", "wanted"),
    [
        (10.0, 110.0, 5),
        (10.0, 110.5, UNSEEN),
        (None, None, 5),
        (None, 500.0, UNSEEN),
        (10.0, None, UNSEEN),
        (10.0, 9.5, 5),
        (10.0, 8.0, UNSEEN),
    ],
)
def test_facts_expire_unless_they_are_surely_young(shown: float | None, asked: float | None, wanted: Any) -> None:
    result = Result(0, '{"a": 5}', time=shown)
    assert sees([LOOK, result], Call("set_a", {"box_id": "1"}, turn=9, time=asked))[0] == wanted


@pytest.mark.parametrize(("asked", "wanted"), [(60.0, 5), (101.0, 5), (102.0, UNSEEN)])
def test_a_result_without_a_time_is_no_older_than_what_was_stamped_before_it(asked: float, wanted: Any) -> None:
    look = Call("look", {"box_id": "1"}, turn=1, time=1.0)
    assert sees([look, Result(0, '{"a": 5}')], Call("set_a", {"box_id": "1"}, turn=9, time=asked))[0] == wanted


def test_a_clock_that_was_set_back_tells_no_age() -> None:
    events: list[Event] = [LOOK, Result(0, '{"a": 5}', time=10.0), Message("user", "hm", 2, time=5000.0)]
    assert sees(events, Call("set_a", {"box_id": "1"}, turn=9, time=20.0))[0] is UNSEEN
    before: list[Event] = [Message("user", "hm", 0, time=5000.0), LOOK, Result(1, '{"a": 5}', time=10.0)]
    assert sees(before, Call("set_a", {"box_id": "1"}, turn=9, time=20.0))[0] == 5


def test_a_time_that_comes_later_makes_nothing_old_before() -> None:
    ledger = ledger_of([LOOK, SEEN, Call("set_a", {"box_id": "1"}, turn=9), Message("user", "hm", 10, time=1.0)])
    assert SeenFacts(ledger, ledger.calls[2], {}).read(BOX, ("1",), A) == 5


def test_a_second_result_for_the_same_call_is_not_believed() -> None:
    assert sees([LOOK, SEEN, Result(0, '{"a": 1, "b": 1}')]) == (5, 6)


def test_a_result_that_answers_no_call_shows_nothing() -> None:
    assert sees([Result(None, '{"a": 5}'), Result(7, '{"a": 5}'), Message("user", "hm", 1)]) == (UNSEEN, UNSEEN)


def test_hindsight_knows_what_was_shown_later() -> None:
    events: list[Event] = [
        Call("refuse", {}, turn=1),
        Call("look", {"box_id": "1"}, turn=2),
        Result(1, '{"a": 5, "b": 6}'),
    ]
    ledger = ledger_of(events)
    assert TrueFacts(ledger, ledger.calls[0], {}).read(BOX, ("1",), A) == 5
    assert SeenFacts(ledger, ledger.calls[0], {}).read(BOX, ("1",), A) is UNSEEN


def test_hindsight_does_not_trust_what_a_write_changed_meanwhile() -> None:
    look, write = Call("look", {"box_id": "1"}, turn=3), Call("set_a", {"box_id": "1"}, turn=1)
    ledger = ledger_of([write, Result(0, "ok"), look, Result(2, '{"a": 5, "b": 6}')])
    then = TrueFacts(ledger, ledger.calls[0], {})
    assert (then.read(BOX, ("1",), A), then.read(BOX, ("1",), B)) == (UNSEEN, 6)
    refused = ledger_of([write, Result(0, "Error: no"), look, Result(2, '{"a": 5, "b": 6}')])
    assert TrueFacts(refused, refused.calls[0], {}).read(BOX, ("1",), A) == 5


def test_hindsight_does_not_trust_what_a_write_changes_after_the_look_either() -> None:
    look, write = Call("look", {"box_id": "1"}, turn=2), Call("set_a", {"box_id": "1"}, turn=3)
    ledger = ledger_of([Call("wipe", {}, turn=1), look, Result(1, '{"a": 5, "b": 6}'), write, Result(3, "ok")])
    then = TrueFacts(ledger, ledger.calls[0], {})
    assert then.read(BOX, ("1",), A) is UNSEEN


def test_hindsight_forgets_what_was_changed_before_the_call() -> None:
    write = Call("set_a", {"box_id": "1"}, turn=2)
    _, hindsight = judged([LOOK, SEEN, write, Result(2, "ok")])
    assert (hindsight.read(BOX, ("1",), A), hindsight.read(BOX, ("1",), B)) == (UNSEEN, 6)


def test_hindsight_sees_what_any_agent_saw() -> None:
    _, hindsight = judged([Call("look", {"box_id": "1"}, turn=1, agent="helper"), SEEN])
    assert hindsight.read(BOX, ("1",), A) == 5


def test_members_are_the_things_seen_that_match() -> None:
    listed = Result(0, '[{"box_id": "1", "a": 3}, {"box_id": "2", "a": 4}, {"box_id": "3", "a": 3}]')
    seen, hindsight = judged([Call("list", {}, turn=1), listed])
    assert seen.members(BOX, {"a": 3}) == ([("1",), ("3",)], False)
    assert seen.members(BOX, {}) == ([("1",), ("2",), ("3",)], False)
    assert hindsight.members(BOX, {"a": 4}) == ([("2",)], False)


def test_done_counts_accepted_calls_with_those_arguments() -> None:
    events: list[Event] = [
        Call("set_a", {"box_id": "1", "to": 2}, turn=1),
        Result(0, "ok"),
        Call("set_a", {"box_id": "1", "to": 3}, turn=2),
        Result(2, "Error: no"),
        Call("set_a", {"box_id": "2", "to": 5}, turn=3),
        Call("look", {"box_id": "1"}, turn=4),
    ]
    seen, _ = judged(events)
    assert seen.done("set_a", {"box_id": "1"}) == 1
    assert seen.done("set_a", {"box_id": "1", "to": 3}) == 0
    assert seen.done("set_a", {"to": 9}) == 0
    assert seen.done("nothing", {}) == 0


def test_done_counts_look_ups_that_were_answered() -> None:
    events: list[Event] = [
        Call("look", {"box_id": "1"}, turn=1),
        Result(0, '{"a": 1, "b": 2}'),
        Call("look", {"box_id": "2"}, turn=2),
        Result(2, "Error: no", error=True),
        Call("look", {"box_id": "3"}, turn=3),
        Call("set_a", {"box_id": "1", "to": 2}, turn=3),
    ]
    seen, _ = judged(events)
    assert seen.done("look", {"box_id": "1"}) == 1
    assert seen.done("look", {"box_id": "2"}) == 0
    assert seen.done("look", {"box_id": "3"}) == Between(0, 1), "no answer has come"


def test_done_is_not_known_where_no_result_tells() -> None:
    events: list[Event] = [Call("set_a", {"box_id": "2"}, turn=3)]
    seen, hindsight = judged(events)
    assert seen.done("set_a", {}) == Between(0, 1)
    assert hindsight.done("set_a", {"box_id": "2"}) == Between(0, 1)
    assert seen.done("set_a", {"box_id": "1"}) == 0


def test_what_was_surely_done_counts_beside_what_may_have_been() -> None:
    events: list[Event] = []
    for turn, answer in enumerate(("Error: 503 service unavailable", "ok", "ok")):
        events += [Call("set_a", {"box_id": "1"}, turn=turn), Result(2 * turn, answer, captured=turn > 0)]
    for facts in judged(events):
        assert facts.done("set_a", {}) == Between(2, 3)


def test_a_call_of_the_same_turn_counts_as_done_until_its_result_comes() -> None:
    first, second = Call("set_a", {"box_id": "1"}, turn=2), Call("set_a", {"box_id": "1"}, turn=2)
    for answer, later in (("Error: no", 0), ("ok", 1)):
        ledger = ledger_of([first, second, Result(0, answer), Result(1, "ok")])
        assert SeenFacts(ledger, ledger.calls[1], {}).done("set_a", {"box_id": "1"}) == 1
        assert TrueFacts(ledger, ledger.calls[1], {}).done("set_a", {"box_id": "1"}) == later


@pytest.mark.parametrize(
    ("given", "asked", "wanted"),
    [
        ("P1", "P1", 1),
        (1, "1", 1),
        (50, 50.0, 1),
        (50, Decimal("50.00"), 1),
        ("50.00", Decimal("50.00"), 1),
        (" P1", "P1", Between(0, 1)),
        ("p1", "P1", Between(0, 1)),
        ("50.0", 50, Between(0, 1)),
        (["P1"], "P1", Between(0, 1)),
        ({"id": "P1"}, "P1", Between(0, 1)),
        ('["P1"]', "P1", Between(0, 1)),
        ("P-1", "P1", Between(0, 1)),
        ("4111-1111-1111-1111", "4111 1111 1111 1111", Between(0, 1)),
        ("AC_22", "AC-22", Between(0, 1)),
        (-5, 5, 0),
        ("P11", "P1", 0),
        (True, "1", 0),
        (None, "P1", 0),
    ],
)
def test_done_compares_as_keys_are_compared(given: Any, asked: Any, wanted: Any) -> None:
    seen, _ = judged([Call("set_a", {"box_id": given}, turn=1), Result(0, "ok")])
    assert seen.done("set_a", {"box_id": asked}) == wanted


def test_a_call_whose_arguments_were_not_captured_may_be_the_one_that_was_done() -> None:
    seen, _ = judged([Call("set_a", {}, turn=1, fault="arguments not captured"), Result(0, "ok")])
    assert seen.done("set_a", {"box_id": "1"}) == Between(0, 1)
    assert seen.done("set_a", {}) == 1
