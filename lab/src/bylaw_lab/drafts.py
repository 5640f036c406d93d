"""Measures how much of a draft by `bylaw init` survives in the finished pack for the same inputs."""

import gzip
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from bylaw.cli.init import init_pack
from bylaw.pack import Pack, load_pack
from bylaw.packs.clinic import demo

_LAB = Path(__file__).parents[2]
_DATA = _LAB.parent.parent / "shared" / "data" / "tau-airline"
_FILE = re.compile(r"<!-- file: (\S+) -->\n(?:<!--[^\n]*\n)*```\w*\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Inputs(Struct, frozen=True):
    """The inputs of `bylaw init`, and the finished pack to compare with."""

    name: str
    finished: str
    document: Path
    tools: Path | None
    world: Path | None
    logs: tuple[Path, ...]


class Survival(Struct, frozen=True):
    """The number of drafted elements of one kind, and how many of them the finished pack has."""

    kind: str
    drafted: int
    survived: int
    lost: tuple[str, ...]


def inputs(folder: Path) -> Iterator[Inputs]:
    """Yield the available inputs, unpacked into `folder`. The airline needs its recorded data."""
    yield _clinic(folder)
    yield _hotel(folder)
    park = _LAB / "benchmarks" / "handbooks" / "park"
    pack = park / "pack"
    yield Inputs(
        "park", str(pack), pack / "policy.md", pack / "tools.json", park / "world.json", (park / "logs.jsonl.gz",)
    )
    if _DATA.is_dir():
        world = folder / "airline.json"
        world.write_bytes(gzip.decompress((_DATA / "tau2" / "db.json.gz").read_bytes()))
        runs = (_DATA / "tau2" / "runs" / "gpt-4.1.json.gz",)
        yield Inputs("airline", "tau-airline/tau2", _DATA / "tau2" / "policy.md", _DATA / "tools.json", world, runs)


def _clinic(folder: Path) -> Inputs:
    story, logs, world = demo.read_story(), folder / "clinic.jsonl.gz", folder / "clinic.sqlite"
    demo.build_world(world)
    demo.write_logs(logs, story.honest, story.liar)
    tools = folder / "clinic.json"
    listed = [
        {
            "name": tool.name,
            "description": tool.description,
            "parameters": {"properties": dict(tool.parameters), "required": [*tool.required]},
        }
        for tool in load_pack("clinic").schema.tools.values()
    ]
    tools.write_bytes(msgspec.json.encode(listed))
    return Inputs("clinic", "clinic", demo.POLICY, tools, world, (logs,))


def _hotel(folder: Path) -> Inputs:
    """Return the example hotel. Its finished pack is the one in the guide."""
    guide = (_LAB.parent / "docs" / "guides" / "one-policy.md").read_text(encoding="utf-8")
    for name, text in _FILE.findall(guide):
        file = folder / "hotel" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    (manifest,) = (folder / "hotel").rglob("pack.yaml")
    example = _LAB.parent / "examples" / "hotel"
    policy = manifest.parent / "policy.md"
    return Inputs("hotel", str(manifest.parent), policy, None, example / "hotel.json", (example / "logs.jsonl",))


def survival(given: Inputs, out: Path, *, with_logs: bool = True) -> list[Survival]:
    """Draft a pack in `out`, and compare its elements with those of the finished pack."""
    shutil.rmtree(out, ignore_errors=True)
    logs = given.logs if with_logs else ()
    init_pack(logs, given.document, out, tools=given.tools, world=given.world)
    drafted, finished = _elements(load_pack(out)), _elements(load_pack(given.finished))
    return [
        Survival(kind, len(own), len(own & finished[kind]), tuple(sorted(own - finished[kind])))
        for kind, own in drafted.items()
    ]


def _elements(pack: Pack) -> dict[str, set[str]]:
    schema = pack.schema
    changes = {tool.name: () if tool.is_unsaid else schema.changes.get(tool.name, ()) for tool in schema.tools.values()}
    entities = schema.entities.values()
    return {
        "entities": {entity.name for entity in entities},
        "keys": {f"{entity.name}: {', '.join(entity.key)}" for entity in entities},
        "reads": {f"{entity.name}: {entity.read.tool}" for entity in entities if entity.read is not None},
        "changes": {f"{tool}: {change.entity}" for tool, several in changes.items() for change in several},
    }


def report(folder: Path) -> str:
    """Return the shares as text, with one line per pack and kind."""
    lines: list[str] = []
    totals: dict[str, list[int]] = {}
    for given in inputs(folder):
        for said, with_logs in (("all inputs", True), ("no logs", False)):
            if not with_logs and given.tools is None:
                continue
            for each in survival(given, folder / "draft", with_logs=with_logs):
                total = totals.setdefault(said, [0, 0])
                total[0] += each.survived
                total[1] += each.drafted
                lost = f"  not {json.dumps(each.lost)}" if each.lost else ""
                lines.append(f"{given.name:<8} {said:<10} {each.kind:<8} {each.survived:>3} of {each.drafted:<3}{lost}")
    for said, (survived, drafted) in totals.items():
        lines.append(f"{said}: {survived} of {drafted} elements survive, {survived / drafted:.0%}")
    return "\n".join(lines)
