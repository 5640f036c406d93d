"""The data for `bylaw view`: an audit, its pack, the state of each finding, and audits in neighbouring folders."""

import shlex
import threading
from collections.abc import Iterable
from datetime import date
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, cast

from bylaw.audit.attestation import ATTESTATIONS, Attestation, file_beside, read_attestations
from bylaw.audit.baseline import compare_audits, read_baseline
from bylaw.audit.request import read_audited
from bylaw.audit.row import Finding
from bylaw.audit.store import JsonRecord, Store
from bylaw.audit.waiver import Waiver, Waivers, read_waivers
from bylaw.console.app import Pages
from bylaw.console.index import open_index, stamp_of
from bylaw.console.index.query import FindingRow, Index, State, Wanted
from bylaw.console.pack_state import PackState, PackStates
from bylaw.console.records import FALSE_ALARM, is_installed
from bylaw.errors import BylawError, UsageError
from bylaw.pack import Criterion
from bylaw.policy.folder import find_folder, read_folder, read_variants
from bylaw.text.number import counted

KEPT = 5
"""The number of comparisons with earlier audits to cache."""
WAIVERS = "waivers.yaml"


class Standings:
    """The states of an audit's findings. They depend on the waivers, the attestations and an earlier audit."""

    def __init__(self, index: Index, *, waivers: Path, attestations: Path, base: Path | None = None) -> None:
        self.index = index
        self.waivers = waivers
        self.attestations = attestations
        self.fault = ""
        """An error in the waiver file or the attestation file. If set, the file with the error is ignored."""
        self.fixed: list[Finding] = []
        """Findings from the earlier audit that no longer occur, although their conversations were audited again."""
        self.gone: list[Finding] = []
        """Findings from the earlier audit whose conversations were not audited again."""
        self.by_policy: dict[str, dict[str, int]] = {}
        """For each policy, the number of flagged calls in each state relative to the earlier audit."""
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
        """Read the waivers and attestations again if their files have changed."""
        with self._turn:
            stamp = (_stamp(self.waivers), _stamp(self.attestations), date.today())
            if stamp != self._seen:
                self._read()
                self._seen = stamp

    def waivers_of(self, id: str) -> tuple[Waiver, ...]:
        finding = self._findings.get(id) if self._waivers.in_force else None
        return self._waivers.waive(finding) if finding is not None else ()

    def verdicts_of(self, id: str) -> dict[str, str]:
        finding = self._findings.get(id)
        return {each.policy: each.verdict for each in finding.charges} if finding is not None else {}

    def reach(self, policy: str) -> str:
        """Say how many findings a policy's waiver covers. A call is still a finding if other policies also flag it."""
        every, waived, others = self.index.reach(policy)
        told = f"{waived:,} of {every:,} findings of `{policy}` are waived."
        known = {each.policy for each in self._waivers.in_force}
        named = ", ".join(f"`{each}`" for each in others if each not in known)
        return told if waived == every else f"{told} Other policies object to the remaining calls: {named}."

    def _read(self) -> None:
        self._waivers, self.fault = Waivers(today=date.today()), ""
        attested: Iterable[Attestation] = ()
        try:
            attested = read_attestations(self.attestations).values()
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
            self.fixed, self.gone, self.by_policy = compared.fixed, compared.gone, compared.by_policy
            if self._baseline is not None:
                states |= {finding.id: "still" for finding in compared.still}
            states |= {finding.id: _state(covering) for finding, covering in compared.waived}
        states |= {each.finding: "attested" for each in attested if self._is_current(each)}
        self.index.stand(states)

    def _is_current(self, given: Attestation) -> bool:
        """Whether a reviewer's answer is about the call and the policy as they were audited."""
        row = self.index.finding(given.finding)
        return row is not None and seen_digest(self.index, row) == given.seen


def seen_digest(index: Index, row: FindingRow) -> str:
    """Return a digest of the text that a reviewer of this undecided call sees.

    Return an empty string if no digest was recorded.
    """
    listed: list[JsonRecord] = index.line(row).get("undecided") or []
    return next((each["seen"] for each in listed if each["policy"] == row.policy), "")


def _state(covering: tuple[Waiver, ...]) -> State:
    return "false-alarm" if any(waiver.reason.startswith(FALSE_ALARM) for waiver in covering) else "waived"


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


