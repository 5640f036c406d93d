"""Which rules bear on which action: vagueness (ShieldAgent, Eq. 3), clusters by vectors, circuits in two ways."""

import math
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec

from bylaw.rule.circuit import Circuit
from bylaw.rule.formula import atoms
from bylaw.rule.rule import Rule

Vector = Sequence[float]


Embedder = Callable[[Sequence[str]], Sequence[Vector]]
"""Returns one vector per text, in order, all of one length."""


class HashedNgrams:
    """Counts of character n-grams and words, hashed into a fixed number of places, of length 1.

    It knows spelling, not meaning: `is_private` is near `private_data` and far from `confidential`.
    """

    def __init__(self, *, places: int = 512, sizes: Sequence[int] = (3, 4)) -> None:
        self.places = places
        self.sizes = tuple(sizes)

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        return [self._embed(text) for text in texts]

    def _embed(self, text: str) -> list[float]:
        vector = [0.0] * self.places
        words = "".join(c if c.isalnum() else " " for c in text.lower()).split()
        for word in words:
            padded = f" {word} "
            pieces = [padded[i : i + n] for n in self.sizes for i in range(max(1, len(padded) - n + 1))]
            for piece in (*pieces, padded):
                code = zlib.crc32(piece.encode())
                # A sign per piece makes collisions cancel on average instead of adding up.
                vector[code % self.places] += 1.0 if code & 0x8000_0000 else -1.0
        return normalised(vector)


def normalised(vector: Vector) -> list[float]:
    """The vector at length 1; zero stays zero."""
    length = math.sqrt(math.fsum(x * x for x in vector))
    return [x / length for x in vector] if length else list(vector)


def similarity(left: Vector, right: Vector) -> float:
    """The inner product: the cosine, where both have length 1."""
    return math.fsum(x * y for x, y in zip(left, right, strict=True))


Matrix = Sequence[Sequence[float]]
LARGE = 80


def spectral_clusters(adjacency: Matrix, count: int | None = None, *, most: int = 12) -> list[int]:
    """The cluster number of each node, numbered by first node; without a `count`, the largest eigengap chooses it."""
    size = len(adjacency)
    if size <= 1:
        return [0] * size
    degrees = [math.fsum(row) or 1.0 for row in adjacency]
    laplacian = [
        [float(i == j) - adjacency[i][j] / math.sqrt(degrees[i] * degrees[j]) for j in range(size)] for i in range(size)
    ]
    values, vectors = eigenpairs(laplacian)
    if count is None:
        gaps = [values[k] - values[k - 1] for k in range(1, min(size, most + 1))]
        count = gaps.index(max(gaps)) + 1
    count = max(1, min(count, size))
    return _grouped([normalised([vector[i] for vector in vectors[:count]]) for i in range(size)], count)


def eigenpairs(matrix: Matrix) -> tuple[list[float], list[list[float]]]:
    """Eigenvalues of a symmetric matrix in rising order, with their vectors.

    Jacobi's rotations; a large matrix goes to scipy where the extra `learn` is installed.
    """
    if len(matrix) > LARGE:
        try:
            from scipy.linalg import eigh  # pyright: ignore
        except ImportError:
            pass
        else:
            found = cast(Any, eigh)([list(row) for row in matrix])
            return [float(v) for v in found[0]], [[float(x) for x in column] for column in found[1].T]
    return _jacobi(matrix)


def _jacobi(matrix: Matrix) -> tuple[list[float], list[list[float]]]:
    size = len(matrix)
    a = [list(row) for row in matrix]
    turned = [[float(i == j) for j in range(size)] for i in range(size)]
    for _ in range(60):
        if math.fsum(a[i][j] ** 2 for i in range(size) for j in range(i)) < 1e-22:
            break
        for p in range(size - 1):
            for q in range(p + 1, size):
                if abs(a[p][q]) > 1e-14:
                    _rotate(a, turned, p, q)
    order = sorted(range(size), key=lambda i: a[i][i])
    return [a[i][i] for i in order], [turned[i] for i in order]


def _rotate(a: list[list[float]], turned: list[list[float]], p: int, q: int) -> None:
    """One rotation that makes a[p][q] zero; rows of `turned` become the eigenvectors."""
    phase = (a[q][q] - a[p][p]) / (2 * a[p][q])
    t = math.copysign(1.0, phase) / (abs(phase) + math.hypot(phase, 1.0))
    c = 1 / math.hypot(t, 1.0)
    s = t * c
    for rows in (a, turned):
        first, second = rows[p], rows[q]
        rows[p] = [c * x - s * y for x, y in zip(first, second, strict=True)]
        rows[q] = [s * x + c * y for x, y in zip(first, second, strict=True)]
    for row in a:
        row[p], row[q] = c * row[p] - s * row[q], s * row[p] + c * row[q]


