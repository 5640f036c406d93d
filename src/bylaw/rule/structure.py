"""Which rules bear on which action: vagueness (ShieldAgent, Eq. 3), clusters, circuits, the paper's way and ours."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from bylaw.rule.circuit import WIDTH_CAP, Circuit, WeightedRule
from bylaw.rule.embedding import Embedder, HashedNgrams, similarity
from bylaw.rule.formula import atoms
from bylaw.rule.predicate import CircuitPredicate
from bylaw.rule.spectral import spectral_clusters

Structure = Literal["relevance", "paper"]


class Clusters(msgspec.Struct, frozen=True):
    """State predicates that belong together, for browsing and pruning."""

    labels: dict[str, int]
    merged: dict[str, int]
    """After Algorithm 3's lines 7-11: clusters with co-occurring predicates are one."""

    @property
    def groups(self) -> list[list[str]]:
        """The predicates of each cluster before merging."""
        found: dict[int, list[str]] = {}
        for name, label in self.labels.items():
            found.setdefault(label, []).append(name)
        return list(found.values())


def vagueness(
    predicates: Sequence[CircuitPredicate], *, nearest: int = 3, embed: Embedder | None = None
) -> dict[str, float]:
    """Eq. 3: how like its `nearest` neighbours of the same kind each predicate is, on average; 1 says nothing new."""
    found: dict[str, float] = {}
    for kind in ("action", "state"):
        group = [each for each in predicates if each.kind == kind]
        vectors = (embed or HashedNgrams())([each.text for each in group])
        for i, each in enumerate(group):
            near = sorted((similarity(vectors[i], vectors[j]) for j in range(len(group)) if j != i), reverse=True)
            top = near[:nearest]
            found[each.name] = math.fsum(top) / len(top) if top else 0.0
    return found


def rule_vagueness(rules: Iterable[WeightedRule], scores: Mapping[str, float]) -> dict[str, float]:
    """A rule is as vague as its vaguest predicate."""
    return {rule.name: max((scores.get(name, 0.0) for name in atoms(rule.formula)), default=0.0) for rule in rules}


def cluster(
    rules: Sequence[WeightedRule],
    predicates: Sequence[CircuitPredicate],
    *,
    count: int | None = None,
    threshold: float = 0.8,
    embed: Embedder | None = None,
) -> Clusters:
    """Algorithm 3, lines 1-11: predicates are adjacent where a rule has both or their vectors are close."""
    states = [each for each in predicates if each.kind == "state"]
    place = {each.name: i for i, each in enumerate(states)}
    vectors = (embed or HashedNgrams())([each.text for each in states])
    adjacency = [[float(similarity(u, v) >= threshold) if u is not v else 0.0 for v in vectors] for u in vectors]
    together = [[place[name] for name in atoms(rule.formula) if name in place] for rule in rules]
    for members in together:
        for i in members:
            for j in members:
                adjacency[i][j] = float(i != j) or adjacency[i][j]
    labels = spectral_clusters(adjacency, count) if states else []
    merged = list(labels)
    for members in together:
        for i in members[1:]:
            if merged[i] != merged[members[0]]:
                old, new = merged[i], merged[members[0]]
                merged = [new if label == old else label for label in merged]
    names = list(place)
    return Clusters(dict(zip(names, labels, strict=True)), dict(zip(names, merged, strict=True)))


def circuits(
    rules: Sequence[WeightedRule],
    predicates: Sequence[CircuitPredicate],
    *,
    structure: Structure = "relevance",
    eps: float = 0.0,
    eps_of: Mapping[str, float] | None = None,
    width_cap: int = WIDTH_CAP,
    count: int | None = None,
    threshold: float = 0.8,
    embed: Embedder | None = None,
) -> dict[str, Circuit]:
    """One circuit per action predicate; `eps_of` overrides the pack's `eps` for single actions."""
    actions = [each.name for each in predicates if each.kind == "action"]
    if structure == "paper":
        clusters = cluster(rules, predicates, count=count, threshold=threshold, embed=embed)
        chosen = {action: _by_clusters(action, rules, clusters) for action in actions}
    else:
        chosen = {action: by_relevance(action, rules) for action in actions}
    limits = eps_of or {}
    return {
        action: Circuit(action=action, rules=tuple(found), eps=limits.get(action, eps), width_cap=width_cap)
        for action, found in chosen.items()
    }


def by_relevance(action: str, rules: Sequence[WeightedRule]) -> list[WeightedRule]:
    """The rules that mention the action, and the physical rules their predicates lead to, in the order given.

    A rule that does not mention the action says the same with and without it, and only knowledge can carry its word on.
    """
    chosen = {rule.name for rule in rules if not rule.physical and action in atoms(rule.formula)}
    reached = {name for rule in rules if rule.name in chosen for name in atoms(rule.formula)} - {action}
    grew = True
    while grew:
        grew = False
        for rule in rules:
            if rule.physical and rule.name not in chosen and reached.intersection(atoms(rule.formula)):
                chosen.add(rule.name)
                reached.update(atoms(rule.formula))
                grew = True
    return [rule for rule in rules if rule.name in chosen]


def _by_clusters(action: str, rules: Sequence[WeightedRule], clusters: Clusters) -> list[WeightedRule]:
    """Algorithm 3, lines 12-25: every rule of every cluster in which some rule mentions the action.

    A rule without state predicates is in no cluster and so in no circuit; the paper does not say otherwise.
    """
    chosen: set[str] = set()
    for label in sorted(set(clusters.merged.values())):
        members = [r for r in rules if any(clusters.merged.get(name) == label for name in atoms(r.formula))]
        if any(action in atoms(rule.formula) for rule in members):
            chosen.update(rule.name for rule in members)
    return [rule for rule in rules if rule.name in chosen]


class Comparison(msgspec.Struct, frozen=True):
    """How many rules each action's circuit holds, ours beside the paper's."""

    action: str
    relevance: int
    paper: int
    rules: int


def compare(rules: Sequence[WeightedRule], predicates: Sequence[CircuitPredicate]) -> list[Comparison]:
    """Both structures side by side."""
    ours = circuits(rules, predicates)
    clusters = cluster(rules, predicates)
    return [
        Comparison(action, len(circuit.rules), len(_by_clusters(action, rules, clusters)), len(rules))
        for action, circuit in ours.items()
    ]
