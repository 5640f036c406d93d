"""Where the findings of an audit stand: against an earlier audit, against waivers, against what people attested."""

import threading
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from bylaw.audit.baseline import check_baseline, is_graver
from bylaw.audit.finding import Finding
from bylaw.audit.store import Store
from bylaw.audit.waiver import Waiver, Waivers, read_waivers
from bylaw.console.index.query import Index, State
from bylaw.console.records import FALSE_ALARM, read_attestations
from bylaw.errors import BylawError

LISTED = 50
"""Findings of the earlier audit that are kept to be listed."""


class Missing(Struct):
    """Findings of the earlier audit that are not there any more: how many, and the first of them."""

    count: int = 0
    first: list[Finding] = []

    def add(self, finding: Finding) -> None:
        self.count += 1
        if len(self.first) < LISTED:
            self.first.append(finding)


class Standings:
    """Keeps the index up to date with the files that say how findings stand."""

    def __init__(self, index: Index, *, waivers: Path, attestations: Path, base: Path | None = None) -> None:
        self.index = index
        self.waivers = waivers
        self.attestations = attestations
        self.fault = ""
        """What is wrong with the file of waivers, or of attestations; a faulty file is ignored."""
        self.fixed = Missing()
        """Findings of the earlier audit that this one, in the same conversation, does not have."""
        self.gone = Missing()
        """Its findings in conversations that were not audited again."""
        self._seen: object = None
        self._turn = threading.Lock()
        self._cells = index.cells()
        self._waivers = Waivers(today=date.today())
        self._known = self._compare(base) if base is not None else []

    def refresh(self) -> None:
        """Read the files again if they have changed."""
        with self._turn:
            stamp = (_stamp(self.waivers), _stamp(self.attestations), date.today())
            if stamp != self._seen:
                self._read()
                self._seen = stamp

    def waivers_of(self, id: str) -> tuple[Waiver, ...]:
        """The waivers that cover a finding."""
        return next((self._waivers.waive(finding) for _, finding in self._findings("id", [id])), ())

    def reach(self, policy: str) -> str:
        """How many findings a waiver of a policy waives: a call that other policies object to as well is not waived."""
        every, waived, others = self.index.reach(policy)
        told = f"{waived:,} of {every:,} findings of `{policy}` are waived."
        known = {each.policy for each in self._waivers.in_force}
        named = ", ".join(f"`{each}`" for each in others if each not in known)
        return told if waived == every else f"{told} Other policies object to the rest as well: {named}."

    def _compare(self, base: Path) -> list[int]:
        """The findings that the earlier audit had already; its other findings are noted as fixed or gone."""
        store = self.index.store
        earlier = Store(base)
        check_baseline(earlier, redacted=store.summary.get("redacted"))
        known: dict[int, bool] = {}
        missing: set[str] = set()
        for then in earlier.findings(store.criterion):
            rows = self.index.rows("SELECT number, cell FROM findings WHERE id = ?", (then.id,))
            now = self._cells.get(rows[0][1]) if rows else None
            if now is not None:
                known[rows[0][0]] = not is_graver(now, then)
            elif then.id not in missing and then.executed is not False:
                missing.add(then.id)
                (self.gone if self.index.conversation(then.trajectory) is None else self.fixed).add(then)
        return [number for number, is_known in known.items() if is_known]

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
        cells, single = self._waived()
        for id in attested:
            # Attestations of earlier versions name a rule after the call.
            names = (id, id.rpartition(":")[0])
            for (number,) in self.index.rows("SELECT number FROM findings WHERE id IN (?, ?)", names):
                single[number] = "attested"
        self.index.stand(self._known, cells, single)

    def _waived(self) -> tuple[dict[int, State], dict[int, State]]:
        """Cells that are waived as a whole, and single findings."""
        narrow = {waiver.policy for waiver in self._waivers.in_force if waiver.policy and waiver.trajectory != "*"}
        cells: dict[int, State] = {}
        divided: list[int] = []
        for number, finding in self._cells.items():
            if any(charge.policy in narrow for charge in finding.charges):
                divided.append(number)
            elif covering := self._waivers.waive(finding):
                cells[number] = _state(covering)
        named = (waiver.finding for waiver in self._waivers.in_force if waiver.finding)
        each = (*self._findings("id", named), *self._findings("cell", divided))
        found = ((number, self._waivers.waive(finding)) for number, finding in each)
        return cells, {number: _state(covering) for number, covering in found if covering}

    def _findings(self, column: Literal["id", "cell"], values: Iterable[str | int]) -> Iterator[tuple[int, Finding]]:
        """Findings by id or by cell; undecided calls are left out."""
        query = f"""SELECT f.number, f.cell, f.id, k.name, f.step FROM findings f
            JOIN conversations k ON k.number = f.conversation WHERE f.{column} = ?"""
        for value in values:
            for number, cell, id, conversation, step in self.index.rows(query, (value,)):
                if cell in self._cells:
                    yield number, replace(self._cells[cell], id=id, trajectory=conversation, step=step)


def _state(covering: tuple[Waiver, ...]) -> State:
    return "false-alarm" if any(waiver.reason.startswith(FALSE_ALARM) for waiver in covering) else "waived"


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
