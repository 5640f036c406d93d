"""The review queue: unsigned checks, undecided calls and new findings. The page shows the next item of each kind."""
# pyright: basic, reportMissingImports=false

from pathlib import Path
from urllib.parse import quote

from msgspec import Struct
from starlette.responses import RedirectResponse, Response

from bylaw.console.app import shown
from bylaw.console.door import Asked
from bylaw.console.index.query import ReasonRow, Wanted
from bylaw.console.pack_state import PackState
from bylaw.console.view import AuditPages
from bylaw.pack.review import standings

UNSIGNED = ("unsigned", "lapsed")
"""The review states that need a signature. `rejected` is not among them, because a rejected check must first be
improved.
"""
LISTED = 8
"""The maximum number of checks or reasons to list."""


class Waiting(Struct, frozen=True):
    """All items of one kind that are waiting for review."""

    title: str
    one: str
    count: int
    next: str
    """The address of the first item, or an empty string if there is none."""
    every: str
    """The address of the list of all items."""
    checks: tuple[str, ...] = ()
    reasons: tuple[ReasonRow, ...] = ()


def unsigned(now: PackState, root: Path) -> list[str]:
    """Return the policies that are waiting for a signature, in the order of the pack."""
    states = standings(root, now.sides)
    waits = (*UNSIGNED, "unreviewed") if now.is_compiled else UNSIGNED
    return [name for name in now.pack.policies if states.get(name) in waits]


def check_address(policy: str) -> str:
    return f"/policy/{quote(policy, safe='')}?queue=checks"


class QueuePages(AuditPages):
    section = "review"

    @shown("/review")
    def listed(self, asked: Asked) -> Response:
        return self._page("queue.html", asked, kinds=self._kinds(), listed=LISTED)

    @shown("/review/next")
    def following(self, asked: Asked) -> Response:
        found = next((kind.next for kind in self._kinds() if kind.next), "/review")
        return RedirectResponse(found, 303)

    def _kinds(self) -> list[Waiting]:
        view = self._view
        checks = unsigned(view.pack_now(), view.own_root) if view.own_root is not None else []
        start = check_address(checks[0]) if checks else ""
        kinds = [Waiting("Unsigned checks", "check", len(checks), start, "#checks", checks=tuple(checks))]
        index = view.standings().index
        lists = (("Undecided calls", "call", Wanted(state="open")), ("New findings", "finding", Wanted()))
        for title, one, wanted in lists:
            reasons, first = index.reasons(wanted), index.first(wanted)
            start = wanted.address(reason=first.reason, open=first.id) if first is not None else ""
            count = index.states(wanted)[wanted.state]
            kinds.append(Waiting(title, one, count, start, wanted.address(), reasons=tuple(reasons[:LISTED])))
        return kinds
