"""Groups rules into circuits by action, and measures how vague predicates are (ShieldAgent, Eq. 3)."""

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
"""Returns one vector per string, in the same order. All vectors have the same length."""


PLACES = 512
"""The number of dimensions of a spelling embedding."""
SIZES = (3, 4)
"""The lengths of the n-grams in a spelling embedding."""
MOST_CLUSTERS = 12


class HashedNgrams:
    """Embeds text as hashed counts of character n-grams and words, normalised to unit length.

    This compares spelling, not meaning: `is_private` is near `private_data` and far from `confidential`.
    """

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        return [self._embed(text) for text in texts]

    def _embed(self, text: str) -> list[float]:
        vector = [0.0] * PLACES
        words = "".join(c if c.isalnum() else " " for c in text.lower()).split()
        for word in words:
            padded = f" {word} "
            pieces = [padded[i : i + n] for n in SIZES for i in range(max(1, len(padded) - n + 1))]
            for piece in (*pieces, padded):
                code = zlib.crc32(piece.encode())
                # With random signs, collisions cancel out on average.
                vector[code % PLACES] += 1.0 if code & 0x8000_0000 else -1.0
        return normalised(vector)


def normalised(vector: Vector) -> list[float]:
    """Return the vector scaled to length 1. A zero vector stays zero."""
    length = math.sqrt(math.fsum(x * x for x in vector))
    return [x / length for x in vector] if length else list(vector)


def similarity(left: Vector, right: Vector) -> float:
    return math.fsum(x * y for x, y in zip(left, right, strict=True))


Matrix = Sequence[Sequence[float]]
LARGE = 80


def spectral_clusters(adjacency: Matrix, count: int | None = None) -> list[int]:
    """Return the cluster number of each node. By default, the largest eigengap gives the number of clusters."""
    size = len(adjacency)
    if size <= 1:
        return [0] * size
    degrees = [math.fsum(row) or 1.0 for row in adjacency]
    laplacian = [
        [float(i == j) - adjacency[i][j] / math.sqrt(degrees[i] * degrees[j]) for j in range(size)] for i in range(size)
    ]
    values, vectors = eigenpairs(laplacian)
    if count is None:
        gaps = [values[k] - values[k - 1] for k in range(1, min(size, MOST_CLUSTERS + 1))]
        count = gaps.index(max(gaps)) + 1
    count = max(1, min(count, size))
    return _grouped([normalised([vector[i] for vector in vectors[:count]]) for i in range(size)], count)


def eigenpairs(matrix: Matrix) -> tuple[list[float], list[list[float]]]:
    """Return the eigenvalues of a symmetric matrix in ascending order, with their eigenvectors.

    Uses Jacobi rotations or, for a large matrix, scipy if the extra `learn` is installed.
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
    """Rotate so that a[p][q] becomes zero. The rows of `turned` are updated and finally become the eigenvectors."""
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
    """Group points by k-means with starting points far apart. Ties go to the earlier cluster."""

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


class Clusters(msgspec.Struct, frozen=True):
    """State predicates that belong together, for browsing and pruning."""

    labels: dict[str, int]
    merged: dict[str, int]
    """The clusters after merging those with co-occurring predicates (Algorithm 3, lines 7 to 11)."""

    @property
    def groups(self) -> list[list[str]]:
        """The predicates of each cluster before merging."""
        found: dict[int, list[str]] = {}
        for name, label in self.labels.items():
            found.setdefault(label, []).append(name)
        return list(found.values())


class Likeness:
    def __init__(self, embed: Embedder | None = None) -> None:
        self._embed = embed or HashedNgrams()
        self._vectors: dict[str, Vector] = {}
        self._found: dict[tuple[str, str], float] = {}

    def __call__(self, one: str, other: str) -> float:
        pair = (one, other) if one <= other else (other, one)
        if pair not in self._found:
            self._found[pair] = similarity(*(self._vectors[text] for text in pair))
        return self._found[pair]

    def take(self, texts: Iterable[str]) -> None:
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        self._vectors |= zip(new, self._embed(new) if new else (), strict=True)


def vagueness(predicates: Texts, *, nearest: int = 3, likeness: Likeness | None = None) -> dict[str, float]:
    """Return the mean similarity of each predicate to its `nearest` neighbours (Eq. 3). 1 means redundant."""
    alike = likeness or Likeness()
    alike.take(predicates.values())
    found: dict[str, float] = {}
    for name, text in predicates.items():
        near = sorted((alike(text, other) for each, other in predicates.items() if each != name), reverse=True)
        top = near[:nearest]
        found[name] = math.fsum(top) / len(top) if top else 0.0
    return found


def rule_vagueness(rules: Iterable[Rule], scores: Mapping[str, float]) -> dict[str, float]:
    return {rule.name: max((scores.get(name, 0.0) for name in atoms(rule.formula)), default=0.0) for rule in rules}


def cluster(
    rules: Sequence[Rule],
    states: Texts,
    *,
    count: int | None = None,
    threshold: float = 0.8,
    embed: Embedder | None = None,
) -> Clusters:
    """Cluster state predicates that share a rule or have similar vectors (Algorithm 3, lines 1 to 11)."""
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
    return {action: Circuit(action=action, rules=tuple(by_relevance(action, rules)), eps=eps) for action in actions}


def by_relevance(action: str, rules: Sequence[Rule]) -> list[Rule]:
    """Return the rules that mention the action, and the physical rules that share predicates with them.

    No other rule depends on the action.
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
    """Return every rule in every cluster that has a rule about the action (Algorithm 3, lines 12 to 25).

    A rule without state predicates belongs to no cluster, so it is in no circuit. The paper leaves this case open.
    """
    chosen: set[str] = set()
    for label in sorted(set(clusters.merged.values())):
        members = [r for r in rules if any(clusters.merged.get(name) == label for name in atoms(r.formula))]
        if any(action in atoms(rule.formula) for rule in members):
            chosen.update(rule.name for rule in members)
    return [rule for rule in rules if rule.name in chosen]
