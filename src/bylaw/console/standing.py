"""The state of each finding of an audit, from an earlier audit, waivers and attestations."""

import threading
from collections.abc import Iterable
from datetime import date
from functools import cached_property
from pathlib import Path

from bylaw.audit.baseline import compare_audits, read_baseline
from bylaw.audit.finding import Finding
from bylaw.audit.waiver import Waiver, Waivers, read_waivers
from bylaw.console.index.query import Index, State
from bylaw.console.records import FALSE_ALARM, read_attestations
from bylaw.errors import BylawError


class Standings:
    """Keeps the states in an index up to date with the files that they come from."""

    def __init__(self, index: Index, *, waivers: Path, attestations: Path, base: Path | None = None) -> None:
        self.index = index
        self.waivers = waivers
        self.attestations = attestations
        self.fault = ""
        """The fault of the file of waivers or attestations; a faulty file is ignored."""
        self.fixed: list[Finding] = []
        """Findings of the earlier audit that are absent in the same conversation now."""
        self.gone: list[Finding] = []
        """Its findings in conversations that were not audited again."""
        self._seen: object = None
        self._turn = threading.Lock()
        self._waivers = Waivers(today=date.today())
        redacted = index.store.summary["redacted"]
        self._baseline = read_baseline(base, redacted=redacted) if base is not None else None
        self.refresh()

    @cached_property
    def _findings(self) -> dict[str, Finding]:
        return {finding.id: finding for finding in self.index.store.findings()}

    def refresh(self) -> None:
        """Read the files again if they have changed."""
        with self._turn:
            stamp = (_stamp(self.waivers), _stamp(self.attestations), date.today())
            if stamp != self._seen:
                self._read()
                self._seen = stamp

    def waivers_of(self, id: str) -> tuple[Waiver, ...]:
        """The waivers that cover a finding."""
        finding = self._findings.get(id) if self._waivers.in_force else None
        return self._waivers.waive(finding) if finding is not None else ()

    def reach(self, policy: str) -> str:
        """How many findings the waivers of a policy waive; a call stays if other policies object to it too."""
        every, waived, others = self.index.reach(policy)
        told = f"{waived:,} of {every:,} findings of `{policy}` are waived."
        known = {each.policy for each in self._waivers.in_force}
        named = ", ".join(f"`{each}`" for each in others if each not in known)
        return told if waived == every else f"{told} Other policies object to the rest as well: {named}."

    def _read(self) -> None:
        self._waivers, self.fault = Waivers(today=date.today()), ""
        attested: Iterable[str] = ()
        try:
            attested = read_attestations(self.attestations)
        except BylawError as error:
            self.fault = str(error)
        try:
            if self.waivers.is_file():
                self._waivers = read_waivers(self.waivers)
        except BylawError as error:
            self.fault = str(error)
        states: dict[str, State] = {}
        if self._baseline is not None or self._waivers.in_force:
            compared = compare_audits(
                self.index.store.path,
                {name for (name,) in self.index.rows("SELECT name FROM conversations")},
                baseline=self._baseline,
                waivers=self._waivers,
                findings=self._findings.values(),
            )
            self.fixed, self.gone = compared.fixed, compared.gone
            if self._baseline is not None:
                states |= {finding.id: "still" for finding in compared.still}
            states |= {finding.id: _state(covering) for finding, covering in compared.waived}
        for id in attested:
            # Attestations of earlier versions name a rule after the call.
            states |= {id: "attested", id.rpartition(":")[0]: "attested"}
        self.index.stand(states)


def _state(covering: tuple[Waiver, ...]) -> State:
    return "false-alarm" if any(waiver.reason.startswith(FALSE_ALARM) for waiver in covering) else "waived"


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
