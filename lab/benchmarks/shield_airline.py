"""Decide on every call of the recorded airline runs, prefix by prefix, as a shield would have, and say how it did.

    python lab/benchmarks/shield_airline.py ../shared/data/tau-airline [--limit N]

Three things are measured. Runs that left the database as the verified gold actions would: how many of their writes a
guard would have denied, each one listed, and how many asks, and objections by rules of consent and of manner, there
would have been. The law of look-ups: wherever the evidence leaves a guard open, a look-up with known arguments would
tell and was not made yet, and nothing denies, the answer is `look_up`. The law of prefixes: told the conversation event
by event, the shield says of every call what the audit of the whole run reports as its evidence half.
"""

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from airline_results import TASKS, conversations, run_files

from bylaw.engine.finished import is_judged, verdicts
from bylaw.engine.settlement import CallVerdict
from bylaw.pack import Pack, load_pack
from bylaw.packs.tau_airline import open_tasks, open_world
from bylaw.policy.posture import Postures
from bylaw.shield import Decision, Shield
from bylaw.trace import Call, Message, Result, Trajectory

CONSENT = "confirm-before-change"
SAYS = {"permit": {"allow"}, "deny": {"deny"}, "undetermined": {"look_up", "ask", "deny"}, "failed": {"deny"}}


def decided(shield: Shield, trajectory: Trajectory) -> list[tuple[int, Decision]]:
    """What the shield says before each call that an audit judges, told the conversation as it went."""
    session = shield.session(trajectory.id)
    found: list[tuple[int, Decision]] = []
    names: dict[int, str] = {}
    turn, holding = -1, None
    for step, event in enumerate(trajectory.events):
        if not isinstance(event, Result) and event.turn != turn:
            turn = event.turn
            if holding is not None:
                holding.__exit__(None, None, None)
            holding = session.turn() if event.by == "agent" else None
            if holding is not None:
                holding.__enter__()
        if isinstance(event, Message):
            (session.user if event.by == "user" else session.agent)(event.text, time=event.time)
        elif isinstance(event, Call):
            if event.by != "agent":
                raise ValueError("a call of the user's own")
            names[step] = f"{event.id}@{step}"
            arguments: Any = event.arguments if not event.fault else "?"
            decision = session.decide(event.tool, arguments, id=names[step], time=event.time)
            if is_judged(shield.pack, event):
                found.append((step, decision))
        elif event.call is not None:
            told = {"error": event.error, "captured": event.captured, "time": event.time}
            session.result(event.content, id=names[event.call], **told)
    return found


def differences(decision: Decision, verdict: CallVerdict) -> Iterator[str]:
    """Where what was decided is not the evidence half that the audit reports."""
    by_policy = {ground.policy: ground for ground in decision.grounds if ground.kind == "guard"}
    for policy in verdict.policies:
        ground = by_policy.get(policy.policy.id)
        if ground is None or ground.answer not in SAYS[policy.evidence]:
            yield f"{policy.policy.id}: {policy.evidence} but {ground.answer if ground else 'nothing'}"
        elif not {str(each.fact) for each in policy.missing if each.decisive} <= set(ground.missing):
            yield f"{policy.policy.id}: other missing facts"
    denied = {ground.policy for ground in decision.grounds if ground.kind == "rule" and ground.answer == "deny"}
    if denied != {finding.rule.policy for finding in verdict.rules}:
        yield f"rules: {sorted(denied)}"


