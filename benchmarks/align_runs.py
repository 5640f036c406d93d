"""Makes `docs/results/align-runs.md`, on runs 1 to 5, and its plots from the logs in `docs/results/align` alone.

python benchmarks/align_runs.py
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from align_chart import curves
from align_claims import FORMS, claims, differences, points
from align_logs import (
    ALONE,
    COMPLIANCE,
    FIFTH,
    FOURTH,
    LAST,
    LOGS,
    PLACES,
    RESULTS,
    SEEDS,
    THIRD,
    Place,
    developed,
    lines_of,
    middle,
    percent,
    played,
    records,
    rights,
    share,
    summary,
    table,
    tasks,
    training,
    trainings,
)
from align_tables import ARMS, Model, changed, rollouts
from align_tables import sides as sides_of

from bylaw import load_pack
from bylaw.align.bootstrap import difference, interval
from bylaw.align.check import check
from bylaw.align.evaluation import clusters
from bylaw.align.matcher import Matcher
from bylaw.align.written import RUBRICS
from bylaw.llm.recorded import Recordings

sys.path.insert(0, str(Path(__file__).parent.parent))
from scripts.align_recorded import FOLDER, bearings, turns, written

KINDS = (
    *(ARMS[name] for name in ("a", "bare", "c", "b")),
    ("stage 1, without", "stage1", "none", "PA1: 37.93"),
    ARMS["d"],
    ("stage 2 from the base model, one pass, without", ALONE, "none", ""),
    ("stage 3 of run 1 (turns as they come), without", "stage3", "none", "PA3: 53.75"),
    ("stage 3 of run 2 (chosen turns), without", "stage3", "none", "PA3: 53.75"),
    ARMS["compliance"],
)


def passed() -> str:
    """Table 1 of the paper, with ours beside it."""
    rows: list[list[Any]] = []
    for title, kind, policy, paper in KINDS:
        found = played(kind, policy)
        if kind == "stage3":
            found = {place: scores for place, scores in found.items() if f"run {place[0]}" in title}
        shown = [summary(kind, place)[policy] for place in found]
        cells = [percent(share(found[place])) if place in found else "" for place in PLACES]
        whole = interval(clusters(*found.values()))
        rest = [f"{percent(whole.mean)} ({percent(whole.low)} to {percent(whole.high)})"]
        rest += [f"{middle(shown, name):,.0f}" for name in ("words", "words_without_tools", "output_words")]
        rest += [percent(middle(shown, "seen")), percent(middle(shown, "novel")), f"{middle(shown, 'turns'):.1f}"]
        rows.append([title, *cells, *rest, paper])
    head = ["arm", *(f"run {run}, seed {seed}" for run, seed in PLACES), "mean (95 %)"]
    head += ["words", "without tools", "output words", "seen", "novel", "turns", "the paper, pass@1"]
    return table(head, rows)


def sides() -> str:
    """pass@1 before and after stage 3, where it is right to refuse and where it is right to do it."""

    def row(title: str, part: str, passes: dict[str, float]) -> list[str]:
        known = rights(part)
        cells = [
            percent(sum(values) / len(values))
            for side in ("refuse", "do", "do, with another sum")
            if (values := [one for task, one in passes.items() if known[task] == side])
        ]
        return [title, part, percent(sum(passes.values()) / len(passes)), *cells]

    rows: list[list[str]] = []
    for run, seed in ((1, 2), (2, 3)):
        for kind, name in (("stage2", "stage 2"), ("stage3", "stage 3")):
            passes = {one.task: float(one.success) for one in tasks(kind, "none", (run, seed))}
            rows.append(row(f"run {run}, seed {seed}, {name}", "test", passes))
    for seed in SEEDS:
        for kind, name in (("stage2", "stage 2"), ("stage3", "stage 3")):
            for step, passes in developed(kind, seed).items():
                steps = f", {step} steps" if step else ""
                rows.append(row(f"run 3, seed {seed}, {name}{steps}", "development", passes))
    head = ["model", "tasks", "pass@1", "right to refuse", "right to do", "right to do, with another sum than the twin"]
    return table(head, rows)


def steps() -> str:
    """The first steps of every stage 3: how far the weights may have gone, how far the model did, and its reward."""
    arms = {"run 1, seed 2": training("stage3", (1, 2)), "run 2, seed 3": training("stage3", (2, 3))}
    arms |= {f"run 3, seed {seed}": lines_of(THIRD / f"stage3-{seed}.train.jsonl") for seed in SEEDS}
    rows: list[list[str]] = []
    for name, lines in arms.items():
        gone = 0.0
        cells: list[str] = []
        for line in lines:
            if line["step"] in (3, 4, 5, 6):
                cells.append(f"{gone:.1e}, {line['kl']:.4f}")
            gone += line["learning_rate"]
        rewards = [line["reward"] for line in lines]
        groups = [rewards[:4], rewards[4:8], rewards[8:12], rewards[-4:]]
        rows.append([name, *cells, *(f"{sum(group) / len(group):.2f}" for group in groups)])
    head = ["stage 3", *(f"step {step}: gone, KL" for step in (3, 4, 5, 6))]
    return table([*head, *(f"reward, steps {said}" for said in ("1-4", "5-8", "9-12", "the last 4"))], rows)


def small_steps() -> str:
    """Stage 3 of run 4, rollout by rollout."""
    lines = lines_of(FOURTH / "stage3_alone-1.train.jsonl")
    rows: list[list[str]] = []
    gone = 0.0
    for line in lines:
        if "reward" in line:
            later = [one["kl"] for one in lines if line["step"] <= one["step"] < line["step"] + 4]
            cells = [f"{gone:.1e}", f"{line['reward']:.3f}", f"{line['reward/turn']:.3f}"]
            cells += [f"{line['reward/policy_recall']:.3f}", percent(line["learned_from"]), f"{max(later):.4f}"]
            rows.append([f"before step {line['step']}", *cells, f"{line['sampling_gap']:.4f}"])
        gone += line["learning_rate"]
    head = ["rollout", "gone", "reward", "turn", "policy recall", "prompts learned from (%)"]
    return table([*head, "most KL in its four steps", "gap in log-probability"], rows)


def halves() -> str:
    rows: list[list[Any]] = []
    for title, kind, place in trainings():
        for policy in ("context", "none"):
            found = summary(kind, place).get(policy)
            if not found:
                continue
            made_up = found["hallucination"]
            stated = made_up["policies_stated"] + made_up["made_up"]
            rate = f"{made_up['made_up']} of {stated:,}" if made_up["thoughts"] else ""
            cells = [percent(found["database"]), percent(found["told"]), f"{found['faults']:.2f}", found["writes"]]
            writes = [percent(found[name]) if found["writes"] else "" for name in ("near_miss_rate", "violation_rate")]
            where = "policy in the prompt" if policy == "context" else "without"
            rows.append([f"{title}, {where}", *cells, *writes, rate])
    head = ["arm", "records right", "user told", "faults a task", "writes", "near-misses a write", "violations a write"]
    return table([*head, "made-up policies of those stated"], rows)


def others() -> str:
    """The paper's tables 5 and 4, and what lies beyond it."""
    rows: list[list[str]] = []
    for title, kind, paper in (
        ("stage 2", "stage2", "50.01"),
        ("stage 2 + TF", "stage3-tf", "48.46"),
        ("stage 2 + TF + PR", "stage3-tf_pr", "49.26"),
        ("stage 2 + TF + PR + HP", "stage3-tf_pr_hp", "52.97"),
        ("stage 2 + TF + PR + HP + LP (stage 3)", "stage3", "53.75"),
        ("stage 3 with verified compliance", COMPLIANCE, ""),
        ("stage 2 without stage 1 (run 4, seed 1, one pass)", ALONE, "(table 3)"),
        ("stage 2, unfiltered thoughts", "stage2_unfiltered", "49.04"),
        ("stage 3, unfiltered thoughts", "stage3_unfiltered", "48.80"),
    ):
        found = summary(kind, (4, 1) if kind == ALONE else (2, 3)).get("none")
        rows.append([title, percent(found["passed"]["mean"]) if found else "", paper])
    return table(["arm (run 2, seed 3)", "pass@1", "the paper"], rows)


