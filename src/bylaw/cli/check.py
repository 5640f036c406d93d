"""`bylaw check`: is this pack sound? Loads it, runs its cases, shows what covers each sentence."""

import textwrap
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from bylaw.cli.console import open_console
from bylaw.engine.case import CaseResult, run_cases, untested
from bylaw.engine.coverage import Covered, cover
from bylaw.engine.pack import Pack, load_pack
from bylaw.errors import BylawError
from bylaw.policy.folder import find_folder, read_folder
from bylaw.rule.lint import lint


@click.command("check")
@click.argument("pack", metavar="PACK", help="A pack's folder, or the name of one that comes with Bylaw.")
@click.option(
    "--document",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The policy document, where the pack only names it.",
)
@click.option("--sentences", is_flag=True, help="List every sentence with what covers it.")
def check_command(pack: str, document: Path | None, sentences: bool) -> int:
    """Check a pack: load it, run every case, report coverage."""
    root = find_folder(pack)
    variants: list[dict[str, Any]] = read_folder(root).manifest.data.get("variants") or []
    names = [root / str(variant["name"]) for variant in variants] if variants else [root]
    console = open_console()
    sound = [_check(load_pack(name, document=document), console, sentences) for name in names]
    return 0 if all(sound) else 1


def _check(pack: Pack, console: Console, sentences: bool) -> bool:
    console.print(Text(f"{pack.name} {pack.version}  {pack.digest[:12]}", style="bold"))
    coverage: dict[str, set[int]] = {}
    results = list(run_cases(pack, coverage))
    outcomes = [result for result in results if isinstance(result, CaseResult)]
    faults = [result for result in results if isinstance(result, BylawError)]
    failed = [outcome for outcome in outcomes if not outcome.passed]
    for fault in faults:
        _say(console, f"{fault.code} {fault}", indent=2, style="red")
    for outcome in failed:
        _say(console, f"{outcome.place}: {outcome.policy}: {outcome.note}", indent=2, style="red")
        _say(console, f"want {outcome.want}, got {outcome.got}", indent=4)
    console.print(f"cases: {len(outcomes) - len(failed)} of {len(outcomes)} as wanted", markup=False)
    bare = untested(outcomes, pack)
    if bare:
        _say(console, f"without both a permit and a deny case: {', '.join(bare)}", style="red")
    _branches(pack, coverage, console)
    wrong = _rules(pack, console)
    _sentences(pack, console, sentences)
    if pack.stale:
        _say(console, f"stale, the document changed under: {', '.join(pack.stale)}", style="red")
    return not (faults or failed or bare or wrong or pack.stale)


def _rules(pack: Pack, console: Console) -> bool:
    """Whether the rules contradict, repeat or block one another."""
    book = pack.book
    if not book.rules:
        return False
    ways = [name for name, predicate in book.predicates.items() if predicate.way]
    found = lint(book.rules, actions=book.actions, ways=ways)
    console.print(f"rules: {len(book.rules)}; faults found between them: {len(found)}", markup=False)
    for finding in found:
        _say(console, f"{finding.kind}: {finding.message}", indent=2, style="red")
    return bool(found)


def _branches(pack: Pack, coverage: dict[str, set[int]], console: Console) -> None:
    total = sum(len(guard.branches) for guard in pack.guards.values())
    taken = sum(len(coverage.get(name, ())) for name in pack.guards)
    console.print(f"guard branches: {taken} of {total} taken by a case", markup=False)
    for name, guard in pack.guards.items():
        missed = [branch for index, branch in enumerate(guard.branches) if index not in coverage.get(name, ())]
        if missed:
            places = ", ".join(f"line {branch.line} {branch.kind}" for branch in missed)
            _say(console, f"{name}: not taken: {places}", indent=2, style="yellow")


def _sentences(pack: Pack, console: Console, every: bool) -> None:
    for policy in pack.policies.values():
        if policy.unenforced is not None:
            why = f"{policy.unenforced.reason}; accepted by {policy.unenforced.accepted_by}"
            _say(console, f"unenforced: {policy.id} ({why})", style="yellow")
    covered = cover(pack)
    if not covered:
        console.print("document not at hand: give --document for coverage by sentence", markup=False)
        return
    counts = {state: sum(c.state == state for c in covered) for state in ("enforced", "listed", "uncovered")}
    console.print(
        f"sentences: {len(covered)}; enforced {counts['enforced']}, listed {counts['listed']},"
        f" uncovered {counts['uncovered']}",
        markup=False,
    )
    heading = None
    for entry in covered:
        if every or entry.state == "uncovered":
            if entry.sentence.heading != heading:
                heading = entry.sentence.heading
                console.print()
                _say(console, heading, style="bold")
            _sentence(entry, console)


def _sentence(entry: Covered, console: Console) -> None:
    """The sentence in full beside its line, and under it what covers it."""
    number = f"{entry.sentence.line:>4}  "
    _say(console, entry.sentence.text, indent=len(number), first=number)
    kinds = [f"{policy.id} ({policy.kind})" for policy in entry.policies]
    style = {"enforced": "green", "listed": "yellow", "uncovered": "red"}[entry.state]
    _say(console, f"{entry.state}: {', '.join(kinds)}" if kinds else "uncovered", indent=len(number), style=style)


def _say(console: Console, text: str, *, indent: int = 0, first: str = "", style: str = "") -> None:
    """Text wrapped to the console, every line but the first indented two more than that."""
    start = first or " " * indent
    rest = " " * (indent if first else indent + 2)
    lines = textwrap.wrap(text, console.width - 1, initial_indent=start, subsequent_indent=rest, break_on_hyphens=False)
    for line in lines or [start]:
        console.print(Text(line, style=style))
