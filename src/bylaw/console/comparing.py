"""An audit beside an earlier one: what is new, what is still there, and what is not there any more."""
# pyright: basic, reportMissingImports=false

from starlette.responses import Response

from bylaw.console.app import shown
from bylaw.console.index import Wanted
from bylaw.console.view import AuditPages, read_summary
from bylaw.console.visitor import Asked


class ComparePages(AuditPages):
    section = "compare"

    @shown("/compare")
    def compared(self, asked: Asked) -> Response:
        """The comparison with one earlier audit, or the choice of one."""
        view = self._view
        base = Wanted.of(asked.request.query_params.multi_items()).base or view.base
        bases = [(name, str(read_summary(path).get("date", ""))) for name, path in view.bases.items()]
        latest = sorted(bases, key=lambda each: (each[1], each[0]), reverse=True)
        if not base:
            return self._page("compare.html", asked, base=base, bases=latest, states={}, reasons=[])
        standings = view.standings(base)
        index = standings.index
        return self._page(
            "compare.html",
            asked,
            base=base,
            bases=latest,
            states=index.states(Wanted()),
            reasons=index.reasons(Wanted()),
            wanted=Wanted(base=base),
            fixed=standings.fixed,
            gone=standings.gone,
        )
