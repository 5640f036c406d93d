"""Makes `docs/results/align.md` and its plots from the logs in `docs/results/align`, and from nothing else.

python benchmarks/align_page.py
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from align_chart import chart
from align_claims import points
from align_logs import (
    COMPLIANCE,
    PLACES,
    RESULTS,
    SEEDS,
    SIXTH,
    Place,
    middle,
    percent,
    share,
    summary,
    table,
    tasks,
    training,
)
from align_tables import ARMS, Model, changed, made_up, mean, policy_of, rollouts, sides

from bylaw.align.bootstrap import Interval, difference, interval, rate_difference
from bylaw.align.evaluation import Score, clusters

RUN = 6
OURS = tuple((RUN, seed) for seed in SEEDS)
EARLIER = (*PLACES, (5, 1))
"""Where stages 1 and 2 were trained by the same settings before."""
SHOWN = (
    *(ARMS[name] for name in ("a", "bare", "b", "c", "d")),
    ("**stage 3, without**", "stage3", "none", "PA3: 53.75"),
    ARMS["compliance"],
)
AIMS = (
    ("ahead of (a), the base model with the policy in its prompt", "base", 0.0),
    ("within 5 points of (b), stage 1 with the policy in its prompt, or ahead", "stage1", -5.0),
    ("ahead of (c), answers only", "answers", 0.0),
    ("ahead of (d), stage 2", "stage2", 0.0),
)
FORMS = {"plain": "by itself", "desk": "at the desk", "shown": "after four others with their answers"}
WORDS = ("words", "words_without_tools", "output_words")
LATER = (
    ("stage 2", "stage2", "50.01"),
    ("stage 2 + TF", "stage3-tf", "48.46"),
    ("stage 2 + TF + PR", "stage3-tf_pr", "49.26"),
    ("stage 2 + TF + PR + HP", "stage3-tf_pr_hp", "52.97"),
    ("stage 2 + TF + PR + HP + LP (stage 3)", "stage3", "53.75"),
    ("stage 3 with verified compliance", COMPLIANCE, ""),
    ("stage 2, unfiltered thoughts", "stage2_unfiltered", "49.04"),
    ("stage 3, unfiltered thoughts", "stage3_unfiltered", "48.80"),
)
"""The paper's tables 5 and 4, from the models of seed 1."""


def places_of(kind: str) -> tuple[Place, ...]:
    """Where the trainings of an arm lie, by seed: what run 1 has was not run again."""
    if kind == "base":
        return ((1, 1),)
    return ((1, 1), *OURS[1:]) if kind == "answers" else OURS


def found(kind: str) -> list[list[Score]]:
    """What became of the test tasks, by seed; the base model stands beside every seed."""
    scores = [tasks(kind, _policy(kind), place) for place in places_of(kind)]
    return scores * len(SEEDS) if kind == "base" else scores


def _policy(kind: str) -> str:
    return "context" if kind == "base" else policy_of(kind)


def results() -> str:
    """The paper's tables 1 and 2, with ours beside them."""
    rows: list[list[Any]] = []
    for title, kind, policy, paper in SHOWN:
        places = places_of(kind)
        scores, shown = [tasks(kind, policy, one) for one in places], [summary(kind, one)[policy] for one in places]
        whole = interval(clusters(*scores))
        cells = [", ".join(percent(share(one)) for one in scores)]
        cells.append(f"{percent(whole.mean)} ({percent(whole.low)} to {percent(whole.high)})")
        cells += [f"{middle(shown, name):,.0f}" for name in WORDS]
        cells += [percent(middle(shown, name)) for name in ("seen", "novel")]
        before = [tasks(kind, policy, place) for place in EARLIER] if kind in ("stage1", "stage2") else []
        cells.append(", ".join(percent(share(one)) for one in before if one))
        rows.append([title, *cells, paper])
    head = ["arm", "seeds 1, 2, 3", "mean (95 %)", "words a task", "without the lines that tell the tools"]
    return table([*head, "output words", "seen", "novel", "in earlier runs", "the paper, pass@1"], rows)


def gaps(one: str, other: str) -> dict[str, Interval]:
    """One arm less another, for all seeds together and seed by seed."""
    mine, theirs = found(one), found(other)
    together = difference(clusters(*mine), clusters(*theirs))
    pairs = zip(SEEDS, mine, theirs, strict=True)
    return {"all": together} | {f"seed {k}": difference(clusters(a), clusters(b)) for k, a, b in pairs}


