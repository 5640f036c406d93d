"""What `init` writes under `changes`: fields that look-ups before and after a write show to stay are left out."""

from typing import Any

import pytest

from bylaw.policy.document import Document
from bylaw.policy.yaml import read_yaml
from bylaw.scan.skeleton import skeleton
from bylaw.trace import Trajectory

from .library import Talk


def order(number: int, **changed: Any) -> dict[str, Any]:
    return {"order_id": f"O{number}", "status": "paid", "total": "10.00", "note": "", "weight": 2} | changed


def changes(*talks: Talk) -> Any:
    """What the draft says the write changes."""
    made = skeleton([talk.done() for talk in talks], Document("Cancel paid orders only."), name="shop")
    return read_yaml(made.files["tools.yaml"], file="tools.yaml").data["tools"]["cancel_order"].get("changes")


def cancelled(number: int, *, before: dict[str, Any] | None = None, after: dict[str, Any] | None = None) -> Talk:
    talk = Talk(f"t{number}").user("Cancel it.")
    talk.call("get_order", before or order(number), order_id=f"O{number}")
    talk.call("cancel_order", "done", order_id=f"O{number}")
    return talk.call("get_order", after or order(number, status="cancelled"), order_id=f"O{number}")


def test_fields_that_stayed_twice_are_left_out() -> None:
    assert changes(cancelled(1), cancelled(2)) == ["Order.status"]


def test_once_is_not_enough() -> None:
    assert changes(cancelled(1)) == ["Order.*"]


def test_a_field_that_changed_once_stays_in() -> None:
    after = order(3, status="cancelled", note="by user")
    assert changes(cancelled(1), cancelled(2), cancelled(3, after=after)) == ["Order.status", "Order.note"]


def test_a_field_that_was_never_compared_stays_in() -> None:
    short = [{name: value for name, value in order(n).items() if name != "weight"} for n in (1, 2)]
    talks = [cancelled(n, after=short[n - 1] | {"status": "cancelled"}) for n in (1, 2)]
    assert changes(*talks) == ["Order.status", "Order.weight"]


def test_a_write_that_changed_nothing_seen_says_so() -> None:
    assert changes(*(cancelled(n, after=order(n)) for n in (1, 2, 3))) == []


def test_with_two_writes_in_between_nobody_knows_which_it_was() -> None:
    def twice(number: int) -> Talk:
        talk = Talk(f"t{number}").user("Cancel it.").call("get_order", order(number), order_id=f"O{number}")
        talk.call("cancel_order", "done", order_id=f"O{number}").call("update_order", "done", order_id=f"O{number}")
        return talk.call("get_order", order(number), order_id=f"O{number}")

    assert changes(twice(1), twice(2)) == ["Order.*"]


def test_another_order_tells_nothing() -> None:
    def other(number: int) -> Talk:
        talk = Talk(f"t{number}").user("Cancel it.").call("get_order", order(number), order_id=f"O{number}")
        return talk.call("cancel_order", "done", order_id="O9").call("get_order", order(number), order_id=f"O{number}")

    assert changes(other(1), other(2)) == ["Order.*"]


def test_a_refused_write_tells_nothing() -> None:
    def refused(number: int) -> Talk:
        talk = Talk(f"t{number}").user("Cancel it.").call("get_order", order(number), order_id=f"O{number}")
        talk.call("cancel_order", {"error": "no"}, error=True, order_id=f"O{number}")
        return talk.call("get_order", order(number), order_id=f"O{number}")

    assert changes(refused(1), refused(2), refused(3)) == ["Order.*"]


def test_a_look_up_beside_the_write_tells_nothing() -> None:
    def beside(number: int) -> Talk:
        talk = Talk(f"t{number}").user("Cancel it.").call("get_order", order(number), order_id=f"O{number}")
        key = {"order_id": f"O{number}"}
        return talk.calls(("cancel_order", key, "done"), ("get_order", key, order(number)))

    assert changes(beside(1), beside(2)) == ["Order.*"]


def test_what_the_write_shows_itself_counts() -> None:
    def shown(number: int) -> Talk:
        talk = Talk(f"t{number}").user("Cancel it.").call("get_order", order(number), order_id=f"O{number}")
        return talk.call("cancel_order", order(number, status="cancelled"), order_id=f"O{number}")

    assert changes(shown(1), shown(2)) == ["Order.status"]


def test_the_draft_says_what_was_compared() -> None:
    made = skeleton([cancelled(n).done() for n in (1, 2)], Document("Cancel paid orders only."), name="shop")
    assert "# before and after it: Order: status changed, total, note, weight stayed" in made.files["tools.yaml"]


GET_LOAN = {"name": "get_loan", "parameters": {"properties": {"loan_id": {"type": "string"}}, "required": ["loan_id"]}}


@pytest.mark.parametrize("tools", [(), (GET_LOAN,)], ids=["called", "only defined"])
def test_a_thing_that_only_lists_show_gets_the_look_up_that_is_called_like_it(tools: tuple[Any, ...]) -> None:
    def listing(number: int) -> Trajectory:
        loans = [{"id": f"L-{number}{at}", "title": "Emma", "due": "2024-06-01"} for at in range(3)]
        talk = Talk(f"t{number}", tools=tools).user("My loans?").call("list_loans", loans, reader=f"R{number}")
        if not tools:
            talk.call("get_loan", "borrowed twice, and returned in good order each time", loan_id=f"L-{number}1")
        return talk.done()

    made = skeleton([listing(n) for n in range(4)], Document("Renew loans."), name="library")
    entities = read_yaml(made.files["entities.yaml"], file="entities.yaml").data["entities"]
    assert entities["Loan"]["read"] == {"tool": "get_loan", "arguments": {"loan_id": "id"}}
