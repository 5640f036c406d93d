"""Counts how many look-up results were captured, readable and mapped to entities, and why others were not.

An unreadable fact is a fault of the log or of the pack, never of the agent.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from bylaw.facts.acceptance import accepted, failed, looks_failed
from bylaw.facts.call_record import CallRecord
from bylaw.facts.observation import Observation, searched_text, sightings
from bylaw.facts.schema import Schema
from bylaw.policy.tool import Tool
from bylaw.trace.event import Call, Event, Result

EvidenceGrade = Literal["shown", "readable", "empty", "unmapped", "unreadable", "failing", "uncaptured", "refused"]
"""`shown`: something that the entities map. `readable`: data, where no pack says what it shows. `empty`: data with
nothing in it. `unmapped`: data in which no observation finds its thing. `unreadable`: text that nothing reads.
`failing`: such a text that looks like an error."""

CURES: Final[dict[EvidenceGrade, str]] = {
    "uncaptured": "results were not recorded: switch content capture on",
    "unreadable": "results are text that is neither JSON nor what Python prints: have the tool return JSON, or give its"
    " observation a `text` pattern",
    "failing": "some results look like errors, and nothing says that they are: give the tool `refused` in tools.yaml"
    " (`bylaw explain` shows the line to write)",
    "unmapped": "results are data in which no observation finds a thing with its key: correct the tool's observations",
}
"""What to do about each fault; how to record is on the page docs/guides/get-your-logs-out.md."""


class LookupEvidence(Struct, frozen=True, omit_defaults=True):
    """The results of one look-up tool, by grade."""

    tool: str
    results: int
    """Results of calls of the tool, including refusals."""
    captured: int
    """Results with content."""
    readable: int
    """Captured results that are data, match a pattern of the pack, or are refusals."""
    shown: int | None = None
    """Results with something that the entities map; None without a pack, or if the pack maps nothing of the tool."""
    refused: int = 0
    empty: int = 0
    cures: tuple[str, ...] = ()
    """What to do, for the most common fault first; empty if every result could be used."""


class EvidenceCount:
    """Evidence counts over conversations; counts of parts can be added."""

    def __init__(self, schema: Schema | None = None) -> None:
        self._graded: dict[str, Counter[EvidenceGrade]] = {}
        self._lookups: dict[str, tuple[Tool, list[Observation] | None]] | None = None
        """The look-ups of the pack, each with its observations; None without a pack: then every tool counts."""
        self._mapped: frozenset[str] = frozenset()
        """The tools for which the pack maps results to entities."""
        if schema is not None:
            shows = {name: [each for found in kinds.values() for each in found] for name, kinds in schema.shows.items()}
            reads = [tool for tool in schema.tools.values() if tool.effect == "read"]
            self._lookups = {tool.name: (tool, shows.get(tool.name) or None) for tool in reads}
            self._mapped = frozenset(name for name, kinds in schema.shows.items() if kinds)

    def __getstate__(self) -> dict[str, Any]:
        # Counts from another process are only added, which needs no schema.
        return {"_lookups": None, "_mapped": self._mapped, "_graded": self._graded}

    def add(self, events: Sequence[Event], known: Mapping[int, CallRecord] | None = None) -> None:
        """Count the results of one conversation's look-ups; without a pack, of all tools.

        `known` are its calls by their steps, where guards have read some of the results already.
        """
        lookups, graded, known = self._lookups, self._graded, known or {}
        for result in events:
            if type(result) is not Result or result.call is None:
                continue
            call = events[result.call]
            if type(call) is Call and call.by == "agent" and (lookups is None or call.tool in lookups):
                counts = graded.get(call.tool)
                if counts is None:
                    counts = graded[call.tool] = Counter()
                made = known.get(result.call)
                is_shown = made is not None and made.has_told and made.result is result
                counts["shown" if is_shown else self.grade(call, result)] += 1

    def grade(self, call: Call, result: Result) -> EvidenceGrade:
        """The grade of one result."""
        return grade(call, result, *(self._lookups or {}).get(call.tool, (None, None)))

    def update(self, other: "EvidenceCount") -> None:
        """Add the counts of another."""
        self.add_graded(other._graded)
        self._mapped |= other._mapped

    def graded(self) -> Mapping[str, Mapping[EvidenceGrade, int]]:
        """How many results of each tool have each grade."""
        return self._graded

    def add_graded(self, graded: Mapping[str, Mapping[EvidenceGrade, int]]) -> None:
        """Add counts as `graded` returns them."""
        for tool, grades in graded.items():
            self._graded.setdefault(tool, Counter()).update(grades)

    def remove_graded(self, graded: Mapping[str, Mapping[EvidenceGrade, int]], times: int = 1) -> None:
        """Take away what `add_graded` added, so many times."""
        for tool, grades in graded.items():
            held = self._graded[tool]
            held.subtract({grade: count * times for grade, count in grades.items()})
            self._graded[tool] = +held
            if not self._graded[tool]:
                del self._graded[tool]

    def found(self) -> tuple[LookupEvidence, ...]:
        """The counts by tool, the tool with the most results first."""
        listed = [_evidence(tool, graded, tool in self._mapped) for tool, graded in self._graded.items()]
        return tuple(sorted(listed, key=lambda each: (-each.results, each.tool)))


def grade(
    call: Call, result: Result, tool: Tool | None = None, observations: Iterable[Observation] | None = None
) -> EvidenceGrade:
    """The grade of one result; `observations` are those of its tool, None if the pack declares none."""
    if not result.captured:
        return "uncaptured"
    value = result.value()
    is_accepted = accepted(tool, result, value)
    text = searched_text(result, value, is_accepted)
    for observation in observations or ():
        if any(each.tells_more() for each in sightings(observation, call.arguments, value, text, is_accepted)):
            return "shown"
    if is_accepted is False or (tool is None and failed(result)):
        return "refused"
    if value is None or value == "" or value == [] or value == {}:
        return "empty"
    if isinstance(value, str):
        return "failing" if looks_failed(value) else "unreadable"
    return "readable" if observations is None else "unmapped"


def _evidence(tool: str, graded: Counter[EvidenceGrade], maps: bool) -> LookupEvidence:
    captured = graded.total() - graded["uncaptured"]
    faults: list[EvidenceGrade] = sorted((each for each in CURES if graded[each]), key=lambda each: -graded[each])
    return LookupEvidence(
        tool,
        graded.total(),
        captured,
        captured - graded["unreadable"] - graded["failing"],
        graded["shown"] if maps else None,
        graded["refused"],
        graded["empty"],
        tuple(CURES[each] for each in faults),
    )
