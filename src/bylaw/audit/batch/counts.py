"""What was counted of a shard, as JSON: counts of parts add up to those of the whole in the way of the small audit."""

import json
from collections import Counter
from typing import Any

import msgspec

from bylaw.audit.coverage import LogCoverage
from bylaw.audit.examine import Examiner
from bylaw.engine.limited import LimitedCall


def counts_record(examiner: Examiner) -> dict[str, Any]:
    """The tally and the coverage of an examiner."""
    coverage = examiner.coverage
    return {
        "tally": [[list(key), count] for key, count in examiner.tally.counts.items()],
        "unknown_tools": coverage.unknown_tools,
        "known_calls": coverage.known_calls,
        "unmapped": sorted(map(list, coverage.unmapped)),
        "worlds": coverage.worlds,
        "changed": [[list(policies), agents] for policies, agents in coverage.changed.items()],
        "faults": coverage.faults,
        "limited": msgspec.to_builtins(coverage.limited),
        "evidence": {pack: count.graded() for pack, count in coverage.evidence.items()},
        "first": coverage.first,
        "last": coverage.last,
    }


class Apart:
    """Counts conversation by conversation, so that one of them can be taken out later, and of all of them."""

    def __init__(self, examiner: Examiner) -> None:
        self._examiner = examiner
        examiner.begin()
        self._tally, self._coverage = examiner.tally, examiner.coverage
        examiner.begin()

    def take(self) -> str:
        """What was counted since the last time, as JSON."""
        examiner = self._examiner
        record = json.dumps(counts_record(examiner), separators=(",", ":"))
        self._tally += examiner.tally
        self._coverage += examiner.coverage
        examiner.begin()
        return record

    def end(self) -> str:
        """The same for the last time; the examiner then has the counts of all."""
        record = self.take()
        self._examiner.tally, self._examiner.coverage = self._tally, self._coverage
        return record


def add_counts(examiner: Examiner, record: dict[str, Any]) -> None:
    """Add what was counted of a shard to the whole."""
    tally = examiner.tally
    for key, count in record["tally"]:
        tally.counts[tuple(key)] += count
    coverage = LogCoverage(worlds=record["worlds"], faults=record["faults"], first=record["first"], last=record["last"])
    coverage.limited = msgspec.convert(record["limited"], list[LimitedCall])
    coverage.known_calls = record["known_calls"]
    coverage.unknown_tools.update(record["unknown_tools"])
    coverage.unmapped.update((tool, name) for tool, name in record["unmapped"])
    for policies, agents in record["changed"]:
        for agent, count in agents.items():
            coverage.changed.setdefault(tuple(policies), Counter())[agent] += count
    examiner.coverage += coverage
    for pack, graded in record["evidence"].items():
        examiner.coverage.evidence[pack].add_graded(graded)
