"""The command `bylaw view` shows an audit in the browser."""

from typing import Annotated

from bylaw.cli.command import Audited, File, Folder, Port, command
from bylaw.errors import MissingExtra


@command("view")
def view_command(
    out: Audited,
    *,
    port: Port = 8301,
    pack: Annotated[str, "--pack PACK", "The folder of the pack, if the audit does not name it."] = "",
    waivers: Annotated[File, "File for waivers.  [default: waivers.yaml]"] = None,
    base: Annotated[Folder, "An earlier audit to compare with."] = None,
) -> None:
    """Browse an audit and triage its findings in the browser.

    Requires the `serve` extra. Listens on this machine only. Decisions are written to waivers.yaml and to the pack's
    cases.
    """
    try:
        from bylaw.console.pages import run_pages
    except ImportError as error:
        raise MissingExtra("the console requires starlette, uvicorn and jinja2", "serve") from error
    run_pages(out, port, pack=pack, waivers=waivers, base=base, tell=lambda line: print(line, flush=True))
