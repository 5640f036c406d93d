"""The policy on a service: its document with what holds each sentence, each check to be tried."""
# pyright: basic, reportMissingImports=false

from urllib.parse import quote

from starlette.responses import RedirectResponse, Response

from bylaw.console.app import Pages, shown
from bylaw.console.margin import margins_of
from bylaw.console.visitor import Asked
from bylaw.console.workbench import Workbench
from bylaw.pack.review import standings


class ServedPolicyPages(Pages):
    """The pack that a service decides by, to be read."""

    section = "policy"

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench.layout)
        self._bench = bench

    @shown("/policy/{id}")
    def one(self, asked: Asked) -> Response:
        """A policy by its name, as an audit's pages have it: here its check is read where it can be tried."""
        return RedirectResponse(f"/try/{quote(asked.request.path_params['id'], safe='')}", 303)

    @shown("/policy")
    def document(self, asked: Asked) -> Response:
        """The document as prose; without one, the policies in their order."""
        assert self._bench.root is not None
        now = self._bench.pack_now()
        states = standings(self._bench.root, now.sides)
        groups, cited = margins_of(now.covered, states)
        rest = [policy for name, policy in now.pack.policies.items() if name not in cited]
        checked = {*now.pack.guards, *(rule.policy for rule in now.pack.book.rules)}
        return self._page("served_policy.html", asked, groups=groups, rest=rest, checked=checked)
