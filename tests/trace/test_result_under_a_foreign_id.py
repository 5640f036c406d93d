"""A result under an id that no call has shows nothing of a call that has an id of its own; but it may be its answer."""

import pytest

from bylaw import verdicts
from bylaw.trace import Call, Event, Result, Trajectory
from bylaw.trace.transcript import Transcript
from tests.packs import made


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


PACK = {
    "pack.yaml": "format: 1\nname: bank\ndocument: policy.md\n",
    "policy.md": "Only an account with more than 100 gets money.\n",
    "tools.yaml": """tools:
  get_account: {effect: read, parameters: {account_id: string}}
  transfer: {effect: write, parameters: {to: string}, changes: []}
""",
    "entities.yaml": "entities:\n  Account: {key: account_id, read: get_account, fields: {balance: money}}\n",
    "guards/g.py": """def enough(call: transfer, facts):
    \"\"\"Only an account with more than 100 gets money.\"\"\"
    return permit() if facts.Account(call.to).balance > money("100") else deny("not enough")
""",
}


@pytest.mark.parametrize(
    ("looked_up", "came", "verdict"),
    [
        ("AC-1", (0,), "violation"),
        ("AC-1", (), "uninformed"),
        # Perhaps the agent has seen that, perhaps something else.
        ("AC-1", (None,), "inconclusive"),
        ("AC-2", (None,), "uninformed"),
    ],
)
def test_who_looked_may_have_seen_what_came_under_the_id_of_no_call(
    looked_up: str, came: tuple[int | None, ...], verdict: str
) -> None:
    events: list[Event] = [Call("get_account", {"account_id": looked_up}, "a", turn=1)]
    events += [Result(step, '{"balance": "5"}') for step in came]
    events += [Call("transfer", {"to": "AC-1"}, "c", turn=2)]
    assert verdicts(made(PACK), Trajectory("t", events)).calls[-1].determined == verdict
