"""Vectors for short texts: a small role, and a default that needs no model and no network."""

import math
import zlib
from collections.abc import Callable, Sequence

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
