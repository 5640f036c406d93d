"""`bylaw view`: an audit in the browser."""

from pathlib import Path

import click

from bylaw.errors import UsageError

_FILE = click.Path(path_type=Path)


@click.command("view")
@click.argument("out", type=_FILE, help="The folder an audit wrote.")
@click.option("--port", default=8301, type=click.IntRange(0, 65535), help="Port to listen on; 0 takes a free one.")
@click.option("--pack", metavar="PACK", default="", help="The pack's folder, where the audit does not tell.")
@click.option("--waivers", metavar="FILE", type=_FILE, help="Where triage writes.  [default: waivers.yaml]")
@click.option("--base", metavar="DIR", type=_FILE, help="An earlier audit to compare with.")
def view_command(out: Path, port: int, pack: str, waivers: Path | None, base: Path | None) -> None:
    """Look through an audit in the browser, and decide on what it found. Needs the extra `serve`.

    The pages are for this machine only. What you decide is written to waivers.yaml and to the pack's cases.
    """
    try:
        from bylaw.console.run import run_pages
    except ImportError as error:
        raise UsageError(
            "the console needs starlette, uvicorn and jinja2", hint="in your clone of Bylaw: pip install '.[serve]'"
        ) from error
    from bylaw.audit.batch.lines_of_tables import lined

    with lined(out) as folder:
        run_pages(folder, port, pack=pack, waivers=waivers, base=base, tell=lambda line: print(line, flush=True))
