"""`bylaw check`: is this pack sound? Loads it, runs its cases, shows what covers each sentence."""

import json
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import click
from rich.console import Console
from rich.text import Text

from bylaw.cli.console import open_console
from bylaw.engine.check import CheckReport, check
from bylaw.engine.coverage import Covered
from bylaw.engine.pack import load_pack
from bylaw.engine.review import COMPILED, told_unaccepted
from bylaw.policy.folder import find_folder, read_folder
from bylaw.policy.yaml import read_yaml_file

_SHOWN = 200
"""The most sentences that are listed without being asked for."""


@click.command("check")
@click.argument("pack", metavar="PACK", help="A pack's folder, or the name of one that comes with Bylaw.")
@click.option(
    "--document",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The policy document, where the pack only names it.",
)
@click.option("--sentences", is_flag=True, help="List every sentence with what covers it.")
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON, one report per line.")
def check_command(pack: str, document: Path | None, sentences: bool, as_json: bool) -> int:
    """Check a pack: load it, run every case, report coverage."""
    root = find_folder(pack)
    variants = read_folder(root).manifest.variants
    names = [root / str(variant.name) for variant in variants] if variants else [root]
    console = open_console()
    reports = [check(load_pack(name, document=document)) for name in names]
    for report in reports:
        if as_json:
            print(json.dumps(report.record(), ensure_ascii=False))
        else:
            _tell(report, console, sentences, _said_of(root))
    return 0 if all(report.is_sound for report in reports) else 1


def _said_of(root: Path) -> dict[str, str]:
    """Why a compile made no policy of a sentence, by its text."""
    if not (root / COMPILED).is_file():
        return {}
    listed = cast(list[dict[str, Any]], read_yaml_file(root / COMPILED).data.get("sentences_without_policy") or [])
    return {str(each["sentence"]): str(each["said"]) for each in listed}


def _tell(report: CheckReport, console: Console, sentences: bool, said: Mapping[str, str]) -> None:
    console.print(Text(f"{report.pack} {report.version}  {report.digest[:12]}", style="bold"))
    if report.unaccepted:
        _say(console, f"{told_unaccepted(dict(report.unaccepted))}; see `bylaw review`", indent=2, style="red")
    for fault in report.faults:
        _say(console, f"{fault.code} {fault}", indent=2, style="red")
    for case in report.failed:
        _say(console, ": ".join(filter(None, (case.place, case.policy, case.note))), indent=2, style="red")
        _say(console, f"want {case.want}, got {case.got}", indent=4)
    right = len(report.cases) - len(report.failed)
    console.print(f"cases: {right} of {len(report.cases)} as wanted", markup=False)
    if report.untested:
        _say(console, f"without both a permit and a deny case: {', '.join(report.untested)}", style="red")
    _branches(report, console)
    if report.rules:
        console.print(f"rules: {report.rules}; problems between them: {len(report.conflicts)}", markup=False)
    for finding in report.conflicts:
        _say(console, f"{finding.kind}: {finding.message}", indent=2, style="red")
    _sentences(report, console, sentences, said)
    for each in report.ambiguous:
        lines = ", ".join(map(str, each.lines[:-1])) + f" and {each.lines[-1]}"
        told = f"{each.policy}: the quote `{each.quote}` stands in sentences on lines {lines}, and the first is taken"
        _say(console, f"{told}; quote more of the one you mean", style="yellow")
    if report.stale:
        _say(console, f"stale, the document changed under: {', '.join(report.stale)}", style="red")


def _branches(report: CheckReport, console: Console) -> None:
    taken = report.branches - len(report.untaken)
    console.print(f"guard branches: {taken} of {report.branches} taken by a case", markup=False)
    missed: dict[str, list[str]] = {}
    for branch in report.untaken:
        missed.setdefault(branch.policy, []).append(f"line {branch.line} {branch.kind}")
    for name, places in missed.items():
        _say(console, f"{name}: not taken: {', '.join(places)}", indent=2, style="yellow")


def _sentences(report: CheckReport, console: Console, every: bool, said: Mapping[str, str]) -> None:
    for name, reason, who in report.unenforced:
        _say(console, f"unenforced: {name} ({reason}; accepted by {who})", style="yellow")
    covered = report.sentences
    if not covered:
        console.print("document not at hand: give --document for coverage by sentence", markup=False)
        return
    counts = {state: sum(c.state == state for c in covered) for state in ("enforced", "listed", "uncovered")}
    held_back = {name for name, _ in report.unaccepted}
    waiting = sum(_waits(entry, held_back) for entry in covered)
    not_accepted = f", not accepted {waiting}" if waiting else ""
    console.print(
        f"sentences: {len(covered)}; enforced {counts['enforced'] - waiting}{not_accepted}, listed {counts['listed']},"
        f" uncovered {counts['uncovered']}",
        markup=False,
    )
    heading = None
    listed = covered if every else [entry for entry in covered if entry.state == "uncovered"]
    for number, entry in enumerate(listed):
        if number == _SHOWN and not every:
            console.print(f"\nand {len(listed) - number:,} more: --sentences lists them all", markup=False)
            break
        if entry.sentence.heading != heading:
            heading = entry.sentence.heading
            console.print()
            _say(console, heading, style="bold")
        why = said.get(entry.sentence.text, "")
        _sentence(entry, console, "not accepted" if _waits(entry, held_back) else entry.state, why)


def _waits(entry: Covered, held_back: set[str]) -> bool:
    """Whether calls would be held to a sentence, had anybody accepted one of its checks."""
    return entry.enforced and held_back.issuperset(entry.checked)


def _sentence(entry: Covered, console: Console, state: str, why: str) -> None:
    """The sentence in full beside its line, and under it what covers it, or why a compile made nothing of it."""
    number = f"{entry.sentence.line:>4}  "
    _say(console, entry.sentence.text, indent=len(number), first=number)
    kinds = [f"{policy.id} ({policy.kind})" for policy in entry.policies]
    style = {"enforced": "green", "uncovered": "red"}.get(state, "yellow")
    uncovered = f"uncovered; as compiled, no policy: {why}" if why else "uncovered"
    _say(console, f"{state}: {', '.join(kinds)}" if kinds else uncovered, indent=len(number), style=style)


def _say(console: Console, text: str, *, indent: int = 0, first: str = "", style: str = "") -> None:
    """Text wrapped to the console, every line but the first indented two more than that."""
    start = first or " " * indent
    rest = " " * (indent if first else indent + 2)
    lines = textwrap.wrap(text, console.width - 1, initial_indent=start, subsequent_indent=rest, break_on_hyphens=False)
    for line in lines or [start]:
        console.print(Text(line, style=style))