class View:
    """An open audit, with the files in which decisions about its findings are recorded."""

    def __init__(self, out: Path, *, pack: str = "", waivers: Path | None = None, base: Path | None = None) -> None:
        self.out = out
        self._given = (pack, waivers, base)
        self._stamp = stamp_of(out)
        self.waivers = waivers or file_beside(out, WAIVERS)
        self.attestations = self.waivers.with_name(ATTESTATIONS)
        self.index: Index = open_index(out)
        store = self.index.store
        self.summary, self.policies = store.summary, store.policies
        self.criterion: Criterion = store.criterion
        self.root = _pack_of(out, self.summary, pack)
        """The pack's folder, or None if it is unknown or does not exist."""
        self._pack = PackStates(self.root) if self.root is not None else None
        self.bases = _bases(out, base)
        self.base = base.resolve().name if base is not None else ""
        self._turn = threading.Lock()
        self._read_standings = lru_cache(KEPT)(self._standings)

    def is_outdated(self) -> bool:
        """Whether the audit's files have changed since they were opened."""
        return stamp_of(self.out) != self._stamp

    def reopened(self) -> "View":
        pack, waivers, base = self._given
        return View(self.out, pack=pack, waivers=waivers, base=base)

    @property
    def is_redacted(self) -> bool:
        """Whether the audit contains pseudonyms instead of texts."""
        return bool(self.summary["redacted"])

    @property
    def own_root(self) -> Path | None:
        """The pack's folder if reviews may be written to it. None for an installed package."""
        return None if self.root is None or is_installed(self.root) else self.root

    def writable_root(self) -> Path:
        """Return the pack's folder. Raise UsageError if reviews cannot be written to it."""
        if self.own_root is None:
            why = "the pack's folder is not available, or is part of an installed package"
            raise UsageError(why, hint="copy the folder, and open the copy with --pack")
        return self.own_root

    def standings(self, base: str = "") -> Standings:
        """Return the current states of the findings. If `base` is given, they are compared with this earlier audit."""
        with self._turn:
            found = self._read_standings(base or self.base)
        found.refresh()
        return found

    def _standings(self, base: str) -> Standings:
        if base and base not in self.bases:
            known = ", ".join(sorted(self.bases)) or "none"
            raise UsageError(f"no earlier audit `{base}` was found here", hint=f"known: {known}")
        index = open_index(self.out) if base else self.index
        return Standings(index, waivers=self.waivers, attestations=self.attestations, base=self.bases.get(base))

    def pack_now(self) -> PackState:
        if self._pack is None:
            raise UsageError("the pack of this audit is not available", hint="open it with --pack")
        return self._pack.now()

    @property
    def stale(self) -> str:
        """The command that repeats the audit, if its pack has changed since. Otherwise, an empty string."""
        own: JsonRecord = self.summary["pack"]
        if self._pack is None or self.own_root is None or "checks" not in own:
            return ""
        known = {own["checks"], *(each.get("checks") for each in own.get("variants") or ())}
        try:
            return self.command if self._pack.now().pack.pin not in known else ""
        except BylawError:
            return ""

    @property
    def unsettled(self) -> str:
        """The number of calls that reviewers have settled since the audit, such as `2 calls`, or an empty string."""
        count = self.standings().index.states(Wanted())["attested"]
        return counted(count, "call") if count else ""

    @property
    def command(self) -> str:
        """The command that audits the same logs again. Empty if the logs are unknown."""
        audited = read_audited(self.out)
        if audited is None:
            return ""
        given = {"--pack": str(self.root) if self.root is not None else audited.pack, "--world": audited.world}
        given |= {"--document": audited.document, "--agent": audited.agent, "--out": str(self.out)}
        if self.attestations.is_file():
            given["--attestations"] = str(self.attestations)
        options = [part for name, value in given.items() if value for part in (name, value)]
        return shlex.join(["bylaw", "audit", *audited.logs, *options])

    @property
    def conversations(self) -> int:
        return conversations_of(self.summary)

    @property
    def title(self) -> str:
        pack: JsonRecord = self.summary["pack"]
        return f"{pack.get('name', '')} {pack.get('version', '')}".strip()


class Opened:
    """The current view of an audit. The audit may be run again while its pages are open."""

    def __init__(self, view: View) -> None:
        self.view = view
        self._turn = threading.Lock()

    def refresh(self) -> None:
        """Open the audit again if its files have changed."""
        with self._turn:
            if self.view.is_outdated():
                self.view = self.view.reopened()


class AuditPages(Pages):
    def __init__(self, opened: Opened) -> None:
        self._opened = opened

    @property
    def _view(self) -> View:
        return self._opened.view

    @property
    def layout(self) -> dict[str, Any]:
        return {"layout": "view.html", "view": self._view}


def _pack_of(out: Path, summary: JsonRecord, given: str) -> Path | None:
    """Return the pack's folder: the folder that was given, the folder that was recorded, or the built-in pack with
    this name.
    """
    if given:
        return _variant(find_folder(given), summary)
    audited = read_audited(out)
    for name in (audited.pack if audited is not None else "", summary["pack"].get("name")):
        try:
            if isinstance(name, str) and name:
                return _variant(find_folder(name), summary)
        except (BylawError, OSError):
            continue
    return None


def _variant(root: Path, summary: JsonRecord) -> Path:
    """Return the variant that contains most of the audited policies."""
    judged: JsonRecord = summary["by_policy"]

    def known(folder: Path) -> int:
        part = read_folder(folder, cases=False).parts.get("policies")
        listed = cast("list[Any]", part.data.get("policies") or []) if part is not None else []
        names = {str(cast("JsonRecord", each).get("id")) for each in listed if isinstance(each, dict)}
        return len(names & judged.keys())

    return max(read_variants(root), key=known, default=root)


def _bases(out: Path, given: Path | None) -> dict[str, Path]:
    """Return the given earlier audit, and the audits of this pack in neighbouring folders, keyed by name."""
    own, pack = out.resolve(), _pack_name(out)
    near = (path.parent for path in sorted(own.parent.glob("*/summary.json"))[:200])
    found = {path.name: path for path in near if path != own and _pack_name(path) == pack}
    if given is not None:
        found[given.resolve().name] = given
    return found


def conversations_of(summary: JsonRecord) -> int:
    return sum(each["trajectories"] for each in summary["agents"])


def read_summary(out: Path) -> JsonRecord:
    """Return the summary of an audit, or an empty summary if it cannot be read."""
    try:
        return Store(out).summary
    except (BylawError, OSError):
        return {}


def _pack_name(out: Path) -> str:
    return str(read_summary(out).get("pack", {}).get("name", ""))
