"""Waivers: findings that an owner accepts, with a reason and an expiry date."""

from collections.abc import Callable, Iterable, Sequence
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from bylaw.audit.row import FLAGGED, Charge, Finding, is_worse
from bylaw.errors import BylawError, UsageError
from bylaw.policy.yaml import Located, read_yaml_file

_GLOBS = ("agent", "tool", "trajectory")
_KEYS = ("finding", "verdicts", "policy", *_GLOBS, "owner", "reason", "expires")


class WaiverError(BylawError):
    """A waiver file is invalid. `faults` lists the errors and their locations."""

    code = "BY601"

    def __init__(self, message: str, *, place: str = "", hint: str = "", faults: Sequence[BylawError] = ()) -> None:
        self.faults = tuple(faults)
        super().__init__(message, place=place, hint=hint)


class Waiver(Struct, frozen=True):
    """A waiver for one finding, or for a policy's findings in some calls."""

    place: str
    owner: str
    reason: str
    expires: date
    finding: str = ""
    verdicts: tuple[tuple[str, str], ...] = ()
    """The policies and verdicts covered by a waiver of one `finding`. A worse verdict is not covered."""
    policy: str = ""
    agent: str = "*"
    tool: str = "*"
    trajectory: str = "*"

    def covers(self, finding: Finding, charge: Charge) -> bool:
        if self.finding:
            return finding.id == self.finding and not is_worse(charge, dict(self.verdicts))
        return (
            charge.policy == self.policy
            and fnmatchcase(finding.agent, self.agent)
            and fnmatchcase(finding.trajectory, self.trajectory)
            and (self.tool == "*" or (finding.kind == "call" and fnmatchcase(finding.name, self.tool)))
        )

    def record(self) -> dict[str, str]:
        return {"owner": self.owner, "reason": self.reason, "expires": self.expires.isoformat(), "place": self.place}


class Waivers:
    """The waivers that are in force on a given day. Expired waivers have no effect and are listed separately."""

    def __init__(self, waivers: Iterable[Waiver] = (), *, today: date) -> None:
        every, self._today = tuple(waivers), today
        self.expired = tuple(waiver for waiver in every if waiver.expires < today)
        self.in_force = tuple(waiver for waiver in every if waiver.expires >= today)
        self._named: dict[str, list[Waiver]] = {}
        """The waivers, keyed by finding or policy."""
        for waiver in self.in_force:
            self._named.setdefault(waiver.finding or waiver.policy, []).append(waiver)
        self._used: set[Waiver] = set()

    def waive(self, finding: Finding) -> tuple[Waiver, ...]:
        """Return the waivers that together cover a finding, or an empty tuple if one of its policies is not covered."""
        covering: list[Waiver] = []
        for charge in finding.charges:
            named = (*self._named.get(finding.id, ()), *self._named.get(charge.policy, ()))
            cover = next((waiver for waiver in named if waiver.covers(finding, charge)), None)
            if cover is None:
                return ()
            covering.append(cover)
        self._used.update(covering)
        return tuple(dict.fromkeys(covering))

    @property
    def unused(self) -> tuple[Waiver, ...]:
        return tuple(waiver for waiver in self.in_force if waiver not in self._used)

    def without_words(self, pseudonym: Callable[[str], str]) -> "Waivers":
        """Return the waivers for a redacted audit: without reasons, and with pseudonyms for owners."""
        every = (replace(each, owner=pseudonym(each.owner), reason="") for each in (*self.in_force, *self.expired))
        return Waivers(every, today=self._today)


def read_waivers(path: Path, *, today: date | None = None) -> Waivers:
    """Read the waivers in a file. Raise WaiverError with every error in the file."""
    if not path.is_file():
        raise UsageError("no such file", place=str(path))
    source = read_yaml_file(path, file=str(path))
    under: tuple[str, ...] = () if "" in source.data else ("waivers",)
    entries: Any = source.data.get("" if not under else "waivers")
    if not isinstance(entries, list):
        raise WaiverError("expected a list of waivers", place=source.place(*under), hint="start with `waivers:`")
    faults: list[BylawError] = []
    read: list[Waiver] = []
    for number, entry in enumerate(cast(list[Any], entries)):
        waiver = _waiver(source, (*under, number), entry, faults)
        if waiver is not None:
            read.append(waiver)
    if faults:
        lines = "".join(f"\n  {fault}" for fault in faults)
        count = len(faults)
        raise WaiverError(f"{count} error{'s' if count != 1 else ''}{lines}", place=str(path), faults=faults)
    return Waivers(read, today=today or date.today())


def _waiver(source: Located, at: tuple[str | int, ...], entry: Any, faults: list[BylawError]) -> Waiver | None:
    if not isinstance(entry, dict):
        faults.append(WaiverError("a waiver must be a mapping with keys and values", place=source.place(*at)))
        return None
    record = cast(dict[str, Any], entry)
    before = len(faults)

    def fault(message: str, name: str = "", hint: str = "") -> None:
        faults.append(WaiverError(message, place=source.place(*at, name) if name else source.place(*at), hint=hint))

    for name in record:
        if name not in _KEYS:
            fault(f"`{name}` is not a key of a waiver", name, f"its keys are {', '.join(_KEYS)}")
    for name, wanted in (
        ("owner", "the responsible person"),
        ("reason", "a reason"),
        ("expires", "an expiry date such as 2026-12-31"),
    ):
        if not str(record.get(name) or "").strip():
            fault(f"the waiver has no `{name}`", hint=f"add {wanted}")
    if bool(record.get("finding")) == bool(record.get("policy")):
        fault("a waiver needs either a `finding` or a `policy`")
    verdicts = cast("dict[str, Any]", record.get("verdicts") or {})
    if not isinstance(record.get("verdicts", {}), dict) or not FLAGGED.issuperset(map(str, verdicts.values())):
        fault("`verdicts` must map each policy to a verdict", "verdicts", "write it like {late-fee: near_miss}")
    elif verdicts and not record.get("finding"):
        fault("`verdicts` are allowed only in a waiver of one `finding`", "verdicts")
    if record.get("finding") and any(name in record for name in _GLOBS):
        spare = ", ".join(name for name in _GLOBS if name in record)
        fault("a waiver of one finding cannot have filters", hint=f"remove {spare}")
    try:
        expires = date.fromisoformat(str(record.get("expires")))
    except ValueError:
        expires = date.min
        if record.get("expires"):
            fault(f"`{record['expires']}` is not a date", "expires", "write it like 2026-12-31")
    if len(faults) > before:
        return None
    texts = {name: str(record[name]) for name in ("finding", "policy", *_GLOBS, "owner", "reason") if name in record}
    given = tuple((str(policy), str(verdict)) for policy, verdict in verdicts.items())
    return Waiver(place=source.place(*at), expires=expires, verdicts=given, **texts)