def claims() -> str:
    """What we set out to show, and whether it came out."""
    rows = [[f"stage 3 {title}", *held("stage3", other, least)] for title, other, least in AIMS]
    rows[0][-1] += f". (a) passes {percent(share(found('base')[0]))} %: it does not keep to the form of a call"
    less = [100 * (1 - words("stage3", name) / words("stage1", name)) for name in WORDS[:2]]
    told = f"{less[0]:.1f} % fewer, {less[1]:.1f} % without the lines that tell the tools"
    rows.append(["at least 40 % fewer words than (b)", "**yes**" if less[0] >= 40 else "**no**", told])
    rows.append(["knowledge test 20 points over chance, and ahead of stage 1", *knows()])
    rows.append(["fewer near-misses a write with the verified-compliance term", *near()])
    return table(["claim", "came out", "points in pass@1 (95 %), or what was measured"], rows)


def held(kind: str, other: str, least: float) -> list[str]:
    gap = gaps(kind, other)
    return [verdict(gap, least), each_of(gap)]


def verdict(gap: Mapping[str, Interval], least: float = 0.0) -> str:
    """The one rule for rows that have intervals: more points are better, and more than `least` are wanted."""
    if all(100 * one.low > least for one in gap.values()):
        return "**yes**"
    return "**no**" if 100 * gap["all"].high < least else "**not shown**"


def each_of(gap: Mapping[str, Interval]) -> str:
    return "; ".join(f"{name}: {points(one)}" for name, one in gap.items())


def words(kind: str, name: str) -> float:
    return middle([summary(kind, place)[_policy(kind)] for place in places_of(kind)], name)


def best_form(kind: str) -> list[float]:
    """By seed the accuracy, at the median, in the form that does best."""
    return [max(one["balanced"] for one in summary(kind, place)["knowledge"].values()) for place in OURS]


def knows() -> list[str]:
    mine, theirs = best_form("stage3"), best_form("stage1")
    ahead = all(one >= 0.7 and one > other for one, other in zip(mine, theirs, strict=True))
    shown = [", ".join(map(percent, each)) for each in (mine, theirs)]
    told = f"the best of six forms, at the median, by seed: stage 3 {shown[0]} %; stage 1 {shown[1]} %"
    return ["**yes**" if ahead else "**no**", told]


def misses(kind: str, places: Sequence[Place] = OURS) -> dict[str, tuple[float, float]]:
    """By cluster of tasks, near-misses and writes."""
    total: dict[str, tuple[float, float]] = {}
    for one in (one for place in places for one in tasks(kind, "none", place)):
        near, writes = total.get(one.cluster, (0.0, 0.0))
        total[one.cluster] = near + one.near_misses, writes + one.writes
    return total


def invented(kind: str) -> dict[str, tuple[float, float]]:
    """By cluster of tasks, policies that thoughts of seed 1 make up, of all that they state."""
    total: dict[str, tuple[float, float]] = {}
    for one in tasks(kind, "none", (RUN, 1)):
        wrong, stated = total.get(one.cluster, (0.0, 0.0))
        total[one.cluster] = wrong + one.made_up, stated + one.made_up + one.recalled
    return total


def near() -> list[str]:
    arms = (("with it", COMPLIANCE), ("without", "stage3"), ("before stage 3", "stage2"))
    places = {"all": OURS} | {f"seed {place[1]}": (place,) for place in OURS}
    gap = {name: rate_difference(misses("stage3", each), misses(COMPLIANCE, each)) for name, each in places.items()}
    shown = "; ".join(f"{name} {rate(kind)}" for name, kind in arms)
    return [verdict(gap), f"{shown}. Fewer with it by {each_of(gap)}"]


def rate(kind: str) -> str:
    each = [summary(kind, place)["none"]["near_miss_rate"] for place in OURS]
    near, writes = (sum(column) for column in zip(*misses(kind).values(), strict=True))
    return f"{percent(near / writes)} % of {writes:,.0f} writes (by seed {', '.join(map(percent, each))})"


def models() -> dict[str, Model]:
    """The models of the three chains."""
    return {
        f"{kind[:-1]} {kind[-1]}, seed {k}": (kind, (RUN, k)) for kind in ("stage1", "stage2", "stage3") for k in SEEDS
    }


def chains() -> str:
    return sides(models())


