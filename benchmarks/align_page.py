"""Makes `docs/results/align.md` and its plots from the logs in `docs/results/align`, and from nothing else.

python benchmarks/align_page.py
"""

import gzip
import json
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from bylaw import load_pack
from bylaw.align.bootstrap import Interval, difference, interval
from bylaw.align.check import check
from bylaw.align.evaluation import Score, clusters
from bylaw.align.matcher import Matcher
from bylaw.align.tasks import load_tasks
from bylaw.align.written import RUBRICS
from bylaw.llm.recorded import Recordings
from bylaw.packs.clinic.tasks import Scenario

sys.path.insert(0, str(Path(__file__).parent.parent))
from scripts.align_recorded import FOLDER, bearings, turns, written

RESULTS = Path(__file__).parent.parent / "docs" / "results"
LOGS = RESULTS / "align"
FOURTH = LOGS / "run4"
RUNS = {1: LOGS / "before", 2: LOGS, 4: FOURTH}
"""Where the logs lie of three of the four times that a GPU was there, by run."""
THIRD = LOGS / "run3"
"""Run 3: stage 3 for three seeds by one recipe, played on the development tasks alone."""
SEEDS = (1, 2, 3)
Place = tuple[int, int]
"""A run and a seed."""
PLACES: tuple[Place, ...] = ((1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (4, 1), (4, 2), (4, 3))
COLOURS = ("#2f6fb0", "#c2571a", "#2b8a57", "#8a4fb0", "#777777", "#111111")
COMPLIANCE = "stage3-compliance"
ALONE = "stage2_alone"
LAST = 16
"""Steps of stage 3 in run 3."""


def named(kind: str, seed: int) -> str:
    return kind if kind == "base" else f"{kind}-{seed}"


def summary(kind: str, place: Place) -> dict[str, Any]:
    path = RUNS[place[0]] / f"{named(kind, place[1])}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def tasks(kind: str, policy: str, place: Place) -> list[Score]:
    path = RUNS[place[0]] / f"{named(kind, place[1])}.{policy}.tasks.jsonl.gz"
    if not path.exists():
        return []
    return [msgspec.json.decode(line, type=Score) for line in gzip.decompress(path.read_bytes()).splitlines()]


def training(kind: str, place: Place) -> list[dict[str, Any]]:
    return _lines(RUNS[place[0]] / f"{named(kind, place[1])}.train.jsonl")


def _lines(path: Path) -> list[dict[str, Any]]:
    lines = path.read_text().splitlines() if path.exists() else []
    return [line for text in lines if "loss" in (line := json.loads(text))]


def percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in row) + " |" for row in lines)


KINDS = (
    ("base, policy in the prompt (a)", "base", "context", "Qwen-2.5-32B: 43.00"),
    ("base, without", "base", "none", ""),
    ("answers only, without (c)", "answers", "none", ""),
    ("stage 1, policy in the prompt (b)", "stage1", "context", ""),
    ("stage 1, without", "stage1", "none", "PA1: 37.93"),
    ("stage 2, without (d)", "stage2", "none", "PA2: 50.01"),
    ("stage 2 from the base model, one pass, without", ALONE, "none", ""),
    ("stage 3 of run 1 (turns as they come), without", "stage3", "none", "PA3: 53.75"),
    ("stage 3 of run 2 (chosen turns), without", "stage3", "none", "PA3: 53.75"),
    ("stage 3 with verified compliance, without", COMPLIANCE, "none", ""),
)


def played(kind: str, policy: str) -> dict[Place, list[Score]]:
    """Every training of an arm that was played; the base model is one."""
    places = PLACES[:1] if kind == "base" else PLACES
    return {place: found for place in places if (found := tasks(kind, policy, place))}


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


def share(scores: Sequence[Score]) -> float:
    return sum(one.success for one in scores) / len(scores)


def middle(found: Sequence[dict[str, Any]], name: str) -> float:
    return sum(one[name] for one in found) / len(found)


COMPARED = (
    ("stage 3 without - base in the prompt (a)", ("stage3", "none"), ("base", "context")),
    ("stage 3 without - stage 1 in the prompt (b)", ("stage3", "none"), ("stage1", "context")),
    ("stage 3 without - answers only (c)", ("stage3", "none"), ("answers", "none")),
    ("stage 3 without - stage 2 without (d)", ("stage3", "none"), ("stage2", "none")),
    ("stage 2 without - stage 1 in the prompt (b)", ("stage2", "none"), ("stage1", "context")),
    ("stage 2 without - answers only (c)", ("stage2", "none"), ("answers", "none")),
    ("stage 1 in the prompt - stage 1 without", ("stage1", "context"), ("stage1", "none")),
    ("stage 3 with verified compliance - stage 3", (COMPLIANCE, "none"), ("stage3", "none")),
    ("stage 3 with verified compliance - stage 2", (COMPLIANCE, "none"), ("stage2", "none")),
)


