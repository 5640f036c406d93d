"""Simulated conversations: reproducible from a seed, in good English, with everything that they must cover."""

import gzip
import json
import re
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from bylaw.trace import Call, Message, Result, Trajectory, read
from bylaw_lab.clinic.simulator import claims, dialogue
from bylaw_lab.clinic.simulator.coverage import POLICIES, QUOTA, REASON_QUOTA, Coverage
from bylaw_lab.clinic.simulator.desk import WRITES
from bylaw_lab.clinic.simulator.generate import Simulated, clinic, simulate, simulated, write
from bylaw_lab.clinic.simulator.tables import tables
from bylaw_lab.clinic.simulator.tasks import make

COUNTED = ("violation", "near_miss")


@pytest.fixture(scope="module")
def some() -> list[Simulated]:
    return list(simulated(11, 400))


def test_the_same_seed_gives_the_same_conversations_and_truth(some: list[Simulated]):
    again = list(simulated(11, 40))
    assert msgspec.json.encode(again) == msgspec.json.encode(some[:40])
    other = [truth for _, truth in simulate(12, 10)]
    assert msgspec.json.encode(other) != msgspec.json.encode([made.truth for made in some[:10]])


def test_a_conversation_does_not_depend_on_those_before_it(some: list[Simulated]):
    from bylaw_lab.clinic.simulator.generate import one

    assert msgspec.json.encode(one(clinic(), 11, 37)) == msgspec.json.encode(some[37])


def test_no_message_has_a_hole_in_it(some: list[Simulated]):
    for made in some:
        for event in made.trajectory.events:
            if isinstance(event, Message):
                assert event.text.strip()
                assert not re.search(r"[{}]|\bNone\b|\bTrue\b|\bFalse\b|_|\?\?|  ", event.text), event.text
                assert event.text[0].isupper() or event.text[0].isdigit(), event.text


def test_there_is_variety_in_what_users_say(some: list[Simulated]):
    first = [made.trajectory.events[0].text for made in some if isinstance(made.trajectory.events[0], Message)]
    assert len(set(first)) > 0.9 * len(first)


def test_every_write_call_has_its_truth_and_nothing_else_has(some: list[Simulated]):
    for made in some:
        events = made.trajectory.events
        writes = [step for step, event in enumerate(events) if isinstance(event, Call) and event.tool in WRITES]
        assert [call.step for call in made.truth.calls] == writes


def test_there_is_the_ordinary_mess_of_logs(some: list[Simulated]):
    events = [made.trajectory.events for made in some]
    calls = [event for one in events for event in one if isinstance(event, Call)]
    results = [event for one in events for event in one if isinstance(event, Result)]
    assert any(call.fault for call in calls)
    assert len(results) < len(calls)
    assert any("timed out" in str(result.content) for result in results)
    assert any("not found" in str(result.content) for result in results)
    assert any(not made.truth.calls for made in some)
    executed = {call.executed for made in some for call in made.truth.calls}
    assert executed == {True, False, None}
    per_turn = [[event.turn for event in one if isinstance(event, Call)] for one in events]
    assert any(len(turns) > len(set(turns)) for turns in per_turn)
    ids = [[event.id for event in one if isinstance(event, Call)] for one in events]
    assert any(len(names) > len(set(names)) for names in ids)
    assert any(
        earlier.call > later.call
        for one in events
        for earlier, later in pairwise(one)
        if isinstance(earlier, Result) and isinstance(later, Result) and earlier.call and later.call
    )


def test_hindsight_may_know_less_than_the_snapshot_but_never_contradicts_it(some: list[Simulated]):
    known = {
        "compliant": {"compliant"},
        "near_miss": {"near_miss", "uninformed"},
        "violation": {"violation", "uninformed"},
    }
    for made in some:
        for call in made.truth.calls:
            for policy in call.policies:
                for verdicts in (policy.strict, policy.determined):
                    if verdicts["snapshot"] in known:
                        assert verdicts["hindsight"] in known[verdicts["snapshot"]], (made.truth.trajectory, policy)


def test_strict_is_never_kinder_than_determined(some: list[Simulated]):
    for made in some:
        for call in made.truth.calls:
            for policy in call.policies:
                if policy.strict["snapshot"] == "compliant":
                    assert policy.determined["snapshot"] == "compliant"
                assert (policy.strict["snapshot"] == "violation") == (policy.determined["snapshot"] == "violation")


