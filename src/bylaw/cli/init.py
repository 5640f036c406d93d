"""`bylaw init`: draft a pack from logs and a policy document."""

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
    document: Annotated[File, "The policy document: Markdown or plain text."] = None,
    policy: Annotated[Path | None, "Deprecated: use --document.", {"hidden": True}] = None,
    out: Annotated[Path, "--out DIR", "Folder for the new pack."] = Path("pack"),
    effects: Annotated[File, "Corrected effects, from `bylaw scan --write-effects`."] = None,
    tools: Annotated[
        File, "A tool catalogue to copy into the pack: an MCP tools/list result or function definitions, as JSON."
    ] = None,
    world: Annotated[File, "The database of the tools, JSON or SQLite, to map records to."] = None,
) -> int:
    """Draft a pack from logs and a policy document.

    Tools, entities and observations come from the logs. Every sentence of the document is listed as unenforced.
    """
    document = document or policy
    if document is None:
        hint = "give --document FILE, Markdown or plain text; `bylaw compile` also reads PDF and DOCX"
        raise UsageError("no policy document", hint=hint)
    if world is not None and not world.is_file():
        raise UsageError("no such file", place=str(world))
    made = init_pack(logs, document, out, effects=effects, tools=tools)
    scan = made.scan
    writes = sum(guess.effect == "write" for guess in scan.tools)
    print(f"read {scan.trajectories:,} conversations: {len(scan.tools)} tools, {writes} of them writes")
    if scan.unreadable:
        records = "record" if scan.unreadable == 1 else "records"
        print(f"{scan.unreadable:,} {records} could not be read, such as {scan.faults[0]}")
    for each in scan.evidence:
        if each.cures and each.tool not in made.whole:
            print(f"{each.tool}: of {each.results:,} results {each.readable:,} can be read; {each.cures[0]}")
    for path in made.files:
        print(f"  wrote {out / path}")
    if made.undeclared:
        print(f"called in the logs but not in {tools}: {', '.join(made.undeclared)}; check whether these tools exist")
    print(f"entities: {', '.join(made.things) or 'none found in the results'}")
    if world is not None:
        print(_world(out, world))
    guard = f"example guard: {made.example}" if made.example else "no example guard, since no write names a record"
    print(f"sentences: {made.sentences}, all unenforced so far; {guard}")
    print("if the policy requires consent, or one call at a time, enable the rule in rules.yaml")
    print(f"next: correct {out / 'tools.yaml'}, then `bylaw check {out}`")
    return 3 if scan.unreadable else 0


def _world(out: Path, world: Path) -> str:
    """Describe the records in the database, after adding places to the draft for entities with other names."""
    schema = load_pack(out, cases=False).schema
    stored = stored_in(world, schema)
    if lines := world_lines(world, schema, stored.missing):
        entities = out / "entities.yaml"
        entities.write_text(entities.read_text(encoding="utf-8").rstrip("\n") + f"\n{lines}", encoding="utf-8")
        stored = stored_in(world, load_pack(out, cases=False).schema)
    held = ", ".join(f"{count:,} {name}" for name, count in stored.found.items()) or "none of these entities"
    found = f"world: {world} has {held}"
    if not stored.missing:
        return found
    return f"{found}; not found: {', '.join(stored.missing)}; map them under `world:` in {out / 'entities.yaml'}"


def init_pack(
    logs: Sequence[LogFile], policy: Path, out: Path, *, effects: Path | None = None, tools: Path | None = None
) -> Skeleton:
    """Write the files of the pack into `out`, without overwriting any."""
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
        raise UsageError(f"`{there[0]}` already exists", place=str(out), hint=hint)
    for path, text in made.files.items():
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (out / path).write_text(text, encoding="utf-8")
    return made


def read_document(path: Path) -> Document:
    """The policy document. Raises UsageError if it is not text."""
    if not path.is_file():
        raise UsageError("no such file", place=str(path))
    data = path.read_bytes()
    if data[:5] == b"%PDF-" or path.suffix.lower() not in _TEXT:
        kind = "a PDF" if data[:5] == b"%PDF-" or path.suffix.lower() == ".pdf" else f"`{path.suffix}`"
        hint = "convert it to Markdown or plain text, or use `bylaw compile`, which reads PDF, DOCX and HTML"
        raise UsageError(f"the policy is {kind}, not text", place=str(path), hint=hint)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError("the policy is not UTF-8 text", place=str(path), hint="save it as UTF-8") from None
    if len(text) > LONGEST:
        raise UsageError(TOO_LONG, place=str(path), hint=PARTED)
    return Document(text, name="policy.md")
