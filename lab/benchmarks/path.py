"""Measures the length of code paths: files per decision and per audit, hops from an audit to its engine, and cycles.

    uv run python lab/benchmarks/path.py [--list]

The decision is the one in the README, made a second time in the same session, so that imports and compilation are done.
A file counts if one of its functions is called. The audit runs on simulated conversations, one at a time, with the pack
already loaded. Each is audited twice and the second run counts, so that compiling guards and rules, once per pack, does
not count. The conversation with the most files is reported. A hop is a call between two of our functions on the
shortest path from `audit` to a session. A cycle is a set of files that import each other, including imports for the
type checker.
"""

import argparse
import ast
import gzip
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from types import CodeType, FrameType

import bylaw
from bylaw import Shield
from bylaw.audit.request import Request
from bylaw.audit.run import Examiner, audit
from bylaw.engine.session import Session
from bylaw_lab.clinic.simulator.generate import write

SOURCE = Path(bylaw.__file__).parent
FILES, AUDIT_FILES, HOPS = 35, 50, 3
"""The targets, as maximum values."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="name the files, the way and the members of circles")
    given = parser.parse_args()
    passed, audited, way, circles = decision_files(), audit_files(), audit_way(), import_circles()
    lines = sum(file.read_text().count("\n") for file in SOURCE.rglob("*.py") if "packs" not in file.parts)
    print(f"files that the second decision passes: {len(passed)} (at most {FILES})")
    if given.list:
        print(*(f"  {file}" for file in passed), sep="\n")
    print(f"files that the audit of one conversation passes: {len(audited)} (at most {AUDIT_FILES})")
    if given.list:
        print(*(f"  {file}" for file in audited), sep="\n")
    print(f"hops from `audit` to `Session`: {len(way) - 1} (at most {HOPS}): {' > '.join(way)}")
    print(f"circles of imports: {len(circles)}{' (none is wanted)' if circles else ''}")
    if given.list:
        print(*(f"  {' '.join(circle)}" for circle in circles), sep="\n")
    print(f"lines of src/bylaw without packs: {lines:,}")
    is_short = len(passed) <= FILES and len(audited) <= AUDIT_FILES
    return 0 if is_short and len(way) - 1 <= HOPS and not circles else 1


def decision_files() -> list[str]:
    """Return our files that the decision in the README uses when it is made a second time."""
    call = {"patient_id": "P121", "appointment_id": "A0362", "late_fee": "0.00", "reason": "illness"}
    entered: set[str] = set()
    with Shield("clinic").session("chat-17") as session:
        session.user("I'm P121, ill, and can't make A0362. I'm Gold, so there's no fee, right?")
        session.agent("I can cancel appointment A0362 of patient P121 with a fee of $0.00. Shall I go ahead?")
        session.user("Yes, please.")
        session.decide("cancel_appointment", call)
        watched(lambda: session.decide("cancel_appointment", call), lambda frame: entered.add(frame.f_code.co_filename))
    return files_of(entered)


def audit_files() -> list[str]:
    """Return our files that the audit uses for the conversation that needs the most files."""
    found: list[list[str]] = []
    with tempfile.TemporaryDirectory(prefix="bylaw-path-") as folder:
        place = Path(folder)
        write(place, seeds=(1,), count=20)
        lines = gzip.decompress((place / "logs.jsonl.gz").read_bytes()).splitlines(keepends=True)
        request = Request(files=(place / "one.jsonl",), pack="clinic")
        examiner = Examiner(request)
        for line in lines:
            entered: set[str] = set()
            (place / "one.jsonl").write_bytes(line)
            work = partial(audit, request, place / "out", examiner=examiner)
            work()
            examiner.begin()
            watched(work, lambda frame, entered=entered: entered.add(frame.f_code.co_filename))
            found.append(files_of(entered))
            examiner.begin()
    return max(found, key=len)


def files_of(entered: Iterable[str]) -> list[str]:
    """Return our files with at least one function that was called."""
    return sorted(Path(file).relative_to(SOURCE).as_posix() for file in entered if is_ours(file))


def audit_way() -> list[str]:
    """Return the functions on the shortest path from `audit` to the construction of a session."""
    ways: list[list[str]] = []
    wanted: CodeType = Session.__init__.__code__

    def note(frame: FrameType) -> None:
        if frame.f_code is not wanted:
            return
        way: list[str] = []
        at: FrameType | None = frame.f_back
        while at is not None and at.f_code is not audit.__code__:
            if is_ours(at.f_code.co_filename):
                way.append(at.f_code.co_qualname)
            at = at.f_back
        ways.append(["audit", *reversed(way), "Session"])

    with tempfile.TemporaryDirectory(prefix="bylaw-path-") as folder:
        place = Path(folder)
        write(place, seeds=(1,), count=20)
        request = Request(files=(place / "logs.jsonl.gz",), pack="clinic")
        watched(lambda: audit(request, place / "out"), note)
    return min(ways, key=len)


def watched(work: Callable[[], object], note: Callable[[FrameType], object]) -> None:
    """Run a function and record every function that is called."""

    def trace(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            note(frame)

    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(None)


def is_ours(file: str) -> bool:
    return Path(file).is_relative_to(SOURCE)


def import_circles() -> list[list[str]]:
    """Return sets of modules that import each other, by name."""
    modules = {name_of(file): file for file in SOURCE.rglob("*.py")}
    graph = {name: imported(name, file, modules) for name, file in modules.items()}
    return [sorted(each) for each in strongly_connected(graph) if len(each) > 1]


def name_of(file: Path) -> str:
    parts = ("bylaw", *file.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(name: str, file: Path, modules: Iterable[str]) -> set[str]:
    """Return the modules that a file imports, anywhere in the file."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {
                inner if (inner := f"{node.module}.{each.name}") in modules else node.module for each in node.names
            }
    return {each for each in found if each in modules and each != name}


def strongly_connected(graph: dict[str, set[str]]) -> list[set[str]]:
    reach: dict[str, set[str]] = {}
    for start in graph:
        seen, ahead = {start}, [start]
        while ahead:
            new = graph[ahead.pop()] - seen
            seen |= new
            ahead += new
        reach[start] = seen
    found: dict[str, set[str]] = {name: {other for other in reach[name] if name in reach[other]} for name in graph}
    return list({min(each): each for each in found.values()}.values())


if __name__ == "__main__":
    raise SystemExit(main())
