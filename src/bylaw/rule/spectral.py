"""Spectral clustering of small graphs (von Luxburg, 2007), in plain Python and with the same answer every time."""

import math
from collections.abc import Sequence
from typing import Any, cast

from bylaw.rule.embedding import normalised

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
