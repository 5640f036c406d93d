"""Serves the pages of an audit to this machine until told to stop."""
# pyright: basic, reportMissingImports=false

import socket
from collections.abc import Callable
from pathlib import Path

import uvicorn

from bylaw.console.pages import view_app
from bylaw.console.view import View
from bylaw.errors import UsageError

HOST = "127.0.0.1"


def run_pages(
    out: Path, port: int, *, pack: str, waivers: Path | None, base: Path | None, tell: Callable[[str], None]
) -> None:
    """Open the audit, say where its pages are, and serve them."""
    view = View(out, pack=pack, waivers=waivers, base=base)
    view.warm_up()
    taken = _listen(port)
    tell(f"{view.title}: http://{HOST}:{taken.getsockname()[1]}/  (Ctrl-C ends it)")
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
        hint = "another program may be there: give another --port"
        raise UsageError(f"cannot listen at {HOST}:{port}: {error.strerror or error}", hint=hint) from error
    return taken
