"""`bylaw check`: is this pack sound? Loads it, runs its cases, shows what covers each sentence."""

import sys
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from bylaw.engine.case import Outcome, run_cases, untested
from bylaw.engine.coverage import cover
from bylaw.engine.pack import Pack, load_pack
from bylaw.errors import BylawError
from bylaw.policy.folder import find_folder, read_folder


def check_command(
    pack: str = typer.Argument(..., metavar="PACK", help="A pack's folder, or the name of one that comes with Bylaw."),
    document: Path | None = typer.Option(None, "--document", help="The policy document, where the pack only names it."),
    sentences: bool = typer.Option(False, "--sentences", help="List every sentence with what covers it."),
) -> None:
    """Check a pack: load it, run every case, report coverage."""
    root = find_folder(pack)
    variants: list[dict[str, Any]] = read_folder(root).manifest.data.get("variants") or []
    names = [root / str(variant["name"]) for variant in variants] if variants else [root]
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 80, soft_wrap=False)
    sound = [_check(load_pack(name, document=document), console, sentences) for name in names]
    raise typer.Exit(0 if all(sound) else 1)


def _check(pack: Pack, console: Console, sentences: bool) -> bool:
    console.print(Text(f"{pack.name} {pack.version}  {pack.digest[:12]}", style="bold"))
    coverage: dict[str, set[int]] = {}
    results = list(run_cases(pack, coverage))
    outcomes = [result for result in results if isinstance(result, Outcome)]
    faults = [result for result in results if isinstance(result, BylawError)]
    failed = [outcome for outcome in outcomes if not outcome.passed]
    for fault in faults:
        console.print(Text(f"  {fault.code} {fault}", style="red"))
    for outcome in failed:
        console.print(Text(f"  {outcome.place}: {outcome.policy}: {outcome.note}", style="red"))
        console.print(Text(f"    want {outcome.want}, got {outcome.got}"))
    console.print(f"cases: {len(outcomes) - len(failed)} of {len(outcomes)} as wanted", markup=False)
    bare = untested(outcomes, pack)
    if bare:
        console.print(Text(f"without both a permit and a deny case: {', '.join(bare)}", style="red"))
    _branches(pack, coverage, console)
    _sentences(pack, console, sentences)
    if pack.stale:
        console.print(Text(f"stale, the document changed under: {', '.join(pack.stale)}", style="red"))
    return not (faults or failed or bare or pack.stale)


def _branches(pack: Pack, coverage: dict[str, set[int]], console: Console) -> None:
    total = sum(len(guard.branches) for guard in pack.guards.values())
    taken = sum(len(coverage.get(name, ())) for name in pack.guards)
    console.print(f"guard branches: {taken} of {total} taken by a case", markup=False)
    for name, guard in pack.guards.items():
        missed = [branch for index, branch in enumerate(guard.branches) if index not in coverage.get(name, ())]
        if missed:
            places = ", ".join(f"line {branch.line} {branch.kind}" for branch in missed)
            console.print(Text(f"  {name}: not taken: {places}", style="yellow"))


def _sentences(pack: Pack, console: Console, every: bool) -> None:
    unenforced = [policy for policy in pack.policies.values() if policy.unenforced is not None]
    for policy in unenforced:
        assert policy.unenforced is not None
        why = f"{policy.unenforced.reason}; accepted by {policy.unenforced.accepted_by}"
        console.print(Text(f"unenforced: {policy.id} ({why})", style="yellow"))
    covered = cover(pack)
    if not covered:
        console.print("document not at hand: give --document for coverage by sentence", markup=False)
        return
    counts = {state: sum(c.state == state for c in covered) for state in ("enforced", "listed", "uncovered")}
    console.print(
        f"sentences: {len(covered)}; enforced {counts['enforced']}, listed as conversation or knowledge"
        f" {counts['listed']}, uncovered {counts['uncovered']}",
        markup=False,
    )
    for entry in covered:
        if every or entry.state == "uncovered":
            names = ", ".join(f"{policy.id} ({policy.kind})" for policy in entry.policies) or "nothing"
            style = "red" if entry.state == "uncovered" else ""
            console.print(Text(f"  {entry.sentence.line}: {entry.sentence.text[:90]}", style="dim"))
            console.print(Text(f"      {names}", style=style))