def won() -> str:
    return changed({f"seed {k}": (("stage2", (RUN, k)), ("stage3", (RUN, k))) for k in SEEDS})


def tries() -> str:
    return rollouts(OURS)


def later() -> str:
    """The paper's tables 5 and 4, and verified compliance: from the models of seed 1, at equal steps."""
    first, rows = (RUN, 1), list[list[str]]()
    before = clusters(tasks("stage2", "none", first))
    for title, kind, paper in LATER:
        scores, seen = tasks(kind, "none", first), summary(kind, first)["none"]
        gap = "" if kind == "stage2" else points(difference(clusters(scores), before))
        cells = [percent(share(scores)), gap, made_up(kind, first), f"{seen['thought_words']:.0f}"]
        cells += [percent(seen["near_miss_rate"]), percent(seen["violation_rate"])]
        rows.append([title, *cells, paper])
    head = ["arm (seed 1)", "pass@1", "less stage 2, points (95 %)", "made-up policies of those stated"]
    head += ["words of thoughts a task", "near-misses a write (%)", "violations a write (%)", "the paper, pass@1"]
    return table(head, rows)


def knowledge() -> str:
    papers = {"stage1": "51.02", "stage2": "69.39", "stage3": "71.43"}
    rows: list[list[str]] = []
    for title, (kind, place) in models().items():
        known = summary(kind, place).get("knowledge")
        if not known:
            continue
        cells = [percent(known[f"{form}{after}"]["balanced"]) for form in FORMS for after in ("", ", recalled")]
        states = percent(known["plain, recalled"]["states_the_policy"])
        rows.append([title, *cells, f"{known['plain']['mass']:.0e}", states, papers[kind]])
    head = [f"{form}{after}" for form in FORMS.values() for after in ("", ", after a thought")]
    return table(["model", *head, "probability of Yes or No", "thoughts that state the policy (%)", "the paper"], rows)


def overrides() -> str:
    said = {title: summary(*model).get("override") for title, model in models().items()}
    return "; ".join(f"{title} {percent(one['passed'])} %" for title, one in said.items() if one)


def seconds() -> str:
    """Every arm that was trained."""
    kinds = ["stage1", "stage2", "stage3", "answers", COMPLIANCE, *(kind for _, kind, _ in LATER)]
    rows: list[list[Any]] = []
    for kind in dict.fromkeys(kinds):
        for place in (one for one in OURS if training(kind, one)):
            lines, said = training(kind, place), summary(kind, place)
            still = sum(not line["learning_rate"] or line["grad_norm"] != line["grad_norm"] for line in lines)
            took = [f"{said['training']['seconds']:.0f}", f"{said[policy_of(kind)]['seconds']:.0f}"]
            rows.append([f"{kind}-{place[1]}", lines[-1]["step"], lines[-1]["step"] - still, *took])
    return table(["arm", "steps", "steps that learn", "training, s", "playing the test tasks, s"], rows)


def curves() -> None:
    losses = {
        title: [(line["step"], line["loss"]) for line in training(*model)]
        for title, model in models().items()
        if model[0] != "stage3"
    }
    chart(SIXTH / "loss.svg", "Loss of stages 1 and 2, by step", losses, 0.0, 0.4)
    drifts = {
        title: [(line["step"], line["kl"]) for line in training(*model)]
        for title, model in models().items()
        if model[0] == "stage3"
    }
    drifts["unfiltered"] = [(line["step"], line["kl"]) for line in training("stage3_unfiltered", (RUN, 1))]
    chart(SIXTH / "drift.svg", "Stage 3: how far it went from stage 2 (KL a token), by step", drifts, 0.0, 0.0006)


