"""Plays many conversations, checks every allowed call, and reports counts per theorem."""

import logging
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from random import Random

from msgspec import Struct, field

from bylaw.record import Log
from bylaw_lab.theorems.checker import THEOREMS, rejection
from bylaw_lab.theorems.generator import conversation
from bylaw_lab.theorems.transcript import line
from bylaw_lab.theorems.truth import Allowed, Issued, Said, True_

_LOG_TURNOVER = 500
"""After this many conversations, a new in-memory log is used."""


class Rejected(Struct):
    """An allowed call that a theorem does not permit."""

    seed: str
    theorem: str
    why: str
    transcript: list[str]


class Report(Struct):
    conversations: int = 0
    allows: Counter[str] = field(default_factory=Counter[str])
    rejected: list[Rejected] = field(default_factory=list[Rejected])

    def add(self, other: "Report") -> None:
        self.conversations += other.conversations
        self.allows += other.allows
        self.rejected += other.rejected


def check_conversations(seeds: Iterable[str], stop_after: int = 0, story: str = "") -> Report:
    """Play the conversations with these seeds.

    Stop after `stop_after` rejections, unless it is 0. Play only one `story` if given.
    """
    logging.disable(logging.CRITICAL)
    report = Report()
    memory: Log | None = None
    with tempfile.TemporaryDirectory() as folder, Log(str(Path(folder) / "log.db")) as file:
        for number, seed in enumerate(seeds):
            if number % _LOG_TURNOVER == 0:
                if memory is not None:
                    memory.close()
                memory = Log(":memory:")
            assert memory is not None
            check_story(seed, conversation(Random(seed), memory, file, f"t{number}", story), report)
            if stop_after and len(report.rejected) >= stop_after:
                break
        if memory is not None:
            memory.close()
    return report


def check_story(seed: str, events: list[True_], report: Report) -> None:
    report.conversations += 1
    begin = min((each.at for each in events if isinstance(each, Said | Issued | Allowed)), default=0.0)
    for at, event in enumerate(events):
        if isinstance(event, Allowed):
            report.allows["all"] += 1
            report.allows.update(event.theorems)
            for theorem, why in rejection(events, at).items():
                lines = [f"{place:3} {line(each, begin)}" for place, each in enumerate(events[: at + 1])]
                report.rejected.append(Rejected(seed, theorem, why, lines))


def seeds_of(seed: int, conversations: int) -> list[str]:
    return [f"{seed}:{number}" for number in range(conversations)]


def told(report: Report, most: int = 5) -> list[str]:
    lines = [f"conversations: {report.conversations}", f"allows: {report.allows['all']}"]
    for name in THEOREMS:
        rejected = sum(each.theorem == name for each in report.rejected)
        lines.append(f"{name}: {report.allows[name]} allows, {rejected} rejected")
    for each in report.rejected[:most]:
        lines += ["", f"REJECTED {each.theorem}, seed {each.seed}: {each.why}", *each.transcript]
    return lines
