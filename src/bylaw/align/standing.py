"""Which recorded conversations are fit to learn from: what an audit says of them, and what they lack.

One audit or another: made here over the logs, with a world where there is one, or read from the folder of an audit that
was made before. What it flags and what it leaves open are told apart, since only the first is a fault.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Struct

from bylaw.align.episode import misfit
from bylaw.audit.audited import Audited
from bylaw.audit.examine import Examiner
from bylaw.audit.shelf import Shelf
from bylaw.errors import BylawError, UsageError
from bylaw.facts.leaf import leaf_values
from bylaw.facts.provenance import Provenance
from bylaw.pack import Criterion, Pack
from bylaw.text.identifier import is_identifier
from bylaw.trace.event import Call
from bylaw.trace.log_file import LogFile
from bylaw.trace.trajectory import Trajectory

_FLAGGED = {"violation": "a violation", "near_miss": "a near-miss"}
_OPEN = {"uninformed": "a write of which nobody knows whether it was right", "inconclusive": "a write left undecided"}
UNJUDGED = "could not be audited"


class JudgedCalls(Struct, frozen=True):
    """The lines of an audit on one conversation: its calls, and the rules that it broke."""

    criterion: Criterion
    calls: Sequence[Mapping[str, Any]] = ()
    rules: Sequence[str] = ()
    is_judged: bool = True
    """False where it could not be audited."""

    @property
    def flagged(self) -> list[str]:
        """What is wrong with it."""
        broken = [*self.rules, *(rule["rule"] for call in self.calls for rule in call["rules"])]
        return [*(f"{name} not kept" for name in broken), *self._verdicts(_FLAGGED)]

    @property
    def open(self) -> list[str]:
        """What could not be settled."""
        unsure = [rule["rule"] for call in self.calls for rule in call["open_rules"]]
        told = [*self._verdicts(_OPEN), *(f"{name}: kept or not, nobody can tell" for name in unsure)]
        return told if self.is_judged else [UNJUDGED]

    def _verdicts(self, words: Mapping[str, str]) -> list[str]:
        return [words[call[self.criterion]] for call in self.calls if call[self.criterion] in words]


class Auditor(Protocol):
    """Whoever says what an audit makes of a conversation."""

    def judged(self, trajectory: Trajectory, file: LogFile) -> JudgedCalls:
        """What it says of one of a file's, which has an id of its own among all that are asked about."""
        ...


class FreshAudit:
    """Audits each conversation as it is asked about."""

    def __init__(self, pack: str, *, world: Path | None = None, document: Path | None = None) -> None:
        self._examiner = Examiner(Shelf(pack, world=world, document=document))

    def judged(self, trajectory: Trajectory, file: LogFile) -> JudgedCalls:
        """What is said of it, audited now."""
        try:
            found = self._examiner.examine(trajectory, file)
            criterion = self._examiner.shelf.pack_for(trajectory).criterion
        except BylawError:
            return JudgedCalls("determined", is_judged=False)
        calls = [msgspec.json.decode(line) for _, _, line in found.calls]
        return JudgedCalls(criterion, calls, [msgspec.json.decode(line)["rule"] for _, line in found.rules])


class KeptAudit:
    """Says what the folder of an earlier audit says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.summary: dict[str, Any] = _read_summary(folder)
        self._calls, self._findings = _lines(folder / "calls.jsonl"), _lines(folder / "findings.jsonl")
        self._unjudged = {str(each["place"]) for each in self.summary["skipped"]}

    @property
    def audited(self) -> Audited | None:
        """The logs and the pack that it was made from; None for a redacted audit, which does not lead to its logs."""
        path = self.folder / "audited.json"
        return msgspec.json.decode(path.read_bytes(), type=Audited) if path.is_file() else None

    @property
    def conversations(self) -> int:
        return sum(agent["trajectories"] for agent in self.summary["agents"])

    @property
    def digests(self) -> set[str]:
        """The packs that it judged by."""
        pack = self.summary["pack"]
        return {pack["digest"], *(each["digest"] for each in pack["variants"])}

    def judged(self, trajectory: Trajectory, file: LogFile) -> JudgedCalls:
        """What it said of it; one without a write and without a finding stands well."""
        if f"{file}#{trajectory.position}" in self._unjudged:
            return JudgedCalls(self.summary["criterion"], is_judged=False)
        rules = [line["rule"] for line in self._findings.get(trajectory.id, ())]
        return JudgedCalls(self.summary["criterion"], self._calls.get(trajectory.id, ()), rules)


def _lines(file: Path) -> dict[str, list[dict[str, Any]]]:
    """The lines of an audit by conversation."""
    found: dict[str, list[dict[str, Any]]] = {}
    for line in file.read_bytes().splitlines():
        record = msgspec.json.decode(line, type=dict[str, Any])
        found.setdefault(record["trajectory"], []).append(record)
    return found


def _read_summary(folder: Path) -> dict[str, Any]:
    if not (folder / "summary.json").is_file() or not (folder / "calls.jsonl").is_file():
        raise UsageError("this is no audit's folder", place=str(folder), hint="the one that `bylaw audit --out` wrote")
    return msgspec.json.decode((folder / "summary.json").read_bytes())


Unfit = Literal["no turn", "unreadable call", "unknown tool", "unfit arguments", "made-up id", "failed"]
"""`made-up id`: an identifier that neither the user, the host nor any result had shown. `failed`: its source says that
it did not reach its goal. What an audit says of it is asked apart (`standing`)."""


def unfit(pack: Pack, trajectory: Trajectory) -> Unfit | None:
    """Why a conversation is no good example; None where it is one."""
    if (why := hallucinated(pack, trajectory)) is not None:
        return why
    return "failed" if trajectory.outcome is not None and not trajectory.outcome.good else None


def hallucinated(pack: Pack, trajectory: Trajectory) -> Unfit | None:
    """Whether some call of it was made up: its tool, its parameters, or an id that nothing had shown."""
    provenance = Provenance(trajectory.events, instructions=trajectory.instructions)
    acts = 0
    for step, event in enumerate(trajectory.events):
        if not isinstance(event, Call):
            acts += getattr(event, "by", "") == "agent"
            continue
        acts += 1
        if event.fault:
            return "unreadable call"
        tool = pack.schema.tools.get(event.tool)
        if tool is None:
            return "unknown tool"
        if misfit(event.arguments, tool.parameters, tool.required):
            return "unfit arguments"
        for _, value in leaf_values(event.arguments):
            if isinstance(value, str) and is_identifier(value) and named_nowhere(provenance, value, step):
                return "made-up id"
    return None if acts else "no turn"


def named_nowhere(provenance: Provenance, value: str, step: int) -> bool:
    """Whether nothing before a call shows a value that it uses."""
    return provenance.origin(value, before=step).kind == "nowhere"