def _grouped(points: Sequence[Sequence[float]], count: int) -> list[int]:
    """k-means from far-apart starts, ties to the earlier one."""

    def distance(left: Sequence[float], right: Sequence[float]) -> float:
        return math.fsum((x - y) ** 2 for x, y in zip(left, right, strict=True))

    centres = [list(points[0])]
    while len(centres) < count:
        spread = [min(distance(point, centre) for centre in centres) for point in points]
        centres.append(list(points[spread.index(max(spread))]))
    labels = [-1] * len(points)
    for _ in range(100):
        nearest = [min(range(count), key=lambda k, point=point: distance(point, centres[k])) for point in points]
        if nearest == labels:
            break
        labels = nearest
        for k in range(count):
            members = [point for point, label in zip(points, labels, strict=True) if label == k]
            if members:
                centres[k] = [math.fsum(column) / len(members) for column in zip(*members, strict=True)]
    numbers: dict[int, int] = {}
    return [numbers.setdefault(label, len(numbers)) for label in labels]


Texts = Mapping[str, str]
"""Predicates by name, each in words."""


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


class Likeness:
    """How like each other texts are; what was asked once is known."""

    def __init__(self, embed: Embedder | None = None) -> None:
        self._embed = embed or HashedNgrams()
        self._vectors: dict[str, Vector] = {}
        self._found: dict[tuple[str, str], float] = {}

    def __call__(self, one: str, other: str) -> float:
        """From -1 to 1, where vectors have length 1."""
        pair = (one, other) if one <= other else (other, one)
        if pair not in self._found:
            self._found[pair] = similarity(*(self._vectors[text] for text in pair))
        return self._found[pair]

    def take(self, texts: Iterable[str]) -> None:
        """Have vectors for these texts."""
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        self._vectors |= zip(new, self._embed(new) if new else (), strict=True)


def vagueness(predicates: Texts, *, nearest: int = 3, likeness: Likeness | None = None) -> dict[str, float]:
    """Eq. 3: how like its `nearest` neighbours each predicate is, on average; 1 says nothing new."""
    alike = likeness or Likeness()
    alike.take(predicates.values())
    found: dict[str, float] = {}
    for name, text in predicates.items():
        near = sorted((alike(text, other) for each, other in predicates.items() if each != name), reverse=True)
        top = near[:nearest]
        found[name] = math.fsum(top) / len(top) if top else 0.0
    return found


def rule_vagueness(rules: Iterable[Rule], scores: Mapping[str, float]) -> dict[str, float]:
    """A rule is as vague as its vaguest predicate."""
    return {rule.name: max((scores.get(name, 0.0) for name in atoms(rule.formula)), default=0.0) for rule in rules}


def cluster(
    rules: Sequence[Rule],
    states: Texts,
    *,
    count: int | None = None,
    threshold: float = 0.8,
    embed: Embedder | None = None,
) -> Clusters:
    """Algorithm 3, lines 1-11: state predicates are adjacent where a rule has both or their vectors are close."""
    place = {name: i for i, name in enumerate(states)}
    vectors = (embed or HashedNgrams())(list(states.values()))
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


def circuits(rules: Sequence[Rule], actions: Iterable[str], *, eps: float = 0.0) -> dict[str, Circuit]:
    """One circuit per action, of the rules that bear on it."""
    return {action: Circuit(action=action, rules=tuple(by_relevance(action, rules)), eps=eps) for action in actions}


def by_relevance(action: str, rules: Sequence[Rule]) -> list[Rule]:
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


def by_clusters(action: str, rules: Sequence[Rule], clusters: Clusters) -> list[Rule]:
    """Algorithm 3, lines 12-25: every rule of every cluster in which some rule mentions the action.

    A rule without state predicates is in no cluster and so in no circuit; the paper does not say otherwise.
    """
    chosen: set[str] = set()
    for label in sorted(set(clusters.merged.values())):
        members = [r for r in rules if any(clusters.merged.get(name) == label for name in atoms(r.formula))]
        if any(action in atoms(rule.formula) for rule in members):
            chosen.update(rule.name for rule in members)
    return [rule for rule in rules if rule.name in chosen]
