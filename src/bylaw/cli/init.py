"""The command `bylaw init` drafts a pack from a policy document, tools, a database, logs, or several of these."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec

from bylaw.cli.command import TOOLS, DocumentFiles, File, command, pack_name
from bylaw.cli.console import counted
from bylaw.cli.logs import GivenLogs, open_logs, with_progress
from bylaw.errors import UsageError, WorldError
from bylaw.facts.database import open_snapshot
from bylaw.pack import load_pack
from bylaw.policy.document import LONGEST, PARTED, TOO_LONG
from bylaw.scan.effect import read_effects
from bylaw.scan.entities import read_tables
from bylaw.scan.skeleton import Skeleton, skeleton
from bylaw.trace.source import LogFile


@command("init")
def init_command(
    logs: Annotated[GivenLogs, "[LOGS]..."] = (),
    *,
    document: DocumentFiles = (),
    policy: Annotated[Path | None, "Deprecated: use --document.", {"hidden": True}] = None,
    out: Annotated[Path, "--out DIR", "Folder for the new pack."] = Path("pack"),
    effects: Annotated[File, "Corrected effects, from `bylaw scan --write-effects`."] = None,
    tools: Annotated[str, "--tools FILE", TOOLS] = "",
    world: Annotated[File, "The database of the tools, JSON or SQLite: its tables become the entities."] = None,
) -> int:
    """Draft a pack from a policy document, and from tools, a database or logs.

    Tools come from --tools and the logs, and entities from the database and the logs. Every sentence of the document is
    listed as unenforced.
    """
    documents = document or ((policy,) if policy is not None else ())
    if not documents:
        raise UsageError("no policy document", hint="add --document FILE: Markdown, text, HTML, PDF or DOCX")
    if not logs and not tools:
        hint = "pass logs, --tools FILE, or both: a pack needs its tools"
        raise UsageError("neither logs nor tools were given", hint=hint)
    made = init_pack(logs, documents, out, effects=effects, tools=tools, world=world)
    scan = made.scan
    writes = sum(guess.effect == "write" for guess in scan.tools)
    read = f"{counted(scan.trajectories, 'conversation')}: " if logs else ""
    print(f"read {read}{counted(len(scan.tools), 'tool')}, {writes} of them writes")
    if scan.unreadable:
        print(f"{counted(scan.unreadable, 'record')} could not be read, such as {scan.faults[0]}")
    for each in scan.evidence:
        if each.cures and each.tool not in made.whole:
            print(f"{each.tool}: {each.readable:,} of {each.results:,} results can be read; {each.cures[0]}")
    for path in made.files:
        print(f"  wrote {out / path}")
    if made.undeclared:
        print(f"called in the logs but not in {tools}: {', '.join(made.undeclared)}; check whether these tools exist")
    print(f"entities: {', '.join(made.things) or 'none found'}")
    if unread := [name for name in made.things if name in made.unread]:
        print(f"no look-up known for: {', '.join(unread)}; add `read` or an observation if a tool shows them")
    if world is not None:
        print(_world(out, world, made))
    guard = f"example guard: {made.example}" if made.example else "no example guard, because no write names a record"
    print(f"sentences: {made.sentences}, all unenforced so far; {guard}")
    print("if the policy requires consent, or one call at a time, enable the rule in rules.yaml")
    print(f"next: correct {out / 'tools.yaml'}, then `bylaw check {out}`")
    return 3 if scan.unreadable else 0


def _world(out: Path, world: Path, made: Skeleton) -> str:
    """Return a description of the database's records.

    If its tables are not named like the entities, first add their names to the draft.
    """
    held, missing = _held(out, world)
    if lines := [f"  {name}: {made.places[name]}" for name in missing if name in made.places]:
        entities = out / "entities.yaml"
        text = "\n".join([entities.read_text(encoding="utf-8").rstrip("\n"), "world:", *lines])
        entities.write_text(f"{text}\n", encoding="utf-8")
        held, missing = _held(out, world)
    counts = ", ".join(f"{count:,} {name}" for name, count in held.items()) or "none of these entities"
    found = f"world: {world} has {counts}"
    if not missing:
        return found
    return f"{found}; not found: {', '.join(missing)}; map them under `world:` in {out / 'entities.yaml'}"


def _held(out: Path, world: Path) -> tuple[dict[str, int], list[str]]:
    schema = load_pack(out, cases=False).schema
    keyed = [entity.name for entity in schema.entities.values() if entity.key]
    try:
        snapshot = open_snapshot(world, schema)
    except WorldError:
        return {}, keyed
    listed = {name: snapshot.members(name, {}) for name in keyed}
    held = {name: len(keys) for name, keys in listed.items() if keys is not None}
    return held, [name for name in keyed if name not in held]


def init_pack(
    logs: Sequence[LogFile],
    policy: Path | Sequence[Path],
    out: Path,
    *,
    effects: Path | None = None,
    tools: str | Path | None = None,
    world: Path | None = None,
) -> Skeleton:
    """Write the pack's files to the folder `out`. Raise UsageError instead of overwriting files."""
    from bylaw.compile.reading import read_documents

    document = read_documents([policy] if isinstance(policy, Path) else policy).document
    if any(len(file.text) > LONGEST for file in document.files):
        raise UsageError(TOO_LONG, place=document.name, hint=PARTED)
    known = read_effects(effects) if effects is not None else {}
    catalogue = _catalogue(str(tools)) if tools else {}
    if world is not None and not world.is_file():
        raise UsageError("no such file", place=str(world))
    tables = read_tables(world) if world is not None else []
    with open_logs(logs) as opened:
        made = skeleton(
            with_progress(opened.trajectories()),
            document,
            name=pack_name(out),
            effects=known,
            catalogue=catalogue,
            tables=tables,
        )
        faults = tuple(map(opened.named, made.scan.faults))
    made = msgspec.structs.replace(made, scan=msgspec.structs.replace(made.scan, faults=faults))
    if catalogue:
        made.files["tools.json"] = _tools_json(str(tools), catalogue)
    there = [path for path in made.files if (out / path).exists()]
    if there:
        hint = "choose another folder with --out"
        raise UsageError(f"`{there[0]}` already exists", place=str(out), hint=hint)
    for path, text in made.files.items():
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (out / path).write_text(text, encoding="utf-8")
    return made


def _catalogue(given: str) -> dict[str, dict[str, Any]]:
    from bylaw.compile.tools import read_tools

    return {
        name: {
            "description": card.description,
            "parameters": {"type": "object", "properties": card.parameters, "required": list(card.required)},
            **({"effect": card.effect} if card.effect else {}),
            **({"output": card.output} if card.output else {}),
        }
        for name, card in read_tools([given]).items()
    }


def _tools_json(given: str, catalogue: dict[str, dict[str, Any]]) -> str:
    """Return a catalogue that a pack can contain.

    OpenAPI and Python catalogues are converted to function definitions.
    """
    path = Path(given)
    if path.suffix == ".json" and path.is_file():
        text = path.read_text(encoding="utf-8")
        data: Any = json.loads(text)
        if not (isinstance(data, dict) and ("openapi" in data or "swagger" in data)):
            return text
    listed = [
        {"name": name, "description": body["description"], "parameters": body["parameters"]}
        for name, body in catalogue.items()
    ]
    return json.dumps(listed, indent=1, ensure_ascii=False) + "\n"
