"""The parts of the task set. They differ in people, numbers, days, amounts and words."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args
from zlib import crc32

import yaml

from bylaw.policy.yaml import LOADER
from bylaw_lab.clinic.simulator.wants import Clinic
from bylaw_lab.clinic.simulator.world import FIRST, LAST, Population, build

Part = Literal["training", "development", "test", "rl"]
PARTS: tuple[Part, ...] = get_args(Part)
TRAINING_SEEDS = tuple(range(11, 23))
"""The seeds of the databases for callers in the training part."""
MORE_SHELVES = 5
"""The first range of record numbers for training databases other than the first."""


def belongs(part: Part) -> Callable[[Any], bool]:
    """Whether a day, time or amount may occur in the records of a part.

    Each value belongs to exactly one part.
    """
    low, high = {"test": (0, 3), "development": (3, 6), "training": (6, 10), "rl": (6, 10)}[part]
    return lambda value: low <= crc32(str(value).encode()) % 10 < high


@cache
def clinic(part: Part, seed: int) -> Clinic:
    """Return a clinic with its own people for this part. Each training database has its own numbers."""
    names = read("people.yaml")
    if part in ("training", "rl"):
        names = {"first": [*FIRST, *names["training"]["first"]], "last": [*LAST, *names["training"]["last"]]}
    shelf = PARTS.index(part)
    if part == "training" and seed > TRAINING_SEEDS[0]:
        shelf = MORE_SHELVES + TRAINING_SEEDS.index(seed)
    population = Population(first=names["first"], last=names["last"], shelf=shelf, keeps=belongs(part))
    return Clinic(build(seed=seed, population=population))


@cache
def phrases(part: Part) -> dict[str, Any]:
    """Return the wording of the callers. The RL part uses the same wording as the training part."""
    alike = {"rl": "training"}
    return read("phrases.yaml")[alike.get(part, part)]


@cache
def grounds() -> dict[str, dict[str, Any]]:
    """Return `grounds.yaml`: the reasons for refusing requests, by policy."""
    return read("grounds.yaml")


def read(file: str) -> dict[str, Any]:
    return yaml.load((Path(__file__).parent / file).read_text(encoding="utf-8"), LOADER)