def gaps(one: tuple[str, str], other: tuple[str, str]) -> list[tuple[str, Interval]]:
    """The difference in pass@1 of two arms, training by training, and for all where both were played.

    Where the other was not played for the same run and seed, its first training stands in, and this is said.
    """
    mine, theirs = played(*one), played(*other)
    found: list[tuple[str, Interval]] = []
    both = [place for place in mine if place in theirs]
    for place in mine:
        alike = [other for other in theirs if other[1] == place[1]]
        against = place if place in theirs else next(iter([*alike, *theirs]))
        which = f"run {place[0]}, seed {place[1]}"
        if against != place and other[0] != "base":
            which += f", against run {against[0]}, seed {against[1]}"
        found.append((which, difference(clusters(mine[place]), clusters(theirs[against]))))
    # Stage 3 is another recipe in each run, so its runs are no sample of one arm.
    if len(both) > 1 and not one[0].startswith("stage3"):
        pooled = [clusters(*(scores[place] for place in both)) for scores in (mine, theirs)]
        found.append((f"these {len(both)} together", difference(*pooled)))
    return found


def points(found: Interval) -> str:
    return f"{100 * found.mean:+.1f}, {100 * found.low:+.1f} to {100 * found.high:+.1f}"


def differences() -> str:
    rows: list[list[str]] = []
    for title, one, other in COMPARED:
        found = [(title, *each) for each in gaps(one, other)]
        if (one[0], other[0]) == ("stage3", "stage2"):
            found += [(f"{title}, development tasks", *each) for each in third()]
        rows += [
            [said, which, f"{100 * gap.mean:+.1f}", f"{100 * gap.low:+.1f} to {100 * gap.high:+.1f}"]
            for said, which, gap in found
        ]
    return table(["difference in pass@1, points", "training", "mean", "95 %, paired by task, twins together"], rows)


def trainings() -> Iterator[tuple[str, str, Place]]:
    """Every arm that was evaluated: its title, kind and place."""
    for place in PLACES:
        for kind in ("base", "answers", "stage1", "stage2", ALONE, "stage3", COMPLIANCE):
            if (kind != "base" or place[1] == 1) and summary(kind, place):
                yield f"run {place[0]}, {named(kind, place[1])}", kind, place


def developed(kind: str, seed: int) -> dict[int, dict[str, float]]:
    """Of run 3, by steps of stage 3, whether each development task was passed."""
    found = json.loads((THIRD / f"{kind}-{seed}.development.json").read_text())
    return {int(step): {task: float(one) for task, one in each["each"].items()} for step, each in found.items()}


def grouped(passes: dict[str, float]) -> dict[str, list[float]]:
    """Tasks by pair of twins."""
    found: dict[str, list[float]] = {}
    for task, one in sorted(passes.items()):
        found.setdefault(task.rpartition("-")[0], []).append(one)
    return found


def third() -> list[tuple[str, Interval]]:
    """Of run 3, stage 3 after its last step less stage 2, on the development tasks: by seed and together."""
    pairs = [(developed("stage3", seed)[LAST], developed("stage2", seed)[0]) for seed in SEEDS]
    found = [(f"run 3, seed {seed}", difference(*map(grouped, pair))) for seed, pair in zip(SEEDS, pairs, strict=True)]
    pooled: list[dict[str, list[float]]] = [{}, {}]
    for pair in pairs:
        for into, passes in zip(pooled, pair, strict=True):
            for name, values in grouped(passes).items():
                into.setdefault(name, []).extend(values)
    return [*found, ("these three together", difference(*pooled))]


