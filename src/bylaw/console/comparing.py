"""An audit beside an earlier one: what is new, what is still there, and what is not there any more."""
# pyright: basic, reportMissingImports=false

from starlette.responses import Response
from starlette.routing import Route

from bylaw.audit.finding import Finding
from bylaw.console.app import shown
from bylaw.console.index.query import Wanted
from bylaw.console.page import page
from bylaw.console.view import View, read_summary
from bylaw.console.visitor import Asked

LISTED = 50
"""Findings of the earlier audit that are listed at most."""


class ComparePages:
    """One audit against another."""

    def __init__(self, view: View) -> None:
        self._view = view

    def routes(self) -> list[Route]:
        """What it is found under."""
        return [shown("/compare", self.compared)]

    def compared(self, asked: Asked) -> Response:
        """The comparison with one earlier audit, or the choice of one."""
        view = self._view
        base = Wanted.of(asked.request.query_params.multi_items()).base or view.base
        bases = [(name, str(read_summary(path).get("date", ""))) for name, path in view.bases.items()]
        values = {"view": view, "asked": asked, "section": "compare", "base": base}
        if not base:
            return page("compare.html", **values, bases=_latest(bases), states={}, reasons=[], fixed=[], gone=[])
        standings = view.standings(base)
        index = standings.index
        fixed: list[Finding] = []
        gone: list[Finding] = []
        for finding in standings.missing:
            (fixed if index.conversation(finding.trajectory) is not None else gone).append(finding)
        return page(
            "compare.html",
            **values,
            bases=_latest(bases),
            states=index.states(Wanted()),
            reasons=index.reasons(Wanted()),
            wanted=Wanted(base=base),
            fixed=fixed,
            gone=gone,
            listed=LISTED,
        )


def _latest(bases: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return sorted(bases, key=lambda each: (each[1], each[0]), reverse=True)
