"""`bylaw view`: an audit in the browser."""

from typing import Annotated

from bylaw.cli.command import Audited, File, Folder, Port, command
from bylaw.errors import UsageError


@command("view")
def view_command(
    out: Audited,
    *,
    port: Port = 8301,
    pack: Annotated[str, "--pack PACK", "The pack's folder, where the audit does not tell."] = "",
    waivers: Annotated[File, "Where triage writes.  [default: waivers.yaml]"] = None,
    base: Annotated[Folder, "An earlier audit to compare with."] = None,
) -> None:
    """Look through an audit in the browser, and decide on what it found. Needs the extra `serve`.

    The pages are for this machine only. What you decide is written to waivers.yaml and to the pack's cases.
    """
    try:
        from bylaw.console.pages import run_pages
    except ImportError as error:
        hint = "in your clone of Bylaw: pip install '.[serve]'"
        raise UsageError("the console needs starlette, uvicorn and jinja2", hint=hint) from error
    run_pages(out, port, pack=pack, waivers=waivers, base=base, tell=lambda line: print(line, flush=True))
