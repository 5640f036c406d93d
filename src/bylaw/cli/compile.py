"""The command `bylaw compile` turns a policy document and a tool catalogue into a pack."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
from msgspec.structs import replace

from bylaw.cli.command import TOOLS, Count, DocumentFiles, File, Folder, Name, command, pack_name
from bylaw.errors import UsageError

if TYPE_CHECKING:
    from bylaw.llm.chat import Price
    from bylaw.policy.folder import PackFolder


@command("compile")
def compile_command(
    *,
    documents: DocumentFiles = (),
    tools: Annotated[tuple[str, ...], "--tools FILE", TOOLS] = (),
    logs: Annotated[tuple[Path, ...], "--logs LOGS", "Recorded conversations, to learn what tools return."] = (),
    labels: Annotated[File, "JSON lines that label calls as safe or unsafe, to learn weights of rules."] = None,
    out: Annotated[Path, "--out DIR", "Folder for the pack."] = Path("pack"),
    update: Annotated[
        Path | None, "--update PACK", "Update this pack after its document changed, redoing only what is affected."
    ] = None,
    name: Annotated[Name, "Name of the pack (default: the folder's name)."] = "",
    now: Annotated[str, "--now TIME", "A fixed time for calls, if the logs have no times."] = "",
    llm: Annotated[str, "--llm MODEL", "The model: a name at OPENAI_BASE_URL, batch:DIR, or recorded."] = "",
    kept: Annotated[Folder, "Folder for questions and answers."] = None,
    stream: Annotated[bool, "Stream answers, for endpoints that require streaming."] = False,
    max_tokens: Annotated[Count | None, "Maximum number of tokens per answer."] = None,
    concurrency: Annotated[Count, "Maximum number of concurrent requests."] = 4,
    price: Annotated[str, "--price IN,OUT", "Dollars per million tokens, such as 2.5,10."] = "",
    refine: Annotated[int, "--refine N", "Refine up to N rules: make them verifiable and merge duplicates."] = 0,
    embedder: Annotated[
        Name, "With --refine, how to compare rules: hashed, wordllama (`embed` extra), a folder or a URL."
    ] = "",
    dry_run: Annotated[bool, "Print the number and cost of requests, and exit."] = False,
    send_records: Annotated[bool, "Let requests quote logged calls flagged by a rejected check."] = False,
    as_is: Annotated[
        bool, "Do not wait for missing answers: policies that need them are left without a check."
    ] = False,
    overwrite: Annotated[bool, "Overwrite a compiled pack."] = False,
) -> int:
    """Compile a policy document and a tool catalogue into a pack."""
    from bylaw.answering.embedder import open_embedder
    from bylaw.cli.logs import open_logs
    from bylaw.compile.lesson import read_labels
    from bylaw.compile.pipeline import Source, compile_pack, require_tools
    from bylaw.compile.reading import read_documents
    from bylaw.compile.report import forecast, report_lines
    from bylaw.compile.tools import read_tools, with_logs
    from bylaw.compile.update import MadeOf, owner_of, read_before, recover, rejections, write_pack
    from bylaw.llm.source import open_chat, remarks
    from bylaw.policy.document import stated_clock
    from bylaw.policy.folder import read_folder

    paid = _price(price)
    out = update or out
    (labelled,) = _relative((labels or "",), out)
    made_of = MadeOf(
        _relative(documents, out), _relative(tools, out), _relative(logs, out), name, now, labelled, refine, embedder
    )
    before = folder = None
    if out.is_file():
        raise UsageError("not a folder", place=str(out), hint="choose another --out")
    recover(out)
    if update is not None:
        before, folder = read_before(update), read_folder(update)
        # An option that is not given keeps its value from the last compilation.
        given = {part: value for part in made_of.__struct_fields__ if (value := getattr(made_of, part))}
        made_of = replace(before.made_of, **given)
    elif not documents:
        raise UsageError("no policy document", hint="add --document FILE, or --update PACK")
    elif (out / "pack.yaml").exists() and not dry_run and not (overwrite and (out / "compiled.yaml").exists()):
        hint = "choose another folder with --out, add --update or, if the pack was compiled, add --overwrite"
        raise UsageError("the folder already has a pack", place=str(out), hint=hint)
    reading = read_documents([Path(each) for each in _seen(made_of.documents, out)])
    with open_logs([Path(each) for each in _seen(made_of.logs, out)]) as opened:
        cards, trajectories = with_logs(read_tools(_seen(made_of.tools, out)), opened.trajectories())
    require_tools(cards)
    clock = None if made_of.now or any(each.bears_times for each in trajectories) else stated_clock(reading.document)
    if clock is not None:
        print(f'time of every call: {clock.now}, from "{clock.sentence}"; to change it, add --now TIME')
    elif not made_of.now and (stated := stated_clock(reading.document)) is not None:
        print(f'calls in the logs have times; time used for trying checks: {stated.by_day}, from "{stated.sentence}"')
    now = made_of.now or (clock.now if clock is not None else "")
    known = read_labels(Path(_seen((made_of.labels,), out)[0])) if made_of.labels else None
    rejected: dict[str, str] = {}
    if before is not None:
        rejected = rejections(before, reading.document, trajectories, with_values=send_records)
    for each in rejected:
        print(f"{each} was rejected; requesting a new version")
    earlier, owner = (before.work, owner_of(before)) if before is not None else (None, None)
    source = Source(
        reading.document, reading.title, cards, trajectories, now, earlier, made_of.refine, known, owner, rejected
    )
    if made_of.embedder:
        source = replace(source, embed=open_embedder(made_of.embedder))
    if dry_run:
        print("\n".join(forecast(source, paid)))
        return 0
    keeps = kept is not None
    chat = open_chat(
        llm,
        kept=kept or out / "answers",
        progress=_show_progress if sys.stderr.isatty() else None,
        stream=stream,
        max_tokens=max_tokens,
        concurrency=concurrency,
        keeps=keeps,
    )
    work, desk = compile_pack(source, chat, progress=print, as_is=as_is)
    made_of = replace(made_of, name=made_of.name or pack_name(out))
    written = write_pack(out, source, work, made_of, before=before)
    print("".join(f"{line}\n" for line in written.notes), end="")
    if folder is not None:
        _show_differences(out, folder)
    print("\n".join(report_lines(work, written.files, len(desk.asked), out)))
    if desk.usage.asked or desk.usage.answered:
        print(f"asked and answered: {paid.text(desk.usage)}")
    for each in remarks(chat):
        click.echo(each, err=True)
    return 0


def _price(text: str) -> "Price":
    from bylaw.llm.chat import Price

    try:
        return Price(*map(float, text.split(",", 1))) if text else Price()
    except ValueError:
        raise UsageError(f"`{text}` is not a price", hint="add --price IN,OUT, such as 2.5,10") from None


def _show_progress(done: int, total: int) -> None:
    click.echo(f"\r{done} of {total} answered", nl=done == total, err=True)


def _show_differences(root: Path, before: "PackFolder") -> None:
    from bylaw.compile.update import differences
    from bylaw.policy.folder import read_folder

    found = differences(root, before, read_folder(root))
    words = {"new": "is new", "gone": "is gone", "sentences": "has new text", "check": "has a new check"}
    for each in found:
        what = words.get(each.change, "has new text and a new check")
        print(f"{each.policy} {what}" + ("; it needs a new signature" if each.was_signed else ""))
        print("\n".join(f"    {line}" for line in each.lines))
    print(f"policies that differ: {len(found)}")


def _relative(paths: tuple[Path | str, ...], out: Path) -> tuple[str, ...]:
    """Make paths relative to the pack. Names that are not paths, such as Python modules, do not change."""
    return tuple(os.path.relpath(each, out) if each and Path(each).exists() else str(each) for each in paths)


def _seen(paths: tuple[str, ...], out: Path) -> list[str]:
    """Return the path from the current folder. This reverses `_relative`. The file need not exist."""
    found = [os.path.normpath(out / each) for each in paths]
    return [path if Path(path).exists() or os.sep in each else each for path, each in zip(found, paths, strict=True)]
