"""A log of known structure gives exactly the look-ups it was made with."""

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bylaw.errors import RecordError
from bylaw.facts.evidence import wilson
from bylaw.scan import Scan, scan
from bylaw.trace import Trajectory
from tests.examples import examples

from .library import Talk, loan, member, visit, visits


def found(result: Scan) -> dict[str, set[tuple[frozenset[str], str, tuple[str, ...]]]]:
    return {
        write.tool: {(frozenset(habit.tools), habit.reason, habit.arguments) for habit in write.habits}
        for write in result.writes
    }


def lacking(result: Scan, tool: str, lookup: str) -> list[tuple[str, int]]:
    habits = next(write.habits for write in result.writes if write.tool == tool)
    return [(place.trajectory, place.step) for habit in habits if lookup in habit.tools for place in habit.lacking]


def test_exactly_the_known_lookups_are_found() -> None:
    assert found(scan(visits(40))) == {
        "renew_loan": {(frozenset({"get_loan"}), "keyed", ("loan_id",))},
        "pay_fine": {
            (frozenset({"get_member"}), "keyed", ("member_id",)),
            (frozenset({"get_member"}), "shows", ("card_id",)),
            (frozenset({"get_loan"}), "belongs", ("member_id",)),
        },
    }


def test_a_list_of_names_is_not_a_look_up_of_the_thing_named() -> None:
    """`get_member` lists the loan's id before every renewal, and still is not what a renewal looks up."""
    habits = found(scan(visits(40)))["renew_loan"]
    assert all("get_member" not in tools for tools, _, _ in habits)


def test_a_call_without_its_look_up_is_listed() -> None:
    logs = visits(40)
    logs[7] = visit(7, skip="get_loan")
    result = scan(logs)
    assert lacking(result, "renew_loan", "get_loan") == [("visit-007", 5)]
    (habit,) = next(write.habits for write in result.writes if write.tool == "renew_loan")
    assert (habit.hits, habit.cases) == (39, 40)
    assert (habit.low, habit.high) == wilson(39, 40)


def test_a_look_up_of_another_thing_does_not_count() -> None:
    logs = visits(40)
    other = Talk("other").user("renew it").call("get_loan", loan(99), loan_id="L0099")
    logs.append(other.call("renew_loan", "Loan renewed successfully.", loan_id="L0003").done())
    assert lacking(scan(logs), "renew_loan", "get_loan") == [("other", 3)]


def test_a_look_up_in_the_same_turn_does_not_count() -> None:
    logs = visits(40)
    talk = (
        Talk("hasty")
        .user("renew L0003")
        .calls(
            ("get_loan", {"loan_id": "L0003"}, loan(3)),
            ("renew_loan", {"loan_id": "L0003"}, "Loan renewed successfully."),
        )
    )
    logs.append(talk.done())
    assert lacking(scan(logs), "renew_loan", "get_loan") == [("hasty", 2)]


def test_a_failed_look_up_does_not_count() -> None:
    logs = visits(40)
    talk = Talk("failed").user("renew L0003").call("get_loan", "Error: no such loan", loan_id="L0003")
    logs.append(talk.call("renew_loan", "Loan renewed successfully.", loan_id="L0003").done())
    assert lacking(scan(logs), "renew_loan", "get_loan") == [("failed", 3)]


def test_a_refused_write_is_left_out() -> None:
    refused = Talk("refused").user("renew").call("renew_loan", "Error: overdue", loan_id="L0003").done()
    with_it, without = scan([*visits(40), refused]), scan(visits(40))
    assert {write.tool: write for write in with_it.writes} == {write.tool: write for write in without.writes}
    assert next(tool.refused for tool in with_it.tools if tool.tool == "renew_loan") == 1


def test_alternatives_that_cover_an_argument_together_are_named_together() -> None:
    logs = []
    for number in range(40):
        talk = Talk(f"order-{number:03}").user("order it")
        tool = "search_titles" if number % 2 else "search_authors"
        talk.call(tool, [{"copy_id": f"C{number:04}", "price": 5}], text="emma")
        logs.append(talk.call("order_copy", "Copy has been ordered.", copy_id=f"C{number:04}").done())
    assert found(scan(logs))["order_copy"] == {
        (frozenset({"search_titles", "search_authors"}), "shows", ("copy_id",)),
    }


def test_a_look_up_needed_in_some_cases_stands_out_by_being_rare_elsewhere() -> None:
    logs = visits(60)
    for number in range(60):
        talk = (
            Talk(f"waiver-{number:03}")
            .user("waive my fine")
            .call("get_member", member(number), member_id=f"M{number:04}")
        )
        if number % 4 == 0:
            talk.call("get_loan", loan(number), loan_id=f"L{number:04}").call(
                "get_notice", "sent late", loan_id=f"L{number:04}"
            )
            talk.call("renew_loan", "Loan renewed successfully.", loan_id=f"L{number + 1:04}")
        logs.append(talk.call("waive_fine", "Fine has been waived.", member_id=f"M{number:04}").done())
    habits = next(write.habits for write in scan(logs).writes if write.tool == "waive_fine")
    assert [habit.tools for habit in habits if habit.reason == "distinctive"] == [("get_notice",)]


