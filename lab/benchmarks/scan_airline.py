"""Compares the guesses of `bylaw scan` with the facts that the guards of packs need.

python lab/benchmarks/scan_airline.py ../shared/data            # print
python lab/benchmarks/scan_airline.py ../shared/data --write    # and write the page
"""

import argparse
import ast
import gzip
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bylaw.cli.logs import log_files, trajectories
from bylaw.pack import Pack, load_pack
from bylaw.policy.folder import read_folder
from bylaw.scan import Scan, Survey, scan
from bylaw.trace import Trajectory

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "lab" / "results" / "pages" / "scan.md"

SEARCH = {"search_direct_flight", "search_onestop_flight"}
AIRLINE = {
    # The look-ups that independent readers found in the airline policy.
    "book_reservation": {"get_user_details", *SEARCH},
    "cancel_reservation": {"get_reservation_details", "get_flight_status"},
    "update_reservation_flights": {"get_reservation_details", "get_user_details", "get_flight_status", *SEARCH},
    "update_reservation_baggages": {"get_reservation_details", "get_user_details"},
    "update_reservation_passengers": {"get_reservation_details"},
    "send_certificate": {"get_user_details", "get_reservation_details", "get_flight_status"},
}

Score = tuple[int, int, int, int]
"""For look-ups: the numbers proposed and right, proposed, needed and found, and needed."""


def proposed(found: Scan) -> dict[str, set[str]]:
    return {write.tool: {tool for habit in write.habits for tool in habit.tools} for write in found.writes}


def needed_things(pack: Pack) -> dict[str, set[str]]:
    """Return the kinds of entities that the guards of each write tool read, according to their source."""
    reads: dict[str, set[str]] = {}
    for text in read_folder(pack.root).guards.values():
        for function in ast.parse(text).body:
            if isinstance(function, ast.FunctionDef):
                reads[function.name] = {
                    node.attr
                    for node in ast.walk(function)
                    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "facts"
                }
    looked_up = {name for name, entity in pack.schema.entities.items() if entity.read is not None}
    return {
        tool: set().union(*(reads[guard.name] for _, guard in bound)) & looked_up
        for tool, bound in pack.by_tool.items()
        if pack.schema.tools[tool].effect == "write"
    }


def score_lookups(found: Scan, needed: dict[str, set[str]]) -> Score:
    guesses = proposed(found)
    right = sum(len(guesses.get(tool, set()) & wanted) for tool, wanted in needed.items())
    return right, sum(len(guesses.get(tool, set())) for tool in needed), right, sum(map(len, needed.values()))


def score_things(found: Scan, pack: Pack) -> Score:
    """Compare with a pack. A proposed look-up is right if it shows an entity that the guards read."""
    guesses = proposed(found)
    shows = {tool: set(kinds) for tool, kinds in pack.schema.shows.items()}
    right = total = met = wanted = 0
    for tool, things in needed_things(pack).items():
        if tool not in guesses:
            continue
        right += sum(bool(shows.get(lookup, set()) & things) for lookup in guesses[tool])
        total += len(guesses[tool])
        met += len(things & set().union(*(shows.get(lookup, set()) for lookup in guesses[tool])))
        wanted += len(things)
    return right, total, met, wanted


