"""Compares Bylaw with similar packages on one rule and one kind of trace, each in its own environment.

    uv run python lab/benchmarks/peers.py [--rounds 5] [--keep FOLDER]

Rule R: a reservation may be cancelled only if (A) it was looked up earlier and (B) it is business, insured, or was
booked less than 24 hours ago. A trace has 30 chat messages with 10 tool calls, the cancellation last, in four
alternating cases. Every package gets the same JSON lines, decodes them and decides whether the cancellation is allowed.
Then it gets the same traces as parsed messages, as in a live application before the cancellation; Bylaw uses its shield
for these. Rounds of all packages alternate, so that a busy machine affects all equally.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent / "peers" / "rule_r"
sys.path.insert(0, str(HERE))

import traces  # noqa: E402


class Peer(NamedTuple):
    """A package and its script for rule R."""

    name: str
    script: str
    requirement: str = ""
    """The packages to install. If it is empty, our own environment is used."""
    reads_history: bool = True
    needs: str = ""
    """A program that is required."""
    short: str = ""
    """The part of the rule that the package cannot express."""
    live: str = ""
    """The script for parsed messages, if there is a separate one."""


PEERS = (
    Peer("plain Python (floor)", "plain_python.py", reads_history=False),
    Peer("bylaw", "bylaw_engine.py", live="bylaw_shield.py"),
    Peer("acel-core 0.1.13", "acel_core.py", "acel-core==0.1.13"),
    Peer("ltl-harness 0.2.0", "ltl_harness_.py", "ltl-harness==0.2.0", needs="mona", short="no ids, no dates"),
    Peer("agentltl 0.2.1", "agentltl_.py", "agentltl==0.2.1"),
    Peer("invariant-ai 0.3.5", "invariant_ai.py", "invariant-ai==0.3.5", short="fails on the full rule"),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="folder for the environments, kept for the next time")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bylaw-peers-") as folder:
        place = given.keep or Path(folder)
        file = Path(folder) / "traces.jsonl"
        wanted = traces.write(file, 400)[:8]
        ready = [(peer, python) for peer in PEERS if (python := prepare(peer, place)) is not None]
        peers = [peer for peer, _ in ready]
        worst = 0
        for what, is_live in (("from lines of JSON", False), ("live, from parsed messages", True)):
            rates: dict[str, list[float]] = {peer.name: [] for peer in peers}
            quickest: dict[str, float] = {peer.name: float("inf") for peer in peers}
            decided: dict[str, list[bool | str]] = {}
            for _ in range(given.rounds):
                for peer, python in ready:
                    found = run(peer, python, file, is_live=is_live)
                    rates[peer.name] += found["rates"]
                    quickest[peer.name] = min(quickest[peer.name], *found["quickest"], float("inf"))
                    decided[peer.name] = found["decided"]
            print(f"{what} (load average {os.getloadavg()[0]:.1f})")
            worst = max(worst, report(peers, rates, quickest, decided, wanted))
    return worst


def prepare(peer: Peer, folder: Path) -> str | None:
    """Return the Python of the environment for this package. The environment is created if needed. Return None if that
    fails.
    """
    if not peer.requirement:
        return sys.executable
    if peer.needs and shutil.which(peer.needs) is None:
        print(f"{peer.name}: left out, it needs {peer.needs}", file=sys.stderr)
        return None
    home = folder / peer.requirement.replace("==", "-")
    python = home / "bin" / "python"
    if not python.exists():
        venv.create(home, with_pip=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", peer.requirement]
        if subprocess.run(install, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
            shutil.rmtree(home)
            print(f"{peer.name}: left out, it cannot be installed here", file=sys.stderr)
            return None
    return str(python)


def run(peer: Peer, python: str, file: Path, *, is_live: bool) -> dict[str, list]:
    script = (peer.live if is_live else "") or peer.script
    command = [python, str(HERE / script), str(file), "1", *(["parsed"] if is_live else [])]
    done = subprocess.run(command, capture_output=True, text=True, cwd=HERE)
    if done.returncode:
        return {"rates": [], "quickest": [], "decided": [done.stderr.strip().splitlines()[-1]]}
    return json.loads(done.stdout.splitlines()[-1])


def report(
    peers: list[Peer],
    rates: dict[str, list[float]],
    quickest: dict[str, float],
    decided: dict[str, list[bool | str]],
    wanted: list[bool],
) -> int:
    """Print the table. Return 1 if a package that reads the history decides more traces than Bylaw.

    `quickest` contains the microseconds per trace, from the fastest time of each trace, which other load affects least.
    """
    best = {name: max(found, default=0.0) for name, found in rates.items()}
    print(f"{'package':24} {'traces per CPU s':>16} {'median':>8}  {'quickest us':>11}  four cases")
    for peer in peers:
        found, said = sorted(rates[peer.name]), decided[peer.name]
        right = "all right" if said == wanted else f"{sum(map(bool.__eq__, said, wanted)) // 2} of 4 right"
        if not found:
            print(f"{peer.name:24} {'-':>16}  {said[0]}")
            continue
        middle = found[len(found) // 2]
        note = f"; {peer.short}" if peer.short else ""
        print(f"{peer.name:24} {found[-1]:16,.0f} {middle:8,.0f}  {quickest[peer.name]:11.0f}  {right}{note}")
    others = {peer.name: best[peer.name] for peer in peers if peer.reads_history and peer.requirement}
    fastest = max(others, key=others.__getitem__, default="")
    if not fastest:
        print("no peer that reads history could be run")
        return 0
    middle = {name: sorted(found)[len(found) // 2] for name, found in rates.items() if found}

    def ratios(one: str, other: str) -> str:
        """Return how many times as many traces one package decides as another: by best rounds, by medians, and by
        fastest times.
        """
        found = (best[one] / best[other], middle[one] / middle[other], quickest[other] / quickest[one])
        return ", ".join(f"{ratio:.2f}" for ratio in found)

    print("by best rounds, medians and quickest times:")
    print(f"  bylaw ahead of the fastest peer that reads history ({fastest}): {ratios('bylaw', fastest)} x")
    print(f"  the floor ahead of bylaw: {ratios(peers[0].name, 'bylaw')} x")
    return 0 if best["bylaw"] > others[fastest] else 1


if __name__ == "__main__":
    raise SystemExit(main())