def overrides() -> str:
    rows = [
        [title, percent(found["passed"]), str(found["tasks"])]
        for title, kind, place in trainings()
        if (found := summary(kind, place).get("override"))
    ]
    return table(["arm", "passed", "tasks"], rows)


def knowledge() -> str:
    papers = {"stage1": "51.02", "stage2": "69.39", "stage3": "71.43"}
    rows: list[list[str]] = []
    for title, kind, place in trainings():
        found = summary(kind, place).get("knowledge")
        if not found:
            continue
        if place[0] == 1:
            cells = [f"{percent(found['accuracy'])} / {percent(found['balanced'])}", "", "", "", "", ""]
        else:
            cells = [f"{percent(found[form]['accuracy'])} / {percent(found[form]['balanced'])}" for form in FORMS]
            cells += [percent(found["plain"]["calibrated"]), f"{found['plain']['mass']:.0e}"]
        rows.append([title, *cells, papers.get(kind, "")])
    head = ["arm", "by itself", "by itself, after a thought", "at the desk", "at the desk, after a thought"]
    return table([*head, "by itself, calibrated", "probability of Yes or No, by itself", "the paper"], rows)


def thoughts() -> str:
    """The recorded thoughts, round by round."""
    results = written(Recordings(FOLDER / "answers"))
    rows: list[list[Any]] = []
    for number in range(max(len(each.rounds) for each in results)):
        rounds = [each.rounds[number] for each in results if len(each.rounds) > number]
        scores = [f"{sum(each.scores[rubric] for each in rounds) / len(rounds):.2f}" for rubric in RUBRICS]
        counts = [sum(bool(getattr(each, name)) for each in rounds) for name in ("passed", "faithful", "complete")]
        rows.append([number, len(rounds), *scores, *counts])
    return table(["round", "thoughts", *RUBRICS, "passed", "faithful by the guards", "complete by the guards"], rows)


