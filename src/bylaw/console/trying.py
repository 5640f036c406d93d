"""Try a change to a check in the page: its cases, the past calls it would judge differently, then save it."""
# pyright: basic, reportMissingImports=false

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import Struct
from starlette.responses import Response

from bylaw.audit.request import Audited, read_audited
from bylaw.audit.shelf import Shelf
from bylaw.console.app import Pages, changed, shown
from bylaw.console.backtest import CONVERSATIONS, Backtest, Backtests, Past
from bylaw.console.door import Asked, Refused
from bylaw.console.draft import Draft, drafts_of, faults_of, patch, save, tried_pack
from bylaw.console.pack_state import PackState, PackStates, case_names
from bylaw.console.records import Written
from bylaw.console.service_log import ServiceLog
from bylaw.console.view import View
from bylaw.errors import BylawError, UsageError
from bylaw.policy.statement import Policy
from bylaw.review.case import CaseResult, run_cases
from bylaw.review.reading import check_lines, signed_lines
from bylaw.shield.history import read_decision
from bylaw.trace import Identities, Trajectory, read
from bylaw.trace.event import Call
from bylaw.trace.source import log_file

LISTED = 50
"""Calls that a page lists."""
LOOKED_AT = 200_000
"""Conversations of the logs that are searched for some that the check applies to."""
DECISIONS = 5_000
"""Recent decisions of a service that are searched for conversations."""
KEEPS = 60.0
"""Seconds that a service's past conversations are cached."""


class Workbench(Struct, frozen=True):
    """A pack to edit, and past conversations to try it on."""

    root: Path | None
    """The folder of the pack."""
    own_root: Path | None
    """The same if it may be written to."""
    pack_now: Callable[[], PackState]
    backtests: Backtests
    layout: dict[str, Any]


@lru_cache(2)
def audit_bench(view: View) -> Workbench:
    """The pack and the logs of an audit."""
    layout = {"layout": "view.html", "view": view}
    return Workbench(view.root, view.own_root, view.pack_now, Backtests(partial(_past_of_audit, view)), layout)


def service_bench(service: ServiceLog) -> Workbench:
    """The pack of a service, which its pages do not write to, and its recent conversations.

    The folder may be newer than the pack that the service decides by.
    """
    root, layout = service.pack.root, {"layout": "service.html", "pack": service.pack}
    return Workbench(
        root, None, PackStates(root).now, Backtests(partial(_past_of_service, service), keeps=KEEPS), layout
    )


def _past_of_audit(view: View, _: str, tools: Sequence[str]) -> list[Past]:
    """The first conversations of the logs in which any of the tools was called."""
    if view.is_redacted:
        raise UsageError("The logs of a redacted audit are not available.")
    audited = read_audited(view.out)
    if audited is None:
        raise UsageError("the audit does not name its logs")
    try:
        world = Path(audited.world) if audited.world else None
        shelf = Shelf(audited.pack, world=world, document=Path(audited.document) if audited.document else None)
        return _gathered(audited, shelf, tools)
    except (BylawError, OSError) as error:
        raise UsageError(f"the logs of this audit cannot be read again: {error}") from None


def _gathered(audited: Audited, shelf: Shelf, tools: Sequence[str]) -> list[Past]:
    identities, found = Identities(), list[Past]()
    logged = ((name, each) for name in audited.logs for each in read(name, agent=audited.agent))
    for name, each in islice(logged, LOOKED_AT):
        if isinstance(each, Trajectory) and _calls_any(own := identities.own(each), tools):
            found.append((own, shelf.world_for(shelf.pack_for(own), log_file(name))[1]))
        if len(found) >= CONVERSATIONS:
            break
    return found


def _past_of_service(service: ServiceLog, tenant: str, tools: Sequence[str]) -> list[Past]:
    """The latest conversations of a tenant; a service keeps no world."""
    names: dict[str, None] = {}
    for entry in service.log.latest(tenant, "decision", limit=DECISIONS):
        is_ours = entry.body is not None and (not tools or read_decision(entry.body).tool in tools)
        if entry.conversation and is_ours:
            names[entry.conversation] = None
    histories = ((name, history) for name in names if (history := service.history(tenant, name)) is not None)
    return [(history.trajectory(name), None) for name, history in islice(histories, CONVERSATIONS)]


def _calls_any(trajectory: Trajectory, tools: Sequence[str]) -> bool:
    calls = (event.tool for event in trajectory.events if type(event) is Call)
    return any(not tools or tool in tools for tool in calls)


