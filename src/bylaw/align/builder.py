"""Builds the three stages' sets, from a pack's own tasks or from recorded conversations."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bylaw.align.card import Source, write_card
from bylaw.align.dataset import SHAPES, conversation_row, parting_rows, turn_rows, write_rows
from bylaw.align.filters import unfit
from bylaw.align.gold import CannotPassError, gold
from bylaw.align.lesson import LessonSeries
from bylaw.align.logged import lessons_of
from bylaw.align.planted import Faults, plant
from bylaw.align.prompt import pack_named
from bylaw.align.tasks import load_tasks
from bylaw.errors import BylawError, UsageError
from bylaw.trace.trajectory import Trajectory

HELD_OUT = 0.1
"""Share of recorded conversations kept apart for the RL turns: one at least, where there are two or more."""
Watch = Callable[[str, int, int], None]
"""Hears what is being made, how many are done, and of how many."""


def build_from_tasks(
    pack: str,
    out: Path,
    *,
    turns: int = 900,
    times: int = 1,
    rl_times: int = 1,
    parting: bool = False,
    seed: int = 0,
    command: str = "",
    faults: Faults | None = None,
    watch: Watch | None = None,
) -> Path:
    """Sets from the gold conversations of a pack's tasks; returns the data card's path.

    `times` and `rl_times` ask for that many times the usual number of tasks to train on and to try. With
    `parting` the turns to try are those where twins part, `turns` of them at most. With `faults` there is a fifth set,
    `unfiltered`: stage 2 with faults planted in its thoughts.
    """
    talks: dict[str, list[LessonSeries]] = {}
    dropped: Counter[str] = Counter()
    for part in ("training", "rl"):
        tasks = load_tasks(part, pack, times=times if part == "training" else rl_times)
        talks[part] = []
        for done, task in enumerate(tasks, start=1):
            try:
                talks[part].append(gold(task, seed=seed))
            except CannotPassError:
                dropped["a caller who contradicts themselves"] += 1
            if watch is not None:
                watch(part, done, len(tasks))
    if faults is not None:
        out.mkdir(parents=True, exist_ok=True)
        spoilt = (plant(pack_named(pack), talk, faults, seed=seed) for talk in talks["training"])
        write_rows(out / "unfiltered.jsonl", (conversation_row(pack, talk, SHAPES["stage2"]) for talk in spoilt))
    source = Source(
        "Gold conversations of the pack's own training tasks, played by its careful agent.", command, dropped
    )
    return write_sets(pack, out, talks["training"], talks["rl"], turns=turns, seed=seed, source=source, parting=parting)


def build_from_logs(
    pack: str,
    out: Path,
    logs: Iterable[Trajectory | BylawError],
    *,
    turns: int = 900,
    seed: int = 0,
    command: str = "",
    keep_all: bool = False,
    document: str = "",
) -> Path:
    """Sets from recorded conversations that are fit to learn from; returns the data card's path."""
    held = pack_named(pack)
    dropped: Counter[str] = Counter()
    kept: list[LessonSeries] = []
    for each in logs:
        if isinstance(each, BylawError):
            dropped["unreadable"] += 1
        elif (why := unfit(held, each)) is not None and not (keep_all and why in ("failed", "flagged")):
            dropped[why] += 1
        else:
            kept.append(lessons_of(held, each, seed=seed))
    if not kept:
        counts = ", ".join(f"{why} {count}" for why, count in dropped.items()) or "there were none"
        hint = (
            "--keep-all keeps what failed or was flagged"
            if not keep_all
            else "see what the logs hold with `bylaw scan`"
        )
        raise UsageError(f"no conversations left to learn from ({counts})", hint=hint)
    random.Random(seed).shuffle(kept)
    apart = max(1, round(HELD_OUT * len(kept))) if len(kept) > 1 else 0
    alone = "" if apart else " There is only one, so none is held out for `rl`."
    source = Source(f"Recorded conversations.{alone}", command, dropped)
    return write_sets(pack, out, kept[apart:], kept[:apart], turns=turns, seed=seed, source=source, document=document)


def write_sets(
    pack: str,
    out: Path,
    training: Sequence[LessonSeries],
    apart: Sequence[LessonSeries],
    *,
    turns: int,
    seed: int,
    source: Source,
    document: str = "",
    parting: bool = False,
) -> Path:
    """Write the sets and the card. Without the policy's document there is no stage 1."""
    out.mkdir(parents=True, exist_ok=True)
    held = pack_named(pack)
    for name, shape in SHAPES.items():
        if shape.policy == "none" or document or held.document is not None:
            rows = (conversation_row(pack, talk, shape, document=document) for talk in training)
            write_rows(out / f"{name}.jsonl", rows)
    tried = parting_rows(pack, apart)[:turns] if parting else turn_rows(pack, apart, turns, seed=seed)
    write_rows(out / "rl.jsonl", tried)
    return write_card(out, held, source)
