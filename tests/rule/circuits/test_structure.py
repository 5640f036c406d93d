"""Vagueness, clusters, and circuits by both structures."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from bylaw.rule.formula import parse
from bylaw.rule.rule import Rule
from bylaw.rule.structure import (
    HashedNgrams,
    Likeness,
    by_clusters,
    by_relevance,
    circuits,
    cluster,
    eigenpairs,
    rule_vagueness,
    similarity,
    spectral_clusters,
    vagueness,
)


def rule(text: str, **more: Any) -> Rule:
    return Rule(name=text, formula=parse(text), **more)


RULES = [
    rule("delete IMPLIES authorised"),
    rule("delete IMPLIES NOT red"),
    rule("buy IMPLIES funded"),
    rule("buy IMPLIES (funded AND shown)"),
    rule("private IMPLIES red", physical=True, hard=True),
    rule("secret IMPLIES private", physical=True, hard=True),
]
ACTIONS = ("delete", "buy")
STATES = {name: name for name in ("authorised", "red", "private", "secret", "funded", "shown")}


def test_a_circuit_by_relevance_has_the_actions_rules_and_the_knowledge_they_lead_to():
    assert by_relevance("delete", RULES) == [RULES[0], RULES[1], RULES[4], RULES[5]]
    assert by_relevance("buy", RULES) == [RULES[2], RULES[3]]


def test_there_is_a_circuit_for_every_action():
    made = circuits(RULES, ACTIONS, eps=0.1)
    assert {name: (len(each.rules), each.eps) for name, each in made.items()} == {"delete": (4, 0.1), "buy": (2, 0.1)}


def test_algorithm_3_takes_whole_clusters_and_merges_those_with_co_occurring_predicates():
    found = cluster(RULES, STATES, count=3)
    assert by_clusters("buy", RULES, found) == RULES[2:4]
    assert RULES[4] in by_clusters("delete", RULES, found)
    bridge = [*RULES, rule("log IMPLIES (authorised OR red OR funded)")]
    found = cluster(bridge, STATES)
    assert [len(by_clusters(action, bridge, found)) for action in ACTIONS] == [7, 7], (
        "one bridging rule and every circuit swallows every rule"
    )
    assert [len(by_relevance(action, bridge)) for action in ACTIONS] == [4, 2]


def test_a_rule_without_state_predicates_is_lost_by_algorithm_3_and_kept_by_relevance():
    rules = [*RULES, rule("NOT (delete AND buy)")]
    assert rules[-1] not in by_clusters("buy", rules, cluster(rules, STATES))
    assert rules[-1] in by_relevance("buy", rules)


def test_clusters_follow_the_parts_of_a_graph():
    found = cluster(RULES, STATES, count=None, threshold=1.1)
    assert found.labels["funded"] == found.labels["shown"]
    assert found.labels["red"] == found.labels["private"]
    assert found.labels["red"] != found.labels["funded"]


def test_spectral_clustering_finds_planted_blocks():
    rng = random.Random(1)
    size = 30
    block = [i // 10 for i in range(size)]
    adjacency = [[0.0] * size for _ in range(size)]
    for i in range(size):
        for j in range(i):
            adjacency[i][j] = adjacency[j][i] = float(rng.random() < (0.8 if block[i] == block[j] else 0.03))
    assert spectral_clusters(adjacency, 3) == block
    assert spectral_clusters(adjacency) == block, "the eigengap finds the number too"


def test_eigenpairs_satisfy_their_equation():
    rng = random.Random(2)
    size = 12
    a = [[0.0] * size for _ in range(size)]
    for i in range(size):
        for j in range(i + 1):
            a[i][j] = a[j][i] = rng.gauss(0, 1)
    values, vectors = eigenpairs(a)
    assert values == sorted(values)
    for value, vector in zip(values, vectors, strict=True):
        for row, x in zip(a, vector, strict=True):
            assert sum(m * v for m, v in zip(row, vector, strict=True)) == pytest.approx(value * x, abs=1e-9)


def test_vagueness_is_the_mean_likeness_to_the_nearest():
    vectors = {"a": [1.0, 0.0], "b": [1.0, 0.0], "c": [0.0, 1.0]}

    def embed(texts: Sequence[str]) -> list[list[float]]:
        return [vectors[text] for text in texts]

    scores = vagueness({name: name for name in vectors}, nearest=1, likeness=Likeness(embed))
    assert scores == {"a": 1.0, "b": 1.0, "c": 0.0}
    assert rule_vagueness([rule("a AND c")], scores) == {"a AND c": 1.0}
    assert vagueness({name: name for name in vectors}, nearest=2, likeness=Likeness(embed))["a"] == 0.5
    assert vagueness({"a": "a"}, likeness=Likeness(embed)) == {"a": 0.0}


def test_offline_embeddings_know_spelling():
    same, near, far = HashedNgrams()(["private data", "data is private", "refund window"])
    assert similarity(same, same) == pytest.approx(1.0)
    assert similarity(same, near) > 0.5 > abs(similarity(same, far))