class Tried(Struct, frozen=True):
    """The result of trying a text."""

    faults: list[str] = []
    cases: list[CaseResult] = []
    """Failing ones first."""
    past: Backtest | None = None
    why_not: str = ""
    """The reason if it was not tried on past calls."""

    @property
    def failing(self) -> int:
        """The number of cases that fail."""
        return sum(not case.passed for case in self.cases)


class TryPages(Pages):
    section = "policy"

    def __init__(self, find: Callable[[], Workbench]) -> None:
        self._find = find

    @property
    def layout(self) -> dict[str, Any]:
        return self._find().layout

    @shown("/try/{id}")
    def begin(self, asked: Asked) -> Response:
        """The check as it is saved."""
        now, draft = self._draft(asked)
        return self._shown(asked, now, draft, draft.text)

    @changed("/try/{id}")
    def run(self, asked: Asked) -> Response:
        asked.needs_noting()
        return self._shown(asked, *self._draft(asked), asked.form.get("text", ""))

    @changed("/try/{id}/save")
    def save(self, asked: Asked) -> Response:
        by = asked.signed()
        now, draft = self._draft(asked)
        text, root = asked.form.get("text", ""), self._find().own_root
        if root is None:
            raise UsageError("the pack cannot be changed from this page", hint="take the patch")
        if asked.form.get("digest") != draft.digest:
            raise UsageError("the check has changed since you loaded the page", hint="load it again")
        tried = self._tried(asked, now, draft, text)
        if tried.faults:
            raise UsageError(f"nothing was written: {tried.faults[0]}")
        if tried.failing and asked.form.get("despite") != str(tried.failing):
            cases = "1 case fails" if tried.failing == 1 else f"{tried.failing} cases fail"
            raise UsageError(f"nothing was written: {cases}", hint="correct the check, or confirm next to the cases")
        made = save(root, draft, text)
        told = f"saved by {by}. A signature on the policy lapses." if made else "nothing had changed."
        now, draft = self._draft(asked)
        return self._shown(asked, now, draft, draft.text, Written(root / draft.file, made, told))

    def _draft(self, asked: Asked) -> tuple[PackState, Draft]:
        now, name = self._find().pack_now(), asked.path["id"]
        if name not in now.pack.policies:
            raise Refused("the pack has no such policy", status=404)
        drafts = drafts_of(now, name)
        rule = asked.form.get("rule") or asked.query.get("rule", "")
        found = [draft for draft in drafts if draft.name == rule] or drafts
        if not found:
            raise Refused("this policy has no check to edit", status=404)
        return now, found[0]

    def _tried(self, asked: Asked, now: PackState, draft: Draft, text: str) -> Tried:
        try:
            edited = now.pack if text == draft.text else tried_pack(now, draft, text)
        except BylawError as error:
            return Tried(faults=faults_of(error))
        ran = [
            each for each in run_cases(edited, of=case_names(now.pack, draft.policy)) if isinstance(each, CaseResult)
        ]
        cases = sorted(ran, key=lambda case: case.passed)
        backtests, tenant = self._find().backtests, asked.visitor.tenant
        try:
            if text == draft.text:
                backtests.prepare(now.pack, draft.policy, tenant)
                return Tried(cases=cases)
            return Tried(cases=cases, past=backtests.run(now.pack, edited, draft.policy, tenant))
        except UsageError as error:
            return Tried(cases=cases, why_not=error.message)

    def _shown(self, asked: Asked, now: PackState, draft: Draft, text: str, written: Written | None = None) -> Response:
        tried, policy = self._tried(asked, now, draft, text), now.pack.policies[draft.policy]
        bench = self._find()
        assert bench.root is not None
        return self._page(
            "try.html",
            asked,
            draft=draft,
            text=text,
            tried=tried,
            patch=_patch(bench.root, draft, text) if text != draft.text and not tried.faults else "",
            others=[each for each in drafts_of(now, draft.policy) if each.name != draft.name],
            sentence=_sentence(policy),
            called=_called(now, policy),
            can_write=bench.own_root is not None,
            listed=LISTED,
            written=written,
        )


def _patch(root: Path, draft: Draft, text: str) -> str:
    try:
        return patch(root, draft, text)
    except BylawError as error:
        return f"# {error}\n"


def _called(now: PackState, policy: Policy) -> str:
    """The functions that a check calls; other checks may call them too."""
    return "\n".join(signed_lines(now.pack, policy)[len(check_lines(now.pack, policy)) :]).strip("\n")


def _sentence(policy: Policy) -> str:
    """A policy in the words of its document if they are known, else its definition."""
    return " ".join(cite.text for cite in policy.citations if cite.text) or policy.definition
