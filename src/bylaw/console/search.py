"""Searches a whole audit: its policies, findings and conversations."""
# pyright: basic, reportMissingImports=false

from starlette.responses import Response

from bylaw.console.app import shown
from bylaw.console.door import Asked
from bylaw.console.findings import sentence_of
from bylaw.console.index.query import Wanted
from bylaw.console.view import AuditPages

LISTED = 10
"""The maximum number of results of each kind to list."""


class SearchPages(AuditPages):
    section = "search"

    @shown("/search")
    def found(self, asked: Asked) -> Response:
        """Show the first results of each kind, with a link to the remaining results."""
        wanted = Wanted.of([("q", " ".join(asked.query.get("q", "").split())), ("state", "all")])
        index, sought = self._view.standings().index, wanted.q
        policies = self._policies(sought) if sought else []
        findings = index.findings(wanted, limit=LISTED) if sought else []
        conversations = index.conversations(q=sought, limit=LISTED + 1) if sought else []
        states = index.states(wanted)
        return self._page(
            "search.html",
            asked,
            wanted=wanted,
            policies=policies,
            findings=findings,
            count=sum(states.values()) - states["refused"],
            refused=states["refused"] if sought else 0,
            conversations=conversations[:LISTED],
            has_more=len(conversations) > LISTED,
        )

    def _policies(self, sought: str) -> list[tuple[str, str]]:
        words = sought.lower().split()
        stated = ((name, sentence_of(self._view, name, 2000)) for name in self._view.policies)
        return [
            (name, sentence)
            for name, sentence in stated
            if all(
                word in f"{name} {sentence} {self._view.policies[name].get('definition', '')}".lower() for word in words
            )
        ]