def is_look_up_due(shield: Shield, decision: Decision, verdict: CallVerdict) -> bool:
    """Whether the law of look-ups speaks: open evidence, a look-up that can be made and was not, and no denial."""
    if any(ground.answer == "deny" for ground in decision.grounds):
        return False
    open_facts = [
        missing
        for policy in verdict.policies
        if policy.evidence == "undetermined"
        for missing in policy.missing
        if missing.decisive and missing.lookup is not None and None not in missing.lookup[1].values()
    ]
    asked = {question.fact for question in decision.questions}
    # A look-up that was made and did not tell is asked of a person.
    return any(str(missing.fact) not in asked for missing in open_facts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("data", type=Path)
    parser.add_argument("--limit", type=int, default=0, help="only every N-th run")
    options = parser.parse_args()
    packs: dict[str, Pack] = {name: load_pack(f"tau-airline/{name}") for name in ("tau1", "tau2")}
    shields = {name: Shield(pack, postures=Postures("shadow")) for name, pack in packs.items()}
    worlds, tasks = open_world(options.data), open_tasks(options.data / TASKS)
    counts: Counter[str] = Counter()
    gold_counts: Counter[str] = Counter()
    gold_policies: Counter[str] = Counter()
    listed: list[str] = []
    wrong: list[str] = []
    late: list[str] = []
    for place, (name, file, trajectory) in enumerate(conversations(run_files(options.data))):
        if options.limit and place % options.limit:
            continue
        shield = shields["tau2" if trajectory.format == "tau2" else "tau1"]
        try:
            answers = decided(shield, trajectory)
        except ValueError as error:
            counts[f"not played: {error}"] += 1
            continue
        audited = {verdict.made.step: verdict for verdict in verdicts(shield.pack, trajectory).calls}
        counts["runs"] += 1
        good = trajectory.format == "tau2" and _is_gold(trajectory, file, worlds, tasks)
        gold_counts["runs"] += good and any(audited[step].made.accepted is not False for step, _ in answers)
        for step, decision in answers:
            verdict = audited[step]
            counts["calls"] += 1
            counts[decision.answer] += 1
            found = list(differences(decision, verdict))
            wrong += [f"{name} @{step} {decision.tool}: {each}" for each in found]
            if is_look_up_due(shield, decision, verdict):
                counts["look-up due"] += 1
                if decision.answer != "look_up":
                    late.append(f"{name} @{step} {decision.tool}: {decision.answer}, {decision.missing}")
            if good and verdict.made.accepted is not False:
                _count_gold(name, step, decision, gold_counts, gold_policies, listed)
    _print(counts, gold_counts, gold_policies, listed, wrong, late)


def _is_gold(trajectory: Trajectory, file: Path, worlds: Any, tasks: Any) -> bool:
    """Whether the run's accepted writes left the database as the gold actions would."""
    world = worlds.for_runs(file)[1].fork()
    for event in trajectory.events:
        if isinstance(event, Result) and event.call is not None:
            call = trajectory.events[event.call]
            if isinstance(call, Call):
                world.apply(call, event)
    outcome = tasks.outcome(trajectory, world)
    return outcome is not None and outcome.good


def _count_gold(
    name: str, step: int, decision: Decision, counts: Counter[str], policies: Counter[str], listed: list[str]
) -> None:
    counts["writes"] += 1
    denying = [each for each in decision.grounds if each.kind in ("guard", "call") and each.answer == "deny"]
    counts["denied by guards"] += bool(denying)
    listed += [f"{name} @{step} {decision.tool}: {each.policy or each.kind}: {each.because}" for each in denying]
    kinds = {(each.kind, each.answer, each.policy == CONSENT) for each in decision.grounds}
    counts["look-ups by guards"] += ("guard", "look_up", False) in kinds
    counts["asks by guards"] += ("guard", "ask", False) in kinds
    counts["consent missing"] += ("rule", "deny", True) in kinds
    counts["consent open"] += ("rule", "ask", True) in kinds
    counts["manner"] += ("rule", "deny", False) in kinds
    policies.update(f"{each.policy} ({each.answer})" for each in decision.grounds if each.answer != "allow")


def _print(
    counts: Counter[str],
    gold: Counter[str],
    policies: Counter[str],
    listed: list[str],
    wrong: list[str],
    late: list[str],
) -> None:
    print(f"{counts['runs']:,} runs, {counts['calls']:,} calls with a verdict")
    for answer in ("allow", "deny", "look_up", "ask"):
        print(f"  {answer:<8} {counts[answer]:>6,}")
    for reason, count in counts.items():
        if reason.startswith("not played"):
            print(f"  {reason}: {count:,} runs")
    writes = gold["writes"] or 1
    print(
        f"\nRuns with writes that end as the verified gold does: {gold['runs']:,}; accepted writes: {gold['writes']:,}"
    )
    by_guards = ("denied by guards", "look-ups by guards", "asks by guards")
    for name in (*by_guards, "consent missing", "consent open", "manner"):
        print(f"  {name:<20} {gold[name]:>5,}  {gold[name] / writes:6.1%}")
    print("  objections by policy: " + ", ".join(f"{name} {count}" for name, count in policies.most_common()))
    print("  each denial by a guard:")
    for line in listed:
        print(f"    {line}")
    print(f"\nLook-ups due: {counts['look-up due']:,}; answered otherwise: {len(late)}")
    for line in late[:20]:
        print(f"    {line}")
    print(f"\nPrefix law: {counts['calls']:,} calls compared with the audit; different: {len(wrong)}")
    for line in wrong[:20]:
        print(f"    {line}")


if __name__ == "__main__":
    main()
