"""Decides which recorded conversations are suitable for learning, using an audit and the faults in their calls.

The audit runs here, optionally with a ground-truth database, or is read from an earlier audit's folder. Flagged and
undecided conversations are distinguished, because only a flagged conversation is known to contain a violation.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from bylaw.align.episode import misfit
from bylaw.audit.request import Audited, Request
from bylaw.audit.run import Examiner
from bylaw.audit.store import CALLS, RULES, Store
from bylaw.errors import BylawError
from bylaw.facts.provenance import Provenance
from bylaw.facts.result_places import leaf_values
from bylaw.pack import Criterion, Pack
from bylaw.text.identifier import is_identifier
from bylaw.trace.event import Call, Trajectory
from bylaw.trace.source import LogFile

_FLAGGED = {"violation": "a violation", "near_miss": "a near-miss"}
_OPEN = {"uninformed": "an uninformed write", "inconclusive": "an undecided write"}
UNJUDGED = "could not be audited"


class JudgedCalls(Struct, frozen=True):
    """An audit's findings on one conversation: its calls and the broken rules."""

    criterion: Criterion
    calls: Sequence[Mapping[str, Any]] = ()
    rules: Sequence[str] = ()
    is_judged: bool = True
    """False if the audit of the conversation failed."""

    @property
    def flagged(self) -> list[str]:
        broken = [*self.rules, *(rule["rule"] for call in self.calls for rule in call["rules"])]
        return [*(f"{name} not kept" for name in broken), *self._verdicts(_FLAGGED)]

    @property
    def open(self) -> list[str]:
        if not self.is_judged:
            return [UNJUDGED]
        unsure = (rule["rule"] for call in self.calls for rule in call["open_rules"])
        return [*self._verdicts(_OPEN), *(f"{name} undecided" for name in unsure)]

    def _verdicts(self, words: Mapping[str, str]) -> list[str]:
        return [words[call[self.criterion]] for call in self.calls if call[self.criterion] in words]


class FreshAudit:
    """Audits each conversation on demand."""

    def __init__(self, pack: str, *, world: Path | None = None, document: Path | None = None) -> None:
        self._examiner = Examiner(Request((), pack, world, document=document))

    def judged(self, trajectory: Trajectory, file: LogFile) -> JudgedCalls:
        try:
            found = self._examiner.examine(trajectory, file)
            criterion = self._examiner.shelf.pack_for(trajectory).criterion
        except BylawError:
            return JudgedCalls("determined", is_judged=False)
        calls = [msgspec.json.decode(line) for _, _, line in found.calls]
        return JudgedCalls(criterion, calls, [msgspec.json.decode(line)["rule"] for _, line in found.rules])


class KeptAudit:
    """Reads the folder of an earlier audit."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder)
        self._calls, self._rules = self._by_conversation(CALLS), self._by_conversation(RULES)
        self._unjudged = {str(each["place"]) for each in self.store.summary["skipped"]}

    def _by_conversation(self, name: str) -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = {}
        for _, line in self.store.places(name):
            found.setdefault(line["trajectory"], []).append(line)
        return found

    @property
    def audited(self) -> Audited | None:
        """The logs and the pack of the audit. None for a redacted audit, because it does not name its logs."""
        path = self.store.path / "audited.json"
        return msgspec.json.decode(path.read_bytes(), type=Audited) if path.is_file() else None

    @property
    def conversations(self) -> int:
        return sum(agent["trajectories"] for agent in self.store.summary["agents"])

    @property
    def digests(self) -> set[str]:
        pack = self.store.summary["pack"]
        return {pack["digest"], *(each["digest"] for each in pack["variants"])}

    def judged(self, trajectory: Trajectory, file: LogFile) -> JudgedCalls:
        """Return the findings in one conversation. A conversation without writes has none."""
        is_judged = f"{file}#{trajectory.position}" not in self._unjudged
        rules = [line["rule"] for line in self._rules.get(trajectory.id, ())]
        return JudgedCalls(self.store.criterion, self._calls.get(trajectory.id, ()), rules, is_judged)


Auditor = FreshAudit | KeptAudit


Unfit = Literal["no turn", "unreadable call", "unknown tool", "unfit arguments", "made-up id", "failed"]
"""Why a conversation is unsuitable. `made-up id`: the call uses an id that no user, host or result showed. `failed`:
the log says so.
"""


def unfit(pack: Pack, trajectory: Trajectory) -> Unfit | None:
    """Return the reason why a conversation is a bad example, or None."""
    if (why := hallucinated(pack, trajectory)) is not None:
        return why
    return "failed" if trajectory.outcome is not None and not trajectory.outcome.good else None


def hallucinated(pack: Pack, trajectory: Trajectory) -> Unfit | None:
    """Return the made-up part of a call: the tool, a parameter, or an id that no user, host or result had shown."""
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
        ids = [value for _, value in leaf_values(event.arguments) if isinstance(value, str) and is_identifier(value)]
        if any(provenance.origin(value, before=step).source == "agent" for value in ids):
            return "made-up id"
    return None if acts else "no turn"