def numbers() -> dict[str, str]:
    """The numbers that sentences tell."""
    said: dict[str, str] = {}
    for kind in ("stage1", "stage2", "stage3", "answers"):
        shares = [share(scores) for scores in found(kind)]
        said[f"{kind}_each"] = ", ".join(map(percent, shares))
        said[f"{kind}_mean"] = percent(mean(shares))
    rewards = [[line for line in training("stage3", place) if "reward" in line] for place in OURS]
    for name, step in (("first", 0), ("last", -1)):
        said[f"{name}_reward"] = f"{mean([one[step]['reward'] for one in rewards]):.3f}"
    said["unsure"] = f"{mean([one[0]['reward_std'] for one in rewards]) / (3 * 1024) ** 0.5:.2f}"
    drift = [line["kl"] for place in OURS for line in training("stage3", place)]
    said["most_kl"] = f"{max(drift) + 5e-5:.4f}"
    said["over_reading"], said["over_answers"] = (ahead(gaps("stage2", kind)["all"]) for kind in ("stage1", "answers"))
    readers, recallers = (
        [share(scores) for place in (*EARLIER, *OURS) if (scores := tasks(kind, policy_of(kind), place))]
        for kind in ("stage1", "stage2")
    )
    said |= {"readers": str(len(readers)), "best_reader": percent(max(readers))}
    said |= {"recallers": str(len(recallers)), "worst_recaller": percent(min(recallers))}
    said["spoilt_over_answers"] = ahead(difference(clusters(tasks("stage2_unfiltered", "none", (RUN, 1))), base_line()))
    said["clean_over_answers"] = ahead(gaps("stage2", "answers")["seed 1"])
    tried = json.loads((SIXTH / "stage2-1.development.json").read_text())
    said["developed"] = f"{percent(tried['passed'])} % of {len(tried['each'])}"
    said |= excused()
    said["behind"] = points(gaps("stage3", "stage2")["all"])
    said["with_compliance"] = points(gaps(COMPLIANCE, "stage3")["all"])
    said["fewer"] = f"{100 * (1 - words('stage3', 'words') / words('stage1', 'words')):.0f}"
    faults = [
        line["reward/compliance"] / 3 for place in OURS for line in training(COMPLIANCE, place) if "reward" in line
    ]
    broken = [summary("stage3", place)["none"]["violation_rate"] for place in OURS]
    said["broke"] = f"{percent(min(broken))} to {percent(max(broken))}"
    said["faulty"] = f"{100 * mean(faults):.2f}"
    for kind in ("stage2_unfiltered", "stage3_unfiltered"):
        said[kind] = percent(share(tasks(kind, "none", (RUN, 1))))
        said[f"{kind}_made_up"] = made_up(kind, (RUN, 1))
    said["unfiltered_gap"] = points(_pair("stage2_unfiltered", "stage2"))
    said["unfiltered_third_gap"] = points(_pair("stage3_unfiltered", "stage2_unfiltered"))
    said["stage2_made_up"] = made_up("stage2", (RUN, 1))
    near = rate_difference(misses("stage2_unfiltered", OURS[:1]), misses("stage2", OURS[:1]))
    said["unfiltered_near"] = points(near)
    said["cleaned"] = points(rate_difference(invented("stage3_unfiltered"), invented("stage2_unfiltered")))
    learned = [line["learned_from"] for line in training("stage3_unfiltered", (RUN, 1)) if "learned_from" in line]
    said["unfiltered_learned"] = f"{100 * mean(learned):.0f}"
    return said


def base_line() -> dict[str, list[float]]:
    """Answers only, seed 1."""
    return clusters(found("answers")[0])


def excused() -> dict[str, str]:
    """Rules that thoughts in test conversations state, and how many of them pass only by a value that was shown."""
    thoughts, spared = 0, dict[str, int]()
    for title, kind, _ in LATER:
        for place in (place for place in OURS if summary(kind, place)):
            bare = summary(kind, place)["none"]["hallucination"]
            thoughts += bare["thoughts"]
            more = bare["made_up"] - sum(one.made_up for one in tasks(kind, "none", place))
            if more:
                spared[f"{title}, seed {place[1]}"] = more
    listed = "; ".join(f"{title}: {more}" for title, more in spared.items())
    return {"weighed": f"{thoughts:,}", "excused": f"{sum(spared.values())} statements ({listed})"}


def ahead(gap: Interval) -> str:
    return f"{100 * gap.mean:.1f} points ({100 * gap.low:.1f} to {100 * gap.high:.1f})"


def _pair(one: str, other: str) -> Interval:
    mine, theirs = (clusters(tasks(kind, "none", (RUN, 1))) for kind in (one, other))
    return difference(mine, theirs)


def page() -> str:
    text = (Path(__file__).parent / "align_page.md").read_text(encoding="utf-8")
    tables = (results, claims, chains, won, tries, later, knowledge, overrides, seconds)
    lease = json.loads((SIXTH / "lease.json").read_text())
    return text.format(**{one.__name__: one() for one in tables}, **numbers(), **lease)


def main() -> None:
    curves()
    (RESULTS / "align.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
