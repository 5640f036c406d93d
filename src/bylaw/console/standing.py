"""Where the findings of an audit stand: against an earlier audit, against waivers, against what people attested."""

import threading
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from bylaw.audit.baseline import check_baseline, is_graver
from bylaw.audit.finding import Finding
from bylaw.audit.store import Store
from bylaw.audit.waiver import Waiver, Waivers, read_waivers
from bylaw.console.attestation import read_attestations
from bylaw.console.index.query import Index
from bylaw.console.index.wanted import State
from bylaw.errors import BylawError

FALSE_ALARM = "false alarm: "
"""How the reason of a waiver begins that says that a finding is none."""
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
    """Keeps an index told of where its findings stand, as files beside it change."""

    def __init__(self, index: Index, *, waivers: Path, attestations: Path, base: Path | None = None) -> None:
        self.index = index
        self.waivers = waivers
        self.attestations = attestations
        self.fault = ""
        """What is wrong with the file of waivers, or of attestations, which then says nothing."""
        self.fixed = Missing()
        """What the earlier audit found and this one, in the same conversation, does not."""
        self.gone = Missing()
        """What it found in conversations that were not audited again."""
        self._seen: object = None
        self._turn = threading.Lock()
        self._cells = index.cells()
        self._waivers = Waivers(today=date.today())
        if base is not None:
            self._compare(base)

    def refresh(self) -> None:
        """Read what has changed since the last time."""
        with self._turn:
            stamp = (_stamp(self.waivers), _stamp(self.attestations), date.today())
            if stamp != self._seen:
                self._say_anew()
                self._seen = stamp

    def waivers_of(self, id: str) -> tuple[Waiver, ...]:
        """The waivers that cover a finding."""
        return next((self._waivers.waive(finding) for _, finding in self._named([id])), ())

    def reach(self, policy: str) -> str:
        """What comes of a waiver of all that a policy finds: a call that others object to as well is not waived."""
        every, waived, others = self.index.reach(policy)
        told = f"{waived:,} of {every:,} findings of `{policy}` are waived."
        known = {each.policy for each in self._waivers.in_force}
        named = ", ".join(f"`{each}`" for each in others if each not in known)
        return told if waived == every else f"{told} Other policies object to the rest as well: {named}."

    def _compare(self, base: Path) -> None:
        """Find out, once, which findings the earlier audit had already, and which of its own are no more."""
        own = self.index.folder
        earlier = Store(base)
        check_baseline(earlier, redacted=own.summary.get("redacted"))
        known: dict[int, bool] = {}
        missing: set[str] = set()
        for then in earlier.findings(own.criterion):
            rows = self.index.rows("SELECT number, cell FROM findings WHERE id = ?", (then.id,))
            now = self._cells.get(rows[0][1]) if rows else None
            if now is not None:
                known[rows[0][0]] = not is_graver(now, then)
            elif then.id not in missing and then.executed is not False:
                missing.add(then.id)
                is_read = self.index.conversation(then.trajectory) is not None
                (self.fixed if is_read else self.gone).add(then)
        self.index.know(number for number, is_known in known.items() if is_known)
        self.index.warm_up()

    def _say_anew(self) -> None:
        self._waivers, self.fault = Waivers(today=date.today()), ""
        if self.waivers.is_file():
            try:
                self._waivers = read_waivers(self.waivers)
            except BylawError as error:
                self.fault = str(error)
        try:
            attested = read_attestations(self.attestations)
        except BylawError as error:
            attested, self.fault = {}, self.fault or str(error)
        waived, doubtful = self._waived_cells()
        singled: dict[int, State] = {}
        named = self._named(waiver.finding for waiver in self._waivers.in_force if waiver.finding)
        for number, finding in (*named, *self._in_cells(doubtful)):
            if covering := self._waivers.waive(finding):
                singled[number] = _state(covering)
        for id in attested:
            # Attestations of earlier versions name a rule after the call.
            names = (id, id.rpartition(":")[0])
            for (number,) in self.index.rows("SELECT number FROM findings WHERE id IN (?, ?)", names):
                singled[number] = "attested"
        self.index.stand(waived.items(), singled.items())

    def _waived_cells(self) -> tuple[dict[int, State], list[int]]:
        """Cells that policies' waivers cover whole, and those whose findings have to be looked at one by one."""
        every = [waiver for waiver in self._waivers.in_force if waiver.policy]
        narrow = {waiver.policy for waiver in every if waiver.trajectory != "*"}
        broad = Waivers((waiver for waiver in every if waiver.trajectory == "*"), today=date.today())
        waived: dict[int, State] = {}
        doubtful: list[int] = []
        for number, finding in self._cells.items():
            if any(charge.policy in narrow for charge in finding.charges):
                doubtful.append(number)
            elif covering := broad.waive(finding):
                waived[number] = _state(covering)
        return waived, doubtful

    def _named(self, ids: Iterable[str]) -> Iterator[tuple[int, Finding]]:
        query = "SELECT f.number, f.cell, f.id, k.name, f.step {} WHERE f.id = ?"
        for id in ids:
            yield from self._whole(query, id)

    def _in_cells(self, cells: Iterable[int]) -> Iterator[tuple[int, Finding]]:
        query = "SELECT f.number, f.cell, f.id, k.name, f.step {} WHERE f.cell = ?"
        for cell in cells:
            yield from self._whole(query, cell)

    def _whole(self, query: str, value: str | int) -> Iterator[tuple[int, Finding]]:
        """Findings with what sets them apart in their cell; what is open is none."""
        joined = "FROM findings f JOIN conversations k ON k.number = f.conversation"
        for number, cell, id, conversation, step in self.index.rows(query.format(joined), (value,)):
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
