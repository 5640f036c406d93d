"""Where the findings of an audit stand: against an earlier audit, against waivers, against what people attested."""

import threading
from datetime import date
from pathlib import Path
from typing import Any

from bylaw.audit.baseline import Baseline, is_graver, read_baseline
from bylaw.audit.finding import read_criterion
from bylaw.audit.waiver import Waiver, Waivers, read_waivers
from bylaw.console.attestation import read_attestations
from bylaw.console.index.query import Index, State
from bylaw.errors import BylawError

FALSE_ALARM = "false alarm: "
"""How the reason of a waiver begins that says that a finding is none."""


class Standings:
    """Keeps an index told of where its findings stand, as files beside it change."""

    def __init__(self, index: Index, *, waivers: Path, attestations: Path, base: Path | None = None) -> None:
        self.index = index
        self.waivers = waivers
        self.attestations = attestations
        self.base = base
        self.fault = ""
        """What is wrong with the file of waivers, in which case it waives nothing."""
        self._seen: object = None
        self._turn = threading.Lock()
        self._baseline: Baseline | None = None
        self._waived: dict[str, tuple[Waiver, ...]] = {}
        self.missing: list[Any] = []
        """Findings of the earlier audit that are not there any more."""

    def refresh(self) -> None:
        """Read what has changed since the last time."""
        with self._turn:
            stamp = (_stamp(self.waivers), _stamp(self.attestations), date.today())
            if stamp != self._seen:
                self._say_anew()
                self._seen = stamp

    def waivers_of(self, finding: str) -> tuple[Waiver, ...]:
        """The waivers that cover a finding."""
        return self._waived.get(finding, ())

    def _say_anew(self) -> None:
        waivers = Waivers(today=date.today())
        self.fault = ""
        if self.waivers.is_file():
            try:
                waivers = read_waivers(self.waivers)
            except BylawError as error:
                self.fault = str(error)
        attested = read_attestations(self.attestations)
        before = self._before()
        waived: dict[str, tuple[Waiver, ...]] = {}
        states: list[tuple[int, State]] = []
        for number, finding in self.index.as_findings():
            then = before.pop(finding.id, None)
            if covering := waivers.waive(finding):
                waived[finding.id] = covering
                is_false = any(waiver.reason.startswith(FALSE_ALARM) for waiver in covering)
                states.append((number, "false-alarm" if is_false else "waived"))
            elif then is not None and not is_graver(finding, then):
                states.append((number, "still"))
        with self.index.restanding() as anew:
            anew.forget()
            numbers = anew.numbers() if attested else {}
            anew.stands(states)
            anew.stands((numbers[name], "attested") for name in attested if name in numbers)
        self._waived = waived
        self.missing = list(before.values())

    def _before(self) -> dict[str, Any]:
        if self.base is None:
            return {}
        if self._baseline is None:
            mark = self.index.folder.document("summary.json").get("redacted")
            self._baseline = read_baseline(self.base, redacted=mark)
        return dict(self._baseline.findings[read_criterion(self.index.folder.path)])


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
