"""Checks on every prefix of every conversation that a session's judgement of a call equals the audit's.

    uv run python lab/benchmarks/prefix_law.py [--count 500] [--data ../shared/data] [--only agentdojo]

For each judged call, a fresh session gets only the earlier events. Guards, broken rules and open rules must be the same
as in the finished conversation. The data are 5,000 simulated conversations of the clinic (`--count` for each of ten
seeds), all recorded runs of the airline, and all of AgentDojo, whose packs use `provenance()` and `requested()`. The
exit status is 1 if any call differs.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from bylaw import Pack, Trajectory, load_pack, read, verdicts
from bylaw.audit.request import Shelf
from bylaw.engine.session import Session
from bylaw.engine.settlement import CallVerdict
from bylaw_lab.bench.agentdojo import OWN, own_pack, read_runs
from bylaw_lab.clinic.simulator.generate import simulate

DATA = Path(__file__).parents[3] / "shared" / "data"
SEEDS = range(1, 11)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500, help="simulated conversations for each of ten seeds")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--only", choices=("clinic", "airline", "agentdojo"))
    given = parser.parse_args()
    wrong = 0
    sources = {"clinic": simulated(given.count), "airline": recorded(given.data), "agentdojo": attacked(given.data)}
    for name, talks in sources.items():
        if given.only not in (None, name):
            continue
        conversations = calls = differing = 0
        for pack, talk in talks:
            conversations += 1
            for verdict in verdicts(pack, talk).calls:
                calls += 1
                if (difference := differs(pack, talk, verdict)) and (differing := differing + 1) <= 5:
                    print(f"{talk.id} step {verdict.made.step}: {difference}")
        print(f"{name}: {conversations:,} conversations, {calls:,} judged calls, {differing:,} of them differ")
        wrong += differing
    return 1 if wrong else 0


def simulated(count: int) -> Iterator[tuple[Pack, Trajectory]]:
    pack = load_pack("clinic")
    for seed in SEEDS:
        for talk, _ in simulate(seed, count):
            yield pack, talk


def recorded(data: Path) -> Iterator[tuple[Pack, Trajectory]]:
    """Yield the airline's recorded runs, each with its version of the policy."""
    shelf = Shelf("tau-airline")
    for file in sorted(data.glob("tau-airline/tau?/runs/*.json*")):
        for talk in read(file):
            if isinstance(talk, Trajectory):
                yield shelf.pack_for(talk), talk


def attacked(data: Path) -> Iterator[tuple[Pack, Trajectory]]:
    """Yield AgentDojo's recorded runs, with and without an attack."""
    packs = {suite: own_pack(suite) for suite in OWN}
    for run in read_runs(sorted(data.glob("agentdojo/runs/*.jsonl*"))):
        yield packs[run.details["suite"]], run


def differs(pack: Pack, talk: Trajectory, verdict: CallVerdict) -> str:
    """Compare the judgement of a call by a session with only the earlier events and by the audit. Empty if they
    agree.
    """
    step = verdict.made.step
    session = Session(pack, context=talk.context)
    session.observe_all(talk.events[:step])
    judgement = session.judge(verdict.made.call)
    now = {evidence.policy.id: evidence.outcome for evidence in judgement.evidence}
    then = {policy.policy.id: policy.evidence for policy in verdict.policies}
    if not judgement.fault and now != then:
        return f"guards: {now} then, {then} in the end"
    for word in ("rules", "open_rules"):
        if getattr(judgement, word) != getattr(verdict, word):
            return f"{word}: {getattr(judgement, word)} then, {getattr(verdict, word)} in the end"
    return ""


if __name__ == "__main__":
    raise SystemExit(main())
