"""All pages of one audit, as `bylaw view` serves them; and those of a service."""
# pyright: basic, reportMissingImports=false

from starlette.types import ASGIApp

from bylaw.console.app import application
from bylaw.console.comparing import ComparePages
from bylaw.console.conversations import ConversationPages
from bylaw.console.findings import FindingPages
from bylaw.console.inbox import InboxPages
from bylaw.console.live import LivePages
from bylaw.console.overview import OverviewPages
from bylaw.console.policies import PolicyPages
from bylaw.console.reopening import Reopening
from bylaw.console.served_policy import ServedPolicyPages
from bylaw.console.service_log import ServiceLog
from bylaw.console.sign_in import SignIn
from bylaw.console.stopping import StopPages
from bylaw.console.trying import TryPages
from bylaw.console.view import View
from bylaw.console.workbench import audit_bench, service_bench
from bylaw.pack import Pack
from bylaw.record import Log

PAGES = (OverviewPages, FindingPages, ConversationPages, PolicyPages, ComparePages)


def view_app(view: View) -> ASGIApp:
    return Reopening(view, _pages_of)


def _pages_of(view: View, secret: bytes) -> ASGIApp:
    routes = [route for pages in PAGES for route in pages(view).routes()]
    return application([*routes, *TryPages(audit_bench(view)).routes()], secret=secret)


SERVICE_PAGES = (InboxPages, LivePages, StopPages)
SERVED = ("/inbox", "/live", "/stops", "/policy", "/try/", "/sign-in", "/sign-out", "/static/")
"""How the addresses of a service's pages begin, beside `/` itself."""


def service_app(
    log: Log, pack: Pack, *, sign_in: SignIn | None = None, hosts: tuple[str, ...] = (), secret: bytes | None = None
) -> ASGIApp:
    """The pages of a service; without `sign_in`, for anybody on this machine."""
    service = ServiceLog(log, pack)
    bench = service_bench(service)
    routes = [route for pages in SERVICE_PAGES for route in pages(service).routes()]
    routes += [*ServedPolicyPages(bench).routes(), *TryPages(bench).routes()]
    if sign_in is None:
        return application(routes, hosts=hosts, secret=secret)
    return application([*routes, *sign_in.routes()], find=sign_in.visitor, hosts=hosts, secret=secret)


def is_page(path: str) -> bool:
    """Whether a service's pages answer to an address."""
    return path == "/" or path.startswith(SERVED)
