"""What checks are tried on: a pack and past conversations, of an audit or of a service."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import Struct

from bylaw.audit.audited import Audited, read_audited
from bylaw.audit.shelf import Shelf
from bylaw.console.backtest import CONVERSATIONS, Past
from bylaw.console.pack_state import PackState, PackStates
from bylaw.console.service_log import ServiceLog
from bylaw.console.view import View
from bylaw.errors import BylawError, UsageError
from bylaw.shield.history import read_decision
from bylaw.trace import Identities, Trajectory, read
from bylaw.trace.event import Call
from bylaw.trace.log_file import log_file

LOOKED_AT = 200_000
"""Conversations of the logs that are looked through for such as a check applies to."""
DECISIONS = 5_000
"""Decisions of late whose conversations are tried on a service."""
KEEPS = 60.0
"""Seconds for which a service's past conversations stay as they were read."""


class Workbench(Struct, frozen=True):
    """A pack to edit, and past conversations to try it on."""

    root: Path | None
    """The folder of the pack."""
    own_root: Path | None
    """The same where it may be written to."""
    pack_now: Callable[[], PackState]
    """The pack as its folder is now."""
    past: Callable[[str, Sequence[str]], list[Past]]
    """Somebody's past conversations in which any of the tools was called; `UsageError` where none are at hand."""
    keeps: float
    """Seconds for which past conversations may be kept."""
    layout: dict[str, Any]
    """What the frame of its pages shows."""


def audit_bench(view: View) -> Workbench:
    """The pack and the logs of an audit."""
    past = partial(_past_of_audit, view)
    return Workbench(view.root, view.own_root, view.pack_now, past, float("inf"), view.layout)


def service_bench(service: ServiceLog) -> Workbench:
    """The pack of a service, which nobody writes to from there, and the conversations that it decided on of late.

    The folder may be newer than what the service decides by.
    """
    root, past = service.pack.root, partial(_past_of_service, service)
    return Workbench(root, None, PackStates(root).now, past, KEEPS, service.layout)


def _past_of_audit(view: View, _: str, tools: Sequence[str]) -> list[Past]:
    """Conversations of the logs, the first ones."""
    if view.is_redacted:
        raise UsageError("A redacted audit leads to no logs.")
    audited = read_audited(view.out)
    if audited is None:
        raise UsageError("this audit does not tell which logs it read, so nothing can be tried on them")
    try:
        world = Path(audited.world) if audited.world else None
        shelf = Shelf(audited.pack, world=world, document=Path(audited.document) if audited.document else None)
        return _gathered(audited, shelf, tools)
    except (BylawError, OSError) as error:
        raise UsageError(f"the logs of this audit cannot be read again: {error}") from None


def _gathered(audited: Audited, shelf: Shelf, tools: Sequence[str]) -> list[Past]:
    identities, found, looked_at = Identities(), list[Past](), 0
    for name in audited.logs:
        for each in read(name, agent=audited.agent):
            looked_at += 1
            if isinstance(each, Trajectory) and _calls_any(own := identities.own(each), tools):
                found.append((own, shelf.world_for(shelf.pack_for(own), log_file(name))[1]))
            if len(found) >= CONVERSATIONS or looked_at >= LOOKED_AT:
                return found
    return found


def _past_of_service(service: ServiceLog, tenant: str, tools: Sequence[str]) -> list[Past]:
    """The latest conversations of a tenant; a service keeps no world beside them."""
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
