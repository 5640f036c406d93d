"""An audit beside an earlier one: what is new, what is still there, and what is not there any more."""
# pyright: basic, reportMissingImports=false

from starlette.responses import Response
from starlette.routing import Route

from bylaw.console.app import shown
from bylaw.console.index.wanted import Wanted
from bylaw.console.page import page
from bylaw.console.view import View, read_summary
from bylaw.console.visitor import Asked


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
            return page("compare.html", **values, bases=_latest(bases), states={}, reasons=[])
        standings = view.standings(base)
        index = standings.index
        return page(
            "compare.html",
            **values,
            bases=_latest(bases),
            states=index.states(Wanted()),
            reasons=index.reasons(Wanted()),
            wanted=Wanted(base=base),
            fixed=standings.fixed,
            gone=standings.gone,
        )


def _latest(bases: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return sorted(bases, key=lambda each: (each[1], each[0]), reverse=True)