@cache
def rights(part: str) -> dict[str, str]:
    """By task, what is right for the errand in which it differs from its twin."""
    tasks = {task.id: task for task in load_tasks(part)}
    found: dict[str, str] = {}
    for task in tasks.values():
        assert isinstance(task, Scenario)
        twin = tasks[task.twin]
        assert isinstance(twin, Scenario)
        pairs = zip(task.errands, twin.errands, strict=True)
        mine, theirs = next((one.right, other.right) for one, other in pairs if one.right != other.right)
        found[task.id] = "refuse" if mine is None else "do" if theirs is None else "do, with another sum"
    return found


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
    arms |= {f"run 3, seed {seed}": _lines(THIRD / f"stage3-{seed}.train.jsonl") for seed in SEEDS}
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
    lines = _lines(FOURTH / "stage3_alone-1.train.jsonl")
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


FORMS = ("plain", "plain, recalled", "desk", "desk, recalled")


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
    purposes = [json.loads(line)["purpose"] for line in (LOGS / "turns.jsonl").read_text().splitlines()]
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


def chart(path: Path, title: str, lines: dict[str, list[tuple[float, float]]], low: float, high: float) -> None:
    """A line chart as SVG."""
    wide, tall, left, top = 640, 260, 46, 34
    last = max(x for points in lines.values() for x, _ in points)

    def at(x: float, y: float) -> str:
        part = (min(max(y, low), high) - low) / (high - low)
        return f"{left + (wide - left - 120) * x / last:.1f},{top + (tall - top - 30) * (1 - part):.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {tall}" font-family="sans-serif" font-size="11">',
        f'<rect width="{wide}" height="{tall}" fill="#ffffff"/>',
        f'<text x="{left}" y="18" font-size="13" fill="#222222">{title}</text>',
    ]
    for step in range(5):
        value = low + (high - low) * step / 4
        x, y = at(0, value).split(",")
        end = at(last, value).split(",")[0]
        parts.append(f'<line x1="{x}" y1="{y}" x2="{end}" y2="{y}" stroke="#dddddd"/>')
        parts.append(f'<text x="{left - 6}" y="{float(y) + 4}" text-anchor="end" fill="#555555">{value:.2f}</text>')
    parts.append(f'<text x="{left}" y="{tall - 8}" fill="#555555">step 1</text>')
    parts.append(
        f'<text x="{at(last, low).split(",")[0]}" y="{tall - 8}" text-anchor="end" fill="#555555">{last:.0f}</text>'
    )
    for place, (name, points) in enumerate(lines.items()):
        colour = COLOURS[place % len(COLOURS)]
        path_of = " ".join(at(x, y) for x, y in points)
        parts.append(f'<polyline points="{path_of}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
        parts.append(f'<text x="{wide - 112}" y="{top + 14 + 16 * place}" fill="{colour}">{name}</text>')
    path.write_text("\n".join([*parts, "</svg>"]) + "\n", encoding="utf-8")


def curves() -> None:
    supervised = {
        f"run {run}, {named(kind, seed)}": [(line["step"], line["loss"]) for line in training(kind, (run, seed))]
        for kind, run, seed in (("answers", 1, 1), ("stage1", 2, 3), ("stage2", 2, 3))
    }
    chart(LOGS / "loss.svg", "Loss of the supervised arms, by step", supervised, 0.0, 0.4)
    reinforced = {"run 1, seed 2": training("stage3", (1, 2)), "run 2, seed 3": training("stage3", (2, 3))}
    reinforced |= {f"run 3, seed {seed}": _lines(THIRD / f"stage3-{seed}.train.jsonl") for seed in SEEDS}
    reinforced["run 4"] = _lines(FOURTH / "stage3_alone-1.train.jsonl")
    for name, field, title, low, high in (
        ("reward", "reward", "Stage 3: mean reward of the answers tried, by step", 3.0, 5.0),
        ("drift", "kl", "Stage 3: how far it went from stage 2 (KL a token), by step", 0.0, 0.04),
    ):
        lines = {
            said: [(line["step"], line[field]) for line in found if field in line] for said, found in reinforced.items()
        }
        chart(LOGS / f"{name}.svg", title, lines, low, high)


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


AIMS: tuple[tuple[str, tuple[str, str], float], ...] = (
    ("ahead of (a), the base model with the policy in its prompt", ("base", "context"), 0.0),
    ("within 5 points of (b), stage 1 with the policy in its prompt", ("stage1", "context"), -5.0),
    ("ahead of (c), answers only", ("answers", "none"), 0.0),
    ("ahead of (d), stage 2", ("stage2", "none"), 0.0),
)


def claims() -> str:
    """What we set out to show, and whether it came out; nothing where it was not measured."""
    rows = [[f"stage 3 {title}", *_held("stage3", other, least)] for title, other, least in AIMS]
    rows += [[f"(beside it: stage 2 {title})", *_held("stage2", other, least)] for title, other, least in AIMS[:3]]
    rows.append(["at least 40 % fewer words than (b)", *_fewer()])
    rows.append(["knowledge test 20 points over chance, and ahead of stage 1", *_knows()])
    rows.append(["fewer near-misses a write with the verified-compliance term", *_near()])
    rows.append(["three training seeds", *_seeds()])
    return table(["claim", "came out", "points in pass@1, or what was measured"], rows)


def _held(kind: str, other: tuple[str, str], least: float) -> list[str]:
    found = [one for one in gaps((kind, "none"), other) if "together" not in one[0]]
    if (kind, other[0]) == ("stage3", "stage2"):
        found += [(f"{which} (development)", one) for which, one in third()[:-1]]
    held = [100 * one.low > least for _, one in found]
    missed = [100 * one.high < least for _, one in found]
    word = "**yes**" if all(held) else "**no**" if any(missed) and not any(held) else "**not shown**"
    return [word, "; ".join(f"{which}: {points(one)}" for which, one in found)]


def _fewer() -> list[str]:
    mine, theirs = (summary(kind, (2, 3))[policy] for kind, policy in (("stage3", "none"), ("stage1", "context")))
    less, bare = (100 * (1 - mine[name] / theirs[name]) for name in ("words", "words_without_tools"))
    said = f"run 2, seed 3: {less:.1f} % fewer, {bare:.1f} % without the lines that tell the tools"
    return ["**yes**" if less >= 40 else "**no**", said]


def _knows() -> list[str]:
    mine, theirs = (summary(kind, (2, 3))["knowledge"] for kind in ("stage3", "stage1"))
    best = [max(one[form]["balanced"] for form in FORMS) for one in (mine, theirs)]
    said = (
        f"run 2, seed 3, the best of four forms at the median: stage 3 {percent(best[0])}, stage 1 {percent(best[1])}"
    )
    return ["**yes**" if best[0] >= 0.7 and best[0] > best[1] else "**no**", said]


def _near() -> list[str]:
    arms = (("with it", COMPLIANCE), ("without", "stage3"), ("before stage 3", "stage2"))
    found = [(name, summary(kind, (2, 3))["none"]) for name, kind in arms]
    said = "; ".join(f"{name} {percent(one['near_miss_rate'])} % of {one['writes']} writes" for name, one in found)
    broken = "; ".join(f"{name} {percent(one['violation_rate'])} %" for name, one in found)
    lower = found[0][1]["near_miss_rate"] < found[1][1]["near_miss_rate"]
    return ["**yes**" if lower else "**no**", f"run 2, seed 3: {said}. Writes that break a policy: {broken}"]


def _seeds() -> list[str]:
    arms = (("answers only", "answers", "none"), ("stage 1 in the prompt", "stage1", "context"))
    arms += (("stage 2", "stage2", "none"), ("stage 3", "stage3", "none"))
    counts = [f"{title}: {len({seed for _, seed in played(kind, policy)})}" for title, kind, policy in arms]
    counts.append("stage 3 by one recipe, on the development tasks alone (run 3): 3")
    return ["**no**", "; ".join(counts)]


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
    third_turns = [json.loads(line)["purpose"] for line in (THIRD / "turns.jsonl").read_text().splitlines()]
    found["parting"] = f"{len(third_turns):,}"
    found["parting_refuse"] = percent(third_turns.count("refuse") / len(third_turns))
    third_lines = [line for seed in SEEDS for line in _lines(THIRD / f"stage3-{seed}.train.jsonl")]
    found["told"] = percent(sum(line["learned_from"] for line in third_lines) / len(third_lines))
    found["kl_3"] = f"{max(line['kl'] for line in third_lines):.3f}"
    checked = [json.loads(text) for text in (FOURTH / "log.jsonl").read_text().splitlines()]
    found |= next(
        {name: percent(off) for name, off in one["gradient_off"].items()} for one in checked if "gradient_off" in one
    )
    found["alone_passed"] = percent(share(tasks(ALONE, "none", (4, 1))))
    fourth = _lines(FOURTH / "stage3_alone-1.train.jsonl")
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


def main() -> None:
    curves()
    text = (Path(__file__).parent / "align_page.md").read_text(encoding="utf-8")
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
        **lease,
    )
    (RESULTS / "align.md").write_text(filled, encoding="utf-8")


if __name__ == "__main__":
    main()
