"""What the thoughts of an episode state."""

import msgspec
import pytest

from bylaw.align.episode import Episode, Outcome
from bylaw.align.evaluation import recall
from bylaw.trace.event import Call, Event, Message, Result
from bylaw_lab.clinic.tasks import scenarios

THOUGHT = "A patient who owes $180.00, which is more than $150.00, is booked only with a payment plan."


@pytest.fixture
def outcome() -> Outcome:
    return Episode(scenarios("development")[0], policy="none").outcome()


@pytest.mark.parametrize(
    ("events", "wanted"),
    [
        ((Message("user", "I owe $180.00.", turn=1),), (1, 0)),
        ((Call("get_patient", {}), Result(0, '{"balance_due": "180.00"}')), (1, 0)),
        ((Message("agent", "You owe $180.00.", turn=2),), (0, 1)),
        ((Call("get_patient", {"owes": "$180.00"}),), (0, 1)),
    ],
)
def test_only_users_and_tools_show_values(outcome: Outcome, events: tuple[Event, ...], wanted: tuple[int, int]) -> None:
    said = msgspec.structs.replace(outcome, events=events, thoughts=(THOUGHT,))
    assert recall("clinic", said) == wanted
