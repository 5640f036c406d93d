"""A result under an id that no call has shows nothing of a call that has an id of its own."""

import pytest

from bylaw.trace import Result
from bylaw.trace.transcript import Transcript


def joined(ids: list[str], answers: list[str]) -> list[int | None]:
    """Which of the calls with these ids the results under those answer."""
    script = Transcript()
    script.begin_turn()
    for id in ids:
        script.call("get_account", {"account_id": f"AC-{id}"}, id)
    for id in answers:
        script.answer('{"balance": "5"}', id)
    return [event.call for event in script.events if isinstance(event, Result)]


@pytest.mark.parametrize(
    ("ids", "answers", "expected"),
    [
        (["a", "b"], ["b", "a"], [1, 0]),
        (["a", "b"], ["x", "y"], [None, None]),
        (["a"], ["x"], [None]),
        (["a", ""], ["x"], [1]),
        (["", ""], ["x", "y"], [None, None]),
        (["", ""], ["", ""], [0, 1]),
        (["a", "b"], ["", ""], [0, 1]),
        (["a", "b"], ["a", "a"], [0, None]),
        (["a", "b", "c"], ["a", "y", "z"], [0, None, None]),
        (["a", "b"], ["x", "a"], [None, 0]),
    ],
)
def test_only_the_call_that_an_id_may_mean_is_answered(
    ids: list[str], answers: list[str], expected: list[int | None]
) -> None:
    assert joined(ids, answers) == expected