def faults() -> dict[str, str]:
    """What the guards find in the thoughts of the first round, at turns that need policies."""
    pack = load_pack("clinic")
    reader, found = Matcher(pack), bearings()
    checks = [
        check(pack, one.rounds[0].thought, found[turn.id], reader, f"{turn.conversation}\n{turn.act}")
        for turn, one in zip(turns(), written(Recordings(FOLDER / "answers")), strict=True)
        if found[turn.id].required
    ]
    counts = {name: sum(bool(getattr(one, name)) for one in checks) for name in ("missing", "made_up", "beside")}
    return {"needing": str(len(checks)), **{name: str(count) for name, count in counts.items()}}


def chosen() -> dict[str, str]:
    """Which turns stage 3 of run 2 was taught by, and what was right at those with a large spread."""
    found = json.loads((LOGS / "choose.json").read_text())
    wide = [place for place in found["chosen"] if max(found["rewards"][place]) - min(found["rewards"][place]) >= 3]
    purposes = [line["purpose"] for line in records(LOGS / "turns.jsonl")]
    refused = sum(purposes[place] == "refuse" for place in wide)
    alike = [values for values in found["rewards"] if max(values) - min(values) < 1e-6]
    return {
        "tried": f"{found['turns']:,}",
        "alike": percent(len(alike) / found["turns"]),
        "disagreed": str(found["disagreed_on"]),
        "as_they_come_refuse": percent(purposes.count("refuse") / len(purposes)),
        "chosen_refuse": percent(sum(purposes[place] == "refuse" for place in found["chosen"]) / len(found["chosen"])),
        "right_on": _wrong(found["rewards"], [purpose != "refuse" for purpose in purposes]),
        "right_refuse": _wrong(found["rewards"], [purpose == "refuse" for purpose in purposes]),
        "wide": str(len(wide)),
        "wide_refuse": str(refused),
        "wide_on": str(len(wide) - refused),
    }


def _wrong(rewards: Sequence[Sequence[float]], which: Sequence[bool]) -> str:
    """Of some turns, how often an answer is far off, and how often all four are."""
    mine = [values for values, one in zip(rewards, which, strict=True) if one]
    off = [[value < 2 for value in values] for values in mine]
    every, some = sum(map(all, off)), sum(any(one) and not all(one) for one in off)
    share = percent(sum(map(sum, off)) / sum(map(len, off)))
    return f"{share} % of the answers; all four at {every} of {len(off):,} turns, some of the four at {some}"


def seconds() -> str:
    rows = [[title, *_times(kind, place)] for title, kind, place in trainings()]
    return table(["arm", "steps", "steps not taken", "training", "playing the test tasks"], rows)


def _times(kind: str, place: Place) -> list[Any]:
    found = summary(kind, place)
    took = sum(found[policy]["seconds"] for policy in ("context", "none") if policy in found)
    lines = training(kind, place)
    trained = found.get("training", {}).get("seconds")
    return [
        lines[-1]["step"] if lines else "",
        sum(line["grad_norm"] != line["grad_norm"] for line in lines) if lines else "",
        f"{trained:.0f}" if trained else "",
        f"{took:.0f}" if took else "",
    ]


