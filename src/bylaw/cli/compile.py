"""`bylaw compile`: from a policy document and a catalogue of tools to a pack that a person can sign."""

import re
from pathlib import Path

import click

from bylaw.errors import UsageError

_FILE = click.Path(path_type=Path)


@click.command("compile")
@click.option(
    "--document",
    "documents",
    multiple=True,
    required=True,
    type=_FILE,
    metavar="FILE",
    help="The policy document: Markdown, text, HTML, PDF or DOCX. May be given several times.",
)
@click.option(
    "--tools",
    multiple=True,
    metavar="FILE",
    help="A catalogue: OpenAPI, MCP tools/list, function definitions; or a Python module, `module:function`.",
)
@click.option("--logs", multiple=True, type=_FILE, metavar="LOGS", help="Conversations that show what tools return.")
@click.option("--out", type=_FILE, default="pack", metavar="DIR", help="Folder for the pack.")
@click.option("--name", default="", metavar="NAME", help="The pack's name; else that of the folder.")
@click.option("--now", default="", metavar="TIME", help="A fixed clock, where logs do not say when they happened.")
@click.option("--llm", default="", metavar="MODEL", help="A model at OPENAI_BASE_URL, batch:DIR, or recorded.")
@click.option("--kept", type=_FILE, metavar="DIR", help="Where answers are kept, by what was asked.")
@click.option("--dry-run", is_flag=True, help="Say what asking would take, and stop.")
@click.option("--overwrite", is_flag=True, help="Write over a pack that was compiled before.")
def compile_command(
    documents: tuple[Path, ...],
    tools: tuple[str, ...],
    logs: tuple[Path, ...],
    out: Path,
    name: str,
    now: str,
    llm: str,
    kept: Path | None,
    dry_run: bool,
    overwrite: bool,
) -> int:
    """Compile a policy document and a catalogue of tools into a pack."""
    from bylaw.cli.logs import open_logs
    from bylaw.compile.assemble import assemble
    from bylaw.compile.forecast import forecast
    from bylaw.compile.pipeline import Source, compile_pack
    from bylaw.compile.reading import read_documents
    from bylaw.compile.report import told_lines
    from bylaw.compile.tools import read_tools, with_logs
    from bylaw.llm.source import open_chat

    reading = read_documents(documents)
    with open_logs(logs) as opened:
        cards, trajectories = with_logs(read_tools(tools), opened.trajectories())
    source = Source(reading.document, reading.title, cards, trajectories, now)
    if dry_run:
        print("\n".join(forecast(source)))
        return 0
    if (out / "pack.yaml").exists() and not (overwrite and (out / "compiled.yaml").exists()):
        hint = "give another folder with --out, or --overwrite for one that was compiled before"
        raise UsageError("there is a pack already", place=str(out), hint=hint)
    chat = open_chat(llm, kept=kept or out / "answers")
    work, desk = compile_pack(source, chat, progress=print)
    made = assemble(source, work, name=name or _name(out), reading=reading)
    for path in (old for folder in ("guards", "cases") for old in (out / folder).glob("*")):
        path.unlink()
    for path, text in made.items():
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (out / path).write_text(text, encoding="utf-8")
    lines, is_whole = told_lines(source, work, len(desk.asked), out)
    print("\n".join(lines))
    return 0 if is_whole else 1


def _name(out: Path) -> str:
    return re.sub(r"[^a-z0-9]+", "-", out.resolve().name.lower()).strip("-") or "pack"
