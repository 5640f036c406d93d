"""`bylaw align thoughts`: what to think before each turn, from the guards or from a model."""

import sys
from pathlib import Path
from typing import Any, TypeGuard

import click

from bylaw.cli.logs import open_logs
from bylaw.errors import BylawError, UsageError
from bylaw.trace import Trajectory

_FILE = click.Path(path_type=Path)


@click.command("thoughts")
@click.argument("logs", nargs=-1, required=True, type=_FILE, help="Files or folders of recorded conversations.")
@click.option(
    "--pack", required=True, metavar="PACK", help="A pack's folder, or the name of one that comes with Bylaw."
)
@click.option("--out", type=_FILE, metavar="FILE", help="Where to write; by default standard output.")
@click.option("--seed", default=1, metavar="N", help="Another seed gives other words.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Stop after this many turns.")
@click.option("--written", is_flag=True, help="Thoughts that a model writes and refines, instead of verified ones.")
@click.option("--llm", default="", metavar="MODEL", help="A model at OPENAI_BASE_URL, batch:DIR, or recorded.")
@click.option("--kept", type=_FILE, metavar="DIR", help="Folder that keeps each answer with its question.")
@click.option("--thresholds", default="", metavar="RUBRIC=N,...", help="What each rubric must reach.")
@click.option(
    "--rounds", default=4, type=click.IntRange(min=0), metavar="N", help="Refinements before a thought is dropped."
)
@click.option("--whole-policy", is_flag=True, help="Show the model the whole document, not each policy in a sentence.")
@click.option("--dry-run", is_flag=True, help="Say what asking would take, and stop.")
def thoughts_command(logs: tuple[Path, ...], pack: str, out: Path | None, **options: Any) -> int:
    """Write what to think before each turn of recorded conversations, from the guards or a model."""
    from bylaw.align.thoughts import Options, make_thoughts
    from bylaw.pack import load_pack

    held = load_pack(pack)
    if not options["written"] and (options["llm"] or options["dry_run"]):
        raise UsageError("verified thoughts ask no model", hint="add --written")
    options["thresholds"] = _thresholds(options["thresholds"])
    chosen = Options(**options)
    faults: list[BylawError] = []
    with open_logs(list(logs)) as opened:
        trajectories = (each for each in opened.trajectories() if _is_read(each, faults))
        lines = make_thoughts(held, trajectories, chosen)
        if out is None:
            for line in lines:
                sys.stdout.buffer.write(line)
        else:
            out.write_bytes(b"".join(lines))
            print(f"wrote {out}")
    for fault in faults:
        print(f"bylaw: {fault.code} {fault}", file=sys.stderr)
    return 3 if faults else 0


def _is_read(found: Trajectory | BylawError, faults: list[BylawError]) -> TypeGuard[Trajectory]:
    if isinstance(found, BylawError):
        faults.append(found)
        return False
    return True


def _thresholds(said: str) -> dict[Any, int]:
    from bylaw.align.written import RUBRICS, THRESHOLDS

    found: dict[Any, int] = dict(THRESHOLDS)
    for part in filter(None, said.split(",")):
        name, _, number = part.partition("=")
        if name not in RUBRICS or not number.isdigit() or not 1 <= int(number) <= 10:
            hint = f"write {RUBRICS[0]}=10,{RUBRICS[1]}=9; the rubrics are {', '.join(RUBRICS)}"
            raise UsageError(f"`{part}` is not a threshold", hint=hint)
        found[name] = int(number)
    return found
