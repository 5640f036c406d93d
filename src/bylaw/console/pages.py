"""Collects all pages of an audit and of a service. `run_pages` serves an audit on this machine."""
# pyright: basic, reportMissingImports=false

import socket
import threading
from collections.abc import Callable
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from bylaw.console.app import application
from bylaw.console.findings import ConversationPages, FindingPages
from bylaw.console.inbox import InboxPages
from bylaw.console.live import LivePages, StopPages
from bylaw.console.overview import OverviewPages
from bylaw.console.page import load_templates
from bylaw.console.policies import PolicyPages, ServedPolicyPages
from bylaw.console.queue import QueuePages
from bylaw.console.search import SearchPages
from bylaw.console.service_log import ServiceLog
from bylaw.console.sign_in import SignIn
from bylaw.console.trying import TryPages, audit_bench, service_bench
from bylaw.console.view import Opened, View
from bylaw.errors import UsageError
from bylaw.pack import Pack
from bylaw.record import Log

HOST = "127.0.0.1"
SERVED = ("/inbox", "/live", "/stops", "/policy", "/try/", "/sign-in", "/sign-out", "/static/")
"""How the addresses of a service's pages start."""
VIEW_PAGES = "/review, /findings, /conversations, /policy, /compare, /search"
SERVICE_PAGES = "/inbox, /live, /stops, /policy"
"""The pages to open first. The terminal shows their addresses."""


def view_app(view: View) -> ASGIApp:
    opened = Opened(view)
    kinds = (OverviewPages, QueuePages, FindingPages, ConversationPages, PolicyPages, SearchPages)
    pages = [each(opened) for each in kinds]
    routes = [route for each in (*pages, TryPages(lambda: audit_bench(opened.view))) for route in each.routes()]
    return application(routes, refresh=opened.refresh)


def service_app(
    log: Log, pack: Pack, *, sign_in: SignIn | None = None, hosts: tuple[str, ...] = (), secret: bytes | None = None
) -> ASGIApp:
    """Return the application for a service's pages.

    Without `sign_in`, every user of this machine may open the pages.
    """
    service = ServiceLog(log, pack)
    bench = service_bench(service)
    pages = [each(service) for each in (InboxPages, LivePages, StopPages)]
    routes = [route for each in (*pages, ServedPolicyPages(bench), TryPages(lambda: bench)) for route in each.routes()]
    if sign_in is None:
        return application(routes, hosts=hosts, secret=secret)
    return application([*routes, *sign_in.routes()], find=sign_in.visitor, hosts=hosts, secret=secret)


def is_page(path: str) -> bool:
    return path == "/" or path.startswith(SERVED)


def run_pages(
    out: Path, port: int, *, pack: str, waivers: Path | None, base: Path | None, tell: Callable[[str], None]
) -> None:
    """Serve an audit's pages until interrupted. `tell` is called with the address of the pages."""
    view = View(out, pack=pack, waivers=waivers, base=base)
    # Load all templates before other threads start, because Python 3.11 may fail if two threads parse Python code.
    threading.Thread(target=load_templates, daemon=True, name="console-warming").start()
    taken = _listen(port)
    tell(f"{view.title}: http://{HOST}:{taken.getsockname()[1]}/  (Ctrl-C ends it)")
    tell(f"pages: {VIEW_PAGES}")
    config = uvicorn.Config(
        view_app(view), log_level="warning", access_log=False, server_header=False, proxy_headers=False, ws="none",
        lifespan="off",
    )  # fmt: skip
    uvicorn.Server(config).run(sockets=[taken])


def _listen(port: int) -> socket.socket:
    taken = socket.socket(socket.AF_INET)
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((HOST, port))
        taken.listen(128)
    except OSError as error:
        taken.close()
        hint = "another program may be using the port; choose another --port"
        raise UsageError(f"cannot listen on {HOST}:{port}: {error.strerror or error}", hint=hint) from error
    return taken
