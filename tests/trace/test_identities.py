"""Ids of conversations and names of agents."""

import pytest

from bylaw.trace import Identities, Trajectory
from bylaw.trace.identity import agent_of_file, agent_of_model


def test_a_repeated_id_gets_a_suffix():
    ids = Identities()
    assert [ids.unique(id) for id in ("a", "b", "a", "a")] == ["a", "b", "a~2", "a~3"]


def test_a_suffix_that_is_taken_is_passed_over():
    ids = Identities()
    given = [ids.unique(id) for id in ("a~2", "a", "a", "a~2")]
    assert given == ["a~2", "a", "a~3", "a~2~2"]


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
