"""What an audit says of recorded conversations, so that nobody learns from what it flags.

One audit or another: made here over the logs, with a world where there is one, or read from the folder of an audit that
was made before. What it flags and what it leaves open are told apart, since only the first is a fault.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from bylaw.audit.audited import Audited
from bylaw.audit.examine import Examiner
from bylaw.audit.shelf import Shelf
from bylaw.errors import BylawError, UsageError
from bylaw.pack import Criterion
from bylaw.trace.log_file import LogFile
from bylaw.trace.trajectory import Trajectory

_FLAGGED = {"violation": "a violation", "near_miss": "a near-miss"}
_OPEN = {"uninformed": "a write of which nobody knows whether it was right", "inconclusive": "a write left undecided"}
UNJUDGED = "could not be audited"


class Standing(Struct, frozen=True):
    """How a conversation stands: what the audit flags in it, and what it could not settle."""

    flagged: tuple[str, ...] = ()
    open: tuple[str, ...] = ()


class JudgedCalls(Struct, frozen=True):
    """The lines of an audit on the calls of one conversation."""

    criterion: Criterion
    calls: tuple[Mapping[str, Any], ...] = ()


class Auditor(Protocol):
    """Whoever says how a conversation stands."""

    def standing(self, trajectory: Trajectory, file: LogFile) -> Standing:
        """How a conversation of a file stands; it has an id of its own among all that are asked about."""
        ...

    def judged(self, trajectory: Trajectory, file: LogFile) -> JudgedCalls:
        """What the audit says of its calls; nothing where it could not be audited."""
        ...


class FreshAudit:
    """Audits each conversation as it is asked about."""

    def __init__(self, pack: str, *, world: Path | None = None, document: Path | None = None) -> None:
        self._examiner = Examiner(Shelf(pack, world=world, document=document))

    def standing(self, trajectory: Trajectory, file: LogFile) -> Standing:
        """How it stands, audited now."""
        try:
            found = self._examiner.examine(trajectory, file)
            criterion = self._examiner.shelf.pack_for(trajectory).criterion
        except BylawError:
            return Standing(open=(UNJUDGED,))
        calls = [msgspec.json.decode(line) for _, _, _, line in found.calls]
        rules = [msgspec.json.decode(line)["rule"] for _, line in found.findings]
        return standing_of(calls, rules, criterion)

    def judged(self, trajectory: Trajectory, file: LogFile) -> JudgedCalls:
        """What is said of its calls, audited now."""
        try:
            found = self._examiner.examine(trajectory, file)
        except BylawError:
            return JudgedCalls("determined")
        calls = tuple(msgspec.json.decode(line) for _, _, _, line in found.calls)
        return JudgedCalls(self._examiner.shelf.pack_for(trajectory).criterion, calls)


class KeptAudit:
    """Says what the folder of an earlier audit says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.summary: dict[str, Any] = _read_summary(folder)
        self._standings = dict(_standings(folder, self.summary["criterion"]))
        self._unjudged = {str(each["place"]) for each in self.summary["skipped"]}

    @property
    def audited(self) -> Audited | None:
        """The logs and the pack that it was made from; None for a redacted audit, which does not lead to its logs."""
        path = self.folder / "audited.json"
        return msgspec.json.decode(path.read_bytes(), type=Audited) if path.is_file() else None

    @property
    def conversations(self) -> int:
        """How many conversations it judged."""
        return sum(agent["trajectories"] for agent in self.summary["agents"])

    @property
    def digests(self) -> set[str]:
        """The packs that it judged by."""
        pack = self.summary["pack"]
        return {pack["digest"], *(each["digest"] for each in pack["variants"])}

    def standing(self, trajectory: Trajectory, file: LogFile) -> Standing:
        """How it stood in that audit; one without a write and without a finding stands well."""
        if f"{file}#{trajectory.position}" in self._unjudged:
            return Standing(open=(UNJUDGED,))
        return self._standings.get(trajectory.id, Standing())

    def judged(self, trajectory: Trajectory, file: LogFile) -> JudgedCalls:
        """What it said of its calls."""
        return JudgedCalls(self.summary["criterion"], tuple(self._calls.get(trajectory.id, ())))

    @cached_property
    def _calls(self) -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = {}
        for line in (self.folder / "calls.jsonl").read_bytes().splitlines():
            record = msgspec.json.decode(line, type=dict[str, Any])
            found.setdefault(record["trajectory"], []).append(record)
        return found


def standing_of(calls: Iterable[Mapping[str, Any]], rules: Iterable[str], criterion: Criterion) -> Standing:
    """What the lines of an audit on one conversation come to: its calls, and the rules that it broke."""
    flagged: dict[str, None] = {f"{name} not kept": None for name in rules}
    unsettled: dict[str, None] = {}
    for call in calls:
        verdict = call[criterion]
        flagged |= {_FLAGGED[verdict]: None} if verdict in _FLAGGED else {}
        flagged |= {f"{rule['rule']} not kept": None for rule in call["rules"]}
        unsettled |= {_OPEN[verdict]: None} if verdict in _OPEN else {}
        unsettled |= {f"{rule['rule']}: kept or not, nobody can tell": None for rule in call["open_rules"]}
    return Standing(tuple(flagged), tuple(unsettled))


def _standings(folder: Path, criterion: Criterion) -> Iterable[tuple[str, Standing]]:
    calls: dict[str, list[dict[str, Any]]] = {}
    rules: dict[str, list[str]] = {}
    for name, found in (("calls", calls), ("findings", rules)):
        for line in (folder / f"{name}.jsonl").read_bytes().splitlines():
            record = msgspec.json.decode(line)
            found.setdefault(record["trajectory"], []).append(record if name == "calls" else record["rule"])
    for name in {*calls, *rules}:
        yield name, standing_of(calls.get(name, ()), rules.get(name, ()), criterion)


def _read_summary(folder: Path) -> dict[str, Any]:
    if not (folder / "summary.json").is_file() or not (folder / "calls.jsonl").is_file():
        raise UsageError("this is no audit's folder", place=str(folder), hint="the one that `bylaw audit --out` wrote")
    return msgspec.json.decode((folder / "summary.json").read_bytes())