def test_careful_agents_never_break_a_policy(some: list[Simulated]):
    for made in some:
        if made.trajectory.agent == "careful":
            assert all(call.strict["snapshot"] != "violation" for call in made.truth.calls), made.truth.trajectory


def test_what_users_state_in_words_is_recognised_as_a_claim():
    import random
    from datetime import date
    from decimal import Decimal

    rng = random.Random(5)
    samples = {"date": date(2025, 3, 14), "money": Decimal("45.00"), "string": "C07"}
    for name, forms in dialogue.CLAIMS.items():
        entity, field = name.split(".")
        column = tables()[entity].columns[field]
        values = list(forms) if isinstance(forms, dict) else list(column.words) or [samples[column.type]]
        for value in values:
            for _ in range(12):
                fact = (entity, ("?",), field)
                text = dialogue.claim(rng, fact, value)
                assert text, (name, value)
                assert claims.states(text, fact, value), (text, value)


def test_a_task_is_reached_by_doing_its_goal_and_not_by_doing_nothing():
    import random

    place = clinic()
    rng = random.Random(1)
    for number in range(60):
        task = make(place, rng, f"task-{number}")
        for want in task.goal:
            if want is not None:
                place.desk.call(want.tool, want.arguments)
        assert task.reached(place.desk)
        if any(want is not None for want in task.goal):
            moved = task.reached(place.desk)
            assert not moved or task.goal[0] is None or task.goal[0].tool in ("record_consent", "change_membership")


def test_the_files_read_back_as_the_same_events(tmp_path: Path):
    write(tmp_path, seeds=[11], count=60)
    found = [item for item in read(tmp_path / "logs.jsonl.gz") if isinstance(item, Trajectory)]
    made = list(simulated(11, 60))
    assert len(found) == len(made)
    for log, mine in zip(found, made, strict=True):
        assert (log.id, log.agent) == (mine.trajectory.id, mine.trajectory.agent)
        assert log.outcome is not None
        assert log.outcome.good == mine.record["outcome"]
        assert [shape(event) for event in log.events] == [shape(event) for event in mine.trajectory.events]
        assert together(log) == together(mine.trajectory)
    with gzip.open(tmp_path / "logs.jsonl.gz") as lines:
        assert all(json.loads(line)["messages"][0]["role"] == "system" for line in lines)
    truths = [json.loads(line) for line in (tmp_path / "truth.jsonl").read_text().splitlines()]
    assert [truth["trajectory"] for truth in truths] == [one.trajectory.id for one in made]
    assert (tmp_path / "clinic.sqlite").stat().st_size > 100_000


def together(trajectory: Trajectory) -> list[list[int]]:
    """Return the steps of calls made in one turn."""
    turns: dict[int, list[int]] = {}
    for step, event in enumerate(trajectory.events):
        if isinstance(event, Call):
            turns.setdefault(event.turn, []).append(step)
    return list(turns.values())


def shape(event: Message | Call | Result) -> tuple[object, ...]:
    match event:
        case Message():
            return "message", event.by, event.text
        case Call():
            return "call", event.tool, event.id, {} if event.fault else event.arguments, bool(event.fault)
        case Result():
            return "result", event.call, str(event.content)


def test_few_conversations_are_on_their_way_to_every_quota(some: list[Simulated]):
    coverage = Coverage(made.truth for made in some)
    cells = {(id, verdict): coverage.cells[id, "strict", "snapshot", verdict] for id in POLICIES for verdict in COUNTED}
    assert [cell for cell, count in cells.items() if not count] in ([], [("waive-limit", "violation")])
    assert sum(cells.values()) > len(cells) * QUOTA * len(some) / 5000
    for reason in ("never_seen", "stale", "claimed"):
        assert coverage.near_miss_reasons[reason] >= REASON_QUOTA * len(some) / 5000
    short = {line.partition(":")[0] for line in coverage.short()}
    assert short - {"never_seen", "stale", "claimed"} == {id for (id, _), count in cells.items() if count < QUOTA}


@pytest.mark.slow
def test_the_evaluation_set_meets_every_quota():
    coverage = Coverage(truth for seed in range(1, 11) for _, truth in simulate(seed, 500))
    assert coverage.trajectories == 5000
    assert coverage.short() == []
    assert "empty cells: none" in coverage.lines()
