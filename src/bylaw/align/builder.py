"""Builds the three stages' sets, from a pack's own tasks or from recorded conversations."""

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Literal

from bylaw.align.dataset import (
    SHAPES,
    Source,
    conversation_row,
    is_graded,
    sets_in,
    turn_rows,
    write_card,
    write_manifest,
    write_rows,
)
from bylaw.align.desk import load_tasks
from bylaw.align.lesson import CannotPassError, LessonSeries, Thoughts, acts, gold, lessons_of
from bylaw.align.prompt import pack_named
from bylaw.align.standing import Auditor, FreshAudit, unfit
from bylaw.errors import BylawError, UsageError
from bylaw.pack import Pack
from bylaw.trace.source import LogFile
from bylaw.trace.trajectory import Trajectory

HELD_OUT = 0.1
"""Share of recorded conversations kept apart for the RL turns: one at least, where there are two or more."""
Keep = Literal["failed", "flagged", "open"]
"""What is kept though it would be left out: conversations that missed their goal, that an audit flags, or in which it
could not settle something."""
Watch = Callable[[str, int, int], None]
"""Hears what is being made, how many are done, and of how many."""


def build_from_tasks(
    pack: str,
    out: Path,
    *,
    turns: int = 900,
    times: int = 1,
    rl_times: int = 1,
    seed: int = 0,
    command: str = "",
    watch: Watch | None = None,
) -> Path:
    """Sets from the gold conversations of a pack's desk; returns the data card's path.

    `times` and `rl_times` ask for that many times the usual number of tasks to train on and to try.
    """
    dropped: Counter[str] = Counter()
    training = gold_series("training", pack, times, seed, dropped, watch)
    tried = gold_series("rl", pack, rl_times, seed, dropped, watch)
    source = Source("Gold conversations of the desk's training tasks, played by its expert.", command, dropped)
    return write_sets(pack, out, training, tried, turns=turns, seed=seed, source=source)


def gold_series(
    part: str, pack: str, times: int, seed: int, dropped: Counter[str], watch: Watch | None = None
) -> list[LessonSeries]:
    """The gold conversations of one part of a desk's tasks; those that the expert cannot pass are counted."""
    tasks = load_tasks(part, pack, times=times)
    found: list[LessonSeries] = []
    for done, task in enumerate(tasks, start=1):
        try:
            found.append(gold(task, seed=seed))
        except CannotPassError:
            dropped["a caller who contradicts themselves"] += 1
        if watch is not None:
            watch(part, done, len(tasks))
    return found


def build_from_logs(
    pack: str,
    out: Path,
    logs: Iterable[tuple[LogFile, Trajectory | BylawError]],
    *,
    auditor: Auditor | None = None,
    thoughts: Thoughts | None = None,
    keep: Collection[Keep] = (),
    turns: int = 900,
    seed: int = 0,
    command: str = "",
    document: str = "",
    for_judge: bool = False,
) -> Path:
    """Sets from recorded conversations that are fit to learn from; returns the data card's path.

    `auditor` says which of them an audit flags or leaves open; without one they are audited here, without a world.
    """
    held = pack_named(pack)
    audited = auditor or FreshAudit(pack)
    dropped: Counter[str] = Counter()
    kept: list[LessonSeries] = []
    cut = 0
    for file, each in logs:
        if isinstance(each, BylawError):
            dropped["unreadable"] += 1
        elif (why := _left_out(held, each, file, audited, keep)) is not None:
            dropped[why] += 1
        else:
            found = lessons_of(held, each, seed=seed, thoughts=thoughts)
            if not found.lessons:
                dropped["no written thought for the first turn"] += 1
                continue
            kept.append(found)
            cut += len(found.lessons) < sum(1 for _ in acts(each.events))
    if not kept:
        counts = ", ".join(f"{why} {count}" for why, count in dropped.items()) or "there were none"
        raise UsageError(f"no conversations left to learn from ({counts})", hint=_remedy(dropped, keep))
    random.Random(seed).shuffle(kept)
    apart = max(1, round(HELD_OUT * len(kept))) if len(kept) > 1 else 0
    said = ["Recorded conversations."]
    said += [f"{cut} of them end before the first turn whose written thought was not good enough."] if cut else []
    said += [] if apart else ["There is only one, so none is held out for `rl`."]
    source = Source(" ".join(said), command, dropped, thoughts="verified" if thoughts is None else "written")
    training, tried = kept[apart:], kept[:apart]
    return write_sets(
        pack, out, training, tried, turns=turns, seed=seed, source=source, document=document, for_judge=for_judge
    )


def _left_out(
    pack: Pack, trajectory: Trajectory, file: LogFile, auditor: Auditor, keep: Collection[Keep]
) -> str | None:
    """Why a conversation is left out; None where it is learned from."""
    why = unfit(pack, trajectory)
    if why is not None and not (why == "failed" and "failed" in keep):
        return why
    judged = auditor.judged(trajectory, file)
    if judged.flagged and "flagged" not in keep:
        return f"flagged: {judged.flagged[0]}"
    if judged.open and "open" not in keep:
        return f"open: {judged.open[0]}"
    return None


def _remedy(dropped: Counter[str], keep: Collection[Keep]) -> str:
    """What may be done where nothing is left."""
    if "open" not in keep and any(why.startswith("open: ") for why in dropped):
        return "--world settles what is open; --keep-open keeps it"
    if "failed" not in keep and set(dropped) - {"unreadable"}:
        return "--keep-all keeps what failed, was flagged or stayed open"
    return "see what the logs hold with `bylaw scan`"


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
    for_judge: bool = False,
) -> Path:
    """Write the sets, `data.json` and the card. Without the policy's document there is no stage 1."""
    out.mkdir(parents=True, exist_ok=True)
    held = pack_named(pack)
    (out / "stage1.jsonl").unlink(missing_ok=True)
    for name, shape in SHAPES.items():
        if shape.policy == "none" or document or held.document is not None:
            rows = (conversation_row(pack, talk, shape, document=document) for talk in training)
            write_rows(out / f"{name}.jsonl", rows)
    write_rows(out / "rl.jsonl", turn_rows(pack, apart, turns, seed=seed, for_judge=for_judge))
    ungraded = sum(not is_graded(lesson) for talk in apart for lesson in talk.lessons)
    write_manifest(out, pack, held, source.command, sets_in(out))
    return write_card(out, held, source, ungraded=0 if for_judge else ungraded)