def listed(names: set[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def by_agent(runs: Sequence[Path]) -> list[str]:
    """Compare the list with the proposals from the runs of one agent, as an example of a smaller log."""
    of_agent: dict[str, Survey] = {}
    counts: dict[str, int] = {}
    for run in trajectories(runs):
        if isinstance(run, Trajectory):
            of_agent.setdefault(run.agent, Survey()).add(run)
            counts[run.agent] = counts.get(run.agent, 0) + 1
    rows = sorted(of_agent.items(), key=lambda row: (-counts[row[0]], row[0]))
    return [f"| {name} | {counts[name]} | {shares(score_lookups(own.result(), AIRLINE))} |" for name, own in rows]


def shares(score: Score) -> str:
    right, total, met, wanted = score
    return f"{right} of {total} ({right / max(1, total):.0%}) | {met} of {wanted} ({met / max(1, wanted):.0%})"


def seconds(run: Callable[[], object], times: int = 3) -> float:
    """Return the CPU seconds of the fastest of a few runs."""
    spent: list[float] = []
    for _ in range(times):
        start = time.process_time()
        run()
        spent.append(time.process_time() - start)
    return min(spent)


def baseline(files: Sequence[Path]) -> float:
    """Return the CPU seconds of `json.loads` on the same bytes."""
    texts = [gzip.decompress(path.read_bytes()) for path in files]

    def load() -> None:
        for path, text in zip(files, texts, strict=True):
            for part in text.splitlines() if ".jsonl" in path.name else [text]:
                json.loads(part)

    return seconds(load)


def speed(folder: Path) -> str:
    files = log_files(folder)
    base, whole = baseline(files), seconds(lambda: scan(trajectories(files)))
    return f"{whole:.2f} s, {whole / base:.1f} times json.loads ({base:.2f} s)"


def injection(runs: Iterator[Any]) -> list[str]:
    """Count the writes, in runs with prompt injection, with a value that occurs only in free text inside a tool
    result.
    """
    counts: dict[str, list[int]] = {}
    for run in runs:
        if not isinstance(run, Trajectory):
            continue
        survey = Survey(examples=1)
        survey.add(run)
        flagged = any(argument.from_text for write in survey.result().writes for argument in write.arguments)
        attacked = run.details.get("attack") is not None
        kind = "no attack" if not attacked else "reached" if run.details.get("attack_succeeded") else "resisted"
        count = counts.setdefault(kind, [0, 0])
        count[0] += flagged
        count[1] += 1
    names = {
        "reached": "attacked, the attacker's goal was reached",
        "resisted": "attacked, and not reached",
        "no attack": "not attacked",
    }
    order = [(kind, counts[kind]) for kind in names if kind in counts]
    return [f"| {names[kind]} | {hit:,} of {total:,} ({hit / total:.0%}) |" for kind, (hit, total) in order]


def page(data: Path) -> str:
    airline = [data / "tau-airline" / "tau1" / "runs", data / "tau-airline" / "tau2" / "runs"]
    found = scan(trajectories(airline))
    packs = {name: load_pack(f"tau-airline/{name}") for name in ("tau1", "tau2")}
    guesses = proposed(found)
    lines = [
        "# What `bylaw scan` finds, measured",
        "",
        "Generated by `python lab/benchmarks/scan_airline.py ../shared/data --write`. A scan knows no policy, no pack",
        "and no database; here its guesses are compared with what the guards of ready packs need.",
        "",
        f"## The airline: {found.trajectories:,} runs by {len(found.agents)} agents",
        "",
        "Look-ups proposed per write tool, against those that the airline's policy needs:",
        "",
        "| write tool | accepted calls | proposed and needed | proposed, not needed | needed, not proposed |",
        "|---|---|---|---|---|",
    ]
    cases = {write.tool: write.cases for write in found.writes}
    for tool, wanted in AIRLINE.items():
        mine = guesses.get(tool, set())
        cells = [listed(names) for names in (mine & wanted, mine - wanted, wanted - mine)]
        lines.append(f"| `{tool}` | {cases.get(tool, 0):,} | {' | '.join(cells)} |")
    lines += [
        "",
        "| measured against | proposed that are needed | needed that are found |",
        "|---|---|---|",
        f"| the list above, look-up by look-up | {shares(score_lookups(found, AIRLINE))} |",
    ]
    for name, pack in packs.items():
        lines.append(f"| what the guards of `tau-airline/{name}` read | {shares(score_things(found, pack))} |")
    with tempfile.TemporaryDirectory() as folder:
        from bylaw_lab.clinic.simulator.generate import write

        write(folder, seeds=range(1, 3), count=400)
        clinic = scan(trajectories([Path(folder) / "logs.jsonl.gz"]))
        lines.append(f"| what the guards of `clinic` read | {shares(score_things(clinic, load_pack('clinic')))} |")
    lines += [
        "",
        "What is missed on the airline is the flight status before a cancellation or a change: it is needed only where",
        "a flight is near or the reservation gives no other ground, the recorded agents nearly never looked it up, and",
        "tau1 has no such tool. A habit that agents do not have cannot be learnt from them: a pack is for that. On the",
        "clinic, whose simulated agents skip look-ups on purpose, what is missed is likewise needed in some cases only",
        "(a consent, a membership).",
        "",
        "From the runs of one agent alone (three of the sixteen need a tool that tau1 does not have):",
        "",
        "| agent | runs | proposed that are needed | needed that are found |",
        "|---|---|---|---|",
        *by_agent(airline),
        "",
        "Calls that lacked a usual look-up, which an outcome check does not look at:",
        "",
        "| write tool | look-up | lacked by |",
        "|---|---|---|",
    ]
    for write_tool in found.writes:
        for habit in write_tool.habits:
            if habit.reason != "distinctive" and habit.hits < habit.cases:
                names = " or ".join(f"`{name}`" for name in habit.tools)
                on = ", ".join(f"`{name}`" for name in habit.arguments)
                lines.append(f"| `{write_tool.tool}` | {names} on {on} | {habit.cases - habit.hits} of {habit.cases} |")
    lines += [
        "",
        "One of them, `gpt-4o.json.gz#141` at step 7: the user says that the booking is ten hours old, the agent takes",
        "that for a ground and cancels, and nothing had shown it the reservation.",
    ]
    dojo = data / "agentdojo" / "runs"
    lines += [
        "",
        "## AgentDojo: where the arguments of writes came from",
        "",
        "Runs in which a write took a value that stood only in free text inside a tool result: not in the user's",
        "words, not in the instructions, not in a field of a record.",
        "",
        "| runs | with such a write |",
        "|---|---|",
        *injection(iter(trajectories([dojo]))),
        "",
        "Runs that were not attacked have such writes too, where the user's own task says to follow what a page or a",
        "file holds (a bill to be paid, an address on a page). The scan shows them; whether they are right, a policy",
        "must say.",
        "",
        "## Speed",
        "",
        "CPU time on one core, reading and unpacking included, against `json.loads` alone on the same bytes in memory.",
        "",
        f"- airline, tau1: {speed(airline[0])}",
        f"- airline, tau2: {speed(airline[1])}",
        f"- AgentDojo: {speed(dojo)}",
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with tau-airline/ and agentdojo/")
    parser.add_argument("--write", action="store_true", help="write lab/results/pages/scan.md")
    given = parser.parse_args()
    text = page(given.data)
    sys.stdout.write(text)
    if given.write:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
