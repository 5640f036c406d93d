"""`bylaw compile`: from a policy document and a catalogue of tools to a pack that a person can sign."""

from pathlib import Path

import click

_FILE = click.Path(path_type=Path)


@click.command("compile")
@click.option("--document", "documents", multiple=True, type=_FILE, metavar="FILE", required=True, help="The policy document: Markdown, text, HTML, PDF or DOCX; may be given several times.")
@click.option("--tools", multiple=True, metavar="FILE", help="A catalogue of tools: OpenAPI, MCP tools/list, function definitions; or a Python module.")
@click.option("--logs", multiple=True, type=_FILE, metavar="LOGS", help="Recorded conversations: what tools return is learned from them.")
@click.option("--out", type=_FILE, default="pack", metavar="DIR", help="Folder for the pack.")
@click.option("--name", default="", metavar="NAME", help="The pack's name; else that of the folder.")
@click.option("--now", default="", metavar="TIME", help="A fixed clock for the pack, where logs do not say when they happened.")
@click.option("--llm", default="", metavar="MODEL", help="A model at OPENAI_BASE_URL, batch:DIR, or recorded.")
@click.option("--kept", type=_FILE, metavar="DIR", help="Where answers are kept, by what was asked; else DIR/answers of the pack's work folder.")
@click.option("--dry-run", is_flag=True, help="Say what asking would take, and stop.")
def compile_command(documents: tuple[Path, ...], tools: tuple[str, ...], logs: tuple[Path, ...], out: Path, name: str, now: str, llm: str, kept: Path | None, dry_run: bool) -> int:
    """Compile a policy document and a catalogue of tools into a pack."""
    from bylaw.cli.logs import open_logs
    from bylaw.compile.desk import Desk
    from bylaw.compile.pipeline import Source, run
    from bylaw.compile.tools import read_tools, with_logs
    from bylaw.llm.source import open_chat
    from bylaw.policy.document import Document

    text = documents[0].read_text(encoding="utf-8")
    document = Document(text)
    cards = read_tools(tools)
    with open_logs(logs) as opened:
        cards, trajectories = with_logs(cards, opened.trajectories())
    title = next((line.lstrip("# ").strip() for line in text.splitlines() if line.startswith("# ")), documents[0].name)
    source = Source(document, title, cards, trajectories)
    chat = open_chat(llm, kept=kept)
    desk = Desk()
    while True:
        desk.begin()
        run(desk, source)
        if not desk.wanted:
            break
        desk.fetch(chat)
    return 0
