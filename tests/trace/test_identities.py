"""Ids of conversations and names of agents."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bylaw.trace import Identities, Trajectory
from bylaw.trace.event import agent_of_file, agent_of_model


def test_a_repeated_id_gets_a_suffix():
    ids = Identities()
    assert [ids.unique(id) for id in ("a", "b", "a", "a")] == ["a", "b", "a~2", "a~3"]


def test_a_suffix_that_is_taken_is_passed_over():
    ids = Identities()
    given = [ids.unique(id) for id in ("a~2", "a", "a", "a~2")]
    assert given == ["a~2", "a", "a~3", "a~2~2"]


@given(st.lists(st.sampled_from(["a", "b", "a~2", "a~3", "a~2~2", "", "\ud800"]), max_size=30))
def test_ids_kept_as_digests_are_given_out_like_ids_kept_whole(ids):
    given, counts = [], {}
    for id in ids:
        count = counts.get(id, 0) + 1
        while count > 1 and f"{id}~{count}" in counts:
            count += 1
        counts[id] = count
        given.append(id if count == 1 else f"{id}~{count}")
        counts.setdefault(given[-1], 1)
    kept = Identities()
    assert [kept.unique(id) for id in ids] == given
    assert all(id in kept for id in given)


def test_many_ids_stay_apart_and_take_little_room():
    ids = Identities()
    tracemalloc.start()
    try:
        assert all(ids.unique(name) == name for name in map(str, range(50_000)))
        assert tracemalloc.get_traced_memory()[0] < 50_000 * 25
    finally:
        tracemalloc.stop()
    assert "17" in ids
    assert "50000" not in ids
    assert ids.unique("17") == "17~2"


def test_the_trajectory_takes_its_own_id():
    ids = Identities()
    assert [ids.own(Trajectory("a", ())).id for _ in range(2)] == ["a", "a~2"]


@pytest.mark.parametrize(
    ("name", "agent"),
    [
        ("gpt-4o.json.gz", "gpt-4o"),
        ("grok-4-fast.2.json.gz", "grok-4-fast"),
        ("llama-3.1-8b-ft.json", "llama-3.1-8b-ft"),
        ("x.jsonl", "x"),
    ],
)
def test_a_file_names_its_agent(name, agent):
    assert agent_of_file(name) == agent


@pytest.mark.parametrize(
    ("model", "agent"),
    [
        ("xai/grok-3", "grok-3"),
        ("ft:gpt-4.1-2025-04-14:org:name:id", "ft-gpt-4.1"),
        ("gpt-4.1-2025-04-14", "gpt-4.1-2025-04-14"),
    ],
)
def test_a_model_names_its_agent(model, agent):
    assert agent_of_model(model) == agent