def numbers() -> dict[str, str]:
    """The numbers that sentences of the page tell."""
    lines = {place: training("stage3", place) for place in ((1, 2), (2, 3))}
    found: dict[str, str] = {}
    for (run, seed), steps in lines.items():
        for name, part in (("first", steps[:3]), ("last", steps[-3:])):
            found[f"{name}_{run}"] = f"{sum(line['reward'] for line in part) / 3:.2f}"
        found[f"kl_{run}"] = f"{max(line['kl'] for line in steps):.3f}"
        for kind, name in (("stage2", "was"), ("stage3", "is")):
            one = summary(kind, (run, seed))["none"]
            found[f"{name}_{run}"] = percent(one["passed"]["mean"])
            found[f"broken_{name}_{run}"] = percent(one["violation_rate"])
            found[f"writes_{name}_{run}"] = str(one["writes"])
    flat = [line["frac_reward_zero_std"] for line in lines[1, 2]]
    found["flat"] = percent(sum(flat) / len(flat))
    for kind, policy in (("stage1", "context"), ("stage2", "none")):
        shares = [share(scores) for place, scores in played(kind, policy).items() if place[0] > 1]
        found[f"{kind}_mean"] = percent(sum(shares) / len(shares))
        found[f"{kind}_each"] = ", ".join(map(percent, shares))
    found["answers"] = percent(share(tasks("answers", "none", (1, 1))))
    for seed in SEEDS:
        found[f"dev_was_{seed}"] = percent(_share(developed("stage2", seed)[0]))
        found[f"dev_is_{seed}"] = percent(_share(developed("stage3", seed)[LAST]))
    third_turns = [line["purpose"] for line in records(THIRD / "turns.jsonl")]
    found["parting"] = f"{len(third_turns):,}"
    found["parting_refuse"] = percent(third_turns.count("refuse") / len(third_turns))
    third_lines = [line for seed in SEEDS for line in lines_of(THIRD / f"stage3-{seed}.train.jsonl")]
    found["told"] = percent(sum(line["learned_from"] for line in third_lines) / len(third_lines))
    found["kl_3"] = f"{max(line['kl'] for line in third_lines):.3f}"
    checked = records(FOURTH / "log.jsonl")
    found |= next(
        {name: percent(off) for name, off in one["gradient_off"].items()} for one in checked if "gradient_off" in one
    )
    found["alone_passed"] = percent(share(tasks(ALONE, "none", (4, 1))))
    fourth = lines_of(FOURTH / "stage3_alone-1.train.jsonl")
    found["kl_4"] = f"{max(line['kl'] for line in fourth):.4f}"
    found["told_4"] = percent(sum(line.get("learned_from", 0) for line in fourth) / 4)
    old, new = (training("stage1", place)[0] for place in ((1, 1), (2, 1)))
    found["same_loss"] = f"{old['loss']:.3f} and {new['loss']:.3f}"
    return found


def _share(passes: dict[str, float]) -> float:
    return sum(passes.values()) / len(passes)


def stated() -> dict[str, str]:
    """How often training thoughts state what the knowledge test asks about."""
    found = json.loads((LOGS / "thoughts.json").read_text())
    counts = [one["stated"] for one in found["policies"].values()]
    return {
        "read_thoughts": f"{found['thoughts']:,}",
        "stating": percent(found["thoughts_that_state_a_policy"] / found["thoughts"]),
        "asked_policies": str(found["policies_asked"]),
        "least_stated": str(min(counts)),
        "middle_stated": str(sorted(counts)[len(counts) // 2]),
        "read_texts": f"{found['texts']:,}",
        "yes_no": str(found["texts_that_begin_with_yes_or_no"]),
    }


def fifth() -> dict[str, Any]:
    """Run 5: stage 3 of three seeds, all from one stage 2."""
    before: Model = ("stage2", (5, 1))
    after: dict[str, Model] = {f"stage 3, seed {seed}": ("stage3", (5, seed)) for seed in SEEDS}
    played = [tasks(kind, "none", place) for kind, place in after.values()]
    gap = difference(clusters(*played), clusters(*[tasks("stage2", "none", (5, 1))] * len(SEEDS)))
    lease = json.loads((FIFTH / "lease.json").read_text())
    return {
        "rollouts_5": rollouts([(5, seed) for seed in SEEDS]),
        "sides_5": sides_of({"stage 1": ("stage1", (5, 1)), "stage 2": before, **after}),
        "changed_5": changed({f"seed {seed}": (before, ("stage3", (5, seed))) for seed in SEEDS}),
        "behind_5": points(gap),
        "decoding": json.loads((FIFTH / "decoding.json").read_text()),
        **{f"{name}_5": value for name, value in lease.items()},
    }


def main() -> None:
    curves()
    text = (Path(__file__).parent / "align_runs.md").read_text(encoding="utf-8")
    lease = json.loads((LOGS / "lease.json").read_text())
    for run, folder in ((3, THIRD), (4, FOURTH)):
        lease |= {f"{name}_{run}": value for name, value in json.loads((folder / "lease.json").read_text()).items()}
    filled = text.format(
        passed=passed(),
        differences=differences(),
        claims=claims(),
        halves=halves(),
        knowledge=knowledge(),
        overrides=overrides(),
        others=others(),
        seconds=seconds(),
        thoughts=thoughts(),
        sides=sides(),
        steps=steps(),
        small_steps=small_steps(),
        **stated(),
        **numbers(),
        **faults(),
        **chosen(),
        **fifth(),
        **lease,
    )
    (RESULTS / "align-runs.md").write_text(filled, encoding="utf-8")


if __name__ == "__main__":
    main()
