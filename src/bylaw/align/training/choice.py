"""Which turns stage 3 learns from: those where a model's own answers differ in their rewards.

Where all answers to a prompt get the same reward, GRPO has nothing to learn. A model that has learned from thoughts
answers most turns of its training alike, so a pool of turns is tried first, and those that were answered with the most
different rewards are kept. The paper takes its turns as they come.
"""
# pyright: basic, reportMissingImports=false

from collections.abc import Mapping, Sequence
from statistics import mean, pstdev
from typing import Any

from bylaw.align.training.dialect import Dialect
from bylaw.align.training.generator import Generator
from bylaw.align.training.reinforced import Score


def tried(
    rows: Sequence[Mapping[str, Any]],
    dialect: Dialect,
    generator: Generator,
    score: Score,
    *,
    times: int = 4,
    longest: int = 224,
    temperature: float = 1.0,
    seed: int = 0,
) -> list[list[float]]:
    """The rewards of `times` answers to each row's turn."""
    prompts = [dialect.prompt(row["prompt"]) for row in rows]
    # Prompts of like length are answered together.
    order = sorted(range(len(rows)), key=lambda place: len(prompts[place]))
    places = [place for place in order for _ in range(times)]
    answers: list[list[int]] = []
    for start in range(0, len(places), generator.slots):
        part = [prompts[place] for place in places[start : start + generator.slots]]
        answers += generator.generate(part, longest=longest, temperature=temperature, seed=seed + start)
    terms = score([dialect.text(ids) for ids in answers], [rows[place] for place in places])
    found: list[list[float]] = [[] for _ in rows]
    for place, one in zip(places, terms, strict=True):
        found[place].append(one["total"])
    return found


def disagreeing(rewards: Sequence[Sequence[float]], count: int) -> list[int]:
    """The places of at most `count` turns whose answers differ in their rewards, those that differ most first."""
    spread = {place: pstdev(values) for place, values in enumerate(rewards)}
    differing = [place for place, value in spread.items() if value > 1e-6]
    return sorted(differing, key=lambda place: (-spread[place], mean(rewards[place])))[:count]
