"""`bylaw init`: a pack to start from, out of logs and a policy document."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from bylaw.cli.command import File, command, pack_name
from bylaw.cli.logs import GivenLogs, open_logs
from bylaw.errors import UsageError
from bylaw.pack import load_pack
from bylaw.policy.catalogue import read_catalogue
from bylaw.policy.document import LONGEST, PARTED, TOO_LONG, Document
from bylaw.policy.tool import Effect
from bylaw.scan.effect import read_effects
from bylaw.scan.skeleton import Skeleton, skeleton
from bylaw.scan.stored import stored_in, world_lines
from bylaw.trace.log_file import LogFile

_TEXT = {".md", ".markdown", ".txt", ".text", ".rst", ""}


@command("init")
def init_command(
    logs: GivenLogs,
    *,
    document: Annotated[
        File, "The policy document, Markdown or plain text (`bylaw compile` also reads PDF, DOCX and HTML)."
    ] = None,
    policy: Annotated[Path | None, "What --document was called before.", {"hidden": True}] = None,
    out: Annotated[Path, "--out DIR", "Folder for the new pack."] = Path("pack"),
    effects: Annotated[File, "Effects you corrected after a scan."] = None,
    tools: Annotated[
        File, "The tools as JSON: an MCP tools/list result, or function definitions. It is copied into the pack."
    ] = None,
    world: Annotated[
        File, "The database the tools look into, JSON or SQLite: says which things it holds, and where."
    ] = None,
) -> int:
    """Start a pack from logs and a policy document.

    Tools, things and observations are taken from the logs; every sentence of the document is listed as unenforced.
    """
    document = document or policy
    if document is None:
        hint = "--document FILE, Markdown or plain text; `bylaw compile` also reads PDF and DOCX"
        raise UsageError("no policy document is given", hint=hint)
    if world is not None and not world.is_file():
        raise UsageError("no such file", place=str(world))
    made = init_pack(logs, document, out, effects=effects, tools=tools)
    scan = made.scan
    writes = sum(guess.effect == "write" for guess in scan.tools)
    print(f"read {scan.trajectories:,} conversations: {len(scan.tools)} tools, {writes} of them writes")
    if scan.unreadable:
        records = "record" if scan.unreadable == 1 else "records"
        print(f"{scan.unreadable:,} {records} could not be read, e.g. {scan.faults[0]}")
    for each in scan.evidence:
        if each.cures and each.tool not in made.whole:
            print(f"{each.tool}: of {each.results:,} results {each.readable:,} can be read; {each.cures[0]}")
    for path in made.files:
        print(f"  wrote {out / path}")
    if made.undeclared:
        print(f"not in {tools}, but called in the logs: {', '.join(made.undeclared)}; did the agent make them up?")
    print(f"things: {', '.join(made.things) or 'none that the results show'}")
    if world is not None:
        print(_world(out, world))
    guard = f"the worked guard is {made.example}" if made.example else "no worked guard: no write names a record"
    print(f"sentences: {made.sentences}, all unenforced so far; {guard}")
    print("consent, or one call at a time? If the document asks for it, switch it on in rules.yaml")
    print(f"next: correct {out / 'tools.yaml'}, then `bylaw check {out}`")
    return 3 if scan.unreadable else 0


def _world(out: Path, world: Path) -> str:
    """What the database holds of the things, after saying in the draft where those stand that have another name."""
    schema = load_pack(out, cases=False).schema
    stored = stored_in(world, schema)
    if lines := world_lines(world, schema, stored.missing):
        entities = out / "entities.yaml"
        entities.write_text(entities.read_text(encoding="utf-8").rstrip("\n") + f"\n{lines}", encoding="utf-8")
        stored = stored_in(world, load_pack(out, cases=False).schema)
    held = ", ".join(f"{count:,} {name}" for name, count in stored.found.items()) or "none of these things"
    told = f"world: {world} holds {held}"
    if not stored.missing:
        return told
    return f"{told}; not {', '.join(stored.missing)}: say where under `world:` in {out / 'entities.yaml'}, if it does"


def init_pack(
    logs: Sequence[LogFile], policy: Path, out: Path, *, effects: Path | None = None, tools: Path | None = None
) -> Skeleton:
    """Write the pack's files into `out`; nothing that is there already is touched."""
    document = read_document(policy)
    known = read_effects(effects) if effects is not None else {}
    catalogue = read_catalogue(tools, file=str(tools)) if tools is not None else {}
    said: dict[str, Effect] = {name: body["effect"] for name, body in catalogue.items() if "effect" in body}
    with open_logs(logs) as opened:
        made = skeleton(
            opened.trajectories(), document, name=pack_name(out), effects=said | dict(known), catalogue=catalogue
        )
        faults = tuple(map(opened.named, made.scan.faults))
    made = msgspec.structs.replace(made, scan=msgspec.structs.replace(made.scan, faults=faults))
    if tools is not None:
        made.files["tools.json"] = tools.read_text(encoding="utf-8")
    there = [path for path in made.files if (out / path).exists()]
    if there:
        hint = "give another folder with --out"
        raise UsageError(f"`{there[0]}` exists already and is not overwritten", place=str(out), hint=hint)
    for path, text in made.files.items():
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (out / path).write_text(text, encoding="utf-8")
    return made


def read_document(path: Path) -> Document:
    """The policy document as text; anything else must be converted first."""
    if not path.is_file():
        raise UsageError("no such file", place=str(path))
    data = path.read_bytes()
    if data[:5] == b"%PDF-" or path.suffix.lower() not in _TEXT:
        kind = "a PDF" if data[:5] == b"%PDF-" or path.suffix.lower() == ".pdf" else f"`{path.suffix}`"
        hint = "convert it to Markdown or plain text first, so that every sentence can be cited by line"
        hint += "; `bylaw compile` reads PDF, DOCX and HTML as they are (extra `compile`)"
        raise UsageError(f"the policy is {kind}, not text", place=str(path), hint=hint)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError("the policy is not UTF-8 text", place=str(path), hint="save it as UTF-8") from None
    if len(text) > LONGEST:
        raise UsageError(TOO_LONG, place=str(path), hint=PARTED)
    return Document(text, name="policy.md")