def test_a_look_up_before_few_writes_is_no_habit() -> None:
    logs = []
    for number in range(40):
        talk = Talk(f"renewal-{number:03}").user("renew it")
        if number % 5 == 0:
            talk.call("get_loan", loan(number), loan_id=f"L{number:04}")
        logs.append(talk.call("renew_loan", "Loan renewed successfully.", loan_id=f"L{number:04}").done())
    assert found(scan(logs)) == {"renew_loan": set()}


def test_a_look_up_that_is_nearly_as_frequent_before_another_write_sets_none_apart() -> None:
    """45 % of the waivers and 30 % of the closures follow a notice: a clear difference, and a small one."""
    logs = []
    for write, share in (("waive_fine", 9), ("close_account", 6)):
        for number in range(300):
            talk = Talk(f"{write}-{number:03}").user("please")
            talk.call("get_member", member(number), member_id=f"M{number:04}")
            if number % 20 < share:
                talk.call("get_notice", "sent late", loan_id=f"L{number:04}")
            logs.append(talk.call(write, "It is done.", member_id=f"M{number:04}").done())
    assert {tools for habits in found(scan(logs)).values() for tools, _, _ in habits} == {frozenset({"get_member"})}


def test_a_yes_names_nothing() -> None:
    logs = []
    for number in range(20):
        talk = Talk(f"order-{number:03}").user("order it").call("list_offers", "three offers", active="yes")
        logs.append(talk.call("order_copy", "Copy has been ordered.", title=f"Emma {number}", confirm="yes").done())
    assert found(scan(logs)) == {"order_copy": set()}


@given(st.randoms(use_true_random=False))
@examples(15)
def test_the_order_of_conversations_changes_nothing(order: random.Random) -> None:
    logs = [visit(number, skip=("get_loan", "get_member", "")[min(2, number % 7)]) for number in range(30)]
    shuffled = logs.copy()
    order.shuffle(shuffled)
    assert msgspec.json.encode(scan(shuffled, examples=2)) == msgspec.json.encode(scan(logs, examples=2))


def test_few_calls_prove_nothing() -> None:
    assert found(scan(visits(2))) == {"renew_loan": set(), "pay_fine": set()}


def test_no_logs_give_an_empty_scan() -> None:
    result = scan([])
    assert (result.trajectories, result.tools, result.writes) == (0, (), ())


def test_what_cannot_be_read_is_counted_and_named() -> None:
    result = scan([*visits(3), RecordError("not an object", place="runs.jsonl:4")])
    assert (result.trajectories, result.unreadable, result.faults) == (3, 1, ("runs.jsonl:4: not an object",))


@pytest.mark.parametrize(
    "hostile",
    [
        {"": ""},
        {"id": [[[[[["x"]]]]]]},
        {"id": "\x00\u202e"},
        {"id": 10**40},
        {"id": float("nan")},
        {"id": float("inf")},
        {"id": "[" * 5000},
        {"id": "a" * 100_000},
        {"id": None},
        {"n": -0.0},
        {"id": "%s{}$()\\"},
    ],
)
def test_hostile_arguments_and_results_do_no_harm(hostile: dict[str, object]) -> None:
    talk = Talk("hostile").user("do it \x00").call("get_thing", "[" * 50_000, **hostile)
    talk.call("get_thing", "a: &a [*a, *a]\nb: *a", **hostile).call("set_thing", "{" * 1000, **hostile)
    assert scan([talk.done()]).trajectories == 1


def test_wilson_is_what_the_textbook_says() -> None:
    low, high = wilson(8, 10)
    assert (round(low, 3), round(high, 3)) == (0.490, 0.943)
    assert wilson(0, 0) == (0.0, 1.0)


def test_two_look_ups_of_the_same_id_are_both_named() -> None:
    from bylaw.scan import scan
    from bylaw.trace import Call, Result, Trajectory

    def conversation(number: int) -> Trajectory:
        account = {"account_id": f"A{number}"}
        reads = [("get_account", '{"owner": "x"}')] + ([("get_limits", '{"daily": 500}')] if number else [])
        events: list[Call | Result] = []
        for turn, (tool, answer) in enumerate(reads):
            events += [Call(tool, account, turn=turn), Result(len(events), answer, tool=tool)]
        events += [Call("transfer_money", {**account, "to": "B"}, turn=9), Result(len(events), '{"ok": true}')]
        return Trajectory(f"t{number}", events)

    found = scan(conversation(number) for number in range(20))
    (write,) = [each for each in found.writes if each.tool == "transfer_money"]
    assert {name for habit in write.habits for name in habit.tools} >= {"get_account", "get_limits"}


def test_a_call_that_lacked_the_look_up_but_saw_the_record_in_another_is_told_apart() -> None:
    logs: list[Trajectory] = []
    for number in range(12):
        talk = Talk(f"t{number}").user("renew it")
        if number % 4 == 0:
            talk.call("list_loans", {"loans": [loan(number), loan(99)]}, reader="ada")
        elif number != 7:
            talk.call("get_loan", loan(number), loan_id=f"L{number:04}")
        logs.append(talk.call("renew_loan", "Loan renewed.", loan_id=f"L{number:04}").done())
    (write,) = scan(logs).writes
    (habit,) = (habit for habit in write.habits if habit.tools == ("get_loan",))
    assert (habit.hits, habit.cases, habit.shown, habit.shown_by) == (8, 12, 3, ("list_loans",))
    assert [place.trajectory for place in habit.lacking] == ["t7", "t0", "t4", "t8"]
